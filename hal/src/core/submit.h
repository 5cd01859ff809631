/* Submits batches to the plugin, with the points of other queues that they wait for. Used by
 * flush.c, held.c and transfer.c. */
#ifndef HAL_SRC_CORE_SUBMIT_H
#define HAL_SRC_CORE_SUBMIT_H

#include "queue.h"

/* Whether every wait of a batch is reached or can be left to the plugin. Polls plugins. Removes
 * reached waits. The caller owns the recording. */
int hal_submit_is_ready(hal_queue *queue, hal_recording *recording);

/* Submits a batch as `value`. Errors: those of the plugin. */
hal_status hal_submit_batch(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Submits an empty batch in place of a rejected one, so that its point is still reached and its
 * memory is released. Errors: those of the plugin. */
hal_status hal_submit_empty_batch(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Keeps the queue until `dependent` is reached. Threads: any. Errors: OUT_OF_MEMORY. */
hal_status hal_submit_add_dependent(hal_queue *queue, hal_last_use dependent);

#endif
