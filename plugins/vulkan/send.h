/* When recorded batches go to the driver: the entries submit and wait. */
#ifndef PLUGINS_VULKAN_SEND_H
#define PLUGINS_VULKAN_SEND_H

#include "queue.h"

hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
hal_status vulkan_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
/* Entry of hal.faults: the next batch is accepted, and fails when it is sent. */
hal_status vulkan_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                     uint64_t value);
void vulkan_queue_fail_next(hal_plugin_queue *queue);
/* Ends the work of a queue and its helper. */
void vulkan_send_stop(hal_plugin_queue *queue);
/* Dispatches a kernel with no groups and waits, so that the driver compiles it. Threads: any. */
hal_status vulkan_queue_warm(hal_plugin_device *device, hal_plugin_kernel *kernel);

#endif
