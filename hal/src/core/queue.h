/* A queue, as the sources that record on it and wait for it see it. */
#ifndef HAL_SRC_CORE_QUEUE_H
#define HAL_SRC_CORE_QUEUE_H

#include "batch.h"
#include "hazard.h"
#include "fence_set.h"

#include <hal/graph.h>
#include <hal/queue.h>
#include <stdatomic.h>

struct hal_queue {
    hal_queue *next; /* among the idle ones */
    hal_device *device;
    hal_plugin_queue *handle;
    uint64_t base;               /* the last value of an earlier life: the plugin counts from 0 */
    _Atomic uint64_t flushed;    /* the last point given out */
    _Atomic uint64_t submitted;  /* handed to the plugin up to here */
    _Atomic uint64_t reached;    /* known to be reached up to here */
    _Atomic int closing;         /* the plugin's queue is gone, or about to go */
    _Atomic uint32_t pin_count;  /* threads that are inside a plugin call with `handle` */
    hal_fence_set dependents;    /* batches of other queues that the plugin makes wait for this */

    /* Of the queue's thread. */
    uint64_t serial; /* of the present batch, unique in the process */
    hal_recording *recording;
    hal_recording *spare;
    hal_graph *graph; /* being recorded */
    uint64_t memory_bytes; /* that the present batch uses */
    uint64_t memory_limit; /* at which it is flushed */
    uint32_t batch_limit;  /* commands of the present batch; between first and most */
    uint32_t batch_first, batch_most;
    struct hal_queue_trace *trace; /* of the hook batch_started; kept when the queue is recycled */
    hal_hazards hazards;
    struct hal_staging *staging; /* of staging.c; null until it is needed */

    /* Batches that wait for other devices, under the lock of point.c. */
    hal_queue *next_held;
    hal_recording *held_first, *held_last;
    _Atomic uint32_t held_count;
    _Atomic int late;       /* a held batch could not be handed over: */
    hal_status deferred_status;
    char deferred_message[256];
};

/* ---- Recording ---- */

/* A command with everything checked: ranges have their lengths, none is empty but for null
 * buffers. */
typedef struct hal_action {
    uint16_t kind; /* HAL_COMMAND_* */
    uint16_t range_count;
    uint32_t scalar_bytes;
    uint32_t grid[3];
    uint32_t pattern;
    hal_kernel *kernel;
    const void *scalars;
    const hal_range *ranges;
    const uint8_t *access; /* of each range */
} hal_action;

extern const uint8_t hal_copy_access[2]; /* of a copy's ranges: source, target */
extern const uint8_t hal_fill_access[1];

/* Appends a checked command to the present batch. Threads: the queue's. Errors: OUT_OF_MEMORY. */
hal_status hal_queue_record(hal_queue *queue, const hal_action *action);

/* As hal_queue_flush, but a point that the present batch waits for is enough for a batch.
 * Threads: the queue's. Errors: as a flush. */
hal_status hal_queue_flush_waits(hal_queue *queue, hal_point *point);

/* Keeps the queue until another queue of the process has reached a value. Threads: any.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_queue_add_dependent(hal_queue *queue, hal_last_use follower);

/* Flushes a batch that has grown to its limit. Threads: the queue's. Errors: as a flush. */
hal_status hal_queue_flush_full(hal_queue *queue);

/* The same where the batch has. */
static inline hal_status hal_queue_make_room(hal_queue *queue)
{
    const uint32_t count = queue->recording->command_count;
    return count < queue->batch_limit && (queue->memory_bytes < queue->memory_limit || count == 0)
               ? HAL_OK
               : hal_queue_flush_full(queue);
}

/* Tells that the queue's thread has waited for all of its work. Threads: the queue's. */
void hal_queue_went_idle(hal_queue *queue);

/* Whether the queue can be used: as hal_device_check, and no graph may be in recording. */
hal_status hal_queue_check(const hal_queue *queue, const char *what);

/* ---- Points ---- */

/* The point that the present batch will have. Threads: the queue's. */
uint64_t hal_queue_next_value(const hal_queue *queue);

/* The queue on which the calling thread last used memory; only to be compared with. */
const hal_queue *hal_queue_recent(void);

/* Counts memory that the present batch newly uses. Threads: the queue's. */
void hal_queue_count_memory(hal_queue *queue, uint64_t bytes);

/* Makes the present batch come after a point. Threads: the queue's. Errors: OUT_OF_MEMORY. */
hal_status hal_queue_add_wait(hal_queue *queue, hal_last_use use);

/* Whether a value was handed to the plugin; whether it was reached, as far as is known or, with
 * `ask`, as the plugin says. Everything counts as reached on a lost device. Threads: any. */
int hal_queue_has_submitted(const hal_queue *queue, uint64_t value);
int hal_queue_has_reached(hal_queue *queue, uint64_t value, int ask);

/* Waits for a value when it was handed to the plugin. Threads: any. */
void hal_queue_wait_submitted(hal_queue *queue, uint64_t value);

/* Asks the plugin to wait for a value that was submitted. Threads: any. Errors: TIMEOUT without a
 * message, what the plugin answers. */
hal_status hal_queue_plugin_wait(hal_queue *queue, uint64_t value, uint64_t timeout_ns);

/* Whether the plugin itself can make the queue wait for the other. Threads: any. */
int hal_queue_can_wait_for(const hal_queue *queue, hal_queue *other);

/* Whether a recording's waits allow to hand it over; those that are over are dropped. */
int hal_queue_is_ready(hal_queue *queue, hal_recording *recording);

/* Hands a recording to the plugin as `value`. Errors: what the plugin answers. */
hal_status hal_queue_submit(hal_queue *queue, hal_recording *recording, uint64_t value);
#endif
