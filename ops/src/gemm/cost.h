/* The cost model of split-K: whether a product is computed in parts of k. Called by
 * gemm/portable.c. */
#ifndef OPS_SRC_GEMM_COST_H
#define OPS_SRC_GEMM_COST_H

#include "plan.h"

/* How many steps of k a part takes where the product, which is planned as a whole, is to be
 * computed in parts of k side by side that are added then: where a count of what a GPU does says
 * that this is faster by a fourth at least. 0 where not. */
uint32_t ops_gemm_choose_split_k(const hal_device_info *info, const ops_gemm_plan *plan,
                                 const ops_gemm_work *work, uint32_t batch);

#endif
