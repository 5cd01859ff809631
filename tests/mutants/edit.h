/* edit.h: short forms for faults that alter IR: a function with the parameters `ir` and `i` inserts
 * records at the cursor `at`. */
#ifndef TESTS_MUTANTS_EDIT_H
#define TESTS_MUTANTS_EDIT_H

#include "mutant.h"

#define OPERATE(OPCODE, type, a, b) wrap_ir_operation(ir, at++, HAL_IR_##OPCODE, (type), (a), (b))
#define UNARY(OPCODE, type, a) OPERATE(OPCODE, type, a, HAL_IR_NONE)
#define COMPARE(OPCODE, a, b) OPERATE(OPCODE, HAL_TYPE_BOOL, a, b)
#define NUMBER(type, bits) wrap_ir_constant(ir, at++, (type), (bits))
#define SELECT(type, condition, yes, no) edit_select(ir, at++, (type), (condition), (yes), (no))

static inline hal_ir_record edit_record(uint16_t opcode, hal_type type)
{
    return (hal_ir_record){.opcode = opcode,
                           .type = type,
                           .width = type != HAL_TYPE_NONE,
                           .a = HAL_IR_NONE,
                           .b = HAL_IR_NONE,
                           .c = HAL_IR_NONE,
                           .d = HAL_IR_NONE};
}

static inline hal_ir_value edit_select(wrap_ir *ir, uint32_t at, hal_type type,
                                       hal_ir_value condition, hal_ir_value yes, hal_ir_value no)
{
    hal_ir_record made = edit_record(HAL_IR_SELECT, type);
    made.a = condition;
    made.b = yes;
    made.c = no;
    return wrap_ir_insert(ir, at, made);
}

/* What took record `old` takes record `new` from now on, in all records after `new`. Returns
 * `new`. */
static inline uint32_t edit_replace(wrap_ir *ir, hal_ir_value old, hal_ir_value new)
{
    for (uint32_t i = new + 1; i < ir->ir.record_count; i++) {
        uint32_t *operands[4] = {&ir->records[i].a, &ir->records[i].b, &ir->records[i].c,
                                 &ir->records[i].d};
        for (int k = 0; k < 4; k++) {
            *operands[k] = *operands[k] == old ? new : *operands[k];
        }
    }
    return new;
}

static inline hal_type edit_type_of(const wrap_ir *ir, hal_ir_value value)
{
    return ir->records[value].type;
}

#endif
