/* Init: loads and atomics of elements that nothing has written, except exchanges whose old value is
 * not used. In shared memory a word for each element says whether a work-item of the group wrote
 * it; of a binding the shadow says whether anything did. Memory for whose words there is no room is
 * not checked.
 *
 * A load from which only SELECTs choose is checked where one does: kernels load past an end and
 * choose afterwards.
 *
 * facts: of each shared array, its words' memory; then, of each such load, whether it lacks an
 * element. */
#include "instrument.h"

/* What says that elements were written. */
typedef struct init_words {
    hal_ir_memory_id memory; /* of the new kernel; NONE: not checked */
    hal_ir_value one;        /* of an element that was written */
    bool is_binding;
} init_words;

static uint64_t ones(uint32_t bytes)
{
    return UINT64_C(0x0101010101010101) >> (64 - 8 * bytes);
}

static init_words words_of(hal_ir_instrumentation *s, const hal_ir_value *facts, uint32_t memory)
{
    if (hal_ir_is_shared(s->from, memory)) {
        return (init_words){facts[memory - s->from->binding_count], hal_ir_u32(s->b, 1), false};
    }
    const hal_ir_memory_id shadow = s->shadow[HAL_IR_SHADOW_WRITTEN][memory];
    const uint32_t size = hal_type_size(s->from->memories[memory].type);
    return (init_words){
        shadow, size == 8 ? hal_ir_u64(s->b, ones(8)) : hal_ir_u32(s->b, (uint32_t)ones(size)),
        true};
}

/* Of the elements of `memory` from index + offset on: NONE where they are not checked. */
static hal_ir_value elements_missing(hal_ir_instrumentation *s, const hal_ir_value *facts,
                                     uint32_t memory, hal_ir_value index, int32_t offset)
{
    hal_ir_builder *b = s->b;
    const uint32_t width = s->record.width;
    const init_words words = words_of(s, facts, memory);
    if (words.memory == HAL_IR_NONE) {
        return HAL_IR_NONE;
    }
    hal_ir_value guard = s->record.b;
    if (words.is_binding) {
        guard = hal_ir_and_maybe(
            b, hal_ir_index_holds(s, HAL_IR_COUNT_WRITTEN, memory, index, offset, width), guard);
    }
    const hal_ir_value loaded = hal_ir_load_wide(b, words.memory, index, offset, width, guard);
    hal_ir_value all = width == 1 ? loaded : hal_ir_extract(b, loaded, 0);
    for (uint32_t i = 1; i < width; i++) {
        all = hal_ir_and(b, all, hal_ir_extract(b, loaded, i));
    }
    return hal_ir_and_maybe(b, hal_ir_ne(b, all, words.one), guard);
}

static void elements_note(hal_ir_instrumentation *s, const hal_ir_value *facts, hal_ir_value guard,
                          int32_t offset)
{
    hal_ir_builder *b = s->b;
    const uint32_t memory = s->from->records[s->index].aux, width = s->record.width;
    const init_words words = words_of(s, facts, memory);
    if (words.memory == HAL_IR_NONE) {
        return;
    }
    if (words.is_binding) {
        guard = hal_ir_and_maybe(
            b, hal_ir_index_holds(s, HAL_IR_COUNT_WRITTEN, memory, s->record.a, offset, width),
            guard);
    }
    const hal_ir_value each[8] = {words.one, words.one, words.one, words.one,
                                  words.one, words.one, words.one, words.one};
    hal_ir_store_wide(b, words.memory, s->record.a, offset, guard,
                      width == 1 ? words.one : hal_ir_pack(b, width, each));
}

static void missing_report(hal_ir_instrumentation *s, hal_ir_value missing, uint32_t memory,
                           hal_ir_value index)
{
    hal_ir_report_fault(s, HAL_IR_FAULT_UNINITIALISED,
                        hal_ir_and_maybe(s->b, missing, s->is_present), memory, index, HAL_IR_NONE,
                        HAL_IR_NONE);
}

static void load_check(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_ir_value missing = elements_missing(s, facts, record->aux, s->record.a, record->imm);
    if (missing == HAL_IR_NONE) {
        return;
    }
    if (s->chosen[s->index] && record->opcode == HAL_IR_LOAD) {
        facts[HAL_IR_MAX_SHARED + s->index] = missing;
    } else {
        missing_report(s, missing, record->aux, s->record.a);
    }
}

/* The report is that of the load. */
static void choice_check(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const uint32_t index = s->index;
    const hal_ir_value arms[2] = {s->from->records[index].b, s->from->records[index].c};
    for (uint32_t i = 0; i < 2; i++) {
        const hal_ir_value missing = facts[HAL_IR_MAX_SHARED + arms[i]];
        const hal_ir_record *load = &s->from->records[arms[i]];
        if (load->opcode == HAL_IR_LOAD && missing != HAL_IR_NONE) {
            const hal_ir_value takes = i == 0 ? s->record.a : hal_ir_not(b, s->record.a);
            s->index = arms[i];
            missing_report(s, hal_ir_and(b, missing, takes), load->aux, s->rewrite.values[load->a]);
            s->index = index;
        }
    }
}

static void copy_check(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_ir_value missing = elements_missing(s, facts, (uint32_t)record->imm, s->record.d, 0);
    if (missing != HAL_IR_NONE) {
        missing_report(s, missing, (uint32_t)record->imm, s->record.d);
    }
    elements_note(s, facts, HAL_IR_NONE, 0); /* zeros are written where its guard is false */
}

static void init_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    switch (s->record.opcode) {
    case HAL_IR_LOAD:
        load_check(s, facts);
        break;
    case HAL_IR_ATOMIC:
        if (s->record.flags != HAL_IR_ATOMIC_EXCHANGE || s->used[s->index]) {
            load_check(s, facts);
        }
        elements_note(s, facts, s->record.b, s->record.imm);
        break;
    case HAL_IR_STORE:
        elements_note(s, facts, s->record.b, s->record.imm);
        break;
    case HAL_IR_ASYNC_COPY:
        copy_check(s, facts);
        break;
    case HAL_IR_SELECT:
        choice_check(s, facts);
        break;
    default:
        break;
    }
}

static void init_begin(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    hal_ir_shadow_shared(s, "written", facts);
}

const hal_ir_pass hal_ir_pass_init = {
    .check = HAL_CHECK_INIT, .begin = init_begin, .before = init_before};
