/* Fences of others: events of OpenCL, whose values are 0 and 1. Entries of the extension. */
#ifndef PLUGINS_OPENCL_FENCE_H
#define PLUGINS_OPENCL_FENCE_H

#include "queue.h"

struct hal_plugin_fence {
    cl_event event; /* retained */
    bool is_own;    /* a user event, which the plugin completes */
};

hal_status opencl_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                             uint32_t *export_kinds);
hal_status opencl_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                               hal_plugin_fence **fence);
hal_status opencl_fence_create(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence);
hal_status opencl_fence_export(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                               uint64_t *handle);
void opencl_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence);
hal_status opencl_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                     uint64_t value);

/* Makes a queue wait for a value. */
hal_status opencl_fence_follow(hal_plugin_queue *queue, hal_plugin_fence *fence, uint64_t value);

#endif
