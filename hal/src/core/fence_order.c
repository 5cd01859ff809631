/* Order of a queue with fences of others. The plugin waits for its own fences and raises them; a
 * counter of the host is a host fence to wait for, and is raised by a progress callback. */
#include "flush.h"
#include "hooks.h"
#include "progress.h"

#include "base/fork.h"
#include "base/status.h"

#include <stdlib.h>

/* The host is waited for: a thread sleeps soon. */
static const hal_poll_policy policy = {
    .attempts = 64, .attempts_alone = 64, .polls_alone = 1, .yield_after = 8, .renew_below = 1};

typedef struct host_counter host_counter;
struct host_counter {
    hal_host_fence fence; /* must be first */
    hal_progress progress;
    hal_fence *of;      /* with a reference */
    hal_last_use after; /* of a signal */
    uint64_t value;
    host_counter *next; /* of signals */
};

/* Signals that are still to come. */
static pthread_mutex_t signals_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(signals_lock, HAL_FORK_LEAF)
static host_counter *signals;

static host_counter *counter_of(hal_progress *progress)
{
    return (host_counter *)((char *)progress - offsetof(host_counter, progress));
}

static hal_status counter_advance(hal_host_fence *fence, bool repeats, bool *signaled)
{
    const host_counter *counter = (const host_counter *)fence;
    (void)repeats;
    *signaled = atomic_load(counter->of->counter) >= counter->value;
    return HAL_OK;
}

/* Whether the signals that are still to come, and suffice, are after batches of the queue. */
static bool counter_is_raised_by(const hal_host_fence *fence, const hal_queue *queue)
{
    const host_counter *counter = (const host_counter *)fence;
    bool is_raised = false;
    pthread_mutex_lock(&signals_lock);
    for (const host_counter *s = signals; s; s = s->next) {
        is_raised |= s->of->counter == counter->of->counter && s->value >= counter->value &&
                     s->after.timeline == &queue->timeline &&
                     !hal_timeline_has_submitted(s->after.timeline, s->after.value);
    }
    pthread_mutex_unlock(&signals_lock);
    return is_raised;
}

static void counter_free(host_counter *counter)
{
    hal_fence_unref(counter->of);
    free(counter);
}

static void counter_destroy(hal_host_fence *fence)
{
    counter_free((host_counter *)fence);
}

/* A forked child does not ask for the parent's work. */
static bool counter_raise(hal_progress *progress)
{
    const host_counter *counter = counter_of(progress);
    if (hal_device_is_after_fork(counter->of->device) ||
        !hal_timeline_has_reached(counter->after.timeline, counter->after.value, true)) {
        return false;
    }
    uint64_t value = atomic_load(counter->of->counter);
    while (value < counter->value &&
           !atomic_compare_exchange_weak(counter->of->counter, &value, counter->value)) {
    }
    return true;
}

static void counter_end(hal_progress *progress)
{
    host_counter *counter = counter_of(progress), **link = &signals;
    pthread_mutex_lock(&signals_lock);
    while (*link && *link != counter) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = counter->next;
    }
    pthread_mutex_unlock(&signals_lock);
    counter_free(counter);
}

static host_counter *counter_make(hal_fence *fence, uint64_t value)
{
    host_counter *counter = calloc(1, sizeof *counter);
    if (counter) {
        counter->fence = (hal_host_fence){.advance = counter_advance,
                                          .destroy = counter_destroy,
                                          .policy = &policy,
                                          .is_raised_by = counter_is_raised_by};
        counter->progress.poll = counter_raise;
        counter->progress.end = counter_end;
        counter->of = hal_fence_ref(fence);
        counter->value = value;
    }
    return counter;
}

static hal_status fence_check(hal_queue *queue, const hal_fence *fence, const char *function)
{
    HAL_TRY(hal_queue_check(queue, function));
    if (!fence) {
        return hal_null_argument(function, "fence");
    }
    return fence->device == queue->timeline.device
               ? HAL_OK
               : hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                          "%s: fence: expected one of %s:%u, the queue's device, got one of %s:%u",
                          function, queue->timeline.device->plugin->name,
                          queue->timeline.device->index, fence->device->plugin->name,
                          fence->device->index);
}

/* The next batch, an empty one if nothing is recorded, has a point that is after the fence. */
static hal_status queue_wait_fence(hal_queue *queue, hal_fence *fence, uint64_t value)
{
    static const char function[] = "hal_queue_wait_fence";
    HAL_TRY(fence_check(queue, fence, function));
    if (!fence->counter) {
        HAL_TRY(hal_flush_waits(queue, NULL));
        HAL_TRY(hal_recording_add_fence(queue->recorder.recording, fence, value, false));
        queue->needs_batch = true;
        return HAL_OK;
    }
    host_counter *counter = counter_make(fence, value);
    if (!counter) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    const hal_status status = hal_flush_waits(queue, NULL);
    if (status != HAL_OK) {
        counter_free(counter);
        return status;
    }
    queue->recorder.recording->fence = &counter->fence;
    return HAL_OK;
}

static hal_status queue_signal_fence(hal_queue *queue, hal_fence *fence, uint64_t value)
{
    static const char function[] = "hal_queue_signal_fence";
    hal_point point = {0};
    HAL_TRY(fence_check(queue, fence, function));
    if (!fence->counter) {
        HAL_TRY(hal_recording_add_fence(queue->recorder.recording, fence, value, true));
        queue->needs_batch = true;
        return hal_flush_waits(queue, NULL);
    }
    host_counter *counter = counter_make(fence, value);
    if (!counter) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    const hal_status status = hal_flush_waits(queue, &point);
    if (status != HAL_OK) {
        counter_free(counter);
        return status;
    }
    counter->after = (hal_last_use){&queue->timeline, point.value};
    pthread_mutex_lock(&signals_lock);
    counter->next = signals;
    signals = counter;
    pthread_mutex_unlock(&signals_lock);
    hal_progress_add(&counter->progress);
    return HAL_OK;
}

hal_status hal_queue_wait_fence(hal_queue *queue, hal_fence *fence, uint64_t value)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_wait_fence");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_wait_fence(queue, fence, value))
               : status;
}

hal_status hal_queue_signal_fence(hal_queue *queue, hal_fence *fence, uint64_t value)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_signal_fence");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_signal_fence(queue, fence, value))
               : status;
}
