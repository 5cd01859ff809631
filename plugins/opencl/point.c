/* Points: the marks of a queue, waiting for them, and the time between them.
 *
 * A mark is an event at the end of a batch: that of its last command, or a marker. On queues
 * without profiling most batches have none, since drivers take long for an event: a wait for their
 * value is one for the next mark, for the end of the queue, or for a marker. */
#include "point.h"

#include "fence.h"

#include "quirks.h"

#include <kit/clock.h>
#include <time.h>

/* OpenCL has no wait with a time limit. Such waits poll: without sleeping at first, then with
 * longer and longer sleeps. */
enum { SPIN_NS = 50000, MAX_SLEEP_NS = 500000 };

/* The place among the kept marks of the first one at or after a value; their count where none is.
 * The caller holds the lock. */
static uint32_t mark_find(const hal_plugin_queue *queue, uint64_t value)
{
    uint32_t low = 0, high = queue->mark_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (queue->marks[(queue->mark_first + middle) % OPENCL_MARKS].value < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static opencl_mark *mark_at(hal_plugin_queue *queue, uint32_t place)
{
    return &queue->marks[(queue->mark_first + place) % OPENCL_MARKS];
}

/* The caller holds the lock, and there is room. */
static void mark_append(hal_plugin_queue *queue, uint64_t value, cl_event event)
{
    const uint64_t number = atomic_fetch_add(&queue->marks_made, 1) + 1;
    *mark_at(queue, queue->mark_count++) =
        (opencl_mark){.value = value, .number = number, .event = event};
}

/* Copies the first mark at or after a value, with a reference to its event, which is null where
 * there is none. */
static opencl_mark mark_retain(hal_plugin_queue *queue, uint64_t value)
{
    opencl_mark mark = {0};
    pthread_mutex_lock(&queue->lock);
    const uint32_t place = mark_find(queue, value);
    if (place < queue->mark_count) {
        mark = *mark_at(queue, place);
        cl.clRetainEvent(mark.event);
    }
    pthread_mutex_unlock(&queue->lock);
    return mark;
}

/* After a command failed while it ran, the device cannot be used. */
static hal_status fail_lost(const hal_plugin_queue *queue, cl_int error)
{
    atomic_store(&queue->device->lost, true);
    return kit_fail(HAL_ERROR_DEVICE_LOST,
                    "%s: a command failed while it ran: %s (%d); open the device again",
                    queue->device->card->info.name, opencl_error_name(error), (int)error);
}

/* TIMEOUT where the event has not been reached. */
static hal_status event_look(const hal_plugin_queue *queue, cl_event event)
{
    cl_int state = CL_QUEUED;
    const cl_int error =
        cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (error != CL_SUCCESS || state < 0) {
        return fail_lost(queue, error != CL_SUCCESS ? error : state);
    }
    return state == CL_COMPLETE ? HAL_OK : HAL_ERROR_TIMEOUT;
}

/* Nanoseconds from `start` on, for which the clock is read; UINT64_MAX: without limit. */
static uint64_t time_left(uint64_t start, uint64_t timeout_ns)
{
    const uint64_t passed = timeout_ns == UINT64_MAX ? 0 : kit_clock_ns() - start;
    return passed < timeout_ns ? timeout_ns - passed : 0;
}

/* Looks once more when the time is over, as the thread may not have run meanwhile. */
static hal_status event_poll(const hal_plugin_queue *queue, cl_event event, uint64_t timeout_ns)
{
    const uint64_t start = kit_clock_ns();
    uint64_t pause = 1000;
    for (;;) {
        const uint64_t left = time_left(start, timeout_ns);
        const hal_status status = event_look(queue, event);
        if (status != HAL_ERROR_TIMEOUT || left == 0) {
            return status;
        }
        if (timeout_ns - left > SPIN_NS) {
            const struct timespec time = {.tv_nsec = (long)(pause < left ? pause : left)};
            nanosleep(&time, NULL);
            pause = 2 * pause < MAX_SLEEP_NS ? 2 * pause : MAX_SLEEP_NS;
        }
    }
}

static hal_status event_wait(const hal_plugin_queue *queue, cl_event event, uint64_t timeout_ns)
{
    hal_status status = event_look(queue, event);
    if (status != HAL_ERROR_TIMEOUT || timeout_ns == 0) {
        return status;
    }
    if (timeout_ns < UINT64_MAX) {
        return event_poll(queue, event, timeout_ns);
    }
    const cl_int error = cl.clWaitForEvents(1, &event);
    return error == CL_SUCCESS ? HAL_OK : fail_lost(queue, error);
}

/* OpenCL wants a flush before another queue waits for a mark, and nothing starts without it but on
 * eager drivers. */
static void mark_flush(hal_plugin_queue *queue, const opencl_mark *mark)
{
    if (mark->number > atomic_load(&queue->marks_flushed)) {
        opencl_point_flush(queue);
    }
}

static void queue_raise_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t reached = atomic_load(&queue->reached);
    while (reached < value && !atomic_compare_exchange_weak(&queue->reached, &reached, value)) {
    }
}

/* The caller holds the lock. */
static void mark_release_oldest(hal_plugin_queue *queue)
{
    cl.clReleaseEvent(mark_at(queue, 0)->event);
    queue->mark_first = (queue->mark_first + 1) % OPENCL_MARKS;
    queue->mark_count--;
}

/* Releases the events up to a reached value, where nobody can ask for their times: some drivers
 * keep the memory of a command as long as its event. A failure of their batches is noticed here. */
static hal_status marks_release_to(hal_plugin_queue *queue, uint64_t value)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&queue->lock);
    while (queue->mark_count > 0 && mark_at(queue, 0)->value <= value) {
        if (event_look(queue, mark_at(queue, 0)->event) == HAL_ERROR_DEVICE_LOST) {
            status = HAL_ERROR_DEVICE_LOST; /* the host has the message */
        }
        mark_release_oldest(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* Takes the lock when there is room for a mark, for which the oldest one may have to be reached.
 * After a failure or TIMEOUT the lock is not held. */
static hal_status marks_lock_with_room(hal_plugin_queue *queue, uint64_t timeout_ns)
{
    const uint64_t start = timeout_ns < UINT64_MAX ? kit_clock_ns() : 0;
    pthread_mutex_lock(&queue->lock);
    while (queue->mark_count == OPENCL_MARKS) {
        const opencl_mark oldest = *mark_at(queue, 0);
        cl.clRetainEvent(oldest.event);
        pthread_mutex_unlock(&queue->lock);
        mark_flush(queue, &oldest);
        const hal_status status = event_wait(queue, oldest.event, time_left(start, timeout_ns));
        cl.clReleaseEvent(oldest.event);
        if (status != HAL_OK) {
            return status;
        }
        queue_raise_reached(queue, oldest.value);
        pthread_mutex_lock(&queue->lock);
        if (queue->mark_count == OPENCL_MARKS && mark_at(queue, 0)->number == oldest.number) {
            mark_release_oldest(queue);
        }
    }
    return HAL_OK;
}

/* Marks the end of all submitted batches, unless it has a mark. The copy has a reference to the
 * event. */
static hal_status mark_create(hal_plugin_queue *queue, uint64_t timeout_ns, opencl_mark *mark)
{
    HAL_TRY(marks_lock_with_room(queue, timeout_ns));
    const uint64_t value = atomic_load(&queue->submitted);
    cl_int error = CL_SUCCESS;
    if (queue->mark_count == 0 || mark_at(queue, queue->mark_count - 1)->value < value) {
        cl_event event = NULL;
        error = cl.clEnqueueMarkerWithWaitList(queue->commands, 0, NULL, &event);
        if (error == CL_SUCCESS) {
            mark_append(queue, value, event);
        }
    }
    if (error == CL_SUCCESS) {
        *mark = *mark_at(queue, queue->mark_count - 1);
        cl.clRetainEvent(mark->event);
    }
    pthread_mutex_unlock(&queue->lock);
    return error == CL_SUCCESS ? HAL_OK : opencl_fail_result(error, "clEnqueueMarkerWithWaitList");
}

/* A wait for a value that has no mark and is not the newest one is one for later batches, too: from
 * then on each batch is a mark. */
static void queue_note_wait(hal_plugin_queue *queue, uint64_t value, const opencl_mark *mark)
{
    if (mark->value != value && value != atomic_load(&queue->submitted) &&
        (!mark->event || event_look(queue, mark->event) == HAL_ERROR_TIMEOUT)) {
        atomic_store(&queue->marks_all, true);
    }
}

void opencl_point_flush(hal_plugin_queue *queue)
{
    const uint64_t made = atomic_load(&queue->marks_made);
    cl.clFlush(queue->commands);
    uint64_t flushed = atomic_load(&queue->marks_flushed);
    while (flushed < made && !atomic_compare_exchange_weak(&queue->marks_flushed, &flushed, made)) {
    }
}

hal_status opencl_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                               uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        hal_plugin_queue *other = waits[i].queue;
        if (waits[i].kind == HAL_WAIT_FENCE) {
            status = opencl_fence_follow(queue, waits[i].fence, waits[i].value);
            continue;
        }
        if (other == queue || atomic_load(&other->reached) >= waits[i].value) {
            continue;
        }
        opencl_mark mark = mark_retain(other, waits[i].value);
        queue_note_wait(other, waits[i].value, &mark);
        if (!mark.event) {
            status = mark_create(other, UINT64_MAX, &mark);
        }
        if (status == HAL_OK) {
            mark_flush(other, &mark);
            const cl_int error =
                cl.clEnqueueBarrierWithWaitList(queue->commands, 1, &mark.event, NULL);
            cl.clReleaseEvent(mark.event);
            status = error == CL_SUCCESS
                         ? HAL_OK
                         : opencl_fail_result(error, "clEnqueueBarrierWithWaitList");
        }
    }
    return status;
}

