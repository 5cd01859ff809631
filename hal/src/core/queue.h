/* A queue: its timeline, the batch in recording and the batches whose submission is deferred. */
#ifndef HAL_SRC_CORE_QUEUE_H
#define HAL_SRC_CORE_QUEUE_H

#include "fence_set.h"
#include "pool.h"
#include "recorder.h"

#include <hal/graph.h>
#include <hal/plugin.h>
#include <hal/queue.h>
#include <stdbool.h>

/* Flushed batches that are not submitted yet, see deferred.h. Fields without _Atomic are guarded by
 * the lock of deferred.c. */
typedef struct hal_deferred_batches {
    hal_queue *next; /* among the queues with deferred batches */
    hal_recording *first, *last;
    hal_recording *spare;   /* empty batches for reuse */
    uint64_t visit;         /* number of the last pass that examined the queue */
    bool is_advancing;      /* a thread is submitting `first` and owns its contents */
    bool is_wanted;         /* another thread tried to advance it meanwhile */
    hal_queue *outer;       /* that the advancing thread was advancing before */
    hal_last_use call_wait; /* that a function of the advancing thread waits for, with a layer */
    uint64_t call_wait_ns;  /* when that began */
    _Atomic uint32_t count;
    _Atomic bool has_error; /* a deferred batch was rejected: */
    hal_status error_status;
    char error_message[256];
} hal_deferred_batches;

/* Losses that are kept one by one; of those before, what they have in common. */
#define HAL_LOSSES_KEPT 4u

/* Batches that were dropped, see loss.h. Guarded by the lock of loss.c. Points are valid across
 * lives of a queue, so `first`, `last` and `late` are as well. */
typedef struct hal_losses {
    hal_loss earlier;     /* those before `recent`: the first message, the least batch */
    uint64_t first, last; /* values of points that depend on late losses; UINT64_MAX: all later */
    hal_loss late;        /* the last of these losses */
    hal_queue *origin;    /* whose program ends the range when it is told, while `last` is open */
    hal_queue *next;      /* among the queues with an open range */
    hal_loss recent[HAL_LOSSES_KEPT];
} hal_losses;

struct hal_queue {
    hal_timeline timeline;    /* must be first, see hal_timeline_queue; any thread */
    hal_fence_set dependents; /* batches that the plugin makes wait for this queue; any thread */
    hal_deferred_batches deferred;
    hal_copy_counter copied;
    uint32_t loss_count; /* so far, see loss.h; any thread reads it without the lock */

    /* Of the queue's thread. */
    hal_recorder recorder;
    bool ends_untimed;             /* the last flushed batch has HAL_BATCH_UNTIMED */
    bool needs_batch;              /* the next flush submits one, if only an empty one */
    hal_graph *graph;              /* in recording, else null */
    struct hal_staging *staging;   /* null until it is needed */
    struct hal_reports *reports;   /* of kernels; null until it is needed */
    hal_last_use relayed;          /* the copy into this queue's memory that `relay` waits for, by
                                    * a queue that waited for all before it */
    uint64_t relay;                /* value of that empty batch; 0: none */
    struct hal_queue_trace *trace; /* of the hook batch_started; kept when the queue is recycled */

    hal_losses losses; /* any thread */
    hal_queue *next;   /* among the recycled queues */
};

/* Checks that the queue can be used and that no graph is in recording on it.
 * Errors: as hal_device_check, INVALID_STATE. */
hal_status hal_queue_check(const hal_queue *queue, const char *function);

#endif
