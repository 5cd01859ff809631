/* NaN: operations whose operands are finite and whose result is not: where the first NaN or
 * infinity of a computation comes from. Also stores of finite numbers that their memory cannot
 * hold.
 *
 * facts: for each float, whether it is finite. Unused ones are dropped later. */
#include "instrument.h"

/* Whether the exponent of a float is not that of NaN and infinity, by its bits: drivers may assume
 * that there is no NaN. */
static hal_ir_value is_finite(hal_ir_builder *b, hal_ir_value x)
{
    if (hal_ir_type_of(b, x) == HAL_TYPE_F32) {
        const hal_ir_value mask = hal_ir_u32(b, UINT32_C(0x7f800000));
        return hal_ir_ne(b, hal_ir_and(b, hal_ir_bitcast(b, HAL_TYPE_U32, x), mask), mask);
    }
    const hal_ir_value mask = hal_ir_u64(b, UINT64_C(0x7ff0000000000000));
    return hal_ir_ne(b, hal_ir_and(b, hal_ir_bitcast(b, HAL_TYPE_U64, x), mask), mask);
}

static bool can_check(const hal_ir_instrumentation *s, hal_type type)
{
    return type == HAL_TYPE_F32 || (type == HAL_TYPE_F64 && (s->rewrite.info->arithmetic_types &
                                                             HAL_TYPE_BIT(HAL_TYPE_U64)));
}

/* Whether the record computes a float from floats that it reads as such. */
static bool is_computed(const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_CAST:
    case HAL_IR_NARROW:
    case HAL_IR_SUBGROUP_REDUCE:
        return true;
    default:
        return (record->opcode >= HAL_IR_ADD && record->opcode <= HAL_IR_RINT) ||
               hal_ir_is_math(record->opcode);
    }
}

/* Reports a result that is not finite where the operands are. A subgroup's operands are those of
 * all its lanes. */
static void result_check(hal_ir_instrumentation *s, const hal_ir_value *facts, hal_ir_value result)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    hal_ir_value operands[4];
    hal_ir_value wrong = hal_ir_and_maybe(b, hal_ir_not(b, facts[s->index]), s->is_present);
    const uint32_t count = hal_ir_operands(record, operands);
    for (uint32_t i = 0; i < count; i++) {
        wrong = hal_ir_and_maybe(b, wrong, facts[operands[i]]);
    }
    if (record->opcode == HAL_IR_SUBGROUP_REDUCE) {
        const hal_ir_value mine = hal_ir_cast(b, HAL_TYPE_U32, facts[operands[0]]);
        const hal_ir_value all = hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_MIN, mine);
        wrong = hal_ir_and(b, wrong, hal_ir_ne(b, all, hal_ir_u32(b, 0)));
    }
    const hal_ir_value x = s->rewrite.values[operands[0]];
    const hal_ir_value y = count > 1 ? s->rewrite.values[operands[1]] : HAL_IR_NONE;
    hal_ir_report_fault(s, HAL_IR_FAULT_NAN, wrong, HAL_IR_NONE, result, x, y);
}

static void store_check(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_type type = s->from->memories[record->aux].type;
    if (!hal_type_is_narrow_float(type) || record->width != 1 || facts[record->c] == HAL_IR_NONE) {
        return;
    }
    const hal_ir_value kept = hal_ir_append(b, (hal_ir_record){.opcode = HAL_IR_NARROW,
                                                               .type = HAL_TYPE_F32,
                                                               .width = 1,
                                                               .a = s->record.c,
                                                               .b = HAL_IR_NONE,
                                                               .c = HAL_IR_NONE,
                                                               .d = HAL_IR_NONE,
                                                               .aux = type});
    const hal_ir_value wrong = hal_ir_and(b, facts[record->c], hal_ir_not(b, is_finite(b, kept)));
    hal_ir_report_fault(s, HAL_IR_FAULT_STORE, hal_ir_and_maybe(b, wrong, s->record.b), record->aux,
                        s->record.a, s->record.c, HAL_IR_NONE);
}

static void nan_after(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    const hal_ir_record *record = &s->from->records[s->index];
    if (record->opcode == HAL_IR_STORE) {
        store_check(s, facts);
        return;
    }
    if (record->opcode == HAL_IR_VAR || record->width != 1 || !can_check(s, record->type)) {
        return;
    }
    facts[s->index] = is_finite(s->b, value);
    if (is_computed(record)) {
        result_check(s, facts, value);
    }
}

const hal_ir_pass hal_ir_pass_nan = {.check = HAL_CHECK_NAN, .after = nan_after};
