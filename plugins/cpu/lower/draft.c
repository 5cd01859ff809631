/* Drafts, names and values. After a failure the functions have
 * no effect and return something usable, so that callers check the status once at the end. */
#include "lower/draft.h"

#include "status.h"

#include <kit/hash.h>
#include <stdlib.h>

void cpu_unsupported(cpu_lower *lower, const char *what)
{
    if (lower->status == HAL_OK) {
        lower->status = HAL_ERROR_UNSUPPORTED;
        cpu_fail(HAL_ERROR_UNSUPPORTED,
                 "kernel %s: record %u (opcode %u): the cpu plugin does not support %s",
                 lower->ir->names ? lower->ir->names + lower->ir->name : "", lower->record,
                 lower->record < lower->ir->record_count
                     ? (unsigned)lower->ir->records[lower->record].opcode
                     : 0,
                 what);
    }
}

void *cpu_grow(cpu_lower *lower, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = realloc(array, wanted * size);
    if (!grown) {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
        return array;
    }
    *capacity = wanted;
    return grown;
}

uint32_t cpu_new_name(cpu_lower *lower, hal_type type, bool uniform, bool view)
{
    lower->names =
        cpu_grow(lower, lower->names, lower->name_count, &lower->name_capacity, sizeof(cpu_name));
    if (lower->name_count == lower->name_capacity) {
        return 0;
    }
    lower->names[lower->name_count] = (cpu_name){.bytes = (uint8_t)hal_type_size(type),
                                                 .uniform = uniform,
                                                 .view = view,
                                                 .first = CPU_NONE,
                                                 .slot = CPU_NONE};
    return lower->name_count++;
}

cpu_draft *cpu_draft_add(cpu_lower *lower, uint32_t section, cpu_action action)
{
    cpu_draft_list *list = &lower->lists[section];
    list->drafts = cpu_grow(lower, list->drafts, list->count, &list->capacity, sizeof(cpu_draft));
    cpu_draft *draft =
        list->count == list->capacity ? &lower->discarded_draft : &list->drafts[list->count++];
    *draft = (cpu_draft){.action = action,
                         .d = CPU_NONE,
                         .a = CPU_NONE,
                         .b = CPU_NONE,
                         .c = CPU_NONE,
                         .n = lower->n,
                         .mask = CPU_NONE,
                         .access = CPU_NONE,
                         .target = CPU_NONE,
                         .lanewise = true,
                         .fence = lower->fence};
    if (!cpu_lanes_find(lower->lanes, &action)) {
        cpu_unsupported(lower, "an operation on this type");
    }
    return draft;
}

cpu_draft *cpu_draft_lanes(cpu_lower *lower, cpu_action action, uint32_t d, uint32_t a, uint32_t b)
{
    cpu_draft *draft = cpu_draft_add(lower, CPU_SECTION_GROUP, action);
    draft->d = d;
    draft->a = a;
    draft->b = b;
    return draft;
}

cpu_draft *cpu_draft_move(cpu_lower *lower, hal_type type, bool uniform, uint32_t d, uint32_t a)
{
    cpu_action action = cpu_action_of(CPU_STEP_MOVE, type);
    action.form = uniform;
    return cpu_draft_lanes(lower, action, d, a, CPU_NONE);
}

cpu_quantity cpu_known(uint64_t bits)
{
    return (cpu_quantity){.name = CPU_NONE, .section = CPU_SECTION_DISPATCH, .bits = bits};
}

uint32_t cpu_quantity_name(cpu_lower *lower, cpu_quantity quantity, hal_type type)
{
    const uint32_t bytes = hal_type_size(type);
    if (quantity.name != CPU_NONE) {
        return quantity.name;
    }
    uint32_t *hash = &lower->constant_hashes[(kit_mix(quantity.bits) >> 32) % CPU_CONSTANT_HASHES];
    for (uint32_t i = *hash; i != 0; i = lower->constants[i - 1].next) {
        if (lower->constants[i - 1].bits == quantity.bits &&
            lower->constants[i - 1].bytes == bytes) {
            return lower->constants[i - 1].name;
        }
    }
    lower->constants = cpu_grow(lower, lower->constants, lower->constant_count,
                                &lower->constant_capacity, sizeof(cpu_constant_name));
    uint32_t name = cpu_new_name(lower, type, true, false);
    if (lower->status != HAL_OK) {
        return 0;
    }
    lower->names[name].lasting = true;
    lower->constants[lower->constant_count++] =
        (cpu_constant_name){.bits = quantity.bits, .name = name, .bytes = bytes, .next = *hash};
    *hash = lower->constant_count;
    return name;
}

uint32_t cpu_spread(cpu_lower *lower, const cpu_value *value)
{
    if (value->kind != CPU_UNIFORM) {
        return value->name;
    }
    uint32_t name = cpu_new_name(lower, value->type, false, false);
    cpu_draft_move(lower, value->type, true, name,
                   cpu_quantity_name(lower, value->base, value->type));
    return name;
}

void cpu_set_varying(cpu_lower *lower, hal_ir_value record, uint32_t name)
{
    cpu_value *value = &lower->values[record];
    value->kind = CPU_VARYING;
    value->type = lower->ir->records[record].type;
    value->name = name;
}
