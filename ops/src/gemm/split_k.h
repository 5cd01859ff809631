/* Split-K: a product in parts of k that a second kernel adds. Called by gemm/portable.c. */
#ifndef OPS_SRC_GEMM_SPLIT_K_H
#define OPS_SRC_GEMM_SPLIT_K_H

#include "task.h"

/* Records a planned product as parts of `depth` steps of k, side by side, and what adds them.
 * Errors: OUT_OF_MEMORY, and nothing is recorded, where the parts find no memory; what kernels and
 * dispatches meet. */
hal_status ops_gemm_split_k(ops_context *context, const ops_gemm_task *task, uint32_t depth);

#endif
