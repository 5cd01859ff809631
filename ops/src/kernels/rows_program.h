/* Row programs and the order in which a kernel computes them.
 *
 * A program is a list of values: first the inputs, then one value for each step. A value is of the
 * row (the same for all its elements: an input that is broadcast along the axis, a reduction, and
 * what is computed from such values alone) or of each element. */
#ifndef OPS_SRC_KERNELS_ROWS_PROGRAM_H
#define OPS_SRC_KERNELS_ROWS_PROGRAM_H

#include "fold.h"

#include <stdbool.h>

#define OPS_ROW_VALUES 128u
#define OPS_ROW_OPERANDS 320u
#define OPS_ROW_OUTPUTS 16u
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

static inline bool ops_row_is_reduction(const ops_row_step *step)
{
    return step->kind <= OPS_FOLD_SOFTMAX;
}

static inline const ops_row_step *ops_row_step_of(const ops_row_program *program, uint32_t value)
{
    return &program->steps[value - program->input_count];
}

/* Whether a program has a step of a kind; whether a reduction of it finds places. */
bool ops_row_program_has(const ops_row_program *program, uint32_t kind);
bool ops_row_program_finds_place(const ops_row_program *program);

/* Appends all that a program decides of a kernel. */
void ops_row_program_append_key(const ops_row_program *program, ops_cache_key *key);

/* A phase that no kernel has. */
#define OPS_ROW_NEVER 255u

/* The order of a kernel: phase p has a loop over the elements that computes the reductions whose
 * operands are ready; the last one stores elements. */
typedef struct ops_row_schedule {
    uint32_t last; /* phase whose loop stores elements */
    int stores_elements;
    uint8_t is_element[OPS_ROW_VALUES]; /* differs from element to element */
    uint8_t ready[OPS_ROW_VALUES];      /* first phase that can use the value */
    uint8_t first_need[OPS_ROW_VALUES]; /* first phase that uses it; OPS_ROW_NEVER */
    uint32_t live;                      /* elements' values kept from phase to phase, at most */
} ops_row_schedule;

/* Computes of each value whether it differs from element to element, and the first phase that can
 * use it; `is_element` of inputs is given. */
void ops_row_order(const ops_row_program *program, uint8_t *is_element, uint8_t *ready);

/* Marks the values of elements that the loop of a phase computes, or loads; `stored` is
 * 1 + a value that an output holds between loops, or 0. */
void ops_row_needs(const ops_row_program *program, const ops_row_schedule *schedule, uint32_t phase,
                   const ops_axis *axis, uint32_t stored, uint8_t *needed);

/* Schedules a program over an axis, on which inputs and outputs have their steps. */
void ops_row_schedule_make(const ops_row_program *program, const ops_axis *axis,
                           ops_row_schedule *schedule);

#endif
