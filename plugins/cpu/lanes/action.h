/* What a step does: the key to its function in a table of lanes. */
#ifndef PLUGINS_CPU_LANES_ACTION_H
#define PLUGINS_CPU_LANES_ACTION_H

#include "lanes/steps.h"

typedef enum cpu_step_class {
    CPU_STEP_OPERATION, /* of the IR, on values; LOAD: one element for all work-items */
    CPU_STEP_MOVE,      /* d = a; form 1: a is uniform, d is not */
    CPU_STEP_BLEND,     /* d = a where the mask is true */
    CPU_STEP_LOAD,
    CPU_STEP_STORE,
    CPU_STEP_VIEW,    /* a load after which the slot points to the memory, where possible */
    CPU_STEP_ADDRESS, /* the destination of the operation that computes a stored value */
    CPU_STEP_ATOMIC,
    CPU_STEP_CHECK,    /* of an access; form 1: of one element for all work-items */
    CPU_STEP_AFFINE,   /* d = the index that the access describes */
    CPU_STEP_WITHIN,   /* d = affine index < a, or <= */
    CPU_STEP_BEYOND,   /* d = a < affine index, or <= */
    CPU_STEP_BOTH,     /* d = a and b: masks */
    CPU_STEP_CHOOSE,   /* d = all work-items or none */
    CPU_STEP_EXCHANGE, /* SHUFFLE_XOR */
    CPU_STEP_SHUFFLE,
    CPU_STEP_REDUCE, /* of a subgroup; opcode: HAL_IR_REDUCE_* */
    CPU_STEP_BRANCH, /* control, as in cpu_lanes */
    CPU_STEP_JUMP,
    CPU_STEP_IF,
    CPU_STEP_ELSE,
    CPU_STEP_LOOP_BEGIN,
    CPU_STEP_LOOP_NEXT,
    CPU_STEP_MASK_BEGIN,
    CPU_STEP_MASK_NEXT,
    CPU_STEP_END,
    CPU_STEP_CLASS_COUNT
} cpu_step_class;

typedef struct cpu_action {
    cpu_step_class class;
    uint16_t opcode; /* of OPERATION: HAL_IR_* */
    hal_type type;   /* of operands; of SELECT b and c; NARROW and accesses: in memory */
    hal_type result;
    uint8_t form; /* bit k: operand k is uniform and the result is not */
} cpu_action;

/* An action whose operands and result have one type, NONE for control. */
static inline cpu_action cpu_action_of(cpu_step_class class, hal_type type)
{
    return (cpu_action){.class = class, .type = type, .result = type};
}

/* An operation of the IR; `type` as in cpu_action. A CAST has another result. */
cpu_action cpu_action_operation(uint32_t opcode, hal_type type);

/* The function of an action; null: the table has none. */
cpu_run *cpu_lanes_find(const cpu_lanes *lanes, const cpu_action *action);

#endif
