/* Names, text syntax, operand and result rules of opcodes: the expansion of HAL_IR_OPCODE_TABLE
 * that builder, verifier, printer, parser and legaliser read. */
#include "internal.h"

#define ROW(NAME, number, since, name, ARITY, CLASS, TYPES, TRAITS, syntax, operands, result) \
    [number] = {#name, syntax, operands, result, HAL_IR_TRAITS_##TRAITS, HAL_TYPES_##TYPES},
static const hal_ir_info table[HAL_IR_OPCODE_COUNT] = {HAL_IR_OPCODE_TABLE(ROW)};
#undef ROW

/* math_f32 has one bit per opcode of the range, which must contain exactly the class MATH. */
#define ROW(NAME, number, since, name, ARITY, CLASS, ...)                           \
    _Static_assert((HAL_IR_CLASS_##CLASS == HAL_IR_CLASS_MATH) ==                   \
                       (number >= HAL_IR_MATH_FIRST && number <= HAL_IR_MATH_LAST), \
                   #NAME                                                            \
                   ": class MATH has the numbers from HAL_IR_MATH_FIRST to HAL_IR_MATH_LAST");
HAL_IR_OPCODE_TABLE(ROW)
#undef ROW
_Static_assert(HAL_IR_MATH_COUNT <= 32, "math_f32 has 32 bits");

const char *const hal_ir_atomic_names[HAL_IR_ATOMIC_COUNT + 1] = {
    "add", "min", "max", "and", "or", "xor", "exchange", "compare_exchange", NULL};
const char *const hal_ir_reduction_names[HAL_IR_REDUCE_COUNT + 1] = {"add", "min", "max", NULL};
const char *const hal_ir_dimension_names[4] = {"x", "y", "z", NULL};

const hal_ir_info *hal_ir_info_of(uint32_t opcode)
{
    if (opcode >= HAL_IR_OPCODE_COUNT || !table[opcode].name) {
        return NULL;
    }
    return &table[opcode];
}

const char *hal_ir_opcode_name(uint32_t opcode)
{
    const hal_ir_info *info = hal_ir_info_of(opcode);
    return !info ? NULL : info->name;
}

const char *hal_type_name(hal_type type)
{
#define ROW(NAME, number, since, name, ...) [number] = #name,
    static const char *const names[HAL_TYPE_COUNT] = {"none", HAL_TYPE_TABLE(ROW)};
#undef ROW
    return type < HAL_TYPE_COUNT ? names[type] : NULL;
}
