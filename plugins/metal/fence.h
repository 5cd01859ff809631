/* Fences of others: shared events. Entries of the extension. */
#ifndef PLUGINS_METAL_FENCE_H
#define PLUGINS_METAL_FENCE_H

#include "queue.h"

struct hal_plugin_fence {
    metal_event *event; /* retained */
};

hal_status metal_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                            uint32_t *export_kinds);
hal_status metal_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                              hal_plugin_fence **fence);
hal_status metal_fence_create(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence);
hal_status metal_fence_export(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                              uint64_t *handle);
void metal_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence);
hal_status metal_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                    uint64_t value);

#endif