hal_status opencl_point_mark(hal_plugin_queue *queue)
{
    opencl_mark mark;
    if (atomic_load(&queue->reached) >= atomic_load(&queue->submitted)) {
        return HAL_OK;
    }
    const hal_status status = mark_create(queue, UINT64_MAX, &mark);
    if (status == HAL_OK) {
        cl.clReleaseEvent(mark.event);
    }
    return status;
}

hal_status opencl_point_add(hal_plugin_queue *queue, uint64_t value, cl_event event)
{
    if (!event) {
        atomic_store(&queue->submitted, value);
        return HAL_OK;
    }
    const hal_status status = marks_lock_with_room(queue, UINT64_MAX);
    if (status != HAL_OK) {
        cl.clReleaseEvent(event);
        return status;
    }
    mark_append(queue, value, event);
    atomic_store(&queue->submitted, value);
    pthread_mutex_unlock(&queue->lock);
    return HAL_OK;
}

void opencl_point_destroy_all(hal_plugin_queue *queue)
{
    while (queue->mark_count > 0) {
        mark_release_oldest(queue);
    }
}

/* The end of all submitted batches is waited for by clFinish, which drivers return from earlier
 * than from a wait for an event. */
static hal_status queue_finish(hal_plugin_queue *queue, const opencl_mark *mark)
{
    const uint64_t submitted = atomic_load(&queue->submitted);
    const cl_int error = cl.clFinish(queue->commands);
    hal_status status = error == CL_SUCCESS ? HAL_OK : fail_lost(queue, error);
    if (status == HAL_OK && mark->event) {
        status = event_wait(queue, mark->event, UINT64_MAX);
    }
    if (status == HAL_OK) {
        queue_raise_reached(queue, submitted);
    }
    return status;
}

