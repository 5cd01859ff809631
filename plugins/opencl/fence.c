/* Fences of others: cl_event to wait for, and user events that the plugin completes. */
#include "fence.h"

#include <stdlib.h>

static hal_status fence_make(cl_event event, bool is_own, hal_plugin_fence **fence)
{
    hal_plugin_fence *made = calloc(1, sizeof *made);
    if (!made) {
        cl.clReleaseEvent(event);
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for a fence");
    }
    made->event = event;
    made->is_own = is_own;
    *fence = made;
    return HAL_OK;
}

hal_status opencl_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                             uint32_t *export_kinds)
{
    (void)device;
    *import_kinds = *export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    return HAL_OK;
}

hal_status opencl_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                               hal_plugin_fence **fence)
{
    cl_event event = (cl_event)(uintptr_t)handle;
    cl_context context = NULL;
    (void)kind;
    *fence = NULL;
    HAL_TRY(opencl_device_check(device));
    const cl_int error = cl.clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL);
    if (error != CL_SUCCESS || context != device->context ||
        cl.clRetainEvent(event) != CL_SUCCESS) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: fence_import: expected an event of the device's cl_context",
                        device->card->info.name);
    }
    return fence_make(event, false, fence);
}

hal_status opencl_fence_create(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence)
{
    cl_int error = CL_SUCCESS;
    (void)kind;
    *fence = NULL;
    HAL_TRY(opencl_device_check(device));
    cl_event event = cl.clCreateUserEvent(device->context, &error);
    return error == CL_SUCCESS ? fence_make(event, true, fence)
                               : opencl_fail_result(error, "clCreateUserEvent");
}

hal_status opencl_fence_export(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                               uint64_t *handle)
{
    (void)device;
    (void)kind;
    *handle = (uint64_t)(uintptr_t)fence->event;
    return HAL_OK;
}

/* A user event that nobody has completed is ended with its last reference, which this is: NVIDIA's
 * clReleaseContext does not return otherwise. What waits for it would wait forever, and fails. */
static void event_end(cl_event event)
{
    cl_command_type type = 0;
    cl_uint references = 0;
    cl_int state = CL_COMPLETE;
    cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
    cl.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL);
    cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (type == CL_COMMAND_USER && references == 1 && state > CL_COMPLETE) {
        cl.clSetUserEventStatus(event, -1);
    }
}

void opencl_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence)
{
    (void)device;
    event_end(fence->event);
    cl.clReleaseEvent(fence->event);
    free(fence);
}

static hal_status value_check(const hal_plugin_queue *queue, const char *entry, uint64_t value)
{
    return value <= 1 ? HAL_OK
                      : kit_fail(HAL_ERROR_UNSUPPORTED,
                                 "%s: %s: value: expected 1, the only one of a cl_event, got %llu",
                                 queue->device->card->info.name, entry, (unsigned long long)value);
}

hal_status opencl_fence_follow(hal_plugin_queue *queue, hal_plugin_fence *fence, uint64_t value)
{
    HAL_TRY(value_check(queue, "submit", value));
    const cl_int error =
        value == 0 ? CL_SUCCESS
                   : cl.clEnqueueBarrierWithWaitList(queue->commands, 1, &fence->event, NULL);
    return error == CL_SUCCESS ? HAL_OK : opencl_fail_result(error, "waiting for a fence");
}

/* Called by the driver. An error of the commands before goes to those that wait. */
static void CL_CALLBACK event_complete(cl_event marker, cl_int status, void *user)
{
    cl_event event = user;
    cl.clSetUserEventStatus(event, status < 0 ? status : CL_COMPLETE);
    cl.clReleaseEvent(event);
    cl.clReleaseEvent(marker);
}

hal_status opencl_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                     uint64_t value)
{
    cl_event marker = NULL;
    HAL_TRY(value_check(queue, "queue_signal_fence", value));
    if (!fence->is_own) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: queue_signal_fence: expected a fence of fence_create, got a cl_event "
                        "of others",
                        queue->device->card->info.name);
    }
    cl_int error = cl.clEnqueueMarkerWithWaitList(queue->commands, 0, NULL, &marker);
    if (error == CL_SUCCESS) {
        cl.clRetainEvent(fence->event);
        error = cl.clSetEventCallback(marker, CL_COMPLETE, event_complete, fence->event);
        if (error != CL_SUCCESS) {
            cl.clReleaseEvent(fence->event);
            cl.clReleaseEvent(marker);
        }
    }
    cl.clFlush(queue->commands);
    return error == CL_SUCCESS ? HAL_OK : opencl_fail_result(error, "raising a fence");
}
