/* Copies a kernel and lets passes add checks, see instrument.h. */
#include "instrument.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hal_ir_pass *const passes[HAL_IR_PASSES] = {
    &hal_ir_pass_bounds, &hal_ir_pass_init, &hal_ir_pass_race, &hal_ir_pass_math, &hal_ir_pass_nan};

/* Names and types of the bindings that are added. */
typedef struct added_bindings {
    char names[HAL_IR_MAX_BINDINGS][32];
    hal_ir_added items[HAL_IR_MAX_BINDINGS + 1];
    uint32_t count;
} added_bindings;

/* The memory of device memory that a record reads or writes other than by an atomic; NONE: none. */
static uint32_t plain_binding(const hal_ir_kernel *from, const hal_ir_record *record)
{
    const uint32_t memory = record->opcode == HAL_IR_ASYNC_COPY ? (uint32_t)record->imm
                            : record->opcode == HAL_IR_LOAD || record->opcode == HAL_IR_STORE
                                ? record->aux
                                : HAL_IR_NONE;
    return memory == HAL_IR_NONE || hal_ir_is_shared(from, memory) ? HAL_IR_NONE : memory;
}

/* Whether loads and stores of such a shadow are something that the device computes with. */
static bool shadow_type(const hal_device_info *info, hal_ir_shadow_kind kind, hal_type of,
                        hal_type *type)
{
    const uint32_t size = hal_type_size(of);
    *type = kind == HAL_IR_SHADOW_ACCESSED || size == 4 ? HAL_TYPE_U32
            : size == 1                                 ? HAL_TYPE_U8
            : size == 2                                 ? HAL_TYPE_U16
                                                        : HAL_TYPE_U64;
    return *type != HAL_TYPE_U64 || (info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_U64));
}

/* The number of a new shadow; NONE without room. */
static uint32_t shadow_make(hal_ir_instrumentation *s, hal_ir_shadow_kind kind, uint32_t binding,
                            const hal_device_info *info, added_bindings *added)
{
    hal_ir_instrumented *made = s->made;
    const uint32_t most =
        info->max_bindings < HAL_IR_MAX_BINDINGS ? info->max_bindings : HAL_IR_MAX_BINDINGS;
    hal_type type;
    if (!shadow_type(info, kind, s->from->memories[binding].type, &type) ||
        s->from->binding_count + added->count >= most) {
        return HAL_IR_NONE;
    }
    made->shadows[made->shadow_count++] = (hal_ir_shadow){kind, binding};
    char *name = added->names[added->count];
    if (kind == HAL_IR_SHADOW_ACCESSED) {
        snprintf(name, sizeof added->names[0], "sanitize_accessed");
    } else {
        snprintf(name, sizeof added->names[0], "sanitize_binding_%u_written", binding);
    }
    added->items[added->count] = (hal_ir_added){name, type};
    return s->from->binding_count + added->count++;
}

static void shadow_add(hal_ir_instrumentation *s, hal_ir_shadow_kind kind, uint32_t binding,
                       const hal_device_info *info, added_bindings *added)
{
    uint32_t *shadow = &s->shadow[kind][binding];
    for (uint32_t i = 0; i < s->from->binding_count && kind == HAL_IR_SHADOW_ACCESSED; i++) {
        *shadow = *shadow == HAL_IR_NONE ? s->shadow[kind][i] : *shadow;
    }
    if (*shadow == HAL_IR_NONE) {
        *shadow = shadow_make(s, kind, binding, info, added);
        s->made->unchecked += *shadow == HAL_IR_NONE;
    }
}

