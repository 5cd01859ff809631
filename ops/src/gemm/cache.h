/* Products that were described before: a call with equal layouts and options records the dispatches
 * that the earlier one recorded, without checks of anything that layouts and options decide. Small
 * products take less time than those checks. Used by gemm.c, native.c, portable.c, task.c and
 * split_k.c. */
#ifndef OPS_SRC_GEMM_PRODUCT_CACHE_H
#define OPS_SRC_GEMM_PRODUCT_CACHE_H

#include "product.h"

/* Records the product where it is in the cache and its tensors have memory for it that no two
 * share. Returns whether that was so; `status` receives the result of the dispatch. */
int ops_product_cache_record(ops_context *context, const ops_gemm_options *options,
                             const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                             hal_status *status);

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

/* Sets a dispatch; without a kernel where it has too many ranges or scalars. */
void ops_product_dispatch_set(ops_product_dispatch *dispatch, hal_kernel *kernel,
                              const uint32_t grid[3], const hal_range *ranges, uint32_t range_count,
                              const void *scalars, uint32_t scalar_bytes);

/* Keeps a checked product without epilogue, and its dispatches in their order, which may share
 * temporary memory of `workspace_bytes`, now in `workspace`. Without host memory, with a dispatch
 * that has no kernel, where C shares a buffer with A or B, or where the first choice lacked memory,
 * which may be there for the next call, nothing is kept. */
void ops_product_cache_insert(ops_context *context, const ops_product *product,
                              const ops_product_dispatch *dispatches, uint32_t count,
                              const hal_buffer *workspace, uint64_t workspace_bytes);

#endif
