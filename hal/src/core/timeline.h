/* The progress of a queue: which of its points were flushed, submitted and reached. A point is
 * known by its timeline and value, so memory and kernels record their uses without queues.
 *
 * Destroyed queues are recycled and never freed. Values keep increasing across lives, so a stale
 * point stays valid and counts as reached. */
#ifndef HAL_SRC_CORE_TIMELINE_H
#define HAL_SRC_CORE_TIMELINE_H

#include "device.h"

#include <hal/queue.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The first member of its hal_queue. */
typedef struct hal_timeline {
    hal_device *device;
    hal_plugin_queue *handle;
    uint64_t base;              /* last value of the previous life; the plugin counts from 0 */
    _Atomic uint64_t flushed;   /* last value that has a point */
    _Atomic uint64_t submitted; /* last value that the plugin accepted */
    _Atomic uint64_t reached;   /* last value known to be reached */
    _Atomic uint64_t rejected;  /* last value whose batch was dropped after an error */
    _Atomic bool closing;       /* `handle` is destroyed or about to be */
    _Atomic uint32_t pin_count; /* threads that are using `handle`; it is kept until 0 */
} hal_timeline;

/* A point of a timeline: work up to it uses something, or must run first. */
typedef struct hal_last_use {
    hal_timeline *timeline;
    uint64_t value;
} hal_last_use;

static inline hal_queue *hal_timeline_queue(hal_timeline *timeline)
{
    return (hal_queue *)timeline;
}

/* The value of the batch in recording. Threads: the queue's. */
static inline uint64_t hal_timeline_next_value(const hal_timeline *timeline)
{
    return atomic_load_explicit(&timeline->flushed, memory_order_relaxed) + 1;
}

/* Keeps `handle` valid unless `closing` is set already. Threads: any. */
static inline void hal_timeline_pin(hal_timeline *timeline)
{
    atomic_fetch_add(&timeline->pin_count, 1);
}

static inline void hal_timeline_unpin(hal_timeline *timeline)
{
    atomic_fetch_sub(&timeline->pin_count, 1);
}

/* Whether the plugin accepted the batch of this value. Threads: any. */
static inline bool hal_timeline_has_submitted(const hal_timeline *timeline, uint64_t value)
{
    return atomic_load_explicit(&timeline->submitted, memory_order_acquire) >= value;
}

/* Whether a value is known to be reached, without a call to the plugin. All values of a lost device
 * count as reached, also while the work is still running. Threads: any. */
bool hal_timeline_is_known_reached(hal_timeline *timeline, uint64_t value);

/* Whether a value is reached. If `poll`, the plugin is asked when that is not known; it does not
 * block. Work of a lost device is waited for, then counts as reached. Threads: any. */
bool hal_timeline_has_reached(hal_timeline *timeline, uint64_t value, bool poll);

/* Waits in the plugin for a submitted value. Threads: any.
 * Errors: TIMEOUT without a message, those of the plugin. */
hal_status hal_timeline_wait(hal_timeline *timeline, uint64_t value, uint64_t timeout_ns);

/* Waits without a time limit if the value was submitted. Threads: any. */
void hal_timeline_wait_submitted(hal_timeline *timeline, uint64_t value);

/* Whether the plugin itself can make `timeline` wait for a point of `other`. Threads: any. */
bool hal_timeline_can_wait_for(const hal_timeline *timeline, hal_timeline *other);

/* Starts a life on a new handle. Threads: the queue's. */
void hal_timeline_open(hal_timeline *timeline, hal_device *device, hal_plugin_queue *handle);

/* Marks all values as reached, including that of the batch in recording, and waits until no thread
 * uses the handle. Work on a lost device may still be running; the plugin's completion is waited
 * for first. Threads: the queue's. */
void hal_timeline_close(hal_timeline *timeline);

/* The timeline whose batch last used memory on this thread; only for comparison. */
const hal_timeline *hal_timeline_recent(void);
void hal_timeline_set_recent(const hal_timeline *timeline);

#endif
