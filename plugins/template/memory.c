/* Memory: every kind is host memory. Entries of the plugin's table. */
#include "template_plugin.h"

hal_status template_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                    hal_plugin_memory **memory)
{
    const hal_host *host = kit_host();
    const uint64_t used = atomic_fetch_add(&device->used, bytes);
    if (used + bytes > TEMPLATE_MEMORY_BYTES || used + bytes < bytes) {
        atomic_fetch_sub(&device->used, bytes);
        return template_fail(HAL_ERROR_OUT_OF_MEMORY,
                             "template: allocating %llu bytes of kind %u: %llu of %llu are in use",
                             (unsigned long long)bytes, kind, (unsigned long long)used,
                             (unsigned long long)TEMPLATE_MEMORY_BYTES);
    }
    hal_plugin_memory *made = template_new(sizeof *made, "memory object");
    uint8_t *address = host->allocate(host, bytes, 256);
    if (!made || !address) {
        host->release(host, made);
        host->release(host, address);
        atomic_fetch_sub(&device->used, bytes);
        return template_fail(HAL_ERROR_OUT_OF_MEMORY,
                             "template: allocating %llu bytes: no host memory",
                             (unsigned long long)bytes);
    }
    made->bytes = bytes;
    made->address = address;
    *memory = made;
    return HAL_OK;
}

void template_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    atomic_fetch_sub(&device->used, memory->bytes);
    template_release(memory->address);
    template_release(memory);
}

hal_status template_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->address;
    return HAL_OK;
}
