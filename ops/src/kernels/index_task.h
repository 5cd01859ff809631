/* Elementwise kernels that find elements by index: their tensors, scalars and dispatch. */
#ifndef OPS_SRC_KERNELS_INDEX_TASK_H
#define OPS_SRC_KERNELS_INDEX_TASK_H

#include "elementwise.h"
#include "tensor/bindings.h"
#include "tensor/kernel_cache.h"

#define OPS_INDEX_TENSORS 4u
#define OPS_INDEX_SCALARS 32u

/* The kernel: what its body needs, and its dispatch. */
typedef struct ops_index_task {
    const char *function;     /* in messages */
    const char *name;         /* of the kernel */
    uint32_t family, variant; /* parts of the key; the latter is the body's */
    const void *form;         /* the rest of the key, of the body's own; null: none */
    uint32_t form_bytes;
    ops_elementwise_body body;
    const char *scalar_names[OPS_INDEX_SCALARS]; /* after those of the layout; null: none */
    hal_type scalar_type;                        /* NONE: that of indices */
    hal_type storage;                            /* of the output */
    int64_t reach;                               /* as in ops_layout_choose */
    uint32_t loaded; /* this and the next ones: as in ops_elementwise_use */
    uint8_t repeatable, indexed;
    uint32_t work;
    int64_t offsets[OPS_INDEX_TENSORS]; /* of the tensors in their buffers, in elements */
    uint32_t empty;                     /* a bit for each tensor without elements */
    uint32_t tensor_count;
    uint8_t slots[OPS_INDEX_TENSORS]; /* bindings of the tensors */
    ops_bindings bindings;
    ops_space space;
    ops_elementwise_plan plan;
} ops_index_task;

/* What a body gets. */
typedef struct ops_index_body {
    const ops_index_task *task;
    hal_ir_value scalars[OPS_INDEX_SCALARS];
} ops_index_body;

/* Checks a tensor of indices; that an output and an input have no memory in common. */
hal_status ops_check_indices(const ops_context *context, const char *function,
                             const ops_tensor *indices);
hal_status ops_check_apart(const char *function, const char *argument, const ops_tensor *in,
                           const ops_tensor *out);

/* Adds a tensor to the task's bindings and space, whose order is that of the first one. */
void ops_index_add(const ops_context *context, ops_index_task *t, const ops_tensor *tensor,
                   uint32_t access);

/* The same for a view of the tensor: of some of its elements, from which the body reaches others,
 * or one that may reach beyond it, where the body tests coordinates. */
void ops_index_add_view(const ops_context *context, ops_index_task *t, const ops_tensor *tensor,
                        const ops_tensor *view, uint32_t access);

/* A view in a space that steps through `of` by `strides` along the first `count` axes, and not at
 * all along the others. */
ops_tensor ops_index_spread(const ops_tensor *space, const ops_tensor *of, uint32_t count,
                            const int64_t *strides);

/* Plans the kernel with at most `widest` neighbours for a work-item, finds it, and starts the block
 * of scalars with those of the layout. */
hal_status ops_index_prepare(ops_context *context, ops_index_task *t, uint32_t widest,
                             ops_block *block, ops_entry **entry);

/* Records a task that adds no scalars. */
hal_status ops_index_record(ops_context *context, ops_index_task *t, uint32_t widest);

/* An I32 or I64 index as an unsigned number, in which negative ones are huge, and *other in the
 * same type, so that both can be compared. */
hal_ir_value ops_index_comparable(hal_ir_builder *b, const ops_element_iter *iter,
                                  hal_ir_value index, hal_ir_value *other);

#endif
