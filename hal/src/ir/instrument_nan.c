/* NaN: operations whose operands are finite and whose result is not, where that reaches memory:
 * where the first NaN or infinity of a computation comes from. Functions divide by zero on the way
 * to a number, as acos(-1) does, so nothing is reported before a store. Also stores of finite
 * numbers that their memory cannot hold.
 *
 * A value has an origin, a word (HAL_IR_ORIGIN_*) that names the operation that made it NaN or
 * infinite, 0: none, and the bits of that operation's operands. Facts of record i are those from
 * facts[i * FACTS] on; the origin and operands of a VAR are variables. Unused ones are dropped
 * later. */
#include "instrument.h"

enum {
    MAY,    /* 0: an operation may have made it infinite; NONE: none can */
    FINITE, /* of a float: BOOL */
    ORIGIN, /* U32; NONE: 0 */
    X,      /* bits of operands, of the type that facts[record_count * FACTS] names */
    Y,
    FACTS = HAL_IR_FACTS
};

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

/* Whether the record computes a float from floats that it reads as such, which may then be finite
 * and the result not. */
static bool can_blame(const hal_ir_instrumentation *s, const hal_ir_record *record)
{
    if (record->width != 1 || !can_check(s, record->type)) {
        return false;
    }
    switch (record->opcode) {
    case HAL_IR_NEG:
    case HAL_IR_ABS:
    case HAL_IR_MIN:
    case HAL_IR_MAX:
    case HAL_IR_FLOOR:
    case HAL_IR_TRUNC:
    case HAL_IR_RINT:
    case HAL_IR_SIN:
    case HAL_IR_COS:
    case HAL_IR_ATAN:
    case HAL_IR_TANH:
    case HAL_IR_ERF:
        return false;
    case HAL_IR_CAST:
        return record->type == HAL_TYPE_F32 && s->from->records[record->a].type == HAL_TYPE_F64;
    case HAL_IR_SUBGROUP_REDUCE:
        return record->aux == HAL_IR_REDUCE_ADD;
    case HAL_IR_NARROW:
        return true;
    default:
        return (record->opcode >= HAL_IR_ADD && record->opcode <= HAL_IR_RINT) ||
               hal_ir_is_math(record->opcode);
    }
}

/* Finds the values that may have an origin. Variables of loops need several turns. */
static void may_find(const hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_kernel *from = s->from;
    for (bool changes = true; changes;) {
        changes = false;
        for (uint32_t i = 0; i < from->record_count; i++) {
            const hal_ir_record *record = &from->records[i];
            hal_ir_value operands[4];
            const uint32_t count = hal_ir_operands(record, operands);
            bool may = can_blame(s, record);
            const bool passes = record->opcode != HAL_IR_LOAD && record->type != HAL_TYPE_BOOL;
            for (uint32_t k = 0; k < count && passes; k++) {
                may |= facts[operands[k] * FACTS + MAY] == 0;
            }
            const uint32_t to = record->opcode == HAL_IR_SET ? record->a : i;
            changes |= may && facts[to * FACTS + MAY] != 0;
            facts[to * FACTS + MAY] = may ? 0 : facts[to * FACTS + MAY];
        }
    }
}

static void nan_begin(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    bool is_wide = false;
    for (uint32_t i = 0; i < s->from->record_count; i++) {
        is_wide |= s->from->records[i].type == HAL_TYPE_F64;
    }
    is_wide &= can_check(s, HAL_TYPE_F64);
    facts[s->from->record_count * FACTS] = is_wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    may_find(s, facts);
}

/* An origin and its operands. */
typedef struct origin {
    hal_ir_value word, x, y; /* word NONE: there is none */
} origin;

static origin origin_get(const hal_ir_value *facts, hal_ir_value of)
{
    const hal_ir_value *fact = facts + (size_t)of * FACTS;
    return (origin){fact[ORIGIN], fact[X], fact[Y]};
}

static void origin_set(const hal_ir_instrumentation *s, hal_ir_value *facts, origin value)
{
    hal_ir_value *fact = facts + (size_t)s->index * FACTS;
    fact[ORIGIN] = value.word;
    fact[X] = value.x;
    fact[Y] = value.y;
}

static hal_type bits_type(const hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    return (hal_type)facts[s->from->record_count * FACTS];
}

