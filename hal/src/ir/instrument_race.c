/* Races in shared memory: a word for each element has the last access of the present interval
 * between barriers. The greater of two words counts, so that atomics in any order keep what
 * matters:
 *
 *     interval | kind: read, read by several, written | work-item
 *
 * A read after another work-item's write, and a write after any other's access, is a race. Atomics
 * are not noted. Shared arrays for which no shared memory is left are not checked.
 *
 * facts[0]: the variable with the interval; then, of each shared array, its words' memory. */
#include "instrument.h"

#include "report.h"

enum { KIND_READ = 0, KIND_SEVERAL = 1, KIND_WRITE = 2, KIND_BITS = 2 };

/* Bits of a work-item's number. */
static uint32_t item_bits(const hal_ir_instrumentation *s)
{
    uint32_t bits = 0;
    while (hal_ir_group_items(s->from) > 1u << bits) {
        bits++;
    }
    return bits;
}

/* A word of the present interval. */
static hal_ir_value access_word(hal_ir_instrumentation *s, hal_ir_value interval, uint32_t kind)
{
    const uint32_t bits = item_bits(s);
    const hal_ir_value high = hal_ir_shl(s->b, interval, hal_ir_u32(s->b, bits + KIND_BITS));
    const hal_ir_value low = hal_ir_or(s->b, hal_ir_u32(s->b, kind << bits),
                                       hal_ir_item_number(s->b, s->from->group_size));
    return hal_ir_or(s->b, high, low);
}

/* Notes an access to one element. Returns whether it is a race; `before` is the word that was
 * there. */
static hal_ir_value access_note(hal_ir_instrumentation *s, hal_ir_memory_id words,
                                hal_ir_value index, hal_ir_value guard, bool is_write,
                                hal_ir_value interval, hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    const uint32_t bits = item_bits(s);
    *before =
        hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, words, index, guard,
                      access_word(s, interval, is_write ? KIND_WRITE : KIND_READ), HAL_IR_NONE);
    const hal_ir_value kind = hal_ir_and(b, hal_ir_shr(b, *before, hal_ir_u32(b, bits)),
                                         hal_ir_u32(b, (1 << KIND_BITS) - 1));
    const hal_ir_value other = hal_ir_ne(b, hal_ir_and(b, *before, hal_ir_u32(b, (1u << bits) - 1)),
                                         hal_ir_item_number(s->b, s->from->group_size));
    const hal_ir_value is_now =
        hal_ir_eq(b, hal_ir_shr(b, *before, hal_ir_u32(b, bits + KIND_BITS)), interval);
    if (is_write) {
        const hal_ir_value several = hal_ir_eq(b, kind, hal_ir_u32(b, KIND_SEVERAL));
        return hal_ir_and(b, is_now, hal_ir_or(b, several, other));
    }
    const hal_ir_value is_second =
        hal_ir_and(b, hal_ir_and(b, is_now, other), hal_ir_eq(b, kind, hal_ir_u32(b, KIND_READ)));
    hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, words, index, hal_ir_and_maybe(b, is_second, guard),
                  access_word(s, interval, KIND_SEVERAL), HAL_IR_NONE);
    return hal_ir_and(b, hal_ir_and(b, is_now, other),
                      hal_ir_eq(b, kind, hal_ir_u32(b, KIND_WRITE)));
}

static void access_check(hal_ir_instrumentation *s, const hal_ir_value *facts, bool is_write)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    if (!hal_ir_is_shared(s->from, record->aux) ||
        facts[1 + record->aux - s->from->binding_count] == HAL_IR_NONE) {
        return;
    }
    const hal_ir_memory_id words = facts[1 + record->aux - s->from->binding_count];
    const hal_ir_value interval = hal_ir_get(b, facts[0]);
    const hal_type type = hal_ir_type_of(b, s->record.a);
    hal_ir_value race = HAL_IR_NONE, before = HAL_IR_NONE;
    /* An asynchronous copy writes zeros where its guard is false. */
    const bool is_copy = record->opcode == HAL_IR_ASYNC_COPY;
    const hal_ir_value guard = is_copy ? HAL_IR_NONE : s->record.b;
    for (uint32_t i = 0; i < record->width; i++) {
        const int64_t offset = (is_copy ? 0 : (int64_t)record->imm) + i;
        const hal_ir_value index =
            offset == 0
                ? s->record.a
                : hal_ir_add(b, s->record.a,
                             hal_ir_constant_of(b, type,
                                                hal_type_size(type) == 4 ? (uint32_t)offset
                                                                         : (uint64_t)offset));
        hal_ir_value one;
        const hal_ir_value wrong = access_note(s, words, index, guard, is_write, interval, &one);
        before = race == HAL_IR_NONE ? one : hal_ir_select(b, wrong, one, before);
        race = race == HAL_IR_NONE ? wrong : hal_ir_or(b, race, wrong);
    }
    const hal_ir_value other = hal_ir_and(b, before, hal_ir_u32(b, (1u << item_bits(s)) - 1));
    hal_ir_report_fault(s, HAL_IR_FAULT_RACE, race, record->aux, s->record.a, other, HAL_IR_NONE);
}

static void race_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    switch (s->record.opcode) {
    case HAL_IR_LOAD:
        access_check(s, facts, false);
        break;
    case HAL_IR_STORE:
    case HAL_IR_ASYNC_COPY:
        access_check(s, facts, true);
        break;
    default:
        break;
    }
}

static void race_after(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    (void)value;
    if (s->record.opcode == HAL_IR_BARRIER && facts[0] != HAL_IR_NONE) {
        hal_ir_set(s->b, facts[0],
                   hal_ir_add(s->b, hal_ir_get(s->b, facts[0]), hal_ir_u32(s->b, 1)));
    }
}

static void race_begin(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    if (hal_ir_shadow_shared(s, "accesses", facts + 1)) {
        facts[0] = hal_ir_var(s->b, hal_ir_u32(s->b, 1));
    }
}

const hal_ir_pass hal_ir_pass_race = {
    .check = HAL_CHECK_RACE, .begin = race_begin, .before = race_before, .after = race_after};
