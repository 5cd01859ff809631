/* Memory that others own: cl_mem, and memory of the host by CL_MEM_USE_HOST_PTR where the device
 * uses it in place. OpenCL allows drivers to work on a copy, so the first question tries it. */
#include "external.h"

#include "kernel.h"
#include "queue.h"

#include <kit/handles.h>
#include <stdlib.h>
#include <string.h>

enum { TRIED_BYTES = 4096, TRIED_PATTERN = 0x5a };

/* Whether the host sees what the device writes to its memory without mapping it, and vice versa. */
static bool host_is_in_place(hal_plugin_device *device)
{
    const uint8_t pattern = TRIED_PATTERN;
    uint8_t seen = 0;
    void *host = NULL;
    cl_int error = CL_SUCCESS;
    if (posix_memalign(&host, TRIED_BYTES, TRIED_BYTES) != 0) {
        return false;
    }
    uint8_t *bytes = memset(host, 0, TRIED_BYTES);
    cl_mem buffer = cl.clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                      TRIED_BYTES, host, &error);
    if (buffer) {
        error = cl.clEnqueueFillBuffer(device->transfers, buffer, &pattern, 1, 0, TRIED_BYTES / 2,
                                       0, NULL, NULL);
        error = error == CL_SUCCESS ? cl.clFinish(device->transfers) : error;
        bytes[TRIED_BYTES - 1] = 1;
        error = error == CL_SUCCESS
                    ? cl.clEnqueueReadBuffer(device->transfers, buffer, CL_TRUE, TRIED_BYTES - 1, 1,
                                             &seen, 0, NULL, NULL)
                    : error;
        cl.clReleaseMemObject(buffer);
    }
    const bool is_in_place = buffer && error == CL_SUCCESS && seen == 1 &&
                             bytes[0] == TRIED_PATTERN && bytes[TRIED_BYTES / 2] == 0;
    free(host);
    return is_in_place;
}

static uint32_t base_alignment(const hal_plugin_device *device)
{
    cl_uint bits = 0;
    cl.clGetDeviceInfo(device->card->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits,
                       NULL);
    return bits >= 8 ? bits / 8 : 1;
}

hal_status opencl_external_info(hal_plugin_device *device, hal_external_info *info)
{
    HAL_TRY(opencl_device_check(device));
    pthread_mutex_lock(&device->lock);
    if (device->host_memory == OPENCL_HOST_UNKNOWN) {
        device->host_memory = device->card->unified && host_is_in_place(device)
                                  ? OPENCL_HOST_IN_PLACE
                                  : OPENCL_HOST_COPIED;
    }
    const bool in_place = device->host_memory == OPENCL_HOST_IN_PLACE;
    pthread_mutex_unlock(&device->lock);
    info->export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    info->import_kinds = info->export_kinds | (in_place ? HAL_HANDLE_BIT(HAL_HANDLE_HOST) : 0);
    info->host_alignment = base_alignment(device);
    info->host_granularity = sizeof(uint32_t);
    return HAL_OK;
}

static cl_mem create_native(hal_plugin_device *device, const hal_memory_handle *handle,
                            cl_int *error)
{
    cl_mem whole = (cl_mem)(uintptr_t)handle->handle;
    if (handle->offset == 0) {
        *error = cl.clRetainMemObject(whole);
        return *error == CL_SUCCESS ? whole : NULL;
    }
    (void)device;
    const cl_buffer_region region = {.origin = handle->offset, .size = handle->bytes};
    return cl.clCreateSubBuffer(whole, handle->access == HAL_ACCESS_READ ? CL_MEM_READ_ONLY : 0,
                                CL_BUFFER_CREATE_TYPE_REGION, &region, error);
}

