/* What the passes that add checks to kernels share, see instrument.h. */
#include "instrument.h"

#include "report.h"

#include "base/array.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void instrumentation_out_of_memory(hal_ir_instrumentation *s)
{
    hal_ir_builder_fail(s->b, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
}

/* A scalar after those of the kernel, made once. */
static hal_ir_value parameter_value(hal_ir_instrumentation *s, hal_ir_parameter_kind kind,
                                    uint32_t binding)
{
    hal_ir_value *value = &s->parameter[kind][binding];
    if (*value != HAL_IR_NONE) {
        return *value;
    }
    char name[48];
    snprintf(name, sizeof name, "sanitize_parameter_%u_%u", kind, binding);
    *value = hal_ir_scalar_value(s->b, name,
                                 kind == HAL_IR_PARAMETER_COUNT_64 ? HAL_TYPE_U64 : HAL_TYPE_U32);
    hal_ir_instrumented *made = s->made;
    if (*value == HAL_IR_NONE || !HAL_ARRAY_RESERVE(made->parameters, s->parameter_capacity,
                                                    (uint64_t)made->parameter_count + 1)) {
        instrumentation_out_of_memory(s);
        return HAL_IR_NONE;
    }
    const hal_ir_kernel *view = hal_ir_builder_view(s->b);
    made->parameters[made->parameter_count++] =
        (hal_ir_parameter){kind, binding, view->scalars[view->scalar_count - 1].offset};
    return *value;
}

/* Takes shared memory of the device for an array of words. False where no room is left. */
static bool shared_take(hal_ir_instrumentation *s, uint64_t bytes)
{
    const uint64_t end = ((s->shared_bytes + 15) & ~UINT64_C(15)) + bytes;
    if (end > s->rewrite.info->shared_bytes) {
        s->made->unchecked++;
        return false;
    }
    s->shared_bytes = end;
    return true;
}

/* Clears the words of a shared array by all work-items. */
static void words_clear(hal_ir_instrumentation *s, hal_ir_memory_id words, uint32_t count)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value i =
        hal_ir_for(b, hal_ir_item_number(s->b, s->from->group_size), hal_ir_u32(b, count),
                   hal_ir_u32(b, hal_ir_group_items(s->from)));
    hal_ir_store(b, words, i, zero);
    hal_ir_end(b);
}