static origin origin_none(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    const hal_ir_value zero = hal_ir_number(s->b, bits_type(s, facts), 0);
    return (origin){hal_ir_u32(s->b, 0), zero, zero};
}

/* `x` where `chooses` is true, else `y`. */
static origin origin_choose(hal_ir_builder *b, hal_ir_value chooses, origin x, origin y)
{
    if (x.word == HAL_IR_NONE && y.word == HAL_IR_NONE) {
        return x;
    }
    x = x.word == HAL_IR_NONE ? (origin){hal_ir_u32(b, 0), y.x, y.y} : x;
    y = y.word == HAL_IR_NONE ? (origin){hal_ir_u32(b, 0), x.x, x.y} : y;
    return (origin){hal_ir_select(b, chooses, x.word, y.word), hal_ir_select(b, chooses, x.x, y.x),
                    hal_ir_select(b, chooses, x.y, y.y)};
}

/* The origin of the first of two values that has one. */
static origin origin_first(hal_ir_builder *b, origin x, origin y)
{
    if (x.word == HAL_IR_NONE || y.word == HAL_IR_NONE) {
        return x.word == HAL_IR_NONE ? y : x;
    }
    return origin_choose(b, hal_ir_ne(b, x.word, hal_ir_u32(b, 0)), x, y);
}

/* That of the operands of the present record. */
static origin origin_inherit(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    origin all = {HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE};
    for (uint32_t i = 0; i < count; i++) {
        all = origin_first(s->b, all, origin_get(facts, operands[i]));
    }
    return all;
}

/* A value's bits as facts keep them; zeros of NONE. */
static hal_ir_value bits_of(hal_ir_instrumentation *s, const hal_ir_value *facts,
                            hal_ir_value value)
{
    const hal_type kept = bits_type(s, facts);
    if (value == HAL_IR_NONE) {
        return hal_ir_number(s->b, kept, 0);
    }
    const hal_type type = hal_ir_type_of(s->b, value);
    const hal_type plain = hal_type_size(type) == 8 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const hal_ir_value bits = type == plain ? value : hal_ir_bitcast(s->b, plain, value);
    return plain == kept ? bits : hal_ir_cast(s->b, kept, bits);
}

/* The word that names the present record, for a result that is not finite. */
static hal_ir_value origin_word(hal_ir_instrumentation *s, hal_ir_value result)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value site = hal_ir_u32(b, hal_ir_site_add(s, HAL_IR_FAULT_NAN, HAL_IR_NONE) + 1);
    hal_ir_value high, quiet;
    if (hal_ir_type_of(b, result) == HAL_TYPE_F32) {
        quiet = high = hal_ir_bitcast(b, HAL_TYPE_U32, result);
    } else {
        const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U64, result);
        high = hal_ir_cast(b, HAL_TYPE_U32, hal_ir_shr(b, bits, hal_ir_u64(b, 32)));
        quiet = hal_ir_shl(b, high, hal_ir_u32(b, 3));
    }
    const hal_ir_value sign = hal_ir_and(b, high, hal_ir_u32(b, HAL_IR_ORIGIN_NEGATIVE));
    quiet = hal_ir_and(b, quiet, hal_ir_u32(b, HAL_IR_ORIGIN_NAN));
    return hal_ir_or(b, hal_ir_or(b, sign, quiet), site);
}

/* The origin of a float that is not finite where all operands are; else theirs. A subgroup's
 * operands are those of all its lanes. */
