/* The cost model of split-K. Called by gemm/portable.c. */
#ifndef OPS_SRC_GEMM_COST_H
#define OPS_SRC_GEMM_COST_H

#include "plan.h"

/* Steps of k of a part, where split-K is faster than the planned product by at least a fourth; 0
 * for no split-K. */
uint32_t ops_gemm_choose_split_k(const hal_device_info *info, const ops_gemm_plan *plan,
                                 const ops_gemm_work *work, uint32_t batch);

#endif
