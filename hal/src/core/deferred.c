/* Deferred batches, see deferred.h. The lock guards the lists only. A thread that polls and submits
 * the first batch of a queue marks the queue as advancing and works without the lock. */
#include "deferred.h"

#include "hooks.h"
#include "loss.h"
#include "submit.h"
#include "progress.h"
#include "wait_cycle.h"

#include "base/fork.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

/* While the process has host fences or progress callbacks, no sleep and no wait in a plugin is
 * longer, so that all of them are polled. */
#define POLL_INTERVAL_NS UINT64_C(100000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LAYER)
static pthread_cond_t advanced; /* a queue is not advancing any more; on the monotonic clock */
static pthread_once_t advanced_once = PTHREAD_ONCE_INIT;
static hal_queue *deferred_queues;
static _Atomic uint32_t deferred_total;
static _Atomic uint32_t fence_total; /* of deferred batches */
static uint64_t last_visit;
static _Thread_local hal_queue
    *advancing; /* by this thread; a host call may wait, and advance more */

static void advanced_init(void)
{
    hal_condition_init(&advanced);
}

/* The caller holds the lock. */
static hal_status advanced_wait(uint64_t timeout_ns)
{
    HAL_UNCANCELLED;
    if (timeout_ns > INT64_MAX - hal_clock_ns()) {
        pthread_cond_wait(&advanced, &lock);
        return HAL_OK;
    }
    return hal_condition_wait(&advanced, &lock, timeout_ns) == 0 ? HAL_OK : HAL_ERROR_TIMEOUT;
}

static void queue_unlink(hal_queue *queue)
{
    hal_queue **at = &deferred_queues;
    while (*at != queue) {
        at = &(*at)->deferred.next;
    }
    *at = queue->deferred.next;
}

/* The next queue that the pass has not examined. A queue that another thread is advancing is left
 * to that thread, which examines it again. The caller holds the lock. */
static hal_queue *queue_to_visit(uint64_t visit)
{
    for (hal_queue *queue = deferred_queues; queue; queue = queue->deferred.next) {
        if (queue->deferred.is_advancing) {
            queue->deferred.is_wanted = true;
        } else if (queue->deferred.visit < visit) {
            return queue;
        }
    }
    return NULL;
}

/* Polls the batch until it is ready, `polls` times at most. */
static hal_status batch_poll(hal_queue *queue, hal_recording *recording, uint32_t polls,
                             bool *ready)
{
    hal_status status = hal_submit_poll(queue, recording, false, ready);
    for (uint32_t i = 1; i < polls && status == HAL_OK && !*ready && recording->fence; i++) {
        status = hal_submit_poll(queue, recording, true, ready);
    }
    return status;
}

/* Reports a batch that was rejected by the queue's next call, and submits an empty one in its
 * place, because its point was given to the program. */
static void batch_reject(hal_queue *queue, hal_recording *recording, hal_status status)
{
    hal_loss_add(queue, recording, status, true); /* before the error is told */
    hal_deferred_set_error(queue, status);
    if (hal_submit_empty_batch(queue, recording, recording->value) != HAL_OK) {
        hal_log(HAL_LOG_ERROR, "%s", hal_status_message());
        hal_device_failed(queue->timeline.device, HAL_ERROR_DEVICE_LOST,
                          "submitting an empty batch in place of one that failed");
    }
}

/* Returns whether the batch left hal. The thread's message does not change: the call that advances
 * the batch may be one on another queue. */
static bool batch_submit(hal_queue *queue, hal_recording *recording, uint32_t polls)
{
    bool ready = false;
    hal_saved_message before;
    hal_message_save(&before);
    hal_status status = batch_poll(queue, recording, polls, &ready);
    const bool leaves = ready || status != HAL_OK;
    if (status == HAL_OK && ready) {
        status = hal_submit_batch(queue, recording, recording->value);
    }
    if (status != HAL_OK) {
        batch_reject(queue, recording, status);
    } else if (ready && (status = hal_submit_signals(queue, recording)) != HAL_OK) {
        hal_deferred_set_error(queue, status);
    }
    if (leaves) {
        hal_recording_remove_fence(recording); /* not under the lock: they may release memory */
        hal_recording_clear_fences(recording);
    }
    hal_message_restore(&before);
    return leaves;
}

