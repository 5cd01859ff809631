/* Math: integer operations whose result the IR defines but no program means: division by zero, the
 * quotient of the smallest integer and -1, shifts by the width or more, floats out of the range of
 * the integer that they become; and indices that differ from what their arithmetic means in whole
 * numbers. Where the range of an index is known, which mostly is the same for a group, the exact
 * numbers are computed only if that range does not fit.
 *
 * facts: the range, see instrument_range.h; then the exact value in I64 of a sum or product of 32
 * bits. */
#include "instrument_range.h"

enum {
    EXACT = HAL_IR_RANGE_FACTS, /* made with the record */
    COLD,                       /* recomputed in a separate block */
    WANTED                      /* 1: to be made again */
};

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

static bool is_exact_opcode(uint32_t opcode)
{
    return opcode == HAL_IR_ADD || opcode == HAL_IR_SUB || opcode == HAL_IR_MUL;
}

static bool has_exact(const hal_ir_instrumentation *s, hal_ir_value old)
{
    const hal_ir_record *record = &s->from->records[old];
    return is_exact_opcode(record->opcode) && is_narrow_integer(record->type) &&
           (s->rewrite.info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_I64));
}

/* The exact value of an operand; `fact`: EXACT or COLD, where those of sums are. */
static hal_ir_value operand_exact(hal_ir_instrumentation *s, const hal_ir_value *facts,
                                  uint32_t fact, hal_ir_value old)
{
    const hal_ir_record *record = &s->from->records[old];
    if (record->opcode == HAL_IR_CONSTANT) {
        return hal_ir_i64(s->b, (int32_t)(uint32_t)s->from->constants[record->aux]);
    }
    const hal_ir_value exact = facts[(size_t)old * HAL_IR_FACTS + fact];
    return exact != HAL_IR_NONE ? exact : value_exact(s->b, s->rewrite.values[old]);
}

/* Makes the exact value of a sum, difference or product of 32 bits. A product of products may leave
 * I64: only 64 bits of it are compared. */
static void exact_make(hal_ir_instrumentation *s, hal_ir_value *facts, uint32_t fact,
                       hal_ir_value old)
{
    const hal_ir_record *record = &s->from->records[old];
    facts[(size_t)old * HAL_IR_FACTS + fact] =
        hal_ir_binary(s->b, record->opcode, operand_exact(s, facts, fact, record->a),
                      operand_exact(s, facts, fact, record->b));
}

/* Reports an index that is not its exact value. */
static void index_report(hal_ir_instrumentation *s, const hal_ir_index_check *check,
                         hal_ir_value exact)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value index = s->rewrite.values[check->index];
    const hal_ir_value differs = hal_ir_ne(b, exact, hal_ir_cast(b, HAL_TYPE_I64, index));
    hal_ir_report_at(s, check->site, hal_ir_and_maybe(b, differs, check->guard), index, exact,
                     HAL_IR_NONE);
}

/* The exact value of an index and of what it is computed from, in the present block. */
static hal_ir_value exact_again(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value index)
{
    facts[(size_t)index * HAL_IR_FACTS + WANTED] = 1;
    for (hal_ir_value i = index + 1; i-- > 0;) {
        if (facts[(size_t)i * HAL_IR_FACTS + WANTED] == 1 && has_exact(s, i)) {
            facts[(size_t)s->from->records[i].a * HAL_IR_FACTS + WANTED] = 1;
            facts[(size_t)s->from->records[i].b * HAL_IR_FACTS + WANTED] = 1;
        }
    }
    for (hal_ir_value i = 0; i <= index; i++) {
        if (facts[(size_t)i * HAL_IR_FACTS + WANTED] == 1 && has_exact(s, i)) {
            exact_make(s, facts, COLD, i);
        }
    }
    const hal_ir_value exact = facts[(size_t)index * HAL_IR_FACTS + COLD];
    for (hal_ir_value i = 0; i <= index; i++) {
        facts[(size_t)i * HAL_IR_FACTS + WANTED] = HAL_IR_NONE;
        facts[(size_t)i * HAL_IR_FACTS + COLD] = HAL_IR_NONE;
    }
    return exact;
}

/* Checks the indices of a block whose ranges are known: one by one where a range does not fit. */
static void math_edge(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const uint32_t index = s->index, count = s->index_check_count;
    hal_ir_value fit = HAL_IR_NONE;
    s->index_check_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        fit = hal_ir_and_maybe(b, s->index_checks[i].fits, fit);
    }
    if (count == 0) {
        return;
    }
    hal_ir_reports_end(s);
    hal_ir_if(b, hal_ir_not(b, fit));
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_index_check *check = &s->index_checks[i];
        s->index = check->record;
        index_report(s, check, exact_again(s, facts, check->index));
    }
    hal_ir_reports_end(s);
    hal_ir_end(b);
    s->index = index;
}

/* An asynchronous copy may be in a block of another pass, which ends before this one's checks. */
static void index_check(hal_ir_instrumentation *s, hal_ir_value *facts, uint32_t memory,
                        hal_ir_value old)
{
    const bool is_copy = s->record.opcode == HAL_IR_ASYNC_COPY;
    if (!has_exact(s, old)) {
        return;
    }
    const hal_ir_value fits = is_copy ? HAL_IR_NONE : hal_ir_range_fits(s, facts, old);
    const hal_ir_index_check check = {.site = hal_ir_site_add(s, HAL_IR_FAULT_INDEX, memory),
                                      .record = s->index,
                                      .index = old,
                                      .guard = s->record.b,
                                      .fits = fits};
    if (fits == HAL_IR_NONE) {
        index_report(s, &check, facts[(size_t)old * HAL_IR_FACTS + EXACT]);
        return;
    }
    if (s->index_check_count == HAL_IR_MAX_PENDING) {
        math_edge(s, facts);
    }
    s->index_checks[s->index_check_count++] = check;
}

static void math_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    if (s->rewrite.info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_I64)) {
        hal_ir_range_note(s, facts);
    }
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
        if (has_exact(s, s->index)) {
            exact_make(s, facts, EXACT, s->index); /* dropped later where nothing uses it */
        }
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

static void math_after(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    if (s->rewrite.info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_I64)) {
        hal_ir_range_note_leaf(s, facts, value);
    }
}

const hal_ir_pass hal_ir_pass_math = {
    .check = HAL_CHECK_MATH, .before = math_before, .after = math_after, .edge = math_edge};
