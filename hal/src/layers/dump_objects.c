/* Noted objects of HAL_DUMP=batch, see dump_objects.h. */
#include "dump_objects.h"

#include "core/kernel.h"
#include "dump_kernel.h"
#include "base/map.h"

#include <stdlib.h>

static hal_map reader_of;            /* by device */
static hal_map memory_of, kernel_of; /* by the plugin's handle */
static uint64_t last_id;

void hal_dump_device_opened(hal_device *device)
{
    hal_dump_reader *reader = calloc(1, sizeof *reader);
    if (!reader || !hal_map_put(&reader_of, hal_map_key(device), reader)) {
        free(reader);
        return;
    }
    reader->device = device;
}

void hal_dump_memory_allocated(const hal_event *event)
{
    hal_dump_memory *memory = calloc(1, sizeof *memory);
    if (!memory || !hal_map_put(&memory_of, hal_map_key(event->memory), memory)) {
        free(memory);
        return;
    }
    *memory = (hal_dump_memory){
        .device = event->device, .handle = event->memory, .id = ++last_id, .bytes = event->bytes};
}

/* Handles are reused: another kernel may have had this one. */
void hal_dump_kernel_compiled(const hal_event *event)
{
    const uint64_t key = hal_map_key(event->kernel->handle);
    hal_dump_kernel *kernel = hal_map_get(&kernel_of, key);
    if (!kernel) {
        kernel = calloc(1, sizeof *kernel);
        if (!kernel || !hal_map_put(&kernel_of, key, kernel)) {
            free(kernel);
            return;
        }
    }
    hal_payload_free(&kernel->record);
    *kernel = (hal_dump_kernel){.device = event->device,
                                .handle = event->kernel->handle,
                                .id = ++last_id,
                                .scratch = event->source->gemm ? HAL_DUMP_GEMM_WORKSPACE
                                                               : HAL_DUMP_NO_SCRATCH};
    hal_payload_u64(&kernel->record, kernel->id);
    hal_dump_describe(&kernel->record, event->source);
}

void hal_dump_device_closing(const hal_device *device)
{
    for (uint32_t i = 0; i < kernel_of.capacity;) {
        hal_dump_kernel *kernel = kernel_of.entries[i].value;
        if (!kernel || kernel->device != device) {
            i++;
            continue;
        }
        hal_map_take(&kernel_of, hal_map_key(kernel->handle)); /* may move another one to i */
        hal_payload_free(&kernel->record);
        free(kernel);
    }
    hal_dump_reader *reader = hal_map_take(&reader_of, hal_map_key(device));
    if (reader) {
        hal_dump_reader_end(reader);
        free(reader);
    }
}

void hal_dump_memory_freeing(hal_plugin_memory *handle)
{
    free(hal_map_take(&memory_of, hal_map_key(handle)));
}

const hal_dump_memory *hal_dump_memory_find(const hal_plugin_memory *handle)
{
    return handle ? hal_map_get(&memory_of, hal_map_key(handle)) : NULL;
}

const hal_dump_kernel *hal_dump_kernel_find(const hal_plugin_kernel *handle)
{
    return handle ? hal_map_get(&kernel_of, hal_map_key(handle)) : NULL;
}

hal_dump_reader *hal_dump_reader_find(const hal_device *device)
{
    return hal_map_get(&reader_of, hal_map_key(device));
}
