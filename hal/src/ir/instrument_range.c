/* Ranges of integers, see instrument_range.h. A wrong range hides faults: each rule below is one
 * that holds for all operands in their ranges, or adds a condition to `holds`. */
#include "instrument_range.h"

enum { MAX_BITS = 62, NUMBER_BITS = 31 };

static const hal_ir_range unknown = {.low = HAL_IR_NONE, .high = HAL_IR_NONE};

static bool is_known(hal_ir_range range)
{
    return range.low != HAL_IR_NONE;
}

static bool is_number(hal_ir_range range)
{
    return range.low == range.high;
}

static hal_ir_range range_get(const hal_ir_value *facts, hal_ir_value old)
{
    const hal_ir_value *fact = facts + (size_t)old * HAL_IR_FACTS;
    return (hal_ir_range){.low = fact[HAL_IR_RANGE_LOW],
                          .high = fact[HAL_IR_RANGE_HIGH],
                          .holds = fact[HAL_IR_RANGE_HOLDS],
                          .bits = fact[HAL_IR_RANGE_SIZE] >> 1,
                          .is_natural = fact[HAL_IR_RANGE_SIZE] & 1};
}

static void range_set(const hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_range range)
{
    hal_ir_value *fact = facts + (size_t)s->index * HAL_IR_FACTS;
    fact[HAL_IR_RANGE_LOW] = range.low;
    fact[HAL_IR_RANGE_HIGH] = range.high;
    fact[HAL_IR_RANGE_HOLDS] = range.holds;
    fact[HAL_IR_RANGE_SIZE] = range.bits << 1 | range.is_natural;
}

static hal_ir_value holds_and(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return x == HAL_IR_NONE ? y : hal_ir_and_maybe(b, x, y);
}

/* The same range with the condition that it is within [least, most]. */
static hal_ir_range range_within(hal_ir_builder *b, hal_ir_range range, int64_t least, int64_t most)
{
    if (is_known(range) && !(least <= 0 && range.is_natural)) {
        range.holds = holds_and(b, range.holds, hal_ir_le(b, hal_ir_i64(b, least), range.low));
    }
    if (is_known(range) && (range.bits > NUMBER_BITS - 1 || most < INT32_MAX)) {
        range.holds = holds_and(b, range.holds, hal_ir_le(b, range.high, hal_ir_i64(b, most)));
    }
    range.is_natural |= least >= 0;
    range.bits = range.bits < NUMBER_BITS ? range.bits : NUMBER_BITS;
    return range;
}

/* With the condition that the 32 bits of the value, as a signed number, are the whole number. */
static hal_ir_range range_as_signed(hal_ir_builder *b, hal_ir_range range)
{
    return range.bits < NUMBER_BITS ? range : range_within(b, range, INT32_MIN, INT32_MAX);
}

/* With the condition that the value is 0 or more, and so the same signed or not. */
static hal_ir_range range_as_natural(hal_ir_builder *b, hal_ir_range range)
{
    return range_within(b, range, 0, INT32_MAX);
}

static hal_ir_range range_of_number(hal_ir_value value, uint32_t bits, bool is_natural)
{
    return (hal_ir_range){value, value, HAL_IR_NONE, bits, is_natural};
}

static uint32_t bits_of(uint64_t number)
{
    uint32_t bits = 0;
    while (number >> bits) {
        bits++;
    }
    return bits;
}

/* ---- Rules ---- */

static hal_ir_range sum_range(hal_ir_builder *b, uint32_t opcode, hal_ir_range x, hal_ir_range y)
{
    const bool is_sum = opcode == HAL_IR_ADD;
    x = x.bits < MAX_BITS ? x : range_as_signed(b, x);
    y = y.bits < MAX_BITS ? y : range_as_signed(b, y);
    const uint32_t bits = 1 + (x.bits > y.bits ? x.bits : y.bits);
    hal_ir_range range = {.holds = holds_and(b, x.holds, y.holds),
                          .bits = bits,
                          .is_natural = is_sum && x.is_natural && y.is_natural};
    range.low = hal_ir_binary(b, opcode, x.low, is_sum ? y.low : y.high);
    range.high = is_number(x) && is_number(y)
                     ? range.low
                     : hal_ir_binary(b, opcode, x.high, is_sum ? y.high : y.low);
    return range;
}

static hal_ir_range product_range(hal_ir_builder *b, hal_ir_range x, hal_ir_range y)
{
    if (x.bits + y.bits > MAX_BITS) {
        x = range_as_signed(b, x);
        y = range_as_signed(b, y);
    }
    hal_ir_range range = {.holds = holds_and(b, x.holds, y.holds),
                          .bits = x.bits + y.bits,
                          .is_natural = x.is_natural && y.is_natural};
    range.low = hal_ir_mul(b, x.low, y.low);
    range.high = is_number(x) && is_number(y) ? range.low : hal_ir_mul(b, x.high, y.high);
    if (range.is_natural || range.low == range.high) {
        return range;
    }
    hal_ir_value corners[4] = {range.low, range.high, range.low, range.high};
    if (!is_number(x) && !is_number(y)) {
        corners[2] = hal_ir_mul(b, x.low, y.high);
        corners[3] = hal_ir_mul(b, x.high, y.low);
    }
    range.low = hal_ir_min(b, corners[0], corners[1]);
    range.high = hal_ir_max(b, corners[0], corners[1]);
    if (corners[2] != corners[0]) {
        range.low = hal_ir_min(b, range.low, hal_ir_min(b, corners[2], corners[3]));
        range.high = hal_ir_max(b, range.high, hal_ir_max(b, corners[2], corners[3]));
    }
    return range;
}

