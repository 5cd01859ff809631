/* Points: the values that a queue reaches, and the entries that wait for them. */
#ifndef PLUGINS_OPENCL_POINT_H
#define PLUGINS_OPENCL_POINT_H

#include "queue.h"

/* Makes the queue wait for points of other queues. */
hal_status opencl_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                               uint32_t wait_count);
/* Marks the end of what was submitted, unless it is reached or marked. */
hal_status opencl_point_mark(hal_plugin_queue *queue);
/* Flushes the queue. */
void opencl_point_flush(hal_plugin_queue *queue);
/* Says that a batch was submitted, and keeps its event, if it has one. */
hal_status opencl_point_add(hal_plugin_queue *queue, uint64_t value, cl_event event);
void opencl_point_destroy_all(hal_plugin_queue *queue);
hal_status opencl_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status opencl_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);

#endif
