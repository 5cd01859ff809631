/* A checked matrix product on its way through one of the two implementations. Shared by gemm.c,
 * which checks,
 * gemm/portable.c, gemm/split_k.c and gemm/native.c. */
#ifndef OPS_SRC_GEMM_PRODUCT_H
#define OPS_SRC_GEMM_PRODUCT_H

#include "tensor/context.h"
#include "plan.h"

#include <ops/gemm.h>

/* Element (batch, row, column) of a tensor at offset + batch * batch_stride + .... The stride of a
 * dimension of length 1 is 1. */
typedef struct ops_matrix {
    const ops_tensor *tensor;
    int64_t rows, columns;
    int64_t row_stride, column_stride, batch_stride;
} ops_matrix;

typedef struct ops_product {
    const ops_gemm_options *options;
    hal_type accumulator;
    uint32_t batch;
    ops_matrix a, b, c;
    ops_matrix inputs[OPS_GEMM_MAX_INPUTS]; /* those that there are; the rest is not set */
} ops_product;

/* Views a tensor of rank 2 or 3 as matrices, broadcast to `shape` of rank 3. */
ops_matrix ops_matrix_of(const ops_tensor *tensor, const int64_t shape[3]);

/* The two implementations. The native one answers UNSUPPORTED when it does not take the product. */
hal_status ops_gemm_portable(ops_context *context, const ops_product *product);
hal_status ops_gemm_native(ops_context *context, const ops_product *product);

#endif
