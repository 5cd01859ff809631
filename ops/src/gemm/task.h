/* One kernel of a product in the portable implementation. Used by gemm/portable.c and
 * gemm/split_k.c. */
#ifndef OPS_SRC_GEMM_TASK_H
#define OPS_SRC_GEMM_TASK_H

#include "product.h"
#include "tensor/dispatch.h"

/* The caller sets the product (transposed if plan.swapped), plan.swapped, plan.reduce_partials and
 * k_all, which exceeds the product's k where its batches are parts of k, and batch_first. */
typedef struct ops_gemm_task {
    ops_product product;
    uint32_t k_all;
    uint32_t batch_first; /* of the caller's batch, as an epilogue sees it; strides are 0 above 0 */
    ops_gemm_plan plan;
    ops_gemm_work work;
    ops_bindings bindings;
} ops_gemm_task;

/* Plan the kernel, find or compile it, record it. An entry is valid until the next one is
 * inserted. */
hal_status ops_gemm_plan_task(ops_context *context, ops_gemm_task *task);
hal_status ops_gemm_find_kernel(ops_context *context, const ops_gemm_task *task, ops_entry **entry);
hal_status ops_gemm_record(ops_context *context, ops_gemm_task *task, const ops_entry *entry);

#endif
