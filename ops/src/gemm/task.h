/* One kernel of a product in the portable implementation. Used by gemm/portable.c and
 * gemm/split_k.c. */
#ifndef OPS_SRC_GEMM_TASK_H
#define OPS_SRC_GEMM_TASK_H

#include "candidates.h"
#include "product.h"
#include "product_cache.h"
#include "tensor/dispatch.h"

/* The caller sets the product (transposed if plan.swapped), plan.swapped, plan.reduce_partials,
 * `given` and k_all, which exceeds the product's k where its batches are parts of k, and
 * batch_first. */
typedef struct ops_gemm_task {
    ops_product product;
    const ops_gemm_tiles *given; /* the tiles; null: they are chosen */
    uint32_t k_all;
    uint32_t batch_first; /* of the caller's batch, as an epilogue sees it; strides are 0 above 0 */
    ops_gemm_plan plan;
    ops_gemm_work work;
    ops_bindings bindings;
} ops_gemm_task;

/* Plan the kernel, find or compile it, record it; `kept` receives the dispatch, if there is one
 * alone, and may be null. An entry is valid until the next one is inserted. */
hal_status ops_gemm_plan_task(ops_context *context, ops_gemm_task *task);

/* Finds the way with the i-th least estimated time, from 1 on, to compute the product of a task on
 * a GPU, in parts of k too if `has_parts`; its plan is not needed yet. UNSUPPORTED where there are
 * fewer. */
hal_status ops_gemm_find_way(ops_context *context, ops_gemm_task *task, int has_parts,
                             uint32_t number, ops_gemm_candidate *candidate);
hal_status ops_gemm_find_kernel(ops_context *context, const ops_gemm_task *task, ops_entry **entry);
hal_status ops_gemm_record(ops_context *context, ops_gemm_task *task, const ops_entry *entry,
                           ops_product_dispatch *kept);

#endif
