/* Points: the values of a queue's timeline semaphore, and the times of its points. */
#ifndef PLUGINS_VULKAN_POINT_H
#define PLUGINS_VULKAN_POINT_H

#include "queue.h"

/* Whether the end of a batch gets a time. */
bool vulkan_batch_is_timed(const hal_plugin_queue *queue, const hal_batch *batch);
/* Waits until the point that had the query of this one is reached. */
hal_status vulkan_point_await_time(hal_plugin_queue *queue, uint64_t value);
/* Prepares the time of a point by the host, which costs the device nothing, after
 * vulkan_point_await_time. Where the host cannot, commands.c does it. */
void vulkan_point_reset_time(hal_plugin_queue *queue, uint64_t value);
/* Waits for a value that was sent; on a device that was given up as well. */
hal_status vulkan_point_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
/* The clocks of host and device, and the time of a point by the latter. */
hal_status vulkan_clocks_read(hal_plugin_device *device, hal_clocks *clocks);
hal_status vulkan_queue_time(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns);
hal_status vulkan_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);

#endif
