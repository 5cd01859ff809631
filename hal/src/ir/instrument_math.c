/* Math: integer operations whose result the IR defines but no program means: division by zero, the
 * quotient of the smallest integer and -1, shifts by the width or more, floats out of the range of
 * the integer that they become; and indices that differ from what their arithmetic means in whole
 * numbers.
 *
 * facts: the exact value in I64 of a sum or product of 32 bits, see index_exact. */
#include "instrument.h"

/* Reports an operation on one or two values that are present. */
static void operation_report(hal_ir_instrumentation *s, hal_ir_fault fault, hal_ir_value wrong)
{
    hal_ir_report_fault(s, fault, hal_ir_and_maybe(s->b, wrong, s->is_present), HAL_IR_NONE,
                        HAL_IR_NONE, s->record.a, s->record.b);
}

static void division_check(hal_ir_instrumentation *s)
{
    hal_ir_builder *b = s->b;
    const hal_type type = hal_ir_type_of(b, s->record.b);
    const hal_ir_record *divisor = &s->from->records[s->from->records[s->index].b];
    if (divisor->opcode == HAL_IR_CONSTANT) {
        const uint64_t bits = s->from->constants[divisor->aux];
        const uint64_t minus_one = hal_type_size(type) == 4 ? UINT32_MAX : UINT64_MAX;
        if (bits != 0 && !(hal_type_is_signed(type) && bits == minus_one)) {
            return;
        }
    }
    operation_report(s, HAL_IR_FAULT_DIVISION,
                     hal_ir_eq(b, s->record.b, hal_ir_number(b, type, 0)));
    if (hal_type_is_signed(type)) {
        const double least = hal_type_size(type) == 4 ? -0x1p31 : -0x1p63;
        const hal_ir_value is_least = hal_ir_eq(b, s->record.a, hal_ir_number(b, type, least));
        const hal_ir_value is_negated = hal_ir_eq(b, s->record.b, hal_ir_number(b, type, -1));
        operation_report(s, HAL_IR_FAULT_QUOTIENT, hal_ir_and(b, is_least, is_negated));
    }
}

static void shift_check(hal_ir_instrumentation *s)
{
    hal_ir_builder *b = s->b;
    const hal_type type = hal_ir_type_of(b, s->record.b);
    const uint32_t width = hal_type_size(type) * 8;
    const hal_type plain = width == 64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const hal_ir_record *by = &s->from->records[s->from->records[s->index].b];
    if (by->opcode == HAL_IR_CONSTANT && s->from->constants[by->aux] < width) {
        return;
    }
    const hal_ir_value bits = type == plain ? s->record.b : hal_ir_bitcast(b, plain, s->record.b);
    operation_report(s, HAL_IR_FAULT_SHIFT, hal_ir_le(b, hal_ir_number(b, plain, width), bits));
}

/* A float that an integer type holds is above its least value less 1 and below 2^bits. */
static void conversion_check(hal_ir_instrumentation *s)
{
    hal_ir_builder *b = s->b;
    const hal_type from = hal_ir_type_of(b, s->record.a), to = s->record.type;
    if (!hal_type_is_float(from) || !hal_type_is_integer(to)) {
        return;
    }
    const bool is_signed = hal_type_is_signed(to);
    const bool is_wide = hal_type_size(to) == 8;
    const double end = is_wide ? (is_signed ? 0x1p63 : 0x1p64) : (is_signed ? 0x1p31 : 0x1p32);
    const double least = is_signed ? -end : 0;
    const hal_ir_value x = hal_ir_trunc(b, s->record.a);
    const hal_ir_value holds = hal_ir_and(b, hal_ir_le(b, hal_ir_number(b, from, least), x),
                                          hal_ir_lt(b, x, hal_ir_number(b, from, end)));
    operation_report(s, HAL_IR_FAULT_CONVERSION, hal_ir_not(b, holds));
}

static bool is_narrow_integer(hal_type type)
{
    return type == HAL_TYPE_I32 || type == HAL_TYPE_U32;
}

/* The exact value in I64 of 32 bits as a signed number: U32 from 2^31 on may be negative steps. */
static hal_ir_value value_exact(hal_ir_builder *b, hal_ir_value value)
{
    const bool is_signed = hal_ir_type_of(b, value) == HAL_TYPE_I32;
    return hal_ir_cast(b, HAL_TYPE_I64, is_signed ? value : hal_ir_bitcast(b, HAL_TYPE_I32, value));
}

static hal_ir_value operand_exact(hal_ir_instrumentation *s, const hal_ir_value *facts,
                                  hal_ir_value old)
{
    const hal_ir_record *record = &s->from->records[old];
    if (record->opcode == HAL_IR_CONSTANT) {
        return hal_ir_i64(s->b, (int32_t)(uint32_t)s->from->constants[record->aux]);
    }
    return facts[old] != HAL_IR_NONE ? facts[old] : value_exact(s->b, s->rewrite.values[old]);
}

/* Notes the exact value of a sum, difference or product of 32 bits. Unused ones are dropped later.
 * A product of products may leave I64: only 64 bits of it are compared. */
static void index_exact(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    if (is_narrow_integer(record->type) &&
        (s->rewrite.info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_I64))) {
        facts[s->index] = hal_ir_binary(s->b, record->opcode, operand_exact(s, facts, record->a),
                                        operand_exact(s, facts, record->b));
    }
}

static void index_check(hal_ir_instrumentation *s, const hal_ir_value *facts, uint32_t memory,
                        hal_ir_value old)
{
    hal_ir_builder *b = s->b;
    if (facts[old] == HAL_IR_NONE) {
        return;
    }
    const hal_ir_value index = s->rewrite.values[old];
    const hal_ir_value differs = hal_ir_ne(b, facts[old], hal_ir_cast(b, HAL_TYPE_I64, index));
    hal_ir_report_fault(s, HAL_IR_FAULT_INDEX, hal_ir_and_maybe(b, differs, s->record.b), memory,
                        index, facts[old], HAL_IR_NONE);
}

static void math_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    switch (record->opcode) {
    case HAL_IR_DIV:
    case HAL_IR_REM:
        if (hal_type_is_integer(record->type)) {
            division_check(s);
        }
        break;
    case HAL_IR_SHL:
    case HAL_IR_SHR:
        shift_check(s);
        break;
    case HAL_IR_CAST:
        conversion_check(s);
        break;
    case HAL_IR_ADD:
    case HAL_IR_SUB:
    case HAL_IR_MUL:
        index_exact(s, facts);
        break;
    case HAL_IR_LOAD:
    case HAL_IR_STORE:
    case HAL_IR_ATOMIC:
        index_check(s, facts, record->aux, record->a);
        break;
    case HAL_IR_ASYNC_COPY:
        index_check(s, facts, record->aux, record->a);
        index_check(s, facts, (uint32_t)record->imm, record->d);
        break;
    default:
        break;
    }
}

const hal_ir_pass hal_ir_pass_math = {.check = HAL_CHECK_MATH, .before = math_before};
