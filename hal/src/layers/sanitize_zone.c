/* Red zones: bytes after each allocation that nothing may write. Kernels with checks cannot; native
 * code, a plugin's own kernels and a plugin that is wrong can. See sanitize.h. */
#include "sanitize.h"

#include "core/device.h"
#include "findings.h"
#include "base/log.h"
#include "base/text.h"

#include <string.h>
#include <xxhash.h>

void hal_sanitize_zone_begin(hal_sanitize_memory *memory)
{
    hal_sanitize_device *device = memory->device;
    hal_sanitize_reports zone = {.words = NULL};
    if (hal_sanitize_reports_take(device, HAL_SANITIZE_ZONE_BYTES, &zone) != HAL_OK) {
        zone.words = NULL;
    }
    const hal_sanitize_fill fill = {.memory = memory->memory,
                                    .offset = memory->bytes,
                                    .length = HAL_SANITIZE_ZONE_BYTES,
                                    .bits = HAL_SANITIZE_ZONE};
    if (zone.words && hal_sanitize_fill_later(device, fill)) {
        memory->zone = zone;
    } else {
        hal_log(HAL_LOG_WARN, "sanitize: no memory: an allocation has no red zone");
    }
}

void hal_sanitize_zone_end(hal_sanitize_memory *memory)
{
    hal_sanitize_device *device = memory->device;
    hal_sanitize_reports_give(device, &memory->zone);
}

/* Whether a command may write what no check has seen. */
static bool is_unchecked(const hal_command *command)
{
    return !hal_sanitize_kernel_find(command->kernel);
}

/* Whether a command before this one copies the zone too. */
static bool is_copied(const hal_recording *copy, uint32_t first, const hal_sanitize_memory *memory)
{
    bool is_copied = false;
    for (uint32_t c = first; c < copy->command_count; c++) {
        is_copied |= copy->bindings[copy->commands[c].binding_first].memory == memory->memory;
    }
    return is_copied;
}

static hal_status zone_copy(hal_recording *copy, const hal_sanitize_memory *memory, uint16_t flags)
{
    HAL_TRY(hal_recording_reserve(copy, 1, 2, 0));
    copy->commands[copy->command_count++] = (hal_command){.kind = HAL_COMMAND_COPY,
                                                          .flags = flags,
                                                          .binding_count = 2,
                                                          .binding_first = copy->binding_count,
                                                          .scalar_first = copy->scalar_bytes,
                                                          .grid = {1, 1, 1}};
    copy->bindings[copy->binding_count++] = (hal_binding){.memory = memory->memory,
                                                          .offset = memory->bytes,
                                                          .length = HAL_SANITIZE_ZONE_BYTES,
                                                          .access = HAL_ACCESS_READ};
    copy->bindings[copy->binding_count++] = (hal_binding){.memory = memory->zone.memory,
                                                          .offset = memory->zone.offset,
                                                          .length = HAL_SANITIZE_ZONE_BYTES,
                                                          .access = HAL_ACCESS_WRITE};
    return HAL_OK;
}

hal_status hal_sanitize_zones_copy(const hal_recording *batch, hal_recording *copy)
{
    const uint32_t first = copy->command_count;
    for (uint32_t c = 0; c < batch->command_count; c++) {
        const hal_command *command = &batch->commands[c];
        for (uint32_t i = 0; i < command->binding_count && is_unchecked(command); i++) {
            const hal_sanitize_memory *memory =
                hal_sanitize_memory_find(batch->bindings[command->binding_first + i].memory);
            if (memory && memory->zone.words && !is_copied(copy, first, memory)) {
                HAL_TRY(zone_copy(copy, memory,
                                  copy->command_count == first ? HAL_COMMAND_BARRIER : 0));
            }
        }
    }
    return HAL_OK;
}