hal_status opencl_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory)
{
    *memory = NULL;
    HAL_TRY(opencl_device_check(device));
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for a memory object");
    }
    cl_int error = CL_SUCCESS;
    made->bytes = handle->bytes;
    made->serial = atomic_fetch_add(&device->serial, 1) + 1;
    if (handle->kind == HAL_HANDLE_HOST) {
        const cl_mem_flags access =
            handle->access == HAL_ACCESS_READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
        made->host = (uint8_t *)(uintptr_t)(handle->handle + handle->offset);
        made->buffer = cl.clCreateBuffer(device->context, access | CL_MEM_USE_HOST_PTR,
                                         handle->bytes, made->host, &error);
    } else {
        made->buffer = create_native(device, handle, &error);
    }
    if (!made->buffer) {
        free(made);
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_import: the driver refuses %llu bytes at offset %llu: %s (%d)",
                        device->card->info.name, (unsigned long long)handle->bytes,
                        (unsigned long long)handle->offset, opencl_error_name(error), (int)error);
    }
    *memory = made;
    return HAL_OK;
}

hal_status opencl_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                                hal_memory_handle *handle)
{
    (void)kind;
    if (memory->shadowed) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_export: expected device memory, got a mapped kind, which has "
                        "no buffer that is always valid",
                        device->card->info.name);
    }
    handle->handle = (uint64_t)(uintptr_t)memory->buffer;
    return HAL_OK;
}

hal_status opencl_device_handle(hal_plugin_device *device, const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("cl_context", device->context),
                              KIT_HANDLE("cl_device_id", device->card->device),
                              KIT_HANDLE("cl_platform_id", device->card->platform),
                              {NULL, 0}};
    return kit_handle_find(all, type, handle);
}

hal_status opencl_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("cl_command_queue", queue->commands), {NULL, 0}};
    return kit_handle_find(all, type, handle);
}

/* A queue of the driver that hal's batches can be ordered with. */
static hal_status native_queue(hal_plugin_device *device, const char *type, uint64_t handle,
                               cl_command_queue *commands)
{
    const kit_handle all[] = {{"cl_command_queue", handle}, {NULL, 0}};
    uint64_t found = 0;
    cl_context context = NULL;
    cl_command_queue_properties properties = 0;
    HAL_TRY(opencl_device_check(device));
    HAL_TRY(kit_handle_find(all, type, &found));
    *commands = (cl_command_queue)(uintptr_t)found;
    cl_int error =
        cl.clGetCommandQueueInfo(*commands, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (error == CL_SUCCESS) {
        error = cl.clGetCommandQueueInfo(*commands, CL_QUEUE_PROPERTIES, sizeof properties,
                                         &properties, NULL);
    }
    if (error != CL_SUCCESS || context != device->context ||
        (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: queue_import: expected a queue of the device's cl_context in order, "
                        "got another one",
                        device->card->info.name);
    }
    return HAL_OK;
}

/* Makes a queue wait for what another one has now. */
static hal_status commands_follow(cl_command_queue later, cl_command_queue first)
{
    cl_event event = NULL;
    cl_int error = cl.clEnqueueMarkerWithWaitList(first, 0, NULL, &event);
    if (error == CL_SUCCESS) {
        cl.clFlush(first);
        error = cl.clEnqueueBarrierWithWaitList(later, 1, &event, NULL);
        cl.clReleaseEvent(event);
    }
    return error == CL_SUCCESS ? HAL_OK : opencl_fail_result(error, "ordering two queues");
}

hal_status opencl_queue_import(hal_plugin_device *device, const char *type, uint64_t handle,
                               hal_plugin_queue **queue)
{
    cl_command_queue commands = NULL;
    *queue = NULL;
    HAL_TRY(native_queue(device, type, handle, &commands));
    return opencl_queue_make(device, commands, queue);
}

hal_status opencl_queue_wait_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    cl_command_queue commands = NULL;
    HAL_TRY(native_queue(queue->device, type, handle, &commands));
    return commands_follow(queue->commands, commands);
}

hal_status opencl_queue_block_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    cl_command_queue commands = NULL;
    HAL_TRY(native_queue(queue->device, type, handle, &commands));
    return commands_follow(commands, queue->commands);
}

hal_status opencl_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                const char *type, uint64_t *handle)
{
    (void)device;
    const kit_handle all[] = {KIT_HANDLE("cl_program", kernel->program), {NULL, 0}};
    return kit_handle_find(all, type, handle);
}