static void result_note(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value result)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_ir_value bad = hal_ir_not(b, facts[s->index * FACTS + FINITE]);
    origin inherited = origin_inherit(s, facts);
    if (record->opcode == HAL_IR_SUBGROUP_REDUCE && inherited.word != HAL_IR_NONE) {
        const hal_ir_value one = hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_MAX, inherited.word);
        const hal_ir_value other = hal_ir_ne(b, one, inherited.word);
        inherited.word =
            hal_ir_select(b, other, hal_ir_or(b, one, hal_ir_u32(b, HAL_IR_ORIGIN_OF_OTHER)), one);
        inherited.word = hal_ir_select(b, hal_ir_eq(b, one, hal_ir_u32(b, 0)), one, inherited.word);
    }
    origin all = {HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE};
    if (inherited.word != HAL_IR_NONE) {
        all = (origin){hal_ir_select(b, bad, inherited.word, hal_ir_u32(b, 0)), inherited.x,
                       inherited.y};
    }
    if (can_blame(s, record)) {
        hal_ir_value operands[4];
        const uint32_t count = hal_ir_operands(record, operands);
        hal_ir_value wrong = hal_ir_and_maybe(b, bad, s->is_present);
        for (uint32_t i = 0; i < count; i++) {
            wrong = hal_ir_and_maybe(b, wrong, facts[operands[i] * FACTS + FINITE]);
        }
        if (record->opcode == HAL_IR_SUBGROUP_REDUCE) {
            const hal_ir_value mine =
                hal_ir_cast(b, HAL_TYPE_U32, facts[operands[0] * FACTS + FINITE]);
            const hal_ir_value both = hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_MIN, mine);
            wrong = hal_ir_and(b, wrong, hal_ir_ne(b, both, hal_ir_u32(b, 0)));
        }
        const hal_ir_value y = count > 1 ? s->rewrite.values[operands[1]] : HAL_IR_NONE;
        const origin mine = {origin_word(s, result),
                             bits_of(s, facts, s->rewrite.values[operands[0]]),
                             bits_of(s, facts, y)};
        all = origin_choose(b, wrong, mine, all.word == HAL_IR_NONE ? origin_none(s, facts) : all);
    }
    origin_set(s, facts, all);
}

/* The record that made element i of a vector that was packed; NONE: it was not. */
static hal_ir_value packed_element(const hal_ir_kernel *from, hal_ir_value vector, uint32_t i)
{
    const hal_ir_record *record = &from->records[vector];
    if (record->opcode != HAL_IR_PACK) {
        return HAL_IR_NONE;
    }
    const hal_ir_value parts[4] = {record->a, record->b, record->c, record->d};
    const uint32_t part_width = from->records[record->a].width;
    const hal_ir_value part = parts[i / part_width];
    return part_width == 1 ? part : packed_element(from, part, i % part_width);
}

/* ---- Records that move values ---- */

static hal_ir_value moved(hal_ir_instrumentation *s, hal_ir_value word)
{
    hal_ir_record record = s->record; /* a shuffle */
    record.a = word;
    record.type = hal_ir_type_of(s->b, word);
    return hal_ir_append(s->b, record);
}

static void variable_make(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const origin of = origin_get(facts, s->from->records[s->index].a);
    const origin first = of.word == HAL_IR_NONE ? origin_none(s, facts) : of;
    origin_set(s, facts,
               (origin){hal_ir_var(s->b, first.word), hal_ir_var(s->b, first.x),
                        hal_ir_var(s->b, first.y)});
}

static void variable_set(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    const origin to = origin_get(facts, record->a), of = origin_get(facts, record->b);
    if (to.word != HAL_IR_NONE) {
        hal_ir_set(s->b, to.word, of.word == HAL_IR_NONE ? hal_ir_u32(s->b, 0) : of.word);
        if (of.word != HAL_IR_NONE) {
            hal_ir_set(s->b, to.x, of.x);
            hal_ir_set(s->b, to.y, of.y);
        }
    }
}

/* The origin of a result that is no float of an operation. */
static void origin_move(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    const origin of = record->a == HAL_IR_NONE ? (origin){HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE}
                                               : origin_get(facts, record->a);
    switch (record->opcode) {
    case HAL_IR_GET:
        origin_set(s, facts,
                   (origin){hal_ir_get(b, of.word), hal_ir_get(b, of.x), hal_ir_get(b, of.y)});
        break;
    case HAL_IR_SELECT:
        origin_set(s, facts,
                   origin_choose(b, s->record.a, origin_get(facts, record->b),
                                 origin_get(facts, record->c)));
        break;
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
        if (of.word != HAL_IR_NONE) {
            origin_set(s, facts, (origin){moved(s, of.word), moved(s, of.x), moved(s, of.y)});
        }
        break;
    case HAL_IR_EXTRACT: {
        const hal_ir_value element = packed_element(s->from, record->a, (uint32_t)record->imm);
        if (element != HAL_IR_NONE) {
            origin_set(s, facts, origin_get(facts, element));
        }
        break;
    }
    default:
        origin_set(s, facts, origin_inherit(s, facts));
        break;
    }
}