/* Waits for a mark at or after a value, or for all that was submitted. */
static hal_status mark_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const bool by_event = (queue->device->card->quirks & OPENCL_QUIRK_EVENT_WAIT) != 0;
    const bool limited = timeout_ns < UINT64_MAX;
    const uint64_t start = limited ? kit_clock_ns() : 0;
    opencl_mark mark = mark_retain(queue, value);
    if (atomic_load(&queue->reached) >= value) { /* and its mark may be released since */
        if (mark.event) {
            cl.clReleaseEvent(mark.event);
        }
        return HAL_OK;
    }
    queue_note_wait(queue, value, &mark);
    const bool newest = !mark.event || mark.value == atomic_load(&queue->submitted);
    const bool finishes = !limited && newest && !by_event;
    hal_status status = HAL_OK;
    uint64_t least_ns = 0;
    if (!mark.event && !finishes) {
        status = mark_create(queue, timeout_ns, &mark);
        least_ns = SPIN_NS; /* drivers take a moment for a marker after work that has ended */
    }
    if (status == HAL_OK && finishes) {
        status = queue_finish(queue, &mark);
    } else if (status == HAL_OK) {
        const uint64_t left_ns = time_left(start, timeout_ns);
        if (limited || least_ns > 0) {
            mark_flush(queue, &mark);
        }
        status = event_wait(queue, mark.event, left_ns > least_ns ? left_ns : least_ns);
    }
    if (mark.event) {
        cl.clReleaseEvent(mark.event);
    }
    if (status == HAL_OK) {
        queue_raise_reached(queue, mark.value);
    }
    return status;
}

/* Of a value that was reached. */
static hal_status reached_check(const hal_plugin_queue *queue, uint64_t value)
{
    const uint64_t fails_from = atomic_load(&queue->fails_from);
    return fails_from != 0 && value >= fails_from ? fail_lost(queue, CL_OUT_OF_RESOURCES)
                                                  : opencl_device_check_lost(queue->device);
}

hal_status opencl_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return reached_check(queue, value);
    }
    HAL_TRY(opencl_device_check(queue->device));
    if (atomic_load(&queue->submitted) < value) {
        return HAL_ERROR_TIMEOUT;
    }
    hal_status status = mark_wait(queue, value, timeout_ns);
    if (status == HAL_OK && !queue->device->card->profiling) {
        status = marks_release_to(queue, atomic_load(&queue->reached));
    }
    return status == HAL_OK ? reached_check(queue, value) : status;
}

hal_status opencl_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    const uint64_t values[2] = {first, second};
    cl_ulong ends[2] = {0, 0};
    *nanoseconds = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const opencl_mark mark = mark_retain(queue, values[i]);
        if (mark.value != values[i]) {
            if (mark.event) {
                cl.clReleaseEvent(mark.event);
            }
            return kit_fail(
                HAL_ERROR_INVALID_ARGUMENT,
                "opencl: queue_elapsed: points: expected submitted ones among the last %d, "
                "got %llu",
                (int)OPENCL_MARKS, (unsigned long long)values[i]);
        }
        const cl_int error = cl.clGetEventProfilingInfo(mark.event, CL_PROFILING_COMMAND_END,
                                                        sizeof ends[i], &ends[i], NULL);
        cl.clReleaseEvent(mark.event);
        if (error != CL_SUCCESS) {
            return opencl_fail_result(error, "clGetEventProfilingInfo");
        }
    }
    *nanoseconds = ends[1] > ends[0] ? ends[1] - ends[0] : 0;
    return HAL_OK;
}