/* In 32 bits, which processors divide faster. */
static hal_ir_value quotient_of(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_cast(
        b, HAL_TYPE_I64,
        hal_ir_div(b, hal_ir_cast(b, HAL_TYPE_U32, x), hal_ir_cast(b, HAL_TYPE_U32, y)));
}

/* Of quotient and remainder, for a divisor that is one number, 1 or more. */
static hal_ir_range quotient_range(hal_ir_builder *b, uint32_t opcode, hal_ir_range x,
                                   hal_ir_range y)
{
    if (!is_number(y)) {
        return unknown;
    }
    x = range_as_natural(b, x);
    y = range_within(b, y, 1, INT32_MAX);
    hal_ir_range range = {.low = hal_ir_i64(b, 0),
                          .holds = holds_and(b, x.holds, y.holds),
                          .bits = x.bits,
                          .is_natural = true};
    if (opcode == HAL_IR_DIV) {
        range.high = quotient_of(b, x.high, y.low);
        range.low = is_number(x) ? range.high : range.low;
    } else if (is_number(x)) {
        range.low = hal_ir_sub(b, x.low, hal_ir_mul(b, quotient_of(b, x.low, y.low), y.low));
        range.high = range.low;
    } else {
        range.high = hal_ir_min(b, x.high, hal_ir_sub(b, y.low, hal_ir_i64(b, 1)));
    }
    return range;
}

static hal_ir_range least_range(hal_ir_builder *b, uint32_t opcode, bool is_signed, hal_ir_range x,
                                hal_ir_range y)
{
    x = is_signed ? range_as_signed(b, x) : range_as_natural(b, x);
    y = is_signed ? range_as_signed(b, y) : range_as_natural(b, y);
    hal_ir_range range = {.low = hal_ir_binary(b, opcode, x.low, y.low),
                          .holds = holds_and(b, x.holds, y.holds),
                          .bits = x.bits > y.bits ? x.bits : y.bits,
                          .is_natural = x.is_natural && y.is_natural};
    range.high =
        is_number(x) && is_number(y) ? range.low : hal_ir_binary(b, opcode, x.high, y.high);
    return range;
}

/* Of one of two values. */
static hal_ir_range either_range(hal_ir_builder *b, hal_ir_range x, hal_ir_range y)
{
    x = range_as_signed(b, x);
    y = range_as_signed(b, y);
    return (hal_ir_range){.low = hal_ir_min(b, x.low, y.low),
                          .high = hal_ir_max(b, x.high, y.high),
                          .holds = holds_and(b, x.holds, y.holds),
                          .bits = x.bits > y.bits ? x.bits : y.bits,
                          .is_natural = x.is_natural && y.is_natural};
}

/* Of a shift by a constant; to the left it has to keep all bits. */
static hal_ir_range shift_range(hal_ir_builder *b, uint32_t opcode, hal_ir_range x, uint64_t by)
{
    if (by >= NUMBER_BITS) {
        return unknown;
    }
    x = range_as_natural(b, x);
    const bool is_point = is_number(x);
    const hal_ir_value count = hal_ir_i64(b, (int64_t)by);
    x.low = hal_ir_binary(b, opcode, x.low, count);
    x.high = is_point ? x.low : hal_ir_binary(b, opcode, x.high, count);
    x.bits += opcode == HAL_IR_SHL ? (uint32_t)by : 0;
    return opcode == HAL_IR_SHL ? range_as_natural(b, x) : x;
}

/* Of the counter of a loop, which begins at x and is below y. */
static hal_ir_range counter_range(hal_ir_builder *b, bool is_signed, hal_ir_range x, hal_ir_range y)
{
    x = is_signed ? range_as_signed(b, x) : range_as_natural(b, x);
    y = is_signed ? range_as_signed(b, y) : range_as_natural(b, y);
    return (hal_ir_range){.low = x.low,
                          .high = hal_ir_sub(b, y.high, hal_ir_i64(b, 1)),
                          .holds = holds_and(b, x.holds, y.holds),
                          .bits = NUMBER_BITS,
                          .is_natural = x.is_natural};
}

/* ---- Records ---- */

static const uint64_t *constant_of(const hal_ir_instrumentation *s, hal_ir_value old)
{
    const hal_ir_record *record = &s->from->records[old];
    return record->opcode == HAL_IR_CONSTANT ? &s->from->constants[record->aux] : NULL;
}