/* The caller holds the lock. */
static void first_batch_remove(hal_queue *queue)
{
    hal_deferred_batches *held = &queue->deferred;
    hal_recording *recording = held->first;
    held->first = recording->next;
    if (!held->first) {
        held->last = NULL;
        queue_unlink(queue);
    }
    hal_recording_clear(recording);
    atomic_fetch_sub(&fence_total, recording->had_fence);
    recording->had_fence = 0;
    recording->wait_count = 0;
    recording->next = held->spare;
    held->spare = recording;
    atomic_fetch_sub(&deferred_total, 1);
    atomic_fetch_sub_explicit(&held->count, 1, memory_order_release);
}

/* Polls the queue's first batch and submits it when it is ready; returns whether it is. The caller
 * holds the lock, which is free meanwhile; no other thread is advancing the queue. */
static bool queue_advance(hal_queue *queue, uint32_t polls)
{
    hal_deferred_batches *held = &queue->deferred;
    hal_recording *first = held->first;
    held->is_advancing = true;
    held->is_wanted = false;
    held->outer = advancing;
    advancing = queue;
    pthread_mutex_unlock(&lock);
    const bool submitted = batch_submit(queue, first, polls);
    pthread_mutex_lock(&lock);
    advancing = held->outer;
    held->call_wait = (hal_last_use){0};
    held->is_advancing = false;
    if (submitted) {
        first_batch_remove(queue);
    }
    pthread_cond_broadcast(&advanced);
    return submitted;
}

/* Returns the wait that keeps the queue's first batch from being submitted, or the batch itself
 * when nothing does. The caller holds the lock. */
static hal_last_use first_batch_blocker(hal_queue *queue)
{
    const hal_recording *first = queue->deferred.first;
    hal_last_use blocker = {&queue->timeline, first->value};
    for (uint32_t i = 0; i < first->wait_count; i++) {
        const hal_last_use wait = first->waits[i];
        if (hal_timeline_is_known_reached(wait.timeline, wait.value)) {
            continue;
        }
        blocker = wait;
        if (!hal_timeline_can_wait_for(&queue->timeline, wait.timeline) ||
            !hal_timeline_has_submitted(wait.timeline, wait.value)) {
            break;
        }
    }
    return blocker;
}

/* What keeps a point from being reached. */
typedef struct hal_blocker {
    hal_last_use use;              /* submitted work, in the plugin */
    bool is_thread;                /* another thread is submitting a batch */
    hal_queue *fenced;             /* the host fence of its first batch, else null */
    const hal_poll_policy *policy; /* of that fence */
} hal_blocker;

/* Follows a use to what it waits for. Points exist for flushed batches only, so the chain of waits
 * has no cycle. The caller holds the lock. */
static hal_blocker blocker_find(hal_last_use use)
{
    while (!hal_timeline_has_submitted(use.timeline, use.value)) {
        hal_queue *queue = hal_timeline_queue(use.timeline);
        if (queue->deferred.is_advancing) {
            return (hal_blocker){.use = use, .is_thread = true};
        }
        const hal_last_use next =
            queue->deferred.first ? first_batch_blocker(queue) : (hal_last_use){use.timeline, 0};
        if (next.timeline == use.timeline) {
            use.value = atomic_load(&use.timeline->submitted);
        } else {
            use = next;
        }
    }
    hal_queue *queue = hal_timeline_queue(use.timeline);
    const hal_host_fence *fence = queue->deferred.first && !queue->deferred.is_advancing
                                      ? queue->deferred.first->fence
                                      : NULL;
    return fence && hal_timeline_is_known_reached(use.timeline, use.value)
               ? (hal_blocker){.use = use, .fenced = queue, .policy = fence->policy}
               : (hal_blocker){.use = use};
}

