/* Memory that others own: whole pages of the host, where it is the device's memory as well, and
 * whole MTLBuffers, which should be untracked as hal's are. */
#include "external.h"

#include <stdlib.h>
#include <unistd.h>

hal_status metal_external_info(hal_plugin_device *device, hal_external_info *info)
{
    const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
    info->export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    info->import_kinds = info->export_kinds;
    info->import_kinds |= device->card->private_memory ? 0 : HAL_HANDLE_BIT(HAL_HANDLE_HOST);
    info->host_alignment = page;
    info->host_granularity = page;
    return HAL_OK;
}

/* Commands know no offset of a memory, so a buffer of others is imported from its beginning. */
static metal_buffer *buffer_take(const hal_memory_handle *handle)
{
    metal_buffer *buffer = (metal_buffer *)(uintptr_t)handle->handle;
    if (!buffer || handle->offset != 0 || handle->bytes > metal_shim_buffer_length(buffer)) {
        return NULL;
    }
    metal_shim_retain(buffer);
    return buffer;
}

hal_status metal_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                               hal_plugin_memory **memory)
{
    *memory = NULL;
    HAL_TRY(metal_device_check(device));
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "metal: no host memory for a memory object");
    }
    made->bytes = handle->bytes;
    if (handle->kind == HAL_HANDLE_HOST) {
        made->host = (uint8_t *)(uintptr_t)(handle->handle + handle->offset);
        made->buffer = metal_shim_buffer_of_host(device->card->gpu, made->host, handle->bytes);
    } else {
        made->buffer = buffer_take(handle);
    }
    if (!made->buffer) {
        free(made);
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_import: expected %s, got %llu bytes from offset %llu on",
                        device->card->info.name,
                        handle->kind == HAL_HANDLE_HOST ? "pages that Metal takes"
                                                        : "a MTLBuffer from its beginning",
                        (unsigned long long)handle->bytes, (unsigned long long)handle->offset);
    }
    *memory = made;
    return HAL_OK;
}

hal_status metal_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                               hal_memory_handle *handle)
{
    (void)device;
    (void)kind;
    handle->handle = (uint64_t)(uintptr_t)memory->buffer;
    return HAL_OK;
}
