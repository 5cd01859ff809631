/* The portable implementation of products: kernels of IR, one or two for split-K. */
#ifndef OPS_SRC_GEMM_PORTABLE_H
#define OPS_SRC_GEMM_PORTABLE_H

#include "cache.h"

/* The k of one kernel whose loops the device can execute; a multiple of OPS_GEMM_DEPTH_STEP. Null
 * options are those of a plain product. */
int64_t ops_gemm_longest_k(const ops_context *context, const ops_gemm_options *options);

/* Plans the kernel with the i-th least estimated time, from 1 on. `without`: OPS_GEMM_WITHOUT_SPLIT
 * or 0. Errors: UNSUPPORTED where the device binds too few tensors, has fewer kernels, none for
 * options.config, or none with separable operands for so long a k. */
hal_status ops_gemm_portable_plan(ops_context *context, const ops_product *product,
                                  uint32_t without, uint32_t rank, ops_gemm_plan *plan);

/* Records a plan. `keep`: the caller's product, whose dispatches are kept in the cache, or null.
 * Errors: OUT_OF_MEMORY for partial sums, with nothing recorded. */
hal_status ops_gemm_portable_record(ops_context *context, const ops_product *product,
                                    const ops_gemm_plan *plan, const ops_product *keep);

#endif