/* Returns whether a thread that waits for a fence polls it again at once, and not after a sleep.
 * Polls it several times where that keeps no other queue waiting. The caller holds the lock. */
static bool fence_poll_eagerly(const hal_blocker *blocker, uint32_t attempt)
{
    const hal_poll_policy *policy = blocker->policy;
    const bool is_alone = deferred_queues == blocker->fenced && !blocker->fenced->deferred.next;
    if (attempt >= (is_alone ? policy->attempts_alone : policy->attempts)) {
        return false;
    }
    if (is_alone && policy->polls_alone > 0) {
        queue_advance(blocker->fenced, policy->polls_alone);
    }
    return true;
}

/* The next fence of the queue gets as many attempts, until one has used them: then what would
 * signal it has no processor of its own, and gets this one. */
static uint32_t waiter_next_attempt(hal_deferred_waiter *waiter, const hal_blocker *blocker)
{
    const uint64_t submitted = atomic_load(&blocker->use.timeline->submitted);
    if (waiter->attempts < blocker->policy->renew_below && waiter->submitted != submitted) {
        waiter->submitted = submitted;
        waiter->attempts = 0;
    }
    const uint32_t attempt = waiter->attempts;
    waiter->attempts += attempt < UINT32_MAX;
    return attempt;
}

/* Notes what the host call that this thread is in waits for, with {0} that it does not any more.
 * Calls that it was made in wait for its batch. The caller holds the lock. */
static void calls_set_wait(hal_last_use use)
{
    for (hal_queue *queue = advancing; queue; queue = queue->deferred.outer) {
        hal_deferred_batches *held = &queue->deferred;
        if (held->call_wait.timeline != use.timeline || held->call_wait.value != use.value) {
            held->call_wait = use;
            held->call_wait_ns = hal_clock_ns();
        }
        use = (hal_last_use){&queue->timeline, held->first->value};
    }
}

/* Looks for a cycle that the wait is in. The caller holds the lock. */
static void waiter_find_cycle(hal_deferred_waiter *waiter, const hal_blocker *blocker)
{
    const hal_queue *queue =
        blocker->fenced ? blocker->fenced : hal_timeline_queue(blocker->use.timeline);
    hal_wait_cycle_find(&waiter->watch, deferred_queues, queue);
}

void hal_deferred_add(hal_queue *queue, hal_recording *recording, uint64_t value)
{
    hal_deferred_batches *held = &queue->deferred;
    recording->value = value;
    recording->next = NULL;
    recording->had_fence = recording->fence != NULL;
    atomic_fetch_add(&fence_total, recording->had_fence);
    pthread_once(&advanced_once, advanced_init);
    pthread_mutex_lock(&lock);
    if (held->last) {
        held->last->next = recording;
    } else {
        held->first = recording;
        held->next = deferred_queues;
        deferred_queues = queue;
    }
    held->last = recording;
    atomic_fetch_add_explicit(&held->count, 1, memory_order_release);
    atomic_fetch_add(&deferred_total, 1);
    pthread_mutex_unlock(&lock);
}

void hal_deferred_drop(hal_queue *queue)
{
    HAL_UNCANCELLED;
    hal_deferred_batches *held = &queue->deferred;
    pthread_mutex_lock(&lock);
    while (held->is_advancing) {
        pthread_cond_wait(&advanced, &lock);
    }
    if (held->first) {
        queue_unlink(queue);
        for (hal_recording *dropped = held->first; dropped; dropped = dropped->next) {
            atomic_fetch_sub(&fence_total, dropped->had_fence);
            dropped->had_fence = 0;
        }
        held->last->next = held->spare;
        held->spare = held->first;
        held->first = held->last = NULL;
        atomic_fetch_sub(&deferred_total, atomic_exchange(&held->count, 0));
    }
    pthread_mutex_unlock(&lock);
    for (hal_recording *spare = held->spare; spare; spare = spare->next) {
        hal_recording_remove_fence(spare);
        hal_recording_clear_fences(spare);
    }
}

