/* Records products as their plans say. */
#ifndef OPS_SRC_GEMM_RECORD_H
#define OPS_SRC_GEMM_RECORD_H

#include "plan.h"

/* The plan of a product, from the cache if it is there. */
hal_status ops_gemm_plan_find(ops_context *context, const ops_product *product,
                              ops_gemm_plan *plan);

/* ops_gemm with resolved arguments: from the cache, or checked, planned and recorded. Where there
 * is no memory for a plan, and C is not written yet, a plan without it is recorded. */
hal_status ops_gemm_run(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                        const ops_tensor *b, const ops_tensor *c);

#endif
