/* Memory that small writes go through: a ring of chunks of upload memory that a queue has while
 * work is under way, so that a write takes neither the pool nor the driver. A chunk is used again
 * when the device has read it; a program that writes faster than its device reads waits here. Where
 * memory is short there are fewer, or none. */
#ifndef HAL_SRC_CORE_STAGING_H
#define HAL_SRC_CORE_STAGING_H

#include "queue.h"

/* Larger writes take memory of their own. */
#define HAL_STAGING_MOST (UINT64_C(32) << 10)

/* Room for `bytes` bytes up to HAL_STAGING_MOST, for a command that is recorded next: the host
 * writes at `pointer`, the command reads `range`. A null pointer: there is no chunk, and the write
 * takes memory of its own. The queue's batch may be flushed. Threads: the queue's.
 * Errors: OUT_OF_MEMORY of the host, what flushing and waiting answer. */
hal_status hal_staging_take(hal_queue *queue, uint64_t bytes, hal_range *range, void **pointer);

/* Gives the chunks back, when all that was recorded has run. Threads: the queue's. */
void hal_staging_end(hal_queue *queue);

#endif
