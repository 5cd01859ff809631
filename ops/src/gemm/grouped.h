/* Products of groups of rows: what the array layer asks. */
#ifndef OPS_SRC_GEMM_GROUPED_H
#define OPS_SRC_GEMM_GROUPED_H

#include "tensor/context.h"

#include <ops/grouped.h>

#include <stdbool.h>

/* Checks that offsets ascend from at least 0 to at most `rows`. */
hal_status ops_gemm_grouped_check_host(const char *function, int64_t groups, int64_t rows,
                                       const int64_t *offsets);

/* Whether there is a product for each group rather than one kernel, of epilogues without places. */
bool ops_gemm_grouped_is_apart(const ops_context *context, bool has_offsets, bool has_host_offsets);

#endif
