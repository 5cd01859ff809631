/* Batches as the plugin gets them with HAL_SANITIZE, see sanitize.h. */
#include "sanitize.h"

#include "core/queue.h"

#include <string.h>

/* A batch in the making. */
typedef struct batch_copy {
    const hal_recording *batch;
    hal_sanitize_device *device;
    const hal_queue *queue;
    hal_recording *copy;
} batch_copy;

/* Where the words of a binding begin among those of a dispatch, in bytes. */
typedef struct words_place {
    uint64_t offset;
    bool has_words;
} words_place;

static hal_command *command_add(hal_recording *copy, hal_command command)
{
    command.binding_first = copy->binding_count;
    command.scalar_first = copy->scalar_bytes;
    command.binding_count = 0;
    copy->commands[copy->command_count] = command;
    return &copy->commands[copy->command_count++];
}

static void binding_add(hal_recording *copy, hal_command *command, hal_binding binding)
{
    copy->bindings[copy->binding_count++] = binding;
    command->binding_count++;
}

/* Room is reserved. */
static void scalars_append(hal_recording *copy, const void *scalars, uint32_t bytes, uint32_t room)
{
    if (bytes) {
        memcpy(copy->scalars + copy->scalar_bytes, scalars, bytes);
    }
    if (room > bytes) {
        memset(copy->scalars + copy->scalar_bytes + bytes, 0, room - bytes);
    }
    copy->scalar_bytes += room;
}

static hal_status fill_add(hal_recording *copy, hal_sanitize_fill fill, uint16_t flags)
{
    HAL_TRY(hal_recording_reserve(copy, 1, 1, 8));
    hal_command *made = command_add(copy, (hal_command){.kind = HAL_COMMAND_FILL,
                                                        .flags = flags,
                                                        .scalar_bytes = sizeof fill.bits,
                                                        .grid = {1, 1, 1}});
    binding_add(copy, made,
                (hal_binding){.memory = fill.memory,
                              .offset = fill.offset,
                              .length = fill.length,
                              .access = HAL_ACCESS_WRITE});
    scalars_append(copy, &fill.bits, sizeof fill.bits, 8);
    return HAL_OK;
}

/* ---- Dispatches of kernels with checks ---- */

static uint64_t words_per_byte(hal_type type)
{
    return 4u * HAL_IR_ACCESS_WORDS(type) / hal_type_size(type);
}

/* Finds the places of words: memory of which a binding is written has words for all its bindings,
 * so that two bindings of the same bytes have the same words. Those whose elements are of another
 * size than the first one's have none, as those beyond `most` bytes. Returns the bytes of all
 * words. */
static uint64_t words_place_all(const hal_sanitize_kernel *kernel, const hal_binding *bindings,
                                uint64_t most, words_place places[HAL_IR_MAX_BINDINGS])
{
    const hal_ir_kernel *built = kernel->built;
    bool is_done[HAL_IR_MAX_BINDINGS] = {false};
    uint64_t total = 0;
    for (uint32_t w = 0; w < built->binding_count; w++) {
        const hal_type type = built->memories[w].type;
        if (is_done[w] || !(built->memories[w].access & HAL_ACCESS_WRITE) ||
            bindings[w].length == 0) {
            continue;
        }
        uint64_t begin = bindings[w].offset, end = begin + bindings[w].length;
        for (uint32_t i = 0; i < built->binding_count; i++) {
            if (bindings[i].memory == bindings[w].memory) {
                const uint64_t other = bindings[i].offset + bindings[i].length;
                begin = bindings[i].offset < begin ? bindings[i].offset : begin;
                end = other > end ? other : end;
            }
        }
        const uint64_t bytes = ((end - begin) * words_per_byte(type) + 255) / 256 * 256;
        const bool fits = end - begin <= most / 8 && bytes <= most - total;
        for (uint32_t i = 0; i < built->binding_count; i++) {
            if (bindings[i].memory == bindings[w].memory && !is_done[i]) {
                const bool is_same = hal_type_size(built->memories[i].type) == hal_type_size(type);
                is_done[i] = true;
                places[i].offset = total + (bindings[i].offset - begin) * words_per_byte(type);
                places[i].has_words = fits && is_same;
            }
        }
        total += fits ? bytes : 0;
    }
    return total;
}

/* What a shadow is in this dispatch; without memory: the binding is not checked. `words`: those of
 * all bindings. */
