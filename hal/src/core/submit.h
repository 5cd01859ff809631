/* Submits batches to the plugin, with the points of other queues that they wait for. */
#ifndef HAL_SRC_CORE_SUBMIT_H
#define HAL_SRC_CORE_SUBMIT_H

#include "queue.h"

/* Sets `*ready` when every wait of a batch is reached or can be left to the plugin and its fence is
 * signaled. Polls plugins and the fence (`repeats`: see host_fence.h). Removes reached waits and
 * the signaled fence. The caller owns the recording. Errors: those of the fence, once the waits are
 * ready: the batch is to be dropped. */
hal_status hal_submit_poll(hal_queue *queue, hal_recording *recording, bool repeats, bool *ready);

/* Submits a batch as `value`, with what it waits for. Errors: those of the plugin. */
hal_status hal_submit_batch(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Asks the plugin to raise the fences of others that the submitted batch raises.
 * Errors: the first one of the plugin. */
hal_status hal_submit_signals(hal_queue *queue, hal_recording *recording);

/* Submits an empty batch in place of a rejected one, so that its point is still reached and its
 * memory is released. Marks `value` as rejected first. Errors: those of the plugin. */
hal_status hal_submit_empty_batch(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Keeps the queue until `dependent` is reached. Threads: any. Errors: OUT_OF_MEMORY. */
hal_status hal_submit_add_dependent(hal_queue *queue, hal_last_use dependent);

#endif
