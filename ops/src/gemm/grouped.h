/* Products of groups of rows: what the array layer asks. */
#ifndef OPS_SRC_GEMM_GROUPED_H
#define OPS_SRC_GEMM_GROUPED_H

#include "tensor/context.h"

#include <ops/grouped.h>

#include <stdbool.h>

/* Checks that offsets ascend from at least 0 to at most `rows`. */
hal_status ops_gemm_grouped_check_host(const char *function, int64_t groups, int64_t rows,
                                       const int64_t *offsets);

/* Whether a product whose arguments ops_gemm_grouped takes is computed in another way with its
 * epilogue than without, and so in another order of additions; products for each group may each be.
 *   product  C without the epilogue, of which the layout alone is read */
bool ops_gemm_grouped_epilogue_changes(ops_context *context, const ops_gemm_options *options,
                                       const ops_tensor *a, const ops_tensor *b,
                                       const ops_tensor *offsets, const int64_t *host_offsets,
                                       const ops_tensor *c, const ops_tensor *product);

#endif
