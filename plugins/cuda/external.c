/* Memory that others own: addresses of the context, and memory of the host, which is registered
 * for the time of the import. */
#include "external.h"

#include "kernel.h"
#include "queue.h"

#include <kit/handles.h>
#include <stdlib.h>

enum { REGISTER_MAPPED = 2, ADDRESS_ALIGNMENT = 16 }; /* CU_MEMHOSTREGISTER_DEVICEMAP */

static cuda_result host_register(hal_plugin_memory *made)
{
    const cuda_driver *cu = cuda_functions();
    cuda_result result = cu->cuMemHostRegister_v2(made->pointer, made->bytes, REGISTER_MAPPED);
    if (result == 0) {
        result = cu->cuMemHostGetDevicePointer_v2(&made->address, made->pointer, 0);
        if (result != 0) {
            cu->cuMemHostUnregister(made->pointer);
        }
    }
    return result;
}

hal_status cuda_external_info(hal_plugin_device *device, hal_external_info *info)
{
    (void)device;
    const cuda_driver *cu = cuda_functions();
    const bool registers = cu->cuMemHostRegister_v2 && cu->cuMemHostUnregister;
    info->export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    info->import_kinds = info->export_kinds | (registers ? HAL_HANDLE_BIT(HAL_HANDLE_HOST) : 0);
    info->host_alignment = ADDRESS_ALIGNMENT;
    info->host_granularity = 1;
    return HAL_OK;
}

hal_status cuda_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory)
{
    hal_plugin_memory *made = calloc(1, sizeof *made);
    *memory = NULL;
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a memory object");
    }
    made->device = device;
    made->bytes = handle->bytes;
    made->address = handle->handle + handle->offset;
    made->owner = CUDA_MEMORY_NATIVE;
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK && handle->kind == HAL_HANDLE_HOST) {
        made->pointer = (void *)(uintptr_t)made->address;
        made->owner = CUDA_MEMORY_REGISTERED;
        status = cuda_check(host_register(made), "registering %llu bytes of host memory",
                            (unsigned long long)made->bytes);
    }
    if (status == HAL_OK) {
        cuda_context_pop();
    }
    if (status == HAL_OK && made->address % ADDRESS_ALIGNMENT != 0) {
        status = kit_fail(HAL_ERROR_UNSUPPORTED,
                          "cuda: memory_import: expected an address that is a multiple of %d",
                          ADDRESS_ALIGNMENT);
    }
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *memory = made;
    return HAL_OK;
}

hal_status cuda_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                              hal_memory_handle *handle)
{
    (void)device;
    (void)kind;
    handle->handle = memory->address;
    return HAL_OK;
}

hal_status cuda_device_handle(hal_plugin_device *device, const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("CUcontext", device->context),
                              {"CUdevice", (uint64_t)device->ordinal},
                              {NULL, 0}};
    return kit_handle_find(all, type, handle);
}

hal_status cuda_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("CUstream", queue->stream), {NULL, 0}};
    return kit_handle_find(all, type, handle);
}

hal_status cuda_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                              const char *type, uint64_t *handle)
{
    (void)device;
    const kit_handle all[] = {KIT_HANDLE("CUfunction", kernel->function),
                              KIT_HANDLE("CUmodule", kernel->module),
                              {NULL, 0}};
    return kit_handle_find(all, type, handle);
}
