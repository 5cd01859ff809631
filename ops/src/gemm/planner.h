/* The planner of products: levels of Strassen's algorithm where they gain, then the plugin's
 * kernel, else the portable one. */
#ifndef OPS_SRC_GEMM_PLANNER_H
#define OPS_SRC_GEMM_PLANNER_H

#include "exact/exact.h"
#include "normwise/normwise.h"
#include "plan.h"

/* Plans a product. Records and allocates nothing on the device; a plugin may compile a kernel.
 * Errors: UNSUPPORTED for what options.impl or options.config ask for. */
hal_status ops_gemm_plan_make(ops_context *context, const ops_product *product, uint32_t without,
                              ops_gemm_plan *plan);

/* The same with the portable kernel of the i-th least estimated time, from 1 on. */
hal_status ops_gemm_plan_make_ranked(ops_context *context, const ops_product *product,
                                     uint32_t rank, ops_gemm_plan *plan);

/* Of a product of the class NORMWISE. */
ops_normwise_shape ops_gemm_normwise_shape(const ops_product *product);

/* Of a product of the class EXACT, without what multiplies bytes. */
ops_exact_product ops_gemm_exact_product(const ops_product *product);

#endif