static hal_ir_range binary_range(hal_ir_instrumentation *s, const hal_ir_record *record,
                                 hal_ir_range x, hal_ir_range y)
{
    hal_ir_builder *b = s->b;
    const bool is_signed = record->type == HAL_TYPE_I32;
    switch (record->opcode) {
    case HAL_IR_ADD:
    case HAL_IR_SUB:
        return sum_range(b, record->opcode, x, y);
    case HAL_IR_MUL:
        return product_range(b, x, y);
    case HAL_IR_DIV:
    case HAL_IR_REM:
        return quotient_range(b, record->opcode, x, y);
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        return least_range(b, record->opcode, is_signed, x, y);
    case HAL_IR_SHL:
    case HAL_IR_SHR:
        return constant_of(s, record->b)
                   ? shift_range(b, record->opcode, x, *constant_of(s, record->b))
                   : unknown;
    case HAL_IR_FOR:
        return counter_range(b, is_signed, x, y);
    default:
        return unknown;
    }
}

/* What is left of the bits of a number that has no sign. */
static hal_ir_range masked_range(hal_ir_instrumentation *s, hal_ir_value old)
{
    const uint64_t *mask = constant_of(s, old);
    if (!mask || *mask > INT32_MAX) {
        return unknown;
    }
    return (hal_ir_range){hal_ir_i64(s->b, 0), hal_ir_i64(s->b, (int64_t)*mask), HAL_IR_NONE,
                          bits_of(*mask), true};
}

static bool is_narrow_integer(hal_type type)
{
    return type == HAL_TYPE_I32 || type == HAL_TYPE_U32;
}

void hal_ir_range_note(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    hal_ir_range range = unknown;
    if (!is_narrow_integer(record->type) || record->width != 1) {
        return;
    }
    switch (record->opcode) {
    case HAL_IR_CAST:
    case HAL_IR_BITCAST:
        if (is_narrow_integer(s->from->records[record->a].type) &&
            is_known(range_get(facts, record->a))) {
            range = range_as_signed(s->b, range_get(facts, record->a));
        }
        break;
    case HAL_IR_AND:
        range = masked_range(s, record->b);
        range = is_known(range) ? range : masked_range(s, record->a);
        break;
    case HAL_IR_SELECT:
        if (is_known(range_get(facts, record->b)) && is_known(range_get(facts, record->c))) {
            range = either_range(s->b, range_get(facts, record->b), range_get(facts, record->c));
        }
        break;
    case HAL_IR_ADD:
    case HAL_IR_SUB:
    case HAL_IR_MUL:
    case HAL_IR_DIV:
    case HAL_IR_REM:
    case HAL_IR_MIN:
    case HAL_IR_MAX:
    case HAL_IR_SHL:
    case HAL_IR_SHR:
    case HAL_IR_FOR:
        if (is_known(range_get(facts, record->a)) && is_known(range_get(facts, record->b))) {
            range =
                binary_range(s, record, range_get(facts, record->a), range_get(facts, record->b));
        }
        break;
    default:
        return;
    }
    range_set(s, facts, range);
}

void hal_ir_range_note_leaf(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    if (!is_narrow_integer(record->type) || record->width != 1) {
        return;
    }
    switch (record->opcode) {
    case HAL_IR_CONSTANT: {
        const int32_t number = (int32_t)(uint32_t)s->from->constants[record->aux];
        const uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
        range_set(s, facts, range_of_number(hal_ir_i64(b, number), bits_of(size), number >= 0));
        break;
    }
    case HAL_IR_SCALAR:
    case HAL_IR_GROUP_ID:
    case HAL_IR_GROUP_COUNT: {
        const bool is_signed = record->type == HAL_TYPE_I32;
        const hal_ir_value number = is_signed ? value : hal_ir_bitcast(b, HAL_TYPE_I32, value);
        range_set(s, facts,
                  range_of_number(hal_ir_cast(b, HAL_TYPE_I64, number), NUMBER_BITS, false));
        break;
    }
    case HAL_IR_LOCAL_ID: {
        const uint32_t most = s->from->group_size[record->aux] - 1;
        range_set(s, facts,
                  (hal_ir_range){hal_ir_i64(b, 0), hal_ir_i64(b, most), HAL_IR_NONE, bits_of(most),
                                 true});
        break;
    }
    default:
        break;
    }
}

hal_ir_value hal_ir_range_fits(hal_ir_instrumentation *s, const hal_ir_value *facts,
                               hal_ir_value old)
{
    hal_ir_builder *b = s->b;
    const hal_ir_range range = range_get(facts, old);
    if (!is_known(range)) {
        return HAL_IR_NONE;
    }
    const bool is_signed = s->from->records[old].type == HAL_TYPE_I32;
    const hal_ir_value low = hal_ir_i64(b, is_signed ? INT32_MIN : 0);
    const hal_ir_value high = hal_ir_i64(b, is_signed ? INT32_MAX : (int64_t)UINT32_MAX);
    return hal_ir_and_maybe(
        b, hal_ir_and(b, hal_ir_le(b, low, range.low), hal_ir_le(b, range.high, high)),
        range.holds);
}
