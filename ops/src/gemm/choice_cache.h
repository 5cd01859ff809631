/* Choices of gemm/candidates.c that were made before. A choice takes microseconds, which is more
 * than a small product takes. Used by task.c. */
#ifndef OPS_SRC_GEMM_CHOICE_CACHE_H
#define OPS_SRC_GEMM_CHOICE_CACHE_H

#include "candidates.h"
#include "tensor/context.h"

/* Finds the candidate with the least estimated time, as ops_gemm_find_candidate does for the
 * context's device. */
void ops_gemm_choose(ops_context *context, const ops_gemm_shape *shape, int has_parts,
                     ops_gemm_candidate *found);

#endif
