/* Matrix products of the class HAL_GEMM_EXACT, of F64 by products of bytes: the one header of this
 * folder for the others. The planner of products describes them, and the recorder calls
 * ops_exact_multiply. */
#ifndef OPS_SRC_GEMM_EXACT_EXACT_H
#define OPS_SRC_GEMM_EXACT_EXACT_H

#include "tensor/context.h"

#include <ops/gemm.h>

/* Multiplies matrices of bytes: ops_gemm. */
typedef hal_status (*ops_exact_multiply_bytes)(ops_context *context,
                                               const ops_gemm_options *options, const ops_tensor *a,
                                               const ops_tensor *b, const ops_tensor *c);

/* C = alpha A B + beta C of checked arguments. Tensors of F64 of rank 3. */
typedef struct ops_exact_product {
    ops_exact_multiply_bytes multiply;
    ops_tensor a, b, c;     /* [batch, m, k], [batch, k, n], [batch, m, n], none of them empty but
                             * for k; those that all products share have a stride of 0 */
    double alpha, beta;     /* C is not read where beta is 0; alpha counts as 1 where k is 0 */
    ops_gemm_impl impl;     /* of the products of bytes */
    uint64_t max_workspace; /* bytes; 0: an eighth of the device's memory */
} ops_exact_product;

/* The part of C that is computed at a time. */
typedef struct ops_exact_block {
    int64_t batch, m, n;
    uint64_t bytes; /* of temporary memory; 0: each element is computed from the operands */
} ops_exact_block;

ops_exact_block ops_exact_choose_block(const ops_context *context,
                                       const ops_exact_product *product);

/* Records a product. Where there is no memory, smaller blocks follow. Errors: those of kernels and
 * dispatches, OUT_OF_MEMORY; C may then be written in part. */
hal_status ops_exact_multiply(ops_context *context, const ops_exact_product *product);

#endif
