/* A checked matrix product on its way through one of the two implementations. Shared by gemm.c,
 * which checks,
 * gemm/portable.c, gemm/split.c and gemm/native.c. */
#ifndef OPS_SRC_GEMM_PRODUCT_H
#define OPS_SRC_GEMM_PRODUCT_H

#include "tensor/context.h"
#include "kernel.h"

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

/* A product on its way through the portable implementation, perhaps with rows and columns
 * exchanged. The caller sets the product, plan.swapped and plan.adds, and k_all, which is more
 * than the product's k where its batches are parts of k. */
typedef struct ops_gemm_task {
    ops_product product;
    uint32_t k_all;
    ops_gemm_plan plan;
    ops_gemm_work work;
    ops_bindings bindings;
} ops_gemm_task;

/* Plans the kernel; finds or makes it; records it. An entry is valid until the next one is made. */
hal_status ops_gemm_plan_task(ops_context *context, ops_gemm_task *task);
hal_status ops_gemm_find_kernel(ops_context *context, const ops_gemm_task *task, ops_entry **entry);
hal_status ops_gemm_record(ops_context *context, ops_gemm_task *task, const ops_entry *entry);

/* Records a planned product as parts of `depth` steps of k, side by side, and what adds them.
 * Errors: OUT_OF_MEMORY, and nothing is recorded, where the parts find no memory; what kernels and
 * dispatches meet. */
hal_status ops_gemm_split(ops_context *context, const ops_gemm_task *task, uint32_t depth);

#endif
