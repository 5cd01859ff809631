/* Split-K: one kernel computes partial sums over parts of k, a second kernel adds them. */
#ifndef OPS_SRC_GEMM_SPLIT_K_H
#define OPS_SRC_GEMM_SPLIT_K_H

#include "task.h"

/* Records a planned product in parts of `depth` steps of k. `keep`: the product of the caller, for
 * the product cache; null: it is not kept. Errors: OUT_OF_MEMORY for the partial
 * sums, with nothing recorded; those of ops_gemm_find_kernel and ops_gemm_record. */
hal_status ops_gemm_split_k(ops_context *context, const ops_gemm_task *task, uint32_t depth,
                            const ops_product *keep);

#endif
