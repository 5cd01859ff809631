/* Batches that hal holds until a point of another device is reached, because the plugin cannot wait
 * for it, or until a gate opens. hal has no threads: held batches are submitted, and gates advance,
 * in later flushes and waits of any queue.
 * Used by flush.c, point.c and queue_lifecycle.c. */
#ifndef HAL_SRC_CORE_HELD_H
#define HAL_SRC_CORE_HELD_H

#include "queue.h"

/* Attempts of a wait at a gate without a pause, where no other queue holds batches. */
#define HAL_HELD_EAGER_ATTEMPTS 400u

/* Holds a flushed batch of the queue. Takes the recording. Threads: the queue's. */
void hal_held_add(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Drops the queue's batches without submitting them and waits until no other thread works on them:
 * the queue is about to be closed. Threads: the queue's. */
void hal_held_drop(hal_queue *queue);

/* Submits the held batches of all queues that are ready. Costs one load when none is held.
 * Threads: any; threads that submit batches of different queues do not wait for each other. */
void hal_held_advance(void);

/* Waits for work that must complete before a point can be reached: for the point itself once it is
 * submitted, else for what its batch is held for. While any gate is closed it returns early, since
 * other ranks may wait for the gates of this process. The caller repeats hal_held_advance and this,
 * with `attempt` counting from 0. Threads: any. Errors: as hal_timeline_wait. */
hal_status hal_held_wait(hal_last_use use, uint64_t timeout_ns, uint32_t attempt);

/* Copies the message of the held batch that was rejected last; "" if no error is pending. Threads:
 * any. */
void hal_held_copy_deferred_message(hal_queue *queue, char *message, size_t bytes);

/* Makes the queue's next flush or wait report the thread's failure. Threads: any that knows that
 * the queue is open. */
void hal_held_set_deferred_error(hal_queue *queue, hal_status status);

/* Returns and clears the error of a held batch that the plugin rejected. Threads: the queue's. */
hal_status hal_held_take_deferred_error(hal_queue *queue);

/* Returns an empty recording for the queue, null without host memory. Threads: the queue's. */
hal_recording *hal_held_take_spare(hal_queue *queue);

#endif
