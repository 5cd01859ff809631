/* Fences of others: external semaphores. Entries of the extension. */
#ifndef PLUGINS_CUDA_FENCE_H
#define PLUGINS_CUDA_FENCE_H

#include "queue.h"

hal_status cuda_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                           uint32_t *export_kinds);
hal_status cuda_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                             hal_plugin_fence **fence);
void cuda_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence);
hal_status cuda_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                   uint64_t value);

/* Makes a queue wait for a value. The context is current. */
hal_status cuda_fence_follow(hal_plugin_queue *queue, hal_plugin_fence *fence, uint64_t value);

#endif
