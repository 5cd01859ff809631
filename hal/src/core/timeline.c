/* Progress of queues. */
#include "timeline.h"

#include "hooks.h"
#include "progress.h"

#include "base/status.h"

#include <sched.h>

/* Time limit for work of a lost device. */
#define LOST_WAIT_NS UINT64_C(10000000000)
#define POLLED_WAIT_NS UINT64_C(1000000) /* between polls of progress callbacks */

static _Thread_local const hal_timeline *recent;

static void timeline_set_reached(hal_timeline *timeline, uint64_t value)
{
    uint64_t reached = atomic_load(&timeline->reached);
    while (reached < value && !atomic_compare_exchange_weak(&timeline->reached, &reached, value)) {
    }
}

/* Work may still be running after a wait that failed, or on a lost device; memory it uses is kept
 * until the plugin reports completion. A device whose plugin does not is lost. The caller has
 * pinned the timeline or is its queue. */
static void timeline_complete_work(hal_timeline *timeline)
{
    const uint64_t value = atomic_load(&timeline->submitted);
    if (atomic_load(&timeline->reached) >= value || timeline->base >= value) {
        return;
    }
    hal_saved_message before;
    hal_message_save(&before);
    const hal_status status =
        timeline->device->plugin->wait(timeline->handle, value - timeline->base, LOST_WAIT_NS);
    if (status != HAL_OK && !atomic_load(&timeline->device->lost)) {
        hal_device_failed(timeline->device, HAL_ERROR_DEVICE_LOST,
                          "waiting for work whose memory is released");
    }
    timeline_set_reached(timeline, value);
    hal_message_restore(&before);
}

/* Whether the timeline was closed or its device lost. The device of a closed timeline may be closed
 * too; that of a pinned one is open. */
static bool timeline_has_ended(hal_timeline *timeline, bool complete_lost_work)
{
    hal_timeline_pin(timeline);
    const bool closed = atomic_load(&timeline->closing);
    const bool lost = !closed && atomic_load(&timeline->device->lost);
    if (lost && complete_lost_work) {
        timeline_complete_work(timeline);
    }
    hal_timeline_unpin(timeline);
    return closed || lost;
}

bool hal_timeline_is_known_reached(hal_timeline *timeline, uint64_t value)
{
    return atomic_load_explicit(&timeline->reached, memory_order_acquire) >= value ||
           timeline_has_ended(timeline, false);
}

bool hal_timeline_has_reached(hal_timeline *timeline, uint64_t value, bool poll)
{
    if (atomic_load_explicit(&timeline->reached, memory_order_acquire) >= value ||
        timeline_has_ended(timeline, true)) {
        return true;
    }
    if (!poll || !hal_timeline_has_submitted(timeline, value)) {
        return false;
    }
    hal_saved_message before; /* a wait for the point reports the failure */
    hal_message_save(&before);
    const hal_status status = hal_timeline_wait(timeline, value, 0);
    hal_message_restore(&before);
    return status == HAL_OK;
}

hal_status hal_timeline_wait(hal_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    hal_status status = HAL_OK;
    hal_timeline_pin(timeline);
    if (!atomic_load(&timeline->closing) && atomic_load(&timeline->reached) < value) {
        hal_event event = {.kind = HAL_EVENT_WAIT,
                           .device = timeline->device,
                           .queue = hal_timeline_queue(timeline),
                           .value = value,
                           .timeout_ns = timeout_ns};
        status = hal_event_begin(&event);
        if (status == HAL_OK) {
            status = timeline->device->plugin->wait(timeline->handle, value - timeline->base,
                                                    timeout_ns);
        }
        hal_event_end(&event, status);
    }
    if (status == HAL_OK) {
        timeline_set_reached(timeline, value);
    } else if (status == HAL_ERROR_TIMEOUT) {
        hal_host_clear_error(); /* a sentence for it would go with a later failure */
    } else {
        hal_host_take_queue_message(timeline->handle);
        status = hal_device_failed(timeline->device, status, "waiting for a batch");
    }
    hal_timeline_unpin(timeline);
    return status;
}

void hal_timeline_wait_submitted(hal_timeline *timeline, uint64_t value)
{
    if (hal_timeline_has_reached(timeline, value, false) ||
        !hal_timeline_has_submitted(timeline, value)) {
        return;
    }
    while (hal_progress_is_any() &&
           hal_timeline_wait(timeline, value, POLLED_WAIT_NS) == HAL_ERROR_TIMEOUT) {
        hal_progress_poll_all(true);
    }
    if (hal_timeline_wait(timeline, value, UINT64_MAX) != HAL_OK) {
        hal_timeline_pin(timeline);
        if (!atomic_load(&timeline->closing)) {
            timeline_complete_work(timeline);
        }
        hal_timeline_unpin(timeline);
    }
}

bool hal_timeline_can_wait_for(const hal_timeline *timeline, hal_timeline *other)
{
    if (other->device == timeline->device) {
        return true;
    }
    /* The device of a pinned timeline is not closed. */
    hal_timeline_pin(other);
    const bool can = !atomic_load(&other->closing) &&
                     hal_device_can_access_peer(timeline->device, other->device);
    hal_timeline_unpin(other);
    return can;
}

void hal_timeline_open(hal_timeline *timeline, hal_device *device, hal_plugin_queue *handle)
{
    timeline->device = device;
    timeline->handle = handle;
    timeline->base = atomic_load(&timeline->flushed);
    atomic_store(&timeline->closing, 0);
}

void hal_timeline_close(hal_timeline *timeline)
{
    timeline_complete_work(timeline);
    /* Uses may name the batch that was never flushed. */
    const uint64_t last = hal_timeline_next_value(timeline);
    atomic_store(&timeline->submitted, last);
    atomic_store(&timeline->reached, last);
    atomic_store(&timeline->flushed, last);
    atomic_store(&timeline->closing, 1);
    while (atomic_load(&timeline->pin_count) > 0) {
        sched_yield();
    }
}

const hal_timeline *hal_timeline_recent(void)
{
    return recent;
}

void hal_timeline_set_recent(const hal_timeline *timeline)
{
    recent = timeline;
}