/* The shadows that the checks need. A kernel that stores nothing has no races. */
static void shadows_add(hal_ir_instrumentation *s, uint32_t checks, const hal_device_info *info,
                        added_bindings *added)
{
    const hal_ir_kernel *from = s->from;
    bool stores = false;
    for (uint32_t i = 0; i < from->record_count; i++) {
        stores |= from->records[i].opcode == HAL_IR_STORE &&
                  plain_binding(from, &from->records[i]) != HAL_IR_NONE;
    }
    for (uint32_t i = 0; i < from->record_count; i++) {
        const uint32_t binding = plain_binding(from, &from->records[i]);
        if (binding != HAL_IR_NONE && stores && (checks & HAL_CHECK_RACE)) {
            shadow_add(s, HAL_IR_SHADOW_ACCESSED, binding, info, added);
        }
    }
    for (uint32_t i = 0; i < from->record_count; i++) {
        const hal_ir_record *record = &from->records[i];
        const uint32_t binding = plain_binding(from, record);
        if (binding != HAL_IR_NONE && (checks & HAL_CHECK_INIT)) {
            shadow_add(s, HAL_IR_SHADOW_WRITTEN, binding, info, added);
        }
        if (record->opcode == HAL_IR_ATOMIC && (checks & HAL_CHECK_INIT) &&
            !hal_ir_is_shared(from, record->aux)) {
            shadow_add(s, HAL_IR_SHADOW_WRITTEN, record->aux, info, added);
        }
    }
}

/* Finds values that are used, and those of which only SELECTs choose. */
static hal_status chosen_find(hal_ir_instrumentation *s)
{
    const hal_ir_kernel *from = s->from;
    uint8_t *others = calloc(from->record_count + 1, 1);
    s->used = calloc(from->record_count + 1, 1);
    s->chosen = calloc(from->record_count + 1, 1);
    if (!others || !s->used || !s->chosen) {
        free(others);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "sanitize: no host memory");
    }
    for (uint32_t i = 0; i < from->record_count; i++) {
        hal_ir_value operands[4];
        const hal_ir_record *record = &from->records[i];
        const uint32_t count = hal_ir_operands(record, operands);
        for (uint32_t k = 0; k < count; k++) {
            const bool is_arm = record->opcode == HAL_IR_SELECT && k > 0;
            (is_arm ? s->chosen : others)[operands[k]] = 1;
        }
    }
    for (uint32_t i = 0; i < from->record_count; i++) {
        s->used[i] = s->chosen[i] | others[i];
        s->chosen[i] &= !others[i];
    }
    free(others);
    return HAL_OK;
}

/* Whether the kernel may have more loops: its own, and those by which a plugin computes REM, may
 * take all iterations that the device has. */
static bool has_room_for_loops(const hal_ir_kernel *from, const hal_device_info *info)
{
    return info->max_loop_iterations == 0 || hal_ir_loop_iterations(from) == 0;
}

static hal_status instrumentation_begin(hal_ir_instrumentation *s, const hal_ir_kernel *from,
                                        uint32_t checks, const hal_device_info *info)
{
    added_bindings added = {.items = {{"sanitize_reports", HAL_TYPE_U32}}, .count = 1};
    memset(s->parameter, 0xff, sizeof s->parameter); /* HAL_IR_NONE */
    memset(s->shadow, 0xff, sizeof s->shadow);
    s->from = from;
    s->has_room_for_loops = has_room_for_loops(from, info);
    shadows_add(s, checks, info, &added);
    HAL_TRY(hal_ir_rewrite_begin(&s->rewrite, from, info, NULL, added.items));
    s->b = s->rewrite.to;
    HAL_TRY(chosen_find(s));
    const size_t bytes =
        ((size_t)from->record_count * HAL_IR_FACTS + HAL_IR_MAX_SHARED + 4) * sizeof *s->present;
    s->present = malloc(bytes);
    if (!s->present) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "sanitize: no host memory");
    }
    for (uint32_t i = 0; i < HAL_IR_PASSES; i++) {
        if (passes[i] && (passes[i]->check & checks)) {
            s->facts[i] = malloc(bytes);
            if (!s->facts[i]) {
                return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "sanitize: no host memory");
            }
            memset(s->facts[i], 0xff, bytes);
        }
    }
    for (uint32_t i = from->binding_count; i < from->memory_count; i++) {
        const uint32_t size = hal_type_size(from->memories[i].type);
        s->shared_bytes = (s->shared_bytes + 15) & ~UINT64_C(15);
        s->shared_bytes += (uint64_t)size * from->memories[i].count;
    }
    hal_ir_index_ends_make(s, checks);
    for (uint32_t i = 0; i < HAL_IR_PASSES; i++) {
        if (s->facts[i] && passes[i]->begin) {
            passes[i]->begin(s, s->facts[i]);
        }
    }
    return HAL_OK;
}

