/* The commands of a batch as calls of the driver. */
#ifndef PLUGINS_OPENCL_COMMANDS_H
#define PLUGINS_OPENCL_COMMANDS_H

#include "queue.h"

hal_status opencl_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
/* Entry of hal.faults: the next batch runs, and counts as one that failed while it ran. */
void opencl_queue_fail_next(hal_plugin_queue *queue);

#endif
