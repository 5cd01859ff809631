/* Points: the values that a queue reaches, and the entries that wait for them. */
#ifndef PLUGINS_CUDA_POINT_H
#define PLUGINS_CUDA_POINT_H

#include "queue.h"

/* Creates what the point of a batch needs, before its first command is submitted. */
hal_status cuda_point_prepare(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value);
/* Submits the point. Errors: DEVICE_LOST. */
hal_status cuda_point_submit(hal_plugin_queue *queue, uint64_t value);
/* Makes the queue's stream wait for points of other queues. */
hal_status cuda_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                             uint32_t wait_count);
hal_status cuda_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status cuda_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                              uint64_t *nanoseconds);

#endif