bool hal_ir_shadow_shared(hal_ir_instrumentation *s, const char *what, hal_ir_memory_id *words)
{
    const hal_ir_kernel *from = s->from;
    const uint32_t count = from->memory_count - from->binding_count;
    bool has_words = false;
    for (uint32_t i = 0; i < count; i++) {
        char name[48];
        const uint32_t elements = from->memories[from->binding_count + i].count;
        snprintf(name, sizeof name, "sanitize_%s_%u", what, i);
        if (shared_take(s, UINT64_C(4) * elements)) {
            words[i] = hal_ir_shared(s->b, name, HAL_TYPE_U32, elements);
            has_words = true;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (words[i] != HAL_IR_NONE) {
            words_clear(s, words[i], from->memories[from->binding_count + i].count);
        }
    }
    if (has_words) {
        hal_ir_barrier(s->b);
    }
    return has_words;
}

void hal_ir_instrumented_free(hal_ir_instrumented *made)
{
    hal_ir_kernel_destroy(made->kernel);
    free(made->sites);
    free(made->parameters);
    *made = (hal_ir_instrumented){0};
}

const char *hal_ir_fault_text(hal_ir_fault fault)
{
#define FAULT_TEXT(NAME, check, text) text,
    static const char *const texts[] = {HAL_IR_FAULTS(FAULT_TEXT)};
#undef FAULT_TEXT
    return texts[fault];
}

hal_ir_value hal_ir_dispatch_name(hal_ir_instrumentation *s)
{
    return parameter_value(s, HAL_IR_PARAMETER_DISPATCH, 0);
}

hal_ir_value hal_ir_element_count(hal_ir_instrumentation *s, uint32_t memory, hal_type type)
{
    if (hal_ir_is_shared(s->from, memory)) {
        return hal_ir_constant_of(s->b, type, s->from->memories[memory].count);
    }
    return parameter_value(
        s, type == HAL_TYPE_U64 ? HAL_IR_PARAMETER_COUNT_64 : HAL_IR_PARAMETER_COUNT, memory);
}

/* The sum does not overflow by definition, so it is not computed before its parts are compared. */
hal_ir_value hal_ir_index_holds(hal_ir_builder *b, hal_ir_value index, int64_t offset,
                                uint32_t width, hal_ir_value count)
{
    const hal_type type = hal_ir_type_of(b, index), plain = hal_ir_type_of(b, count);
    const bool is_signed = type != plain;
    hal_ir_value at = is_signed ? hal_ir_bitcast(b, plain, index) : index;
    hal_ir_value above = HAL_IR_NONE;
    uint64_t less = width - 1; /* of the elements, at which an access may begin */
    if (offset < 0 || (is_signed && offset > 0)) {
        const uint64_t mask = plain == HAL_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
        at = hal_ir_add(b, at, hal_ir_constant_of(b, plain, (uint64_t)offset & mask));
        above = hal_ir_le(b, hal_ir_number(b, type, -(double)offset), index);
    } else {
        less += (uint64_t)offset;
    }
    hal_ir_value end = count;
    if (less > 0) {
        const hal_ir_value part = hal_ir_constant_of(b, plain, less);
        end = hal_ir_sub(b, hal_ir_max(b, count, part), part);
    }
    if (is_signed && above == HAL_IR_NONE) {
        end = hal_ir_min(b, end, hal_ir_number(b, plain, plain == HAL_TYPE_U32 ? 0x1p31 : 0x1p63));
    }
    return hal_ir_and_maybe(b, hal_ir_lt(b, at, end), above);
}

/* The elements of a shadow, as U32. */
static hal_ir_value shadow_count(hal_ir_instrumentation *s, hal_ir_shadow_kind kind,
                                 uint32_t memory)
{
    return parameter_value(
        s, kind == HAL_IR_SHADOW_WRITTEN ? HAL_IR_PARAMETER_WRITTEN : HAL_IR_PARAMETER_ACCESSED,
        memory);
}

hal_ir_value hal_ir_shadow_place(hal_ir_instrumentation *s, uint32_t memory)
{
    return parameter_value(s, HAL_IR_PARAMETER_PLACE, memory);
}

hal_ir_value hal_ir_shadow_exists(hal_ir_instrumentation *s, hal_ir_shadow_kind kind,
                                  uint32_t memory)
{
    return hal_ir_ne(s->b, shadow_count(s, kind, memory), hal_ir_u32(s->b, 0));
}

hal_ir_value hal_ir_shadow_holds(hal_ir_instrumentation *s, hal_ir_shadow_kind kind,
                                 uint32_t memory, hal_ir_value index, int64_t offset,
                                 uint32_t width)
{
    hal_ir_value count = shadow_count(s, kind, memory);
    if (hal_type_size(hal_ir_type_of(s->b, index)) == 8) {
        count = hal_ir_cast(s->b, HAL_TYPE_U64, count);
    }
    return hal_ir_index_holds(s->b, index, offset, width, count);
}

hal_ir_value hal_ir_and_maybe(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return y == HAL_IR_NONE ? x : hal_ir_and(b, x, y);
}

uint32_t hal_ir_site_add(hal_ir_instrumentation *s, hal_ir_fault fault, uint32_t memory)
{
    hal_ir_instrumented *made = s->made;
    if (!HAL_ARRAY_RESERVE(made->sites, s->site_capacity, (uint64_t)made->site_count + 1)) {
        instrumentation_out_of_memory(s);
        return 0;
    }
    made->sites[made->site_count] = (hal_ir_site){s->index, memory, fault};
    return made->site_count++;
}

/* Counts a pending fault and describes the first one. */
static void report_write(hal_ir_instrumentation *s, const hal_ir_pending *report)
{
    hal_ir_builder *b = s->b;
    const hal_ir_memory_id reports = s->from->binding_count;
    const hal_ir_value one = hal_ir_u32(b, 1), zero = hal_ir_u32(b, 0);
    const hal_ir_value site = hal_ir_mul(b, report->site, hal_ir_u32(b, HAL_IR_REPORT_WORDS));
    const hal_ir_value before =
        hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, reports, site, HAL_IR_NONE, one, HAL_IR_NONE);
    hal_ir_if(b, hal_ir_eq(b, before, zero));
    hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, reports, zero, HAL_IR_NONE, one, HAL_IR_NONE);
    hal_ir_value index_words[2], x_words[2], y_words[2];
    hal_ir_value_words(b, report->index, index_words);
    hal_ir_value_words(b, report->x, x_words);
    hal_ir_value_words(b, report->y, y_words);
    const hal_ir_value words[12] = {hal_ir_dispatch_name(s),
                                    hal_ir_id(b, HAL_IR_GROUP_ID, 0),
                                    hal_ir_id(b, HAL_IR_GROUP_ID, 1),
                                    hal_ir_id(b, HAL_IR_GROUP_ID, 2),
                                    hal_ir_item_number(b, s->from->group_size),
                                    index_words[0],
                                    index_words[1],
                                    hal_ir_u32(b, report->record),
                                    x_words[0],
                                    x_words[1],
                                    y_words[0],
                                    y_words[1]};
    for (uint32_t i = 0; i < 3; i++) {
        hal_ir_store_wide(b, reports, site, (int32_t)(4 + 4 * i), HAL_IR_NONE,
                          hal_ir_pack(b, 4, words + 4 * i));
    }
    hal_ir_end(b);
}

void hal_ir_reports_end(hal_ir_instrumentation *s)
{
    hal_ir_builder *b = s->b;
    const uint32_t count = s->pending_count;
    s->pending_count = 0;
    if (count == 0) {
        return;
    }
    hal_ir_value any = s->pending[0].wrong;
    for (uint32_t i = 1; i < count; i++) {
        any = hal_ir_or(b, any, s->pending[i].wrong);
    }
    hal_ir_if(b, any);
    for (uint32_t i = 0; i < count; i++) {
        if (count > 1) {
            hal_ir_if(b, s->pending[i].wrong);
        }
        report_write(s, &s->pending[i]);
        if (count > 1) {
            hal_ir_end(b);
        }
    }
    hal_ir_end(b);
}

void hal_ir_report_at(hal_ir_instrumentation *s, hal_ir_value number, hal_ir_value wrong,
                      hal_ir_value index, hal_ir_value x, hal_ir_value y)
{
    if (s->pending_count == HAL_IR_MAX_PENDING) {
        hal_ir_reports_end(s);
    }
    s->pending[s->pending_count++] = (hal_ir_pending){
        .site = number, .wrong = wrong, .index = index, .x = x, .y = y, .record = s->index};
}

void hal_ir_report_fault(hal_ir_instrumentation *s, hal_ir_fault fault, hal_ir_value wrong,
                         uint32_t memory, hal_ir_value index, hal_ir_value x, hal_ir_value y)
{
    const uint32_t number = hal_ir_site_add(s, fault, memory) + 1;
    hal_ir_report_at(s, hal_ir_u32(s->b, number), wrong, index, x, y);
}