void hal_deferred_advance(void)
{
    hal_progress_poll_all(false);
    if (atomic_load(&deferred_total) == 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    uint64_t visit = ++last_visit;
    for (hal_queue *queue; (queue = queue_to_visit(visit)) != NULL;) {
        queue->deferred.visit = visit;
        if (queue_advance(queue, 1)) {
            visit = ++last_visit; /* batches that wait for this one may be ready now */
        } else if (queue->deferred.is_wanted) {
            queue->deferred.visit = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

hal_status hal_deferred_wait(hal_deferred_waiter *waiter, hal_last_use use, uint64_t timeout_ns)
{
    const bool is_polled = atomic_load(&fence_total) > 0 || hal_progress_is_any();
    const uint64_t limit_ns =
        is_polled && timeout_ns > POLL_INTERVAL_NS ? POLL_INTERVAL_NS : timeout_ns;
    hal_blocker blocker = {.use = use};
    bool is_eager = false;
    uint32_t attempt = 0;
    hal_status status = HAL_OK;
    if (!hal_timeline_has_submitted(use.timeline, use.value)) {
        pthread_mutex_lock(&lock);
        blocker = blocker_find(use);
        if (blocker.fenced && timeout_ns > 0) {
            attempt = waiter_next_attempt(waiter, &blocker);
            is_eager = fence_poll_eagerly(&blocker, attempt);
        }
        const bool is_held = blocker.fenced || blocker.is_thread;
        if (is_held && hal_hooks_on(HAL_HOOK_CALLS)) {
            calls_set_wait(use);
            waiter_find_cycle(waiter, &blocker);
        }
        if (is_held && !is_eager) {
            status = advanced_wait(limit_ns);
        }
        if (status == HAL_ERROR_TIMEOUT && limit_ns == timeout_ns) {
            calls_set_wait((hal_last_use){0});
        }
        pthread_mutex_unlock(&lock);
    }
    if (!blocker.fenced && !blocker.is_thread) {
        status = hal_timeline_wait(blocker.use.timeline, blocker.use.value, limit_ns);
    } else if (is_eager && attempt >= blocker.policy->yield_after) {
        sched_yield();
    }
    return status == HAL_ERROR_TIMEOUT && limit_ns < timeout_ns ? HAL_OK : status;
}

void hal_deferred_copy_message(hal_queue *queue, char *message, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const bool pending = atomic_load(&queue->deferred.has_error);
    snprintf(message, bytes, "%s", pending ? queue->deferred.error_message : "");
    pthread_mutex_unlock(&lock);
}

void hal_deferred_set_error(hal_queue *queue, hal_status status)
{
    hal_deferred_batches *held = &queue->deferred;
    pthread_mutex_lock(&lock);
    held->error_status = status;
    snprintf(held->error_message, sizeof held->error_message, "%s", hal_status_message());
    atomic_store_explicit(&held->has_error, 1, memory_order_release);
    pthread_mutex_unlock(&lock);
}

hal_status hal_deferred_take_error(hal_queue *queue)
{
    hal_deferred_batches *held = &queue->deferred;
    if (!atomic_load_explicit(&held->has_error, memory_order_acquire)) {
        return HAL_OK;
    }
    pthread_mutex_lock(&lock);
    const hal_status status = held->error_status;
    hal_fail(status, "a batch that hal deferred was dropped: %s", held->error_message);
    atomic_store(&held->has_error, 0);
    pthread_mutex_unlock(&lock);
    hal_loss_tell(queue);
    return status;
}

hal_recording *hal_deferred_take_spare(hal_queue *queue)
{
    pthread_mutex_lock(&lock);
    hal_recording *spare = queue->deferred.spare;
    if (spare) {
        queue->deferred.spare = spare->next;
    }
    pthread_mutex_unlock(&lock);
    return spare ? spare : hal_recording_create();
}