/* The memory whose zone a command copies; null: it does something else. */
static hal_sanitize_memory *copied_memory(const hal_recording *copy, const hal_command *command)
{
    if (command->kind != HAL_COMMAND_COPY) {
        return NULL;
    }
    const hal_binding *bindings = copy->bindings + command->binding_first;
    hal_sanitize_memory *memory = hal_sanitize_memory_find(bindings[0].memory);
    return memory && memory->zone.words && bindings[1].memory == memory->zone.memory &&
                   bindings[1].offset == memory->zone.offset
               ? memory
               : NULL;
}

static bool is_written_by(const hal_recording *batch, const hal_command *command,
                          const hal_plugin_memory *memory)
{
    bool is_written = false;
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const hal_binding *binding = &batch->bindings[command->binding_first + i];
        is_written |= binding->memory == memory && (binding->access & HAL_ACCESS_WRITE);
    }
    return is_written;
}

/* The program's commands that write the memory. */
static void text_add_writers(hal_text *text, const hal_sanitize_batch *batch,
                             const hal_plugin_memory *memory)
{
    const char *between = " written by command ";
    for (uint32_t c = batch->first; c < batch->recording->command_count; c++) {
        if (is_written_by(batch->recording, &batch->recording->commands[c], memory)) {
            hal_text_add(text, "%s%u", between, c - batch->first + 1);
            between = ", ";
        }
    }
}

/* The word of a zone that was written; HAL_SANITIZE_ZONE_BYTES / 4 for none. */
static uint32_t zone_find_written(const hal_sanitize_memory *memory)
{
    uint32_t word = 0;
    while (word < HAL_SANITIZE_ZONE_BYTES / 4 && memory->zone.words[word] == HAL_SANITIZE_ZONE) {
        word++;
    }
    return word;
}

/* Before it are those of fills that begin zones, whose memory the program may not use here. */
static uint32_t first_binding(const hal_sanitize_batch *batch)
{
    const hal_recording *recording = batch->recording;
    return batch->first < recording->command_count ? recording->commands[batch->first].binding_first
                                                   : recording->binding_count;
}

/* The last of the batches of the same queue that uses the memory. */
static uint64_t last_use(const hal_sanitize_batch *batches, uint32_t count,
                         const hal_plugin_memory *memory)
{
    uint64_t last = batches[0].value;
    for (uint32_t i = 1; i < count; i++) {
        const hal_recording *recording = batches[i].recording;
        const bool is_same = batches[i].queue == batches[0].queue;
        for (uint32_t k = first_binding(&batches[i]); is_same && k < recording->binding_count;
             k++) {
            last = recording->bindings[k].memory == memory ? batches[i].value : last;
        }
    }
    return last;
}

static void zone_read(hal_sanitize_memory *memory, const hal_sanitize_batch *batches,
                      uint32_t count)
{
    if (!hal_sanitize_reports_invalidate(memory->device, &memory->zone, HAL_SANITIZE_ZONE_BYTES)) {
        return;
    }
    const uint32_t word = zone_find_written(memory);
    if (word == HAL_SANITIZE_ZONE_BYTES / 4) {
        return;
    }
    hal_text text = {0};
    hal_text_add(&text,
                 "write after the end of an allocation of %llu bytes: word %u after it is 0x%08x; "
                 "in ",
                 (unsigned long long)memory->bytes, word, memory->zone.words[word]);
    hal_sanitize_text_add_batches(&text, memory->device, batches[0].value,
                                  last_use(batches, count, memory->memory));
    text_add_writers(&text, batches, memory->memory);
    const uint64_t place[2] = {(uint64_t)(uintptr_t)memory->memory, batches[0].value};
    if (hal_finding_is_new(XXH3_64bits(place, sizeof place))) {
        hal_sanitize_finding_log(hal_text_get(&text));
    }
    hal_text_free(&text);
    hal_sanitize_zone_end(memory); /* reported once */
}

void hal_sanitize_zones_read(const hal_sanitize_batch *batches, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const hal_recording *given = batches[i].given;
        for (uint32_t c = 0; c < given->command_count; c++) {
            hal_sanitize_memory *memory = copied_memory(given, &given->commands[c]);
            if (memory) {
                zone_read(memory, batches + i, count - i);
            }
        }
    }
}
