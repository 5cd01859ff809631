/* Deferred submits: flushed batches that wait for a point of another device, because the plugin
 * cannot wait for it, or for a host fence. hal has no threads: they are submitted in later flushes
 * and waits of any queue. */
#ifndef HAL_SRC_CORE_DEFERRED_H
#define HAL_SRC_CORE_DEFERRED_H

#include "queue.h"
#include "wait_cycle.h"

/* A thread that waits for a point: attempts at the fence that it waits for now. Begins as {0}. */
typedef struct hal_deferred_waiter {
    uint32_t attempts;
    uint64_t submitted; /* last value of the fence's queue when the attempts began */
    hal_wait_watch watch;
} hal_deferred_waiter;

/* Defers the submit of a flushed batch. Takes the recording. Threads: the queue's. */
void hal_deferred_add(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Drops the queue's batches without submitting them and waits until no other thread works on them:
 * the queue is about to be closed. Threads: the queue's. */
void hal_deferred_drop(hal_queue *queue);

/* Submits the deferred batches of all queues that are ready. Costs one load when there is none.
 * Threads: any; threads that submit batches of different queues do not wait for each other. */
void hal_deferred_advance(void);

/* Waits for work that must complete before a point can be reached: for the point itself once it is
 * submitted, else for what its batch waits for. Returns early while fences or progress callbacks
 * have to be polled. The caller repeats hal_deferred_advance and this. Threads: any. Errors: as
 * hal_timeline_wait. */
hal_status hal_deferred_wait(hal_deferred_waiter *waiter, hal_last_use use, uint64_t timeout_ns);

/* Copies the message of the deferred batch that was rejected last; "" if no error is pending.
 * Threads: any. */
void hal_deferred_copy_message(hal_queue *queue, char *message, size_t bytes);

/* Makes the queue's next flush or wait report the thread's failure. Threads: any that knows that
 * the queue is open. */
void hal_deferred_set_error(hal_queue *queue, hal_status status);

/* Returns and clears the error of a deferred batch that the plugin rejected. Threads: the queue's.
 * */
hal_status hal_deferred_take_error(hal_queue *queue);

/* Returns an empty recording for the queue, null without host memory. Threads: the queue's. */
hal_recording *hal_deferred_take_spare(hal_queue *queue);

#endif