static hal_binding shadow_binding(const hal_ir_shadow *shadow, const hal_binding *bindings,
                                  hal_binding words)
{
    if (shadow->kind == HAL_IR_SHADOW_ACCESSED) {
        return words;
    }
    const hal_binding *binding = &bindings[shadow->binding];
    const hal_sanitize_memory *memory = hal_sanitize_memory_find(binding->memory);
    return (hal_binding){.memory = memory ? memory->shadow : NULL,
                         .offset = binding->offset,
                         .length = binding->length,
                         .access = HAL_ACCESS_READ_WRITE};
}

static bool is_checked_by(const hal_ir_instrumented *checked, const hal_binding *added,
                          hal_ir_shadow_kind kind, uint32_t binding)
{
    for (uint32_t i = 0; i < checked->shadow_count; i++) {
        const hal_ir_shadow *shadow = &checked->shadows[i];
        if (shadow->kind == kind &&
            (kind == HAL_IR_SHADOW_ACCESSED || shadow->binding == binding)) {
            return added[1 + i].access != 0;
        }
    }
    return false;
}

/* The bindings that follow those of a program's dispatch, and the places of words. */
typedef struct added_bindings {
    hal_binding items[HAL_IR_MAX_BINDINGS];
    words_place places[HAL_IR_MAX_BINDINGS];
} added_bindings;

static uint64_t parameter_value(const hal_ir_parameter *parameter,
                                const hal_sanitize_kernel *kernel, const hal_binding *bindings,
                                const added_bindings *added, uint32_t number)
{
    if (parameter->kind == HAL_IR_PARAMETER_DISPATCH) {
        return number;
    }
    const hal_type type = kernel->built->memories[parameter->binding].type;
    const uint64_t count = bindings[parameter->binding].length / hal_type_size(type);
    const hal_ir_shadow_kind kind = parameter->kind == HAL_IR_PARAMETER_WRITTEN
                                        ? HAL_IR_SHADOW_WRITTEN
                                        : HAL_IR_SHADOW_ACCESSED;
    if (parameter->kind == HAL_IR_PARAMETER_COUNT_64) {
        return count;
    }
    const words_place *place = &added->places[parameter->binding];
    if (parameter->kind == HAL_IR_PARAMETER_PLACE) {
        return place->offset / 4;
    }
    if (parameter->kind != HAL_IR_PARAMETER_COUNT &&
        (!is_checked_by(&kernel->checked, added->items, kind, parameter->binding) ||
         (kind == HAL_IR_SHADOW_ACCESSED && !place->has_words))) {
        return 0;
    }
    return count > UINT32_MAX ? UINT32_MAX : count;
}

static void parameters_set(uint8_t *scalars, const hal_sanitize_kernel *kernel,
                           const hal_binding *bindings, const added_bindings *added,
                           uint32_t number)
{
    for (uint32_t i = 0; i < kernel->checked.parameter_count; i++) {
        const hal_ir_parameter *parameter = &kernel->checked.parameters[i];
        const uint64_t value = parameter_value(parameter, kernel, bindings, added, number);
        const uint32_t word = (uint32_t)value;
        if (parameter->kind == HAL_IR_PARAMETER_COUNT_64) {
            memcpy(scalars + parameter->offset, &value, sizeof value);
        } else {
            memcpy(scalars + parameter->offset, &word, sizeof word);
        }
    }
}

/* The bindings after the program's: the reports and the shadows. Where a binding has no shadow, the
 * reports take its place, and its access is 0 here. Returns whether words were cleared first. */