/* The number in the new kernel of a memory of `from`. */
static uint32_t memory_number(const hal_ir_instrumentation *s, uint32_t memory)
{
    return memory + (hal_ir_is_shared(s->from, memory) ? 1 + s->made->shadow_count : 0);
}

static hal_ir_value record_append(hal_ir_instrumentation *s)
{
    switch (s->record.opcode) {
    case HAL_IR_CONSTANT:
    case HAL_IR_LOCAL_ID:
    case HAL_IR_GROUP_ID:
    case HAL_IR_GROUP_COUNT:
    case HAL_IR_LANE_ID:
        return hal_ir_rewrite_copy(&s->rewrite, &s->from->records[s->index]);
    default:
        return hal_ir_append_copy(s->b, &s->record);
    }
}

/* Whether the operands of the record are present; sets is_present. */
static void presence_find(hal_ir_instrumentation *s)
{
    hal_ir_value operands[4];
    const hal_ir_record *record = &s->from->records[s->index];
    const uint32_t count = hal_ir_operands(record, operands);
    s->is_present = HAL_IR_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_value one = s->present[operands[i]];
        if (one != HAL_IR_NONE && one != s->is_present) {
            s->is_present = hal_ir_and_maybe(s->b, one, s->is_present);
        }
    }
    s->present[s->index] = s->is_present;
    if (record->opcode == HAL_IR_LOAD && record->b != HAL_IR_NONE) {
        s->present[s->index] = hal_ir_and_maybe(s->b, s->rewrite.values[record->b], s->is_present);
    }
}

/* Whether a record ends a run of records that are executed together. */
static bool is_block_edge(uint32_t opcode)
{
    switch (opcode) {
    case HAL_IR_FOR:
    case HAL_IR_IF:
    case HAL_IR_ELSE:
    case HAL_IR_END:
    case HAL_IR_BARRIER:
        return true;
    default:
        return false;
    }
}

static void block_end(hal_ir_instrumentation *s)
{
    for (uint32_t i = 0; i < HAL_IR_PASSES; i++) {
        if (s->facts[i] && passes[i]->edge) {
            passes[i]->edge(s, s->facts[i]);
        }
    }
    hal_ir_reports_end(s);
}

static void record_instrument(hal_ir_instrumentation *s, uint32_t index)
{
    const hal_ir_info *info = hal_ir_info_of(s->from->records[index].opcode);
    s->index = index;
    s->record = s->from->records[index];
    hal_ir_record_rename(&s->record, s->rewrite.values);
    presence_find(s);
    if (is_block_edge(s->record.opcode)) {
        block_end(s);
    }
    if (info->traits & (HAL_IR_TRAIT_READS | HAL_IR_TRAIT_WRITES)) {
        s->record.aux = memory_number(s, s->record.aux);
    }
    for (uint32_t i = 0; i < HAL_IR_PASSES; i++) {
        if (s->facts[i] && passes[i]->before) {
            passes[i]->before(s, s->facts[i]);
        }
    }
    s->rewrite.values[index] = record_append(s);
    for (uint32_t i = HAL_IR_PASSES; i-- > 0;) {
        if (s->facts[i] && passes[i]->after) {
            passes[i]->after(s, s->facts[i], s->rewrite.values[index]);
        }
    }
}

hal_status hal_ir_instrument(const hal_ir_kernel *kernel, uint32_t checks,
                             const hal_device_info *info, hal_ir_instrumented *made)
{
    hal_ir_instrumentation s = {.made = made};
    *made = (hal_ir_instrumented){0};
    hal_status status = instrumentation_begin(&s, kernel, checks, info);
    for (uint32_t i = 0; status == HAL_OK && i < kernel->record_count; i++) {
        record_instrument(&s, i);
    }
    if (status == HAL_OK) {
        block_end(&s);
    }
    if (s.b) {
        const bool is_wanted = status == HAL_OK && (made->site_count > 0 || made->shadow_count > 0);
        const hal_status ended = hal_ir_rewrite_end(&s.rewrite, is_wanted ? &made->kernel : NULL);
        status = status == HAL_OK ? ended : status;
    }
    for (uint32_t i = 0; i < HAL_IR_PASSES; i++) {
        free(s.facts[i]);
    }
    free(s.present);
    free(s.used);
    free(s.chosen);
    return status == HAL_OK && made->kernel ? hal_ir_verify(made->kernel) : status;
}
