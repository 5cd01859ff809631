/* Points: waiting for them, and batches that hal holds until another device has reached one. hal
 * has no thread of its own, so what is held moves on with the next flush or wait of any queue.
 * Called by programs through hal/queue.h and by queue.c. */
#include "point.h"

#include "base/clock.h"
#include "device.h"
#include "hooks.h"
#include "kernel.h"
#include "base/log.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Guards the lists of held batches, never taken while commands are recorded. */
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static hal_queue *held_queues;
static _Atomic uint32_t held_total;

/* A point that was given out; {NULL, 0} is one. */
static hal_status check_point(hal_point point, const char *what)
{
    if (!point.queue) {
        return point.value == 0 ? HAL_OK
                                : hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                                           "%s: the point has a value and no queue", what);
    }
    const uint64_t flushed = atomic_load(&point.queue->flushed);
    if (point.value > flushed) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: point %llu was never given out, the queue's last one is %llu", what,
                        (unsigned long long)point.value, (unsigned long long)flushed);
    }
    if (atomic_load(&point.queue->reached) >= point.value) {
        return HAL_OK;
    }
    return hal_device_check(point.queue->device, what);
}

static hal_status wait_point(hal_queue *queue, hal_point point)
{
    hal_status status = hal_queue_check(queue, "hal_queue_wait_point");
    if (status == HAL_OK) {
        status = check_point(point, "hal_queue_wait_point");
    }
    if (status != HAL_OK || !point.queue || point.queue == queue ||
        hal_queue_has_reached(point.queue, point.value, 0)) {
        return status;
    }
    status = hal_queue_flush(queue, NULL);
    return status == HAL_OK ? hal_queue_add_wait(queue, (hal_last_use){point.queue, point.value})
                            : status;
}

static hal_status wait_queue(hal_queue *queue, uint64_t timeout_ns)
{
    hal_point point;
    hal_status status = hal_queue_check(queue, "hal_queue_wait");
    if (status == HAL_OK) {
        status = hal_queue_flush(queue, &point);
    }
    if (status == HAL_OK) {
        status = hal_point_wait(point, timeout_ns);
    }
    if (status == HAL_OK) {
        hal_queue_went_idle(queue);
        status = hal_point_take_failure(queue);
    }
    return status;
}

/* The use itself when the plugin has it, else what keeps it from there, and so on: work that was
 * handed over. Points exist only for what was flushed, so this goes round in no circle. The queue
 * is counted as visited, so that it stays. */
static hal_last_use what_holds(hal_last_use use)
{
    pthread_mutex_lock(&held_lock);
    while (!hal_queue_has_submitted(use.queue, use.value) && use.queue->held_first) {
        hal_recording *first = use.queue->held_first;
        hal_last_use next = {use.queue, first->value};
        for (uint32_t i = 0; i < first->wait_count; i++) {
            const hal_last_use wait = first->waits[i];
            if (!hal_queue_has_reached(wait.queue, wait.value, 0)) {
                next = wait;
                if (!hal_queue_can_wait_for(use.queue, wait.queue) ||
                    !hal_queue_has_submitted(wait.queue, wait.value)) {
                    break;
                }
            }
        }
        if (next.queue == use.queue) {
            break; /* nothing holds it any more: the caller moves it on */
        }
        use = next;
    }
    if (!hal_queue_has_submitted(use.queue, use.value)) {
        use.value = atomic_load(&use.queue->submitted);
    }
    atomic_fetch_add(&use.queue->pin_count, 1);
    pthread_mutex_unlock(&held_lock);
    return use;
}

