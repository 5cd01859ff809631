/* Kernels of recurrent layers over all time steps (lstm.c, gru.c): one group for each row of the
 * batch. Work-item `gate * hidden + j` computes a gate of hidden value j; the others of the group
 * learn of it through shared memory. */
#ifndef OPS_SRC_KERNELS_RECURRENT_H
#define OPS_SRC_KERNELS_RECURRENT_H

#include "tensor/bindings.h"
#include "tensor/context.h"
#include "tensor/kernel_cache.h"

#include <stdbool.h>

#define OPS_RECURRENT_TENSORS 9u

/* What a kernel depends on, next to bindings. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_recurrent_form {
    uint32_t type, hidden;
    uint32_t gates; /* that work-items compute */
    uint32_t is_reversed;
    uint32_t is_gradient;
    uint32_t present; /* a bit for each tensor that is there */
} ops_recurrent_form;
OPS_KEY_STRUCTURES_END

typedef struct ops_recurrent_call {
    const char *function, *kernel;
    uint32_t family;
    ops_kernel_emit emit; /* its `user` is the call */
    ops_recurrent_form form;
    int64_t steps, batch;
    const ops_tensor *tensors[OPS_RECURRENT_TENSORS]; /* null: absent */
    uint32_t first_output;                            /* the first of them that is written */
    uint32_t strided; /* bits of those with two axes that may have any strides */
    uint8_t slots[OPS_RECURRENT_TENSORS];
    ops_bindings bindings;
} ops_recurrent_call;

/* ---- Emission ---- */

/* The values that all parts of a kernel use. */
typedef struct ops_recurrent_kernel {
    hal_ir_builder *b;
    const ops_recurrent_call *call;
    hal_ir_value steps, batch, base[OPS_RECURRENT_TENSORS];
    hal_ir_value stride[OPS_RECURRENT_TENSORS][2]; /* of strided tensors: rows, columns */
    hal_ir_value item, row;                        /* work-item of the group; row of the batch */
    hal_ir_value gate, j;
    hal_ir_value is_first; /* whether it is the work-item of gate 0 */
} ops_recurrent_kernel;

ops_recurrent_kernel ops_recurrent_begin(hal_ir_builder *b, const ops_recurrent_call *call);

hal_ir_value ops_recurrent_constant(const ops_recurrent_kernel *k, uint32_t value);
hal_ir_value ops_recurrent_number(const ops_recurrent_kernel *k, double value);

/* Element `column` of the row of the batch, of a line of `width` elements of tensor `t`, of a step
 * or without (HAL_IR_NONE): its index; its value, 0 of an absent tensor; a store by the first
 * gate's work-item. */
hal_ir_value ops_recurrent_index(const ops_recurrent_kernel *k, uint32_t t, hal_ir_value step,
                                 uint32_t width, hal_ir_value column);
hal_ir_value ops_recurrent_load(const ops_recurrent_kernel *k, uint32_t t, hal_ir_value step,
                                uint32_t width, hal_ir_value column);
void ops_recurrent_store(const ops_recurrent_kernel *k, uint32_t t, hal_ir_value step,
                         hal_ir_value value);

/* Element j of a strided tensor's row. */
hal_ir_value ops_recurrent_initial(const ops_recurrent_kernel *k, uint32_t t);

/* The sum of the products of shared memory from `first` on and elements of tensor `w` from `at` on
 * that are `stride` apart, of all hidden values. */
hal_ir_value ops_recurrent_dot(const ops_recurrent_kernel *k, hal_ir_memory_id shared,
                               hal_ir_value first, uint32_t w, hal_ir_value at, uint32_t stride);

/* The gradient of h that a step gets from the gradients `sums` of the step after it: each work-item
 * adds the products of its gate, then all add these `parts`. `w` is [gates hidden, hidden]. Has a
 * barrier, which also ends the reads of what `parts` held. */
hal_ir_value ops_recurrent_back(const ops_recurrent_kernel *k, hal_ir_memory_id sums,
                                hal_ir_memory_id parts, uint32_t w);

hal_ir_value ops_recurrent_sigmoid(const ops_recurrent_kernel *k, hal_ir_value x);
hal_ir_value ops_recurrent_tanh(const ops_recurrent_kernel *k, hal_ir_value x);
/* The derivatives of both for the value y. */
hal_ir_value ops_recurrent_sigmoid_slope(const ops_recurrent_kernel *k, hal_ir_value y);
hal_ir_value ops_recurrent_tanh_slope(const ops_recurrent_kernel *k, hal_ir_value y);

/* The value of the work-item's gate among those of all gates. */
hal_ir_value ops_recurrent_select(const ops_recurrent_kernel *k, const hal_ir_value *of_gate);

/* Step `i` in order; state before or after it. */
hal_ir_value ops_recurrent_step(const ops_recurrent_kernel *k, hal_ir_value i);
hal_ir_value ops_recurrent_state(const ops_recurrent_kernel *k, hal_ir_value step, bool is_after);
/* The state before the first step. */
hal_ir_value ops_recurrent_first_state(const ops_recurrent_kernel *k);

/* ---- Checks and recording ---- */

/* Checks a layer's tensor of 4 values for each hidden one, and takes the sizes and type from it. */
hal_status ops_recurrent_check_layer(const ops_context *context, uint32_t size, uint32_t expected,
                                     uint32_t is_reversed, const ops_tensor *gates,
                                     ops_recurrent_call *call);

/* Checks that a tensor has a shape, and no gaps unless it is strided, and is written from
 * first_output on; sets it as tensor `t`. Null is absent. */
hal_status ops_recurrent_add(const ops_context *context, ops_recurrent_call *call, uint32_t t,
                             const char *name, const ops_tensor *tensor, uint32_t rank,
                             const int64_t *shape);

/* Records the kernel when all tensors are added. */
hal_status ops_recurrent_record(ops_context *context, ops_recurrent_call *call);

#endif
