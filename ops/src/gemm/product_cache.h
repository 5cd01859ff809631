/* Products that were described before: a call with equal layouts and options records the kernel
 * that the earlier one found, without checks of anything that layouts and options decide. Small
 * products take less time than those checks. Used by gemm.c and native.c. */
#ifndef OPS_SRC_GEMM_PRODUCT_CACHE_H
#define OPS_SRC_GEMM_PRODUCT_CACHE_H

#include "product.h"

/* Records the product where it is in the cache and its tensors have memory for it that no two
 * share. Returns whether that was so; `status` receives the result of the dispatch. */
int ops_product_cache_record(ops_context *context, const ops_gemm_options *options,
                             const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                             hal_status *status);

/* Keeps a checked product without epilogue and its kernel, which needs no workspace. Without host
 * memory nothing is kept. */
void ops_product_cache_insert(ops_context *context, const ops_product *product,
                              const ops_entry *entry);

#endif
