/* Fences of others: timeline semaphores. Entries of the extension. */
#ifndef PLUGINS_VULKAN_FENCE_H
#define PLUGINS_VULKAN_FENCE_H

#include "device.h"

struct hal_plugin_fence {
    VkSemaphore semaphore;
    bool is_native;        /* another owner's */
    bool is_shareable;     /* made to leave as a descriptor */
    _Atomic uint64_t last; /* value that was asked for */
};

hal_status vulkan_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                             uint32_t *export_kinds);
hal_status vulkan_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                               hal_plugin_fence **fence);
hal_status vulkan_fence_create(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence);
hal_status vulkan_fence_export(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                               uint64_t *handle);
void vulkan_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence);

/* Makes the host wait for a value. */
hal_status vulkan_fence_await(hal_plugin_device *device, hal_plugin_fence *fence, uint64_t value);

#endif