static hal_status bindings_add(const batch_copy *s, const hal_sanitize_kernel *kernel,
                               const hal_binding *bindings, added_bindings *added, bool *has_words)
{
    const hal_ir_instrumented *checked = &kernel->checked;
    const uint64_t max_binding = s->device->info.max_binding;
    const uint64_t most = max_binding < UINT64_C(1) << 34 ? max_binding : UINT64_C(1) << 34;
    bool wants_words = false;
    for (uint32_t i = 0; i < checked->shadow_count; i++) {
        wants_words |= checked->shadows[i].kind == HAL_IR_SHADOW_ACCESSED;
    }
    const uint64_t bytes = wants_words ? words_place_all(kernel, bindings, most, added->places) : 0;
    hal_plugin_memory *words =
        bytes > 0 ? hal_sanitize_users_take(s->device, s->queue, bytes) : NULL;
    const hal_binding all_words = {
        .memory = words, .length = bytes, .access = HAL_ACCESS_READ_WRITE};
    added->items[0] = (hal_binding){.memory = kernel->reports.memory,
                                    .offset = kernel->reports.offset,
                                    .length = kernel->reports.bytes,
                                    .access = HAL_ACCESS_READ_WRITE};
    for (uint32_t i = 0; i < checked->shadow_count; i++) {
        hal_binding *item = &added->items[1 + i];
        *item = shadow_binding(&checked->shadows[i], bindings, all_words);
        if (!item->memory || item->length == 0 || item->length > max_binding) {
            *item = added->items[0];
            item->access = 0;
        }
    }
    *has_words = words != NULL;
    return words ? fill_add(s->copy, (hal_sanitize_fill){words, 0, bytes, 0}, HAL_COMMAND_BARRIER)
                 : HAL_OK;
}

static hal_status dispatch_copy(const batch_copy *s, const hal_command *command, uint32_t number,
                                const hal_sanitize_kernel *kernel)
{
    hal_recording *copy = s->copy;
    const hal_binding *bindings = s->batch->bindings + command->binding_first;
    const uint32_t own = kernel->built->binding_count, more = 1 + kernel->checked.shadow_count;
    const uint32_t room = (kernel->scalar_bytes + 7) & ~7u;
    added_bindings added = {0};
    bool has_words;
    HAL_TRY(bindings_add(s, kernel, bindings, &added, &has_words));
    HAL_TRY(hal_recording_reserve(copy, 1, command->binding_count + more, room));
    hal_command *made = command_add(copy, *command);
    made->scalar_bytes = (uint16_t)kernel->scalar_bytes;
    made->flags |= has_words ? HAL_COMMAND_BARRIER : 0;
    for (uint32_t i = 0; i < own; i++) {
        binding_add(copy, made, bindings[i]);
    }
    for (uint32_t i = 0; i < more; i++) {
        hal_binding binding = added.items[i];
        binding.access = HAL_ACCESS_READ_WRITE;
        binding_add(copy, made, binding);
    }
    for (uint32_t i = own; i < command->binding_count; i++) {
        binding_add(copy, made, bindings[i]); /* the grid of an indirect dispatch */
    }
    const uint32_t given =
        command->scalar_bytes < kernel->scalar_bytes ? command->scalar_bytes : kernel->scalar_bytes;
    scalars_append(copy, s->batch->scalars + command->scalar_first, given, room);
    parameters_set(copy->scalars + made->scalar_first, kernel, bindings, &added, number);
    return HAL_OK;
}

/* ---- What other commands do to shadows ---- */

static hal_status plain_copy(const batch_copy *s, const hal_command *command)
{
    const uint32_t room = (command->scalar_bytes + 7u) & ~7u;
    HAL_TRY(hal_recording_reserve(s->copy, 1, command->binding_count, room));
    hal_command *made = command_add(s->copy, *command);
    for (uint32_t i = 0; i < command->binding_count; i++) {
        binding_add(s->copy, made, s->batch->bindings[command->binding_first + i]);
    }
    scalars_append(s->copy, s->batch->scalars + command->scalar_first, command->scalar_bytes, room);
    return HAL_OK;
}

/* A copy copies the shadow too, in the same way. */
static hal_status shadow_copy(const batch_copy *s, const hal_command *command,
                              hal_plugin_memory *source, hal_plugin_memory *target)
{
    HAL_TRY(plain_copy(s, command));
    const hal_command *made = &s->copy->commands[s->copy->command_count - 1];
    s->copy->bindings[made->binding_first].memory = source;
    s->copy->bindings[made->binding_first + 1].memory = target;
    return HAL_OK;
}

/* What the command writes counts as written; what a copy moves, as its source. The hazards are
 * those of the command, so its barrier orders both. */
