/* Points: the values that a queue reaches, and the entries that wait for them. */
#ifndef PLUGINS_METAL_POINT_H
#define PLUGINS_METAL_POINT_H

#include "queue.h"

/* Entry of hal.faults: the next batch runs, and counts as one that failed while it ran. */
void metal_queue_fail_next(hal_plugin_queue *queue);
/* Makes room for a batch, waiting for the oldest one in flight. */
hal_status metal_point_reserve(hal_plugin_queue *queue, uint64_t value);
/* Keeps committed commands as the point of their value. Takes the reference. */
void metal_point_add(hal_plugin_queue *queue, uint64_t value, metal_commands *commands);
void metal_point_destroy_all(hal_plugin_queue *queue);
hal_status metal_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status metal_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                               uint64_t *nanoseconds);

#endif
