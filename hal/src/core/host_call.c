/* Functions of the program in the order of a queue: the next batch waits for a host fence, which
 * calls the function when the batch before is reached. A detached one is polled by itself. */
#include "flush.h"
#include "hooks.h"
#include "progress.h"

#include "base/status.h"

#include <hal/host_call.h>
#include <stdlib.h>

/* The device, not the host, is waited for: a thread sleeps soon. */
static const hal_poll_policy policy = {
    .attempts = 64, .attempts_alone = 64, .polls_alone = 1, .yield_after = 8, .renew_below = 1};

typedef struct host_call {
    hal_host_fence fence; /* must be first */
    hal_progress progress;
    hal_timeline *timeline;
    uint64_t value; /* that is reached before */
    hal_host_function function;
    void *user;
    bool was_called;
} host_call;

static host_call *call_of(hal_progress *progress)
{
    return (host_call *)((char *)progress - offsetof(host_call, progress));
}

static void call_make(host_call *call, hal_status status)
{
    if (!call->was_called) {
        call->was_called = true;
        call->function(call->user, status);
    }
}

/* Work of a lost device counts as reached. A forked child does not ask for the parent's work. */
static bool call_is_due(host_call *call)
{
    hal_timeline *timeline = call->timeline;
    hal_timeline_pin(timeline); /* keeps its device open */
    const bool is_open = !atomic_load(&timeline->closing);
    const bool is_lost = is_open && atomic_load(&timeline->device->lost);
    const bool is_foreign = is_open && hal_device_is_after_fork(timeline->device);
    hal_timeline_unpin(timeline);
    if (is_foreign || !hal_timeline_has_reached(timeline, call->value, true)) {
        return false;
    }
    call_make(call, is_lost ? HAL_ERROR_DEVICE_LOST : HAL_OK);
    return true;
}

static hal_status call_advance(hal_host_fence *fence, bool repeats, bool *signaled)
{
    (void)repeats;
    *signaled = call_is_due((host_call *)fence);
    return HAL_OK;
}

/* The batch of a fence that was not signaled was dropped. */
static void call_destroy(hal_host_fence *fence)
{
    call_make((host_call *)fence, HAL_ERROR_INVALID_STATE);
    free(fence);
}

static bool detached_poll(hal_progress *progress)
{
    return call_is_due(call_of(progress));
}

static void detached_end(hal_progress *progress)
{
    free(call_of(progress));
}

static hal_status host_call_record(hal_queue *queue, hal_host_function function, void *user,
                                   uint32_t flags)
{
    HAL_TRY(hal_queue_check(queue, "hal_queue_host_call"));
    if (!function || (flags & ~(uint32_t)HAL_HOST_CALL_DETACHED)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_host_call: expected a function and flags of HAL_HOST_CALL_*, "
                        "got %s and 0x%x",
                        function ? "one" : "null", flags);
    }
    host_call *call = calloc(1, sizeof *call);
    if (!call) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_host_call: no host memory");
    }
    hal_point point = {0};
    const hal_status status = hal_flush_waits(queue, &point);
    if (status != HAL_OK) {
        free(call);
        return status;
    }
    call->timeline = &queue->timeline;
    call->value = point.value;
    call->function = function;
    call->user = user;
    if (flags & HAL_HOST_CALL_DETACHED) {
        call->progress.poll = detached_poll;
        call->progress.end = detached_end;
        hal_progress_add(&call->progress);
    } else {
        call->fence =
            (hal_host_fence){.advance = call_advance, .destroy = call_destroy, .policy = &policy};
        queue->recorder.recording->fence = &call->fence;
    }
    return HAL_OK;
}

hal_status hal_queue_host_call(hal_queue *queue, hal_host_function function, void *user,
                               uint32_t flags)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_host_call");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue,
                                             host_call_record(queue, function, user, flags))
                            : status;
}
