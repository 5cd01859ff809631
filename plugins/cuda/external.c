/* Memory that others own: addresses of the context, memory of the host, which is registered for the
 * time of the import, and memory of another API of the same GPU by a descriptor. */
#include "external.h"

#include "kernel.h"

#include <kit/handles.h>
#include <stdlib.h>

enum { ADDRESS_ALIGNMENT = 16 };

hal_status cuda_external_info(hal_plugin_device *device, hal_external_info *info)
{
    (void)device;
    const cuda_driver *cu = cuda_functions();
    const bool registers = cu->cuMemHostRegister_v2 && cu->cuMemHostUnregister;
    info->export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    const bool shares = cu->cuImportExternalMemory && cu->cuExternalMemoryGetMappedBuffer &&
                        cu->cuDestroyExternalMemory;
    info->import_kinds = info->export_kinds | (registers ? HAL_HANDLE_BIT(HAL_HANDLE_HOST) : 0) |
                         (shares ? HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD) : 0);
    info->host_alignment = ADDRESS_ALIGNMENT;
    info->host_granularity = 1;
    info->dlpack_kind = 2; /* kDLCUDA */
    return HAL_OK;
}

static hal_status import_host(hal_plugin_memory *made, bool reads_only)
{
    made->pointer = (void *)(uintptr_t)made->address;
    made->owner = CUDA_MEMORY_HOST;
    HAL_TRY(cuda_context_push(made->device));
    const hal_status status = cuda_register(made->pointer, made->bytes, reads_only,
                                            &made->registration, &made->address);
    cuda_context_pop();
    return status;
}

/* The driver owns the descriptor once it has imported it. `memory` of the handle: the size of the
 * whole allocation, where the exporter tells it. */
static hal_status import_descriptor(hal_plugin_memory *made, const hal_memory_handle *handle)
{
    const cuda_driver *cu = cuda_functions();
    const uint64_t end = handle->offset + handle->bytes;
    const cuda_shared_handle shared = {.kind = CUDA_SHARED_OPAQUE_FD,
                                       .handle = {.descriptor = (int)handle->handle},
                                       .bytes = handle->memory >= end ? handle->memory : end};
    const cuda_shared_range range = {.offset = handle->offset, .bytes = handle->bytes};
    made->owner = CUDA_MEMORY_SHARED;
    HAL_TRY(cuda_context_push(made->device));
    cuda_result result = cu->cuImportExternalMemory(&made->shared, &shared);
    if (result == 0) {
        result = cu->cuExternalMemoryGetMappedBuffer(&made->address, made->shared, &range);
        if (result != 0) {
            cu->cuDestroyExternalMemory(made->shared);
        }
    }
    cuda_context_pop();
    return result == 0 ? HAL_OK
                       : kit_fail(HAL_ERROR_UNSUPPORTED,
                                  "cuda: memory_import: the driver refuses the descriptor %d with "
                                  "%llu bytes (result %d)",
                                  shared.handle.descriptor, shared.bytes, (int)result);
}

hal_status cuda_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory)
{
    *memory = NULL;
    const uint64_t address = handle->handle + handle->offset;
    const bool is_address = handle->kind != HAL_HANDLE_OPAQUE_FD;
    if (is_address && address % ADDRESS_ALIGNMENT != 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "cuda: memory_import: expected an address that is a multiple of %d",
                        ADDRESS_ALIGNMENT);
    }
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a memory object");
    }
    *made = (hal_plugin_memory){.device = device,
                                .address = address,
                                .bytes = handle->bytes,
                                .owner = CUDA_MEMORY_NATIVE};
    hal_status status = HAL_OK;
    if (handle->kind == HAL_HANDLE_HOST) {
        status = import_host(made, handle->access == HAL_ACCESS_READ);
    } else if (!is_address) {
        status = import_descriptor(made, handle);
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

hal_status cuda_native_stream(const char *type, uint64_t handle, cuda_stream *stream)
{
    const kit_handle all[] = {{"CUstream", handle ? handle : CUDA_STREAM_LEGACY}, {NULL, 0}};
    uint64_t found = 0;
    HAL_TRY(kit_handle_find(all, type, &found));
    *stream = (cuda_stream)(uintptr_t)found;
    return HAL_OK;
}

/* Makes a stream wait for what another one has now. The driver keeps what it needs of the event. */
static hal_status stream_follow(const hal_plugin_queue *queue, cuda_stream later, cuda_stream first)
{
    const cuda_driver *cu = cuda_functions();
    cuda_event event = NULL;
    HAL_TRY(cuda_context_push(queue->device));
    cuda_result result = cu->cuEventCreate(&event, CUDA_EVENT_UNTIMED);
    if (result == 0) {
        result = cu->cuEventRecord(event, first);
        result = result == 0 ? cu->cuStreamWaitEvent(later, event, 0) : result;
        cu->cuEventDestroy_v2(event);
    }
    cuda_context_pop();
    return cuda_check(result, "ordering a queue and a stream");
}

hal_status cuda_queue_wait_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    cuda_stream stream = NULL;
    HAL_TRY(cuda_native_stream(type, handle, &stream));
    return stream_follow(queue, queue->stream, stream);
}

hal_status cuda_queue_block_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    cuda_stream stream = NULL;
    HAL_TRY(cuda_native_stream(type, handle, &stream));
    return stream_follow(queue, stream, queue->stream);
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
