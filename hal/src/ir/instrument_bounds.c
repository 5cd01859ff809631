/* Bounds: every access is compared with the range of its binding or the size of its shared array. A
 * wide access also begins at a multiple of its width. Accesses out of range are skipped. */
#include "instrument.h"

/* Whether the access begins at a multiple of its width. */
static hal_ir_value alignment_holds(hal_ir_builder *b, hal_ir_value index, int64_t offset,
                                    uint32_t width)
{
    const uint32_t more = (uint32_t)offset & (width - 1);
    const hal_ir_value low = hal_ir_cast(b, HAL_TYPE_U32, index);
    const hal_ir_value first = more > 0 ? hal_ir_add(b, low, hal_ir_u32(b, more)) : low;
    return hal_ir_eq(b, hal_ir_and(b, first, hal_ir_u32(b, width - 1)), hal_ir_u32(b, 0));
}

/* Whether a constant index of a shared array is right whatever comes. */
static bool is_known_right(const hal_ir_instrumentation *s, uint32_t memory, hal_ir_value index,
                           int64_t offset, uint32_t width)
{
    const hal_ir_record *record = &s->from->records[index];
    if (!hal_ir_is_shared(s->from, memory) || record->opcode != HAL_IR_CONSTANT) {
        return false;
    }
    const uint64_t bits = s->from->constants[record->aux];
    const int64_t at = record->type == HAL_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    if (at < INT32_MIN || at > UINT32_MAX || (record->type == HAL_TYPE_U64 && at < 0)) {
        return false; /* beyond what an offset brings into range */
    }
    const int64_t first = at + offset;
    return first >= 0 && (uint64_t)first + width <= s->from->memories[memory].count &&
           (uint64_t)first % width == 0;
}

/* Reports an access that is wrong. Returns whether it is right; NONE where it always is. */
static hal_ir_value bounds_check(hal_ir_instrumentation *s, hal_ir_fault fault, uint32_t memory,
                                 hal_ir_value old_index, int64_t offset, uint32_t width)
{
    hal_ir_builder *b = s->b;
    if (is_known_right(s, memory, old_index, offset, width)) {
        return HAL_IR_NONE;
    }
    const hal_ir_value index = s->rewrite.values[old_index];
    hal_ir_value right = hal_ir_index_holds(s, HAL_IR_COUNT_ELEMENTS, memory, index, offset, width);
    if (width > 1) {
        right = hal_ir_and(b, right, alignment_holds(b, index, offset, width));
    }
    const hal_ir_value stored =
        s->record.opcode == HAL_IR_STORE && width == 1 ? s->record.c : HAL_IR_NONE;
    hal_ir_report_unless(s, fault, right, s->record.b, memory, index, stored);
    return right;
}

/* An asynchronous copy writes zeros where its guard is false, so one that is wrong at the shared
 * array is left out by a block. */
static void copy_check(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    const hal_ir_value source = bounds_check(s, HAL_IR_FAULT_SOURCE_BOUNDS, (uint32_t)record->imm,
                                             record->d, 0, record->width);
    const hal_ir_value guard = s->record.b;
    s->record.b = HAL_IR_NONE; /* the zeros are written in any case */
    const hal_ir_value target =
        bounds_check(s, HAL_IR_FAULT_BOUNDS, record->aux, record->a, 0, record->width);
    s->record.b = source == HAL_IR_NONE ? guard : hal_ir_and_maybe(s->b, source, guard);
    if (target != HAL_IR_NONE) {
        hal_ir_reports_end(s);
        hal_ir_if(s->b, target);
        facts[s->index] = target;
    }
}

static void bounds_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    switch (record->opcode) {
    case HAL_IR_LOAD:
    case HAL_IR_STORE:
    case HAL_IR_ATOMIC: {
        const hal_ir_value right = bounds_check(s, HAL_IR_FAULT_BOUNDS, record->aux, record->a,
                                                record->imm, record->width);
        s->record.b =
            right == HAL_IR_NONE ? s->record.b : hal_ir_and_maybe(s->b, right, s->record.b);
        break;
    }
    case HAL_IR_ASYNC_COPY:
        copy_check(s, facts);
        break;
    default:
        break;
    }
}

static void bounds_after(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    (void)value;
    if (s->record.opcode == HAL_IR_ASYNC_COPY && facts[s->index] != HAL_IR_NONE) {
        hal_ir_reports_end(s);
        hal_ir_end(s->b);
    }
}

const hal_ir_pass hal_ir_pass_bounds = {
    .check = HAL_CHECK_BOUNDS,
    .before = bounds_before,
    .after = bounds_after,
};
