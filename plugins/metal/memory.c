/* Memory: untracked buffers. Entries of the plugin's table. Where host and device share their
 * memory, all kinds are mapped; a discrete GPU has device memory of its own, and its mapped kinds
 * are memory of the host that kernels reach. */
#include "memory.h"

#include <stdlib.h>

static hal_status fail_allocation(const hal_plugin_device *device, uint64_t bytes)
{
    const metal_card *card = device->card;
    return kit_fail(HAL_ERROR_OUT_OF_MEMORY,
                    "%s: allocating %llu bytes: %llu of %llu bytes are in use, and one "
                    "allocation has at most %llu",
                    card->info.name, (unsigned long long)bytes,
                    (unsigned long long)metal_shim_allocated(card->gpu),
                    (unsigned long long)card->memory_limit,
                    (unsigned long long)card->info.max_allocation);
}

hal_status metal_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    HAL_TRY(metal_device_check(device));
    const uint64_t used = metal_shim_allocated(device->card->gpu);
    *total_bytes = device->card->memory_limit;
    *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
    return HAL_OK;
}

/* The system does not refuse what exceeds the working set: it pages, or ends a batch. So the limit
 * is checked here. */
hal_status metal_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                 hal_plugin_memory **memory)
{
    void *host = NULL;
    *memory = NULL;
    HAL_TRY(metal_device_check(device));
    if (kind >= HAL_MEMORY_KIND_COUNT || bytes == 0) {
        return kit_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "metal: memory_allocate: expected at least 1 byte of a known kind, got %llu of kind %u",
            (unsigned long long)bytes, kind);
    }
    const uint64_t used = metal_shim_allocated(device->card->gpu);
    const uint64_t limit = device->card->memory_limit;
    if (bytes > device->card->info.max_allocation || used > limit || bytes > limit - used) {
        return fail_allocation(device, bytes);
    }
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "metal: no host memory for a memory object");
    }
    const bool is_private = kind == HAL_MEMORY_DEVICE && device->card->private_memory;
    made->bytes = bytes;
    made->buffer = metal_shim_buffer(device->card->gpu, bytes, is_private, &host);
    made->host = host;
    if (!made->buffer) {
        free(made);
        return fail_allocation(device, bytes);
    }
    *memory = made;
    return HAL_OK;
}

void metal_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    if (!memory) {
        return;
    }
    if (!metal_device_is_after_fork(device)) {
        metal_shim_release(memory->buffer);
    }
    free(memory);
}

hal_status metal_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    *pointer = memory->host;
    if (!memory->host) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_map: memory: expected a mapped kind, got device memory",
                        device->card->info.name);
    }
    return HAL_OK;
}
