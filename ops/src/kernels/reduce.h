/* A reduction: reduce.c checks and plans it, reduce_kernel.c builds the kernel. */
#ifndef OPS_SRC_KERNELS_REDUCE_H
#define OPS_SRC_KERNELS_REDUCE_H

#include "fold.h"
#include "tensor/expression.h"
#include "tensor/dispatch.h"

#define OPS_REDUCE_MAX_IN OPS_MAX_INPUTS

/* What the kernel of a pass depends on, apart from bindings, layout, group and axis. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_reduce_form {
    uint8_t kind;          /* ops_reduction */
    hal_type type;         /* of the values that are folded */
    hal_type result;       /* input 0 of the epilogue */
    uint8_t from_partials; /* inputs are partial values (and places) of an earlier pass */
    uint8_t to_partials;   /* outputs are partial values (and places) */
    uint8_t nested;        /* sums in two levels: blocks, then their sums */
    uint8_t unroll;
    uint8_t input_count, output_count, further_count;
    uint8_t has_prologue, has_epilogue;
} ops_reduce_form;
OPS_KEY_STRUCTURES_END

/* One kernel of a reduction. A long axis with few outputs takes two: the first folds slices of the
 * axis into partial results, the second folds those. Views are numbered inputs, outputs, further
 * inputs of the epilogue. */
typedef struct ops_reduce_pass {
    ops_reduce_form form;
    uint32_t slices; /* parts of the axis, along z of the grid */
    uint32_t slice_length;
    int64_t slice_stride; /* from one slice's outputs to the next, in elements */
    int64_t mean_length;  /* divisor of a mean */
    ops_tensor tensors[2 * OPS_REDUCE_MAX_IN]; /* of the views, with the axis in them */
    uint8_t slots[2 * OPS_REDUCE_MAX_IN];
    const ops_expression *prologue, *epilogue; /* null: none */

    ops_bindings bindings;
    ops_space space;
    ops_axis axis;
    ops_reduce_layout group;
    ops_layout layout;
} ops_reduce_pass;

/* Emits the kernel of a planned pass; `pass` is an ops_reduce_pass. */
void ops_reduce_emit(hal_ir_builder *b, const void *pass);

/* The scalars of a pass, in the order in which the kernel declares them. */
void ops_reduce_put(const ops_reduce_pass *pass, ops_block *block);

#endif