static hal_status shadows_follow(const batch_copy *s, const hal_command *command)
{
    const hal_binding *bindings = s->batch->bindings + command->binding_first;
    if (command->kind == HAL_COMMAND_COPY || command->kind == HAL_COMMAND_COPY_ROWS) {
        const hal_sanitize_memory *source = hal_sanitize_memory_find(bindings[0].memory);
        const hal_sanitize_memory *target = hal_sanitize_memory_find(bindings[1].memory);
        if (source && source->shadow && target && target->shadow) {
            return shadow_copy(s, command, source->shadow, target->shadow);
        }
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        hal_sanitize_memory *memory = hal_sanitize_memory_find(bindings[i].memory);
        if (!memory || !memory->shadow || !(bindings[i].access & HAL_ACCESS_WRITE)) {
            continue;
        }
        if (command->kind == HAL_COMMAND_COLLECTIVE) { /* alone in its batch */
            hal_sanitize_written_set(memory, bindings[i].offset, bindings[i].length, true);
            continue;
        }
        const hal_sanitize_fill fill =
            hal_sanitize_written_fill(memory, bindings[i].offset, bindings[i].length, true);
        HAL_TRY(fill.length > 0 ? fill_add(s->copy, fill, 0) : HAL_OK);
    }
    return HAL_OK;
}

static hal_status command_copy(const batch_copy *s, uint32_t index, uint32_t number)
{
    const hal_command *command = &s->batch->commands[index];
    const hal_sanitize_kernel *kernel = hal_sanitize_kernel_find(command->kernel);
    if (kernel) {
        return dispatch_copy(s, command, number, kernel);
    }
    HAL_TRY(plain_copy(s, command));
    return shadows_follow(s, command);
}

/* Adds the fills that come before a command. */
static hal_status clears_add(const batch_copy *s, uint32_t command, bool *has_any)
{
    const hal_sanitize_device *device = s->device;
    for (uint32_t i = 0; i < device->clear_count; i++) {
        if (device->clears[i].batch == s->batch && device->clears[i].command == command) {
            HAL_TRY(fill_add(s->copy, device->clears[i].fill, HAL_COMMAND_BARRIER));
            *has_any = true;
        }
    }
    return HAL_OK;
}

static void clears_remove(hal_sanitize_device *device, const hal_recording *batch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < device->clear_count; i++) {
        if (device->clears[i].batch != batch) {
            device->clears[kept++] = device->clears[i];
        }
    }
    device->clear_count = kept;
}

/* Fills of shadows come before the commands that depend on them, which get a barrier. */
static hal_status batch_fill(const batch_copy *s, uint32_t *first_command)
{
    const uint32_t first = hal_sanitize_first_name(s->queue);
    hal_sanitize_device *device = s->device;
    bool has_fills = device->pending_count > 0;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < device->pending_count; i++) {
        status = fill_add(s->copy, device->pending[i], HAL_COMMAND_BARRIER);
    }
    device->pending_count = 0;
    *first_command = s->copy->command_count;
    for (uint32_t i = 0; status == HAL_OK && i < s->batch->command_count; i++) {
        status = clears_add(s, i, &has_fills);
        const uint32_t at = s->copy->command_count;
        status = status == HAL_OK ? command_copy(s, i, first + i) : status;
        if (has_fills && status == HAL_OK) {
            s->copy->commands[at].flags |= HAL_COMMAND_BARRIER;
        }
        has_fills = false;
    }
    clears_remove(device, s->batch);
    return status == HAL_OK && device->has_zones ? hal_sanitize_zones_copy(s->batch, s->copy)
                                                 : status;
}

static bool is_collective(const hal_recording *batch)
{
    return batch->command_count == 1 && batch->commands[0].kind == HAL_COMMAND_COLLECTIVE;
}

hal_status hal_sanitize_copy_batch(const hal_event *event, hal_sanitize_device *device,
                                   hal_recording **copy, uint32_t *first)
{
    const hal_recording *batch = event->recording;
    bool is_wanted = (device->has_shadows || device->has_zones) && batch->command_count > 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        is_wanted |= hal_sanitize_kernel_find(batch->commands[i].kernel) != NULL;
    }
    *copy = NULL;
    *first = 0;
    if (is_collective(batch)) { /* nothing may be added to it */
        return shadows_follow(&(batch_copy){batch, device, event->queue, NULL}, batch->commands);
    }
    if (!is_wanted) {
        return HAL_OK;
    }
    *copy = hal_recording_create();
    const batch_copy s = {batch, device, event->queue, *copy};
    const hal_status status = *copy ? batch_fill(&s, first) : HAL_ERROR_OUT_OF_MEMORY;
    if (status == HAL_OK) {
        (*copy)->flags = batch->flags;
    } else if (*copy) {
        hal_recording_destroy(*copy);
        *copy = NULL;
        hal_sanitize_shadows_give_up(device);
    }
    return status;
}
