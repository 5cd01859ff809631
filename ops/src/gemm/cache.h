/* The cache of plans of products. An entry has the plan of a shape, which takes microseconds to
 * make, and the dispatches of the last product of that shape: a call with equal layouts and options
 * records them again, without checks of anything that layouts and options decide. Small products
 * take less time than those checks. */
#ifndef OPS_SRC_GEMM_CACHE_H
#define OPS_SRC_GEMM_CACHE_H

#include "plan.h"

#define OPS_PRODUCT_DISPATCHES 2u /* of one product */
#define OPS_PRODUCT_RANGES 4u     /* of one dispatch */
#define OPS_PRODUCT_SCALARS 16u   /* words of 8 bytes */

/* A dispatch of a product, whose kernel is in the context's cache. */
typedef struct ops_product_dispatch {
    hal_kernel *kernel; /* null: it cannot be kept */
    uint32_t grid[3], range_count, scalar_bytes;
    hal_range ranges[OPS_PRODUCT_RANGES];
    uint64_t scalars[OPS_PRODUCT_SCALARS];
} ops_product_dispatch;

/* Records the product where its dispatches are in the cache and its tensors have memory for it that
 * no two share. Returns whether that was so; `status` receives the result of the dispatch. */
bool ops_gemm_cache_replay(ops_context *context, const ops_gemm_options *options,
                           const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                           hal_status *status);

/* The hash of all that the plan of a product depends on. Not for sums. */
void ops_gemm_cache_key(const ops_context *context, const ops_product *product, uint64_t key[2]);

/* The plan of a key, or null; valid until the next insertion. */
const ops_gemm_plan *ops_gemm_cache_find(const ops_context *context, const ops_product *product,
                                         const uint64_t key[2]);

/* Without host memory nothing is kept. */
void ops_gemm_cache_insert(ops_context *context, const ops_product *product, const uint64_t key[2],
                           const ops_gemm_plan *plan);

/* Sets a dispatch; without a kernel where it has too many ranges or scalars. */
void ops_product_dispatch_set(ops_product_dispatch *dispatch, hal_kernel *kernel,
                              const uint32_t grid[3], const hal_range *ranges, uint32_t range_count,
                              const void *scalars, uint32_t scalar_bytes);

/* Keeps the dispatches of a product in their order, which may share temporary memory of
 * `workspace_bytes`, now in `workspace`. Nothing is kept with an epilogue, with a dispatch that has
 * no kernel, or where C shares a buffer with A or B. */
void ops_gemm_cache_keep(ops_context *context, const ops_product *product,
                         const ops_product_dispatch *dispatches, uint32_t count,
                         const hal_buffer *workspace, uint64_t workspace_bytes);

#endif
