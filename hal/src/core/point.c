/* Points: waiting for them and the time between them. */
#include "flush.h"
#include "deferred.h"
#include "hooks.h"
#include "loss.h"
#include "progress.h"

#include "base/clock.h"
#include "base/status.h"

/* Accepts {NULL, 0} and points that a flush returned. */
static hal_status point_check(hal_point point, const char *function)
{
    if (!point.queue) {
        return point.value == 0 ? HAL_OK
                                : hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                                           "%s: point: expected value 0 without a queue, got %llu",
                                           function, (unsigned long long)point.value);
    }
    hal_timeline *timeline = &point.queue->timeline;
    const uint64_t flushed = atomic_load(&timeline->flushed);
    if (point.value > flushed) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: point: expected a value up to %llu, the last flushed point of the "
                        "queue, got %llu",
                        function, (unsigned long long)flushed, (unsigned long long)point.value);
    }
    if (atomic_load(&timeline->reached) >= point.value) {
        return HAL_OK;
    }
    return hal_device_check(timeline->device, function);
}

static hal_status queue_wait_point(hal_queue *queue, hal_point point)
{
    hal_status status = hal_queue_check(queue, "hal_queue_wait_point");
    if (status == HAL_OK) {
        status = point_check(point, "hal_queue_wait_point");
    }
    if (status != HAL_OK || !point.queue || point.queue == queue) {
        return status;
    }
    const hal_last_use wait = {&point.queue->timeline, point.value};
    if (hal_timeline_has_reached(wait.timeline, wait.value, false) && !hal_loss_covers(wait)) {
        return HAL_OK;
    }
    status = hal_queue_flush(queue, NULL);
    return status == HAL_OK ? hal_recording_wait(queue->recorder.recording, wait) : status;
}

static hal_status fail_timeout(hal_point point, uint64_t timeout_ns)
{
    const hal_device *device = point.queue->timeline.device;
    if (timeout_ns == HAL_WAIT_FOREVER) {
        return hal_fail(HAL_ERROR_TIMEOUT,
                        "hal_point_wait: point %llu: the plugin of %s:%u ended a wait without a "
                        "time limit before the point was reached",
                        (unsigned long long)point.value, device->plugin->name, device->index);
    }
    return hal_fail(HAL_ERROR_TIMEOUT, "hal_point_wait: point %llu: not reached within %llu ns",
                    (unsigned long long)point.value, (unsigned long long)timeout_ns);
}

static hal_status point_wait(hal_point point, uint64_t timeout_ns)
{
    HAL_TRY(point_check(point, "hal_point_wait"));
    if (!point.queue) {
        return HAL_OK;
    }
    hal_timeline *timeline = &point.queue->timeline;
    const uint64_t begin = timeout_ns == 0 || timeout_ns == HAL_WAIT_FOREVER ? 0 : hal_clock_ns();
    uint64_t left = timeout_ns;
    hal_status status = HAL_OK;
    hal_deferred_waiter waiter = {0};
    while (status == HAL_OK) {
        hal_deferred_advance();
        if (atomic_load(&timeline->reached) >= point.value) {
            hal_progress_poll_all(true); /* imported memory that is released now */
            return HAL_OK;
        }
        /* The batch of a lost device may have been dropped: nothing will reach the point. */
        HAL_TRY(hal_device_check(timeline->device, "hal_point_wait"));
        status = hal_deferred_wait(&waiter, (hal_last_use){timeline, point.value}, left);
        if (status == HAL_OK && begin) {
            const uint64_t passed = hal_clock_ns() - begin;
            left = passed < timeout_ns ? timeout_ns - passed : 0;
        }
    }
    return status == HAL_ERROR_TIMEOUT ? fail_timeout(point, timeout_ns) : status;
}

static hal_status elapsed_check(hal_point first, hal_point second, const uint64_t *nanoseconds)
{
    if (!nanoseconds) {
        return hal_null_argument("hal_point_get_elapsed", "nanoseconds");
    }
    if (!first.queue || first.queue != second.queue || first.value > second.value) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_point_get_elapsed: second: expected a point of the same queue, not "
                        "before first");
    }
    HAL_TRY(hal_hook_use(HAL_OBJECT_QUEUE, first.queue, "hal_point_get_elapsed"));
    HAL_TRY(point_check(second, "hal_point_get_elapsed"));
    hal_timeline *timeline = &first.queue->timeline;
    if (atomic_load(&timeline->closing) || first.value <= timeline->base) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_point_get_elapsed: first: expected the point of a batch, got %llu, "
                        "which comes before all batches of the queue",
                        (unsigned long long)first.value);
    }
    const hal_device *device = timeline->device;
    if (!(device->info.features & HAL_FEATURE_TIMESTAMPS) || !device->plugin->queue_elapsed) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_point_get_elapsed: %s:%u does not support HAL_FEATURE_TIMESTAMPS",
                        device->plugin->name, device->index);
    }
    if (!hal_timeline_has_reached(timeline, second.value, true)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "hal_point_get_elapsed: second: expected a reached point, got %llu; wait "
                        "for it first",
                        (unsigned long long)second.value);
    }
    return HAL_OK;
}

hal_status hal_queue_wait_point(hal_queue *queue, hal_point point)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_QUEUE, point.queue, "hal_queue_wait_point"));
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_wait_point"));
    hal_status status = queue_wait_point(queue, point);
    if (status == HAL_OK) {
        hal_hook_waited(queue, point);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
}

hal_status hal_point_wait(hal_point point, uint64_t timeout_ns)
{
    hal_status status = hal_hook_use(HAL_OBJECT_QUEUE, point.queue, "hal_point_wait");
    if (status == HAL_OK) {
        status = point_wait(point, timeout_ns);
    }
    if (status == HAL_OK) {
        hal_hook_waited(NULL, point);
    }
    return status;
}

hal_status hal_point_get_elapsed(hal_point first, hal_point second, uint64_t *nanoseconds)
{
    HAL_TRY(elapsed_check(first, second, nanoseconds));
    const hal_timeline *timeline = &first.queue->timeline;
    hal_device *device = timeline->device;
    hal_host_clear_error();
    const hal_status status = device->plugin->queue_elapsed(
        timeline->handle, first.value - timeline->base, second.value - timeline->base, nanoseconds);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status,
                                                "asking for the time between "
                                                "two batches");
}

hal_status hal_point_get_time(hal_point point, uint64_t *device_ns)
{
    HAL_TRY(elapsed_check(point, point, device_ns));
    const hal_timeline *timeline = &point.queue->timeline;
    hal_device *device = timeline->device;
    if (!device->plugin->clocks_read || !device->plugin->queue_time) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_point_get_time: point: %s:%u has times between points only; use "
                        "hal_point_get_elapsed",
                        device->plugin->name, device->index);
    }
    hal_host_clear_error();
    const hal_status status =
        device->plugin->queue_time(timeline->handle, point.value - timeline->base, device_ns);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status, "asking for the time of a batch");
}
