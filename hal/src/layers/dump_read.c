/* Reads a device's memory for HAL_DUMP=batch. */
#include "dump_read.h"

#include "core/device.h"

#include <string.h>

#define STAGING (UINT64_C(4) << 20)
#define COPIES 32u

/* Copies of one batch, one after the other in the staging memory. */
typedef struct copy_batch {
    hal_command commands[COPIES];
    hal_binding bindings[2 * COPIES];
    uint8_t *to[COPIES];
    uint32_t count;
    uint64_t bytes; /* used of the staging memory */
} copy_batch;

static hal_status reader_begin(hal_dump_reader *reader)
{
    hal_device *device = reader->device;
    const hal_plugin_entries *plugin = device->plugin;
    const uint64_t largest = device->info.max_allocation;
    void *view = NULL;
    reader->staging_bytes = largest < STAGING ? largest : STAGING;
    hal_status status = plugin->memory_allocate(device->handle, HAL_MEMORY_DOWNLOAD,
                                                reader->staging_bytes, &reader->staging);
    if (status != HAL_OK) {
        reader->staging = NULL;
    }
    if (status == HAL_OK) {
        status = plugin->memory_map(device->handle, reader->staging, &view);
    }
    if (status == HAL_OK) {
        status = plugin->queue_create(device->handle, &reader->queue);
    }
    if (status != HAL_OK) {
        reader->queue = NULL;
        hal_dump_reader_end(reader);
    }
    reader->view = view;
    reader->value = 0;
    return status;
}

static hal_status copies_run(hal_dump_reader *reader, hal_plugin_wait after, copy_batch *copies)
{
    const hal_plugin_entries *plugin = reader->device->plugin;
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = copies->count,
                             .binding_count = 2 * copies->count,
                             .commands = copies->commands,
                             .bindings = copies->bindings};
    const uint64_t value = reader->value + 1;
    hal_status status = plugin->submit(reader->queue, &batch, &after, after.queue ? 1 : 0, value);
    if (status == HAL_OK) {
        reader->value = value;
        status = plugin->wait(reader->queue, value, UINT64_MAX);
    }
    if (status == HAL_OK && plugin->memory_invalidate) {
        status =
            plugin->memory_invalidate(reader->device->handle, reader->staging, 0, copies->bytes);
    }
    for (uint32_t i = 0; status == HAL_OK && i < copies->count; i++) {
        const hal_binding *staged = &copies->bindings[2 * i + 1];
        memcpy(copies->to[i], reader->view + staged->offset, staged->length);
    }
    copies->count = 0;
    copies->bytes = 0;
    return status;
}

hal_status hal_dump_read(hal_dump_reader *reader, hal_plugin_wait after,
                         const hal_dump_range *ranges, uint32_t count)
{
    copy_batch copies = {.count = 0};
    hal_status status = reader->queue ? HAL_OK : reader_begin(reader);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        const hal_dump_range *range = &ranges[i];
        for (uint64_t done = 0; status == HAL_OK && done < range->bytes;) {
            if (copies.count == COPIES || copies.bytes == reader->staging_bytes) {
                status = copies_run(reader, after, &copies);
                continue;
            }
            const uint64_t room = reader->staging_bytes - copies.bytes;
            const uint64_t left = range->bytes - done;
            const uint64_t bytes = left < room ? left : room;
            hal_binding *bindings = &copies.bindings[2 * copies.count];
            bindings[0] = (hal_binding){.memory = range->memory,
                                        .offset = range->offset + done,
                                        .length = bytes,
                                        .access = HAL_ACCESS_READ};
            bindings[1] = (hal_binding){.memory = reader->staging,
                                        .offset = copies.bytes,
                                        .length = bytes,
                                        .access = HAL_ACCESS_WRITE};
            copies.commands[copies.count] = (hal_command){.kind = HAL_COMMAND_COPY,
                                                          .binding_count = 2,
                                                          .binding_first = 2 * copies.count,
                                                          .grid = {1, 1, 1}};
            copies.to[copies.count++] = range->to + done;
            /* Copies begin at multiples of 16 bytes, which devices copy fastest. */
            copies.bytes += (bytes + 15) & ~UINT64_C(15);
            copies.bytes =
                copies.bytes < reader->staging_bytes ? copies.bytes : reader->staging_bytes;
            done += bytes;
        }
    }
    return status == HAL_OK && copies.count > 0 ? copies_run(reader, after, &copies) : status;
}

void hal_dump_reader_end(hal_dump_reader *reader)
{
    const hal_plugin_entries *plugin = reader->device->plugin;
    if (reader->queue) {
        plugin->queue_destroy(reader->device->handle, reader->queue);
    }
    if (reader->staging) {
        plugin->memory_free(reader->device->handle, reader->staging);
    }
    *reader = (hal_dump_reader){.device = reader->device};
}
