/* Init: loads and atomics of elements of shared memory that no work-item of the group has written.
 * A word for each element says whether it was. Shared arrays for which no shared memory is left are
 * not checked.
 *
 * facts: of each shared array, its words' memory. */
#include "instrument.h"

static hal_ir_memory_id words_of(const hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    const uint32_t memory = s->from->records[s->index].aux;
    return hal_ir_is_shared(s->from, memory) ? facts[memory - s->from->binding_count] : HAL_IR_NONE;
}

static void written_check(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_ir_memory_id words = words_of(s, facts);
    hal_ir_value missing = HAL_IR_NONE;
    for (uint32_t i = 0; words != HAL_IR_NONE && i < record->width; i++) {
        const hal_ir_value word =
            hal_ir_load_wide(b, words, s->record.a, record->imm + (int32_t)i, 1, s->record.b);
        const hal_ir_value one = hal_ir_eq(b, word, hal_ir_u32(b, 0));
        missing = missing == HAL_IR_NONE ? one : hal_ir_or(b, missing, one);
    }
    if (missing != HAL_IR_NONE) {
        missing = hal_ir_and_maybe(b, hal_ir_and_maybe(b, missing, s->record.b), s->is_present);
        hal_ir_report_fault(s, HAL_IR_FAULT_UNINITIALISED, missing, record->aux, s->record.a,
                            HAL_IR_NONE, HAL_IR_NONE);
    }
}

static void written_note(hal_ir_instrumentation *s, const hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_ir_memory_id words = words_of(s, facts);
    /* An asynchronous copy writes zeros where its guard is false; its imm is a binding. */
    const bool is_copy = record->opcode == HAL_IR_ASYNC_COPY;
    for (uint32_t i = 0; words != HAL_IR_NONE && i < record->width; i++) {
        hal_ir_store_wide(s->b, words, s->record.a, (is_copy ? 0 : record->imm) + (int32_t)i,
                          is_copy ? HAL_IR_NONE : s->record.b, hal_ir_u32(s->b, 1));
    }
}

static void init_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    switch (s->record.opcode) {
    case HAL_IR_LOAD:
        written_check(s, facts);
        break;
    case HAL_IR_ATOMIC:
        written_check(s, facts);
        written_note(s, facts);
        break;
    case HAL_IR_STORE:
    case HAL_IR_ASYNC_COPY:
        written_note(s, facts);
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
