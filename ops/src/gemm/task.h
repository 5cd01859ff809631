/* One kernel of a product in the portable implementation: planned, found or made, recorded. Used by
 * gemm/portable.c and gemm/split_k.c. */
#ifndef OPS_SRC_GEMM_TASK_H
#define OPS_SRC_GEMM_TASK_H

#include "product.h"
#include "tensor/dispatch.h"

/* A product on its way through the portable implementation, perhaps with rows and columns
 * exchanged. The caller sets the product, plan.swapped, plan.reduce_partials and k_all, which is
 * more than the product's k where its batches are parts of k. */
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

#endif
