/* One kernel of a product in the portable implementation. */
#ifndef OPS_SRC_GEMM_TASK_H
#define OPS_SRC_GEMM_TASK_H

#include "cache.h"
#include "candidates.h"
#include "tensor/dispatch.h"

/* The caller sets the product (transposed if key.swapped), key.swapped, key.reduce_partials,
 * `given` and k_all, which exceeds the product's k where its batches are parts of k, and
 * batch_first. */
typedef struct ops_gemm_task {
    ops_product product;
    const ops_gemm_tiles *given; /* the tiles; null: they are chosen */
    uint32_t k_all;
    bool is_general;      /* the kernel is that of a class; the caller clears it */
    uint32_t batch_first; /* of the caller's batch, as an epilogue sees it; strides are 0 above 0 */
    ops_matrix scales, zeros; /* of a quantised B, with key.quantisation.format */
    ops_matrix offsets;       /* of groups, with key.grouped: one row of one more than there are */
    ops_gemm_kernel_key key;
    ops_gemm_work work;
    ops_bindings bindings;
} ops_gemm_task;

/* Describes all that the choice of tiles depends on. */
hal_status ops_gemm_task_describe(const ops_context *context, ops_gemm_task *task);

/* Of a described task. */
ops_gemm_shape ops_gemm_task_shape(const ops_context *context, const ops_gemm_task *task);

/* The tiles of a described task that has one kernel. */
void ops_gemm_task_choose_tiles(const ops_context *context, const ops_gemm_task *task,
                                ops_gemm_tiles *tiles);

/* Describes the task's kernel and what it computes. */
hal_status ops_gemm_task_complete(const ops_context *context, ops_gemm_task *task);

/* Finds or compiles the kernel of a complete task, which may become that of its class. An entry is
 * valid until the next insertion. */
hal_status ops_gemm_task_find_kernel(ops_context *context, ops_gemm_task *task, ops_entry **entry);

/* Records the kernel; `kept` receives the dispatch, if there is one alone, and may be null. */
hal_status ops_gemm_task_record(ops_context *context, ops_gemm_task *task, const ops_entry *entry,
                                ops_product_dispatch *kept);

#endif