static hal_status wait_for(hal_point point, uint64_t timeout_ns)
{
    hal_status status = check_point(point, "hal_point_wait");
    if (status != HAL_OK || !point.queue) {
        return status;
    }
    const uint64_t begin = timeout_ns == 0 || timeout_ns == HAL_WAIT_FOREVER ? 0 : hal_clock_ns();
    uint64_t left = timeout_ns;
    while (status == HAL_OK) {
        hal_point_advance();
        if (atomic_load(&point.queue->reached) >= point.value) {
            return HAL_OK;
        }
        const hal_last_use use = what_holds((hal_last_use){point.queue, point.value});
        status = hal_queue_plugin_wait(use.queue, use.value, left);
        atomic_fetch_sub(&use.queue->pin_count, 1);
        if (status == HAL_OK && begin) {
            const uint64_t passed = hal_clock_ns() - begin;
            left = passed < timeout_ns ? timeout_ns - passed : 0;
        }
    }
    if (status == HAL_ERROR_TIMEOUT && timeout_ns == HAL_WAIT_FOREVER) {
        return hal_fail(status,
                        "point %llu of the queue was not reached: the plugin of %s:%u gave up a "
                        "wait that has no time limit",
                        (unsigned long long)point.value, point.queue->device->plugin->name,
                        point.queue->device->index);
    }
    if (status == HAL_ERROR_TIMEOUT) {
        return hal_fail(status, "point %llu of the queue was not reached within %llu ns",
                        (unsigned long long)point.value, (unsigned long long)timeout_ns);
    }
    return status;
}

/* A point was given out for a batch that the plugin does not take: an empty one stands for it, so
 * that the point is reached. The queue's next call reports what happened. Needs the lock. */
static void skip_batch(hal_queue *queue, hal_recording *recording, hal_status status)
{
    queue->deferred_status = status;
    snprintf(queue->deferred_message, sizeof queue->deferred_message, "%s", hal_status_message());
    atomic_store_explicit(&queue->late, 1, memory_order_release);
    hal_recording_clear(recording);
    if (hal_queue_submit(queue, recording, recording->value) != HAL_OK) {
        hal_log(HAL_LOG_ERROR, "%s", hal_status_message());
        atomic_store(&queue->device->lost, 1);
    }
}

/* Hands over the first batches of a queue that may go. Needs the lock. */
static int advance_queue(hal_queue *queue)
{
    int moved = 0;
    while (queue->held_first && hal_queue_is_ready(queue, queue->held_first)) {
        hal_recording *recording = queue->held_first;
        const hal_status status = hal_queue_submit(queue, recording, recording->value);
        if (status != HAL_OK) {
            skip_batch(queue, recording, status);
        }
        queue->held_first = recording->next;
        if (!queue->held_first) {
            queue->held_last = NULL;
        }
        hal_recording_clear(recording);
        recording->wait_count = 0;
        recording->next = queue->spare;
        queue->spare = recording;
        atomic_fetch_sub(&held_total, 1);
        atomic_fetch_sub_explicit(&queue->held_count, 1, memory_order_release);
        moved = 1;
    }
    return moved;
}

hal_status hal_queue_wait_point(hal_queue *queue, hal_point point)
{
    hal_status status = hal_hook_use(HAL_OBJECT_QUEUE, point.queue, "hal_queue_wait_point");
    if (status == HAL_OK) {
        status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_wait_point");
    }
    if (status != HAL_OK) {
        return status;
    }
    status = wait_point(queue, point);
    if (status == HAL_OK) {
        hal_hook_waited(queue, point);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
}

hal_status hal_queue_wait(hal_queue *queue, uint64_t timeout_ns)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_wait");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, wait_queue(queue, timeout_ns))
               : status;
}

hal_status hal_point_wait(hal_point point, uint64_t timeout_ns)
{
    hal_status status = hal_hook_use(HAL_OBJECT_QUEUE, point.queue, "hal_point_wait");
    if (status == HAL_OK) {
        status = wait_for(point, timeout_ns);
    }
    if (status == HAL_OK) {
        hal_hook_waited(NULL, point);
    }
    return status;
}

