/* Fences of others: id<MTLSharedEvent>. */
#include "fence.h"

#include <stdlib.h>

static hal_status fence_make(hal_plugin_device *device, metal_event *event,
                             hal_plugin_fence **fence)
{
    hal_plugin_fence *made = event ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        metal_shim_release(event);
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no memory for a fence",
                        device->card->info.name);
    }
    made->event = event;
    *fence = made;
    return HAL_OK;
}

hal_status metal_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                            uint32_t *export_kinds)
{
    (void)device;
    *import_kinds = *export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    return HAL_OK;
}

hal_status metal_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                              hal_plugin_fence **fence)
{
    metal_event *event = (metal_event *)(uintptr_t)handle;
    (void)kind;
    *fence = NULL;
    HAL_TRY(metal_device_check(device));
    metal_shim_retain(event);
    return fence_make(device, event, fence);
}

hal_status metal_fence_create(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence)
{
    (void)kind;
    *fence = NULL;
    HAL_TRY(metal_device_check(device));
    return fence_make(device, metal_shim_event(device->card->gpu), fence);
}

hal_status metal_fence_export(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                              uint64_t *handle)
{
    (void)device;
    (void)kind;
    *handle = (uint64_t)(uintptr_t)fence->event;
    return HAL_OK;
}

void metal_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence)
{
    (void)device;
    metal_shim_release(fence->event);
    free(fence);
}

/* A command buffer of its own, after those of the batches. */
hal_status metal_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                    uint64_t value)
{
    HAL_TRY(metal_device_check(queue->device));
    metal_commands *commands = metal_shim_commands(queue->stream);
    if (!commands) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no memory for a command buffer",
                        queue->device->card->info.name);
    }
    metal_shim_commands_wait_event(commands, queue->event, atomic_load(&queue->submitted));
    metal_shim_commands_signal_event(commands, fence->event, value);
    metal_shim_commands_commit(commands);
    metal_shim_release(commands);
    return HAL_OK;
}
