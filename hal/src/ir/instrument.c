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

/* Stores of each work-item that clear the words of one array without a loop; more are not made. */
enum { MAX_CLEARING_STORES = 256 };

static uint32_t clearing_stores(const hal_ir_instrumentation *s, uint32_t count)
{
    const uint32_t items = hal_ir_group_items(s->from);
    return count / items + (count % items > 0);
}

/* Takes shared memory of the device for an array of words. False where no room is left, or where
 * only a loop could clear the words and the kernel may not have more loops. */
static bool words_take(hal_ir_instrumentation *s, uint32_t count)
{
    const uint64_t end = ((s->shared_bytes + 15) & ~UINT64_C(15)) + UINT64_C(4) * count;
    if (end > s->rewrite.info->shared_bytes ||
        (!s->has_room_for_loops && clearing_stores(s, count) > MAX_CLEARING_STORES)) {
        s->made->unchecked++;
        return false;
    }
    s->shared_bytes = end;
    return true;
}

static void words_clear_by_loop(hal_ir_instrumentation *s, hal_ir_memory_id words, uint32_t count,
                                hal_ir_value item)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value i =
        hal_ir_for(b, item, hal_ir_u32(b, count), hal_ir_u32(b, hal_ir_group_items(s->from)));
    hal_ir_store(b, words, i, hal_ir_u32(b, 0));
    hal_ir_end(b);
}

/* Clears the words of a shared array by all work-items. */
static void words_clear(hal_ir_instrumentation *s, hal_ir_memory_id words, uint32_t count)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value item = hal_ir_item_number(b, s->from->group_size);
    const uint32_t items = hal_ir_group_items(s->from);
    if (s->has_room_for_loops) {
        words_clear_by_loop(s, words, count, item);
        return;
    }
    const hal_ir_value zero = hal_ir_u32(b, 0);
    for (uint32_t i = 0; i < clearing_stores(s, count); i++) {
        const uint32_t first = i * items, left = count - first;
        const hal_ir_value guard =
            left < items ? hal_ir_lt(b, item, hal_ir_u32(b, left)) : HAL_IR_NONE;
        hal_ir_store_wide(b, words, item, (int32_t)first, guard, zero);
    }
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
        if (words_take(s, elements)) {
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

hal_ir_value hal_ir_never(hal_ir_instrumentation *s)
{
    return hal_ir_eq(s->b, hal_ir_dispatch_name(s), hal_ir_u32(s->b, HAL_IR_NO_DISPATCH));
}

hal_ir_value hal_ir_element_count(hal_ir_instrumentation *s, uint32_t memory, hal_type type)
{
    if (hal_ir_is_shared(s->from, memory)) {
        return hal_ir_constant_of(s->b, type, s->from->memories[memory].count);
    }
    return parameter_value(
        s, type == HAL_TYPE_U64 ? HAL_IR_PARAMETER_COUNT_64 : HAL_IR_PARAMETER_COUNT, memory);
}

hal_ir_value hal_ir_shadow_count(hal_ir_instrumentation *s, hal_ir_shadow_kind kind,
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
    return hal_ir_ne(s->b, hal_ir_shadow_count(s, kind, memory), hal_ir_u32(s->b, 0));
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
