/* Staging memory for writes: a ring of chunks of upload memory per queue, so that a write calls
 * neither the pool nor the driver, and stays in memory that the processor has cached. A chunk is
 * reused when the device has read it; a program that makes small writes faster than the device
 * reads waits. */
#ifndef HAL_SRC_CORE_STAGING_H
#define HAL_SRC_CORE_STAGING_H

#include "queue.h"

/* Bytes; larger writes come in pieces. */
#define HAL_STAGING_MAX (UINT64_C(512) << 10)

/* Returns room for `bytes` bytes, at most HAL_STAGING_MAX, for the command that is recorded next:
 * the host writes at `pointer`, the command reads `range`. May flush the batch. `pointer` is null
 * when memory is short, and for more than 32 KiB when the device has not read the ring; the caller
 * allocates memory then. Threads: the queue's.
 * Errors: OUT_OF_MEMORY of the host, those of flushing and waiting. */
hal_status hal_staging_take(hal_queue *queue, uint64_t bytes, hal_range *range, void **pointer);

/* Releases the chunks; all recorded work has run. Threads: the queue's. */
void hal_staging_end(hal_queue *queue);

#endif
