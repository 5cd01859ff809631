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

/* The memory of a binding that has a red zone and is not that of an earlier one of the batch. */
static hal_sanitize_memory *zone_memory(const hal_recording *batch, uint32_t binding)
{
    hal_sanitize_memory *memory = hal_sanitize_memory_find(batch->bindings[binding].memory);
    for (uint32_t i = 0; memory && i < binding; i++) {
        memory = batch->bindings[i].memory == memory->memory ? NULL : memory;
    }
    return memory && memory->zone.words ? memory : NULL;
}

hal_status hal_sanitize_zones_copy(const hal_recording *batch, hal_recording *copy)
{
    uint16_t flags = HAL_COMMAND_BARRIER;
    for (uint32_t i = 0; i < batch->binding_count; i++) {
        const hal_sanitize_memory *memory = zone_memory(batch, i);
        if (!memory) {
            continue;
        }
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
        flags = 0;
    }
    return HAL_OK;
}

/* The commands of the batch that write the memory. */
static void text_add_writers(hal_text *text, const hal_recording *batch,
                             const hal_plugin_memory *memory)
{
    const char *between = "written by command ";
    for (uint32_t c = 0; c < batch->command_count; c++) {
        const hal_command *command = &batch->commands[c];
        bool writes = false;
        for (uint32_t i = 0; i < command->binding_count; i++) {
            const hal_binding *binding = &batch->bindings[command->binding_first + i];
            writes |= binding->memory == memory && (binding->access & HAL_ACCESS_WRITE);
        }
        if (writes) {
            hal_text_add(text, "%s%u", between, c + 1);
            between = ", ";
        }
    }
}

void hal_sanitize_zones_read(const hal_event *event)
{
    const hal_recording *batch = event->recording;
    for (uint32_t i = 0; i < batch->binding_count; i++) {
        hal_sanitize_memory *memory = zone_memory(batch, i);
        if (!memory || !hal_sanitize_reports_invalidate(memory->device, &memory->zone,
                                                        HAL_SANITIZE_ZONE_BYTES)) {
            continue;
        }
        uint32_t word = 0;
        while (word < HAL_SANITIZE_ZONE_BYTES / 4 &&
               memory->zone.words[word] == HAL_SANITIZE_ZONE) {
            word++;
        }
        if (word == HAL_SANITIZE_ZONE_BYTES / 4) {
            continue;
        }
        hal_text text = {0};
        hal_text_add(&text,
                     "write after the end of an allocation of %llu bytes: word %u after it is "
                     "0x%08x; in batch %llu of %s:%u ",
                     (unsigned long long)memory->bytes, word, memory->zone.words[word],
                     (unsigned long long)event->value, event->device->plugin->name,
                     event->device->index);
        text_add_writers(&text, batch, memory->memory);
        const uint64_t place[2] = {(uint64_t)(uintptr_t)memory->memory, event->value};
        if (hal_finding_is_new(XXH3_64bits(place, sizeof place))) {
            hal_sanitize_finding_log(hal_text_get(&text));
        }
        hal_text_free(&text);
        hal_sanitize_zone_end(memory); /* reported once */
    }
}