/* ---- Stores ---- */

/* Reports what is stored with an origin. */
static void origin_report(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    origin all = origin_get(facts, record->c);
    for (uint32_t i = 0; record->opcode == HAL_IR_STORE && record->width > 1 && i < record->width;
         i++) {
        const hal_ir_value element = packed_element(s->from, record->c, i);
        if (element != HAL_IR_NONE) {
            all = origin_first(b, all, origin_get(facts, element));
        }
    }
    if (all.word != HAL_IR_NONE) {
        const hal_ir_value wrong = hal_ir_ne(b, all.word, hal_ir_u32(b, 0));
        const hal_ir_value site = hal_ir_and(b, all.word, hal_ir_u32(b, HAL_IR_ORIGIN_SITE));
        hal_ir_report_of(s, site, hal_ir_and_maybe(b, wrong, s->record.b), all.word, all.x, all.y);
    }
}

/* Whether a finite number is not finite in memory of the type. */
static hal_ir_value element_is_lost(hal_ir_instrumentation *s, const hal_ir_value *facts,
                                    hal_type type, hal_ir_value element)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value kept = hal_ir_append(b, (hal_ir_record){.opcode = HAL_IR_NARROW,
                                                               .type = HAL_TYPE_F32,
                                                               .width = 1,
                                                               .a = s->rewrite.values[element],
                                                               .b = HAL_IR_NONE,
                                                               .c = HAL_IR_NONE,
                                                               .d = HAL_IR_NONE,
                                                               .aux = type});
    return hal_ir_and(b, facts[element * FACTS + FINITE], hal_ir_not(b, is_finite(b, kept)));
}

/* Of a vector those elements are checked that were packed. */
static void store_check(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_type type = s->from->memories[record->aux].type;
    hal_ir_value wrong = HAL_IR_NONE, value = HAL_IR_NONE;
    for (uint32_t i = 0; hal_type_is_narrow_float(type) && i < record->width; i++) {
        const hal_ir_value element =
            record->width == 1 ? record->c : packed_element(s->from, record->c, i);
        if (element == HAL_IR_NONE || facts[element * FACTS + FINITE] == HAL_IR_NONE) {
            continue;
        }
        const hal_ir_value is_lost = element_is_lost(s, facts, type, element);
        const hal_ir_value one = s->rewrite.values[element];
        value = value == HAL_IR_NONE ? one : hal_ir_select(b, is_lost, one, value);
        wrong = wrong == HAL_IR_NONE ? is_lost : hal_ir_or(b, wrong, is_lost);
    }
    if (wrong != HAL_IR_NONE) {
        hal_ir_report_fault(s, HAL_IR_FAULT_STORE, hal_ir_and_maybe(b, wrong, s->record.b),
                            record->aux, s->record.a, value, HAL_IR_NONE);
    }
}

static void nan_after(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    const hal_ir_record *record = &s->from->records[s->index];
    const bool is_float = record->width == 1 && can_check(s, record->type) &&
                          record->opcode != HAL_IR_VAR && value != HAL_IR_NONE;
    const bool may = facts[s->index * FACTS + MAY] == 0;
    if (is_float) {
        facts[s->index * FACTS + FINITE] = is_finite(s->b, value);
    }
    switch (record->opcode) {
    case HAL_IR_STORE:
        store_check(s, facts);
        origin_report(s, facts);
        break;
    case HAL_IR_ATOMIC:
        origin_report(s, facts);
        break;
    case HAL_IR_SET:
        variable_set(s, facts);
        break;
    case HAL_IR_VAR:
        if (may) {
            variable_make(s, facts);
        }
        break;
    case HAL_IR_GET:
    case HAL_IR_SELECT:
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
        if (may) {
            origin_move(s, facts);
        }
        break;
    default:
        if (may && is_float && record->opcode != HAL_IR_EXTRACT) {
            result_note(s, facts, value);
        } else if (may && value != HAL_IR_NONE) {
            origin_move(s, facts);
        }
        break;
    }
}

const hal_ir_pass hal_ir_pass_nan = {
    .check = HAL_CHECK_NAN, .begin = nan_begin, .after = nan_after};