hal_status hal_point_get_elapsed(hal_point first, hal_point second, uint64_t *nanoseconds)
{
    if (!nanoseconds || !first.queue || first.queue != second.queue || first.value > second.value) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_point_get_elapsed: %s",
                        !nanoseconds ? "nanoseconds is null"
                                     : "the points are not two of one queue in their order");
    }
    hal_queue *queue = first.queue;
    hal_status status = hal_hook_use(HAL_OBJECT_QUEUE, queue, "hal_point_get_elapsed");
    if (status == HAL_OK) {
        status = check_point(second, "hal_point_get_elapsed");
    }
    if (status != HAL_OK) {
        return status;
    }
    if (atomic_load(&queue->closing) || first.value <= queue->base) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_point_get_elapsed: the first point stands for no batch of the queue");
    }
    hal_device *device = queue->device;
    if (!(device->info.abilities & HAL_ABILITY_TIMESTAMPS) || !device->plugin->queue_elapsed) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "hal_point_get_elapsed: %s:%u does not count time",
                        device->plugin->name, device->index);
    }
    if (!hal_queue_has_reached(queue, second.value, 1)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "hal_point_get_elapsed: point %llu is not reached yet; wait for it first",
                        (unsigned long long)second.value);
    }
    hal_host_clear_error();
    status = device->plugin->queue_elapsed(queue->handle, first.value - queue->base,
                                           second.value - queue->base, nanoseconds);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status, "asking for the time between "
                                                "two batches");
}

void hal_point_hold(hal_queue *queue, hal_recording *recording, uint64_t value)
{
    recording->value = value;
    recording->next = NULL;
    pthread_mutex_lock(&held_lock);
    if (queue->held_last) {
        queue->held_last->next = recording;
    } else {
        queue->held_first = recording;
        queue->next_held = held_queues;
        held_queues = queue;
    }
    queue->held_last = recording;
    atomic_fetch_add_explicit(&queue->held_count, 1, memory_order_release);
    atomic_fetch_add(&held_total, 1);
    pthread_mutex_unlock(&held_lock);
}

void hal_point_drop_held(hal_queue *queue)
{
    pthread_mutex_lock(&held_lock);
    if (queue->held_first) {
        hal_queue **at = &held_queues;
        while (*at != queue) {
            at = &(*at)->next_held;
        }
        *at = queue->next_held;
        queue->held_last->next = queue->spare;
        queue->spare = queue->held_first;
        queue->held_first = queue->held_last = NULL;
        atomic_fetch_sub(&held_total, atomic_exchange(&queue->held_count, 0));
    }
    pthread_mutex_unlock(&held_lock);
}

void hal_point_advance(void)
{
    if (atomic_load(&held_total) == 0) {
        return;
    }
    pthread_mutex_lock(&held_lock);
    int moved = 1;
    while (moved) {
        moved = 0;
        hal_queue **at = &held_queues;
        while (*at) {
            hal_queue *queue = *at;
            moved |= advance_queue(queue);
            if (queue->held_first) {
                at = &queue->next_held;
            } else {
                *at = queue->next_held;
            }
        }
    }
    pthread_mutex_unlock(&held_lock);
}

hal_status hal_point_take_failure(hal_queue *queue)
{
    if (!atomic_load_explicit(&queue->late, memory_order_acquire)) {
        return HAL_OK;
    }
    pthread_mutex_lock(&held_lock);
    const hal_status status = queue->deferred_status;
    hal_fail(status, "a batch that waited for another device was dropped: %s",
             queue->deferred_message);
    atomic_store(&queue->late, 0);
    pthread_mutex_unlock(&held_lock);
    return status;
}

hal_recording *hal_point_spare(hal_queue *queue)
{
    pthread_mutex_lock(&held_lock);
    hal_recording *spare = queue->spare;
    if (spare) {
        queue->spare = spare->next;
    }
    pthread_mutex_unlock(&held_lock);
    return spare ? spare : hal_recording_create();
}
