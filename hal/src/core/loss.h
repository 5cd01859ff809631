/* Losses of a queue: batches that were dropped after an error, whose writes are missing. A library
 * that keeps results of batches asks for them, because a flush reports a failure once. */
#ifndef HAL_SRC_CORE_LOSS_H
#define HAL_SRC_CORE_LOSS_H

#include "queue.h"

/* Notes that the queue's batch is dropped, because of the thread's last failure. `is_late`: it was
 * flushed before, and later batches may read what it should have written.
 * Threads: any that owns the batch. */
void hal_loss_add(hal_queue *queue, const hal_recording *recording, hal_status status,
                  bool is_late);

/* The same for work of a batch that the plugin took, and that failed: what it should have written
 * is missing though the batch has run. Threads: any that knows that the queue is open. */
void hal_loss_add_work(hal_queue *queue, uint64_t serial, uint64_t value, hal_status status);

/* The queue's program was told of late losses: points from now on, of this queue and of those that
 * waited for it, do not depend on them. Threads: the queue's. */
void hal_loss_tell(hal_queue *queue);

/* Whether a point depends on a late loss. Threads: any. */
bool hal_loss_covers(hal_last_use point);

/* Notes the loss of a batch that waits for such a point: it may read what is missing.
 * Threads: any that owns the batch, whose value is set. */
void hal_loss_follow(hal_queue *queue, const hal_recording *recording, hal_last_use wait);

/* Forgets all but the points that depend on late losses: batches of other queues may still wait for
 * them. Threads: the queue's, which is opened. */
void hal_loss_clear(hal_queue *queue);

#endif
