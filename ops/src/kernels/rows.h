/* Row programs: elementwise steps and reductions along one axis that one kernel computes. A group
 * takes a row, or several: it keeps their elements in registers where they fit, and reads them once
 * for each reduction otherwise. Few long rows are cut into slices for several groups. rows.c plans
 * and dispatches a kernel, rows_kernel.c builds it, and rows_sliced.c divides programs of slices
 * into kernels.
 *
 * A program is a list of values: first the inputs, then one value for each step. A value is of the
 * row (the same for all its elements: an input that is broadcast along the axis, a reduction, and
 * what is computed from such values alone) or of each element. */
#ifndef OPS_SRC_KERNELS_ROWS_H
#define OPS_SRC_KERNELS_ROWS_H

#include "fold.h"
#include "tensor/bindings.h"

#include <stdbool.h>

#define OPS_ROW_VALUES 128u
#define OPS_ROW_OPERANDS 320u
#define OPS_ROW_OUTPUTS 8u
#define OPS_ROW_SLOTS 64u /* elements of a work-item that a kernel holds at once, at most */

/* Computes a step from its operands. */
typedef hal_ir_value (*ops_row_function)(hal_ir_builder *b, const void *user,
                                         const hal_ir_value *operands);

/* Kinds of steps besides reductions: those of ops_reduction, and OPS_FOLD_SOFTMAX, whose value is
 * the greatest. */
enum {
    OPS_ROW_MAP = 32, /* a function of its operands */
    OPS_ROW_PLACE     /* the place (ARGMAX: U32) or sum that belongs to a reduction's value */
};

typedef struct ops_row_step {
    uint8_t kind;
    hal_type type; /* of what a reduction folds */
    uint16_t first_operand, operand_count;
    ops_row_function function; /* of a MAP */
    const void *user;
    uint64_t key[2]; /* decides what the function emits */
} ops_row_step;

typedef struct ops_row_program {
    uint32_t input_count, value_count, operand_count, output_count;
    uint8_t operands[OPS_ROW_OPERANDS];
    uint8_t outputs[OPS_ROW_OUTPUTS];
    ops_row_step steps[OPS_ROW_VALUES]; /* of values from input_count on */
    int overflowed;                     /* a limit was exceeded */
    uint8_t costly;                     /* value that is rather stored than computed again */
    hal_type costly_type;
    uint8_t exponential; /* OPS_ROW_EXP_*: of OPS_FOLD_SOFTMAX's elements */
} ops_row_program;

/* How a program computes exp of an element less the greatest: by HAL_IR_EXP, or by ops_exp_below,
 * whose second form is for results of a narrow type. */
enum { OPS_ROW_EXP_FULL, OPS_ROW_EXP_BELOW, OPS_ROW_EXP_NARROW };

/* First words of the keys of maps; the hash of an expression is none of them. */
enum {
    OPS_ROW_KEY_UNARY = 1,
    OPS_ROW_KEY_BINARY,
    OPS_ROW_KEY_INDEX,
    OPS_ROW_KEY_RECIPROCAL,
    OPS_ROW_KEY_EXP_BELOW,
    OPS_ROW_KEY_NODE
};

/* Each returns the number of the new value. A reduction of partial states has two operands: values
 * and places (or sums). */
void ops_row_begin(ops_row_program *program, uint32_t input_count);
uint8_t ops_row_map(ops_row_program *program, ops_row_function function, const void *user,
                    const uint64_t key[2], const uint8_t *operands, uint32_t count);
uint8_t ops_row_reduce(ops_row_program *program, uint32_t kind, hal_type type,
                       const uint8_t *operands, uint32_t count);
uint8_t ops_row_place(ops_row_program *program, uint8_t reduction);
void ops_row_output(ops_row_program *program, uint8_t value);

/* Says that computing a value of elements again costs more than storing it: a processor keeps it in
 * the memory of the only output, if that has the value's type and is not an input. */
void ops_row_keep(ops_row_program *program, uint8_t value, hal_type type);

/* The second operand of a map that has one. */
#define OPS_ROW_NONE 255u

/* Maps by an opcode of one or two operands, by an expression's first output, to a type from a place
 * of ARGMAX, and to what memory of a type holds. */
uint8_t ops_row_opcode(ops_row_program *program, uint32_t opcode, uint8_t x, uint8_t y);
uint8_t ops_row_expression(ops_row_program *program, const ops_expression *expression,
                           const uint8_t *operands, uint32_t count);
uint8_t ops_row_index(ops_row_program *program, hal_type type, uint8_t place);

/* The group and the slices of the axis that a reduction of `x` takes. They decide the order of
 * additions, and depend on shape, strides and the device's limits alone, so that fusing does not
 * change a result. What a kernel computes itself has the strides that it would have in memory. */
typedef struct ops_row_layout {
    ops_reduce_layout group;
    uint32_t slices;       /* above 1: partial results of that many slices are folded */
    uint32_t slice_length; /* elements */
} ops_row_layout;

/* `steps`: elements that a work-item's loops may take, see loop_limit.h; more of them make slices.
 * Errors: UNSUPPORTED for an axis that is too long for that. */
hal_status ops_row_layout_choose(const ops_context *context, const char *function,
                                 const ops_tensor *x, uint32_t axis, hal_type type, int64_t steps,
                                 ops_row_layout *layout);

/* The same for what is folded in one kernel: partial results. */
void ops_row_layout_whole(const ops_context *context, const ops_tensor *x, uint32_t axis,
                          hal_type type, ops_row_layout *layout);

/* Changes the layout of a program that reads `x` several times, and that is not to have the bits of
 * other reductions, so that a group keeps more of it. */
void ops_row_layout_keep(const ops_context *context, const ops_tensor *x, uint32_t axis,
                         hal_type type, ops_row_layout *layout);

/* Whether a kernel keeps `words` words of 32 bits for each element of a row in registers. */
bool ops_row_layout_keeps(const ops_context *context, const ops_row_layout *layout, int64_t length,
                          uint32_t words);

/* A program over a shape. */
typedef struct ops_row_call {
    const char *function, *name; /* for messages; of the kernel */
    const ops_row_program *program;
    uint32_t rank, axis;
    const int64_t *shape;
    const ops_tensor *tensors; /* inputs, outputs; each can be broadcast to the shape. An output
                                * with length 1 at the axis receives a value of the row. */
    const ops_row_layout *layout;
    int64_t mean_length; /* divisor of a mean */
} ops_row_call;

/* Records one kernel, or with slices those of rows_sliced.c: two for each reduction that follows
 * another, and one for outputs of elements. Errors: UNSUPPORTED for too many tensors or steps;
 * those of kernels and dispatches. */
hal_status ops_row_record(ops_context *context, const ops_row_call *call);

#endif
