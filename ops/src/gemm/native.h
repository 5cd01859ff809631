/* The native implementation of products: the kernel of the device's plugin. */
#ifndef OPS_SRC_GEMM_NATIVE_H
#define OPS_SRC_GEMM_NATIVE_H

#include "cache.h"

/* Plans the plugin's kernel for a product, in place or with copies of A and B, with levels of
 * Strassen's algorithm inside the kernel or none. `portable_ns`: the estimated time of the portable
 * implementation that is taken instead; 0: not known. UNSUPPORTED where the plugin has no kernel;
 * plan->native_needs tells why. */
hal_status ops_gemm_native_plan(ops_context *context, const ops_product *product, uint32_t levels,
                                double portable_ns, ops_gemm_plan *plan);

/* Records a plan; allocates all memory before it records anything. `keep`: the caller's product,
 * whose dispatch is kept in the cache, or null. */
hal_status ops_gemm_native_record(ops_context *context, const ops_product *product,
                                  const ops_gemm_plan *plan, const ops_product *keep);

/* Whether the plugin has a kernel with levels for contiguous matrices of one batch. */
bool ops_gemm_native_has_levels(ops_context *context, hal_type type, int64_t m, int64_t n,
                                int64_t k, uint32_t levels);

#endif
