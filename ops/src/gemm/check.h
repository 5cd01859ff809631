/* Checks of the arguments of products. */
#ifndef OPS_SRC_GEMM_CHECK_H
#define OPS_SRC_GEMM_CHECK_H

#include "product.h"

/* The caller's options, or those of the plain product; B becomes the prepared one. */
hal_status ops_gemm_resolve(const ops_gemm_options **options, const ops_tensor **b);

hal_status ops_gemm_check_options(const ops_gemm_options *options);

/* Checks all but the options' own fields and the memory of B. */
hal_status ops_gemm_check_matrices(const ops_context *context, const ops_gemm_options *options,
                                   const ops_tensor *a, const ops_tensor *b, const ops_tensor *c);

/* The most groups of a product: a tile has at most 2^10 rows, and rows of tiles are
 * counted in 32 bits. */
#define OPS_GEMM_MAX_GROUPS (1u << 20)

/* Checks the matrices of a product of groups of rows: a is [rows, k], b [groups, k, n], c [rows,
 * n]. */
hal_status ops_gemm_check_groups(const ops_context *context, const ops_gemm_options *options,
                                 const ops_tensor *a, const ops_tensor *b, const ops_tensor *c);

/* Checks resolved arguments and sets the product of them, which refers to them. */
hal_status ops_gemm_check(const ops_context *context, const ops_gemm_options *options,
                          const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                          ops_product *product);

#endif
