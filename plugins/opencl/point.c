/* Points: the events of a queue's batches, waiting for them, and the time between them. Called by
 * queue.c; entries of the plugin's table. */
#include "opencl_plugin.h"
#include "quirks.h"

#include <kit/clock.h>
#include <time.h>

/* OpenCL has no wait with a time limit. Such waits poll: without sleeping at first, then with
 * longer and longer sleeps. */
enum { SPIN_NS = 50000, MAX_SLEEP_NS = 500000 };

/* The event of a value, with a reference; null when it was released or not submitted. */
static cl_event event_retain(hal_plugin_queue *queue, uint64_t value)
{
    cl_event event = NULL;
    pthread_mutex_lock(&queue->lock);
    const opencl_point *point = &queue->points[value % OPENCL_POINTS];
    if (point->value == value && point->event != NULL) {
        event = point->event;
        cl.clRetainEvent(event);
    }
    pthread_mutex_unlock(&queue->lock);
    return event;
}

/* After a command failed while it ran, the device cannot be used. */
static hal_status fail_lost(const hal_plugin_queue *queue, cl_int error)
{
    return opencl_fail(HAL_ERROR_DEVICE_LOST,
                       "%s: a command failed while it ran: %s (%d); open the device again",
                       queue->device->card->info.name, opencl_error_name(error), (int)error);
}

/* The newest batch is waited for by clFinish, which drivers return from earlier than from a wait
 * for an event. */
static hal_status event_wait(hal_plugin_queue *queue, cl_event event, uint64_t value)
{
    const bool by_event = (queue->device->card->quirks & OPENCL_QUIRK_EVENT_WAIT) != 0;
    const bool newest = !by_event && atomic_load(&queue->submitted) == value;
    cl_int state = CL_QUEUED;
    cl_int error = newest ? cl.clFinish(queue->commands) : CL_SUCCESS;
    if (newest && error == CL_SUCCESS) {
        error =
            cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    }
    if (error == CL_SUCCESS && state > CL_COMPLETE) {
        error = cl.clWaitForEvents(1, &event);
        state = CL_COMPLETE;
    }
    return error == CL_SUCCESS && state == CL_COMPLETE
               ? HAL_OK
               : fail_lost(queue, error != CL_SUCCESS ? error : state);
}

static hal_status event_poll(hal_plugin_queue *queue, cl_event event, uint64_t timeout_ns)
{
    const uint64_t start = kit_clock_ns();
    uint64_t pause = 1000;
    for (;;) {
        cl_int state = CL_QUEUED;
        const cl_int error =
            cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (error != CL_SUCCESS || state < 0) {
            return fail_lost(queue, error != CL_SUCCESS ? error : state);
        }
        if (state == CL_COMPLETE) {
            return HAL_OK;
        }
        const uint64_t passed = kit_clock_ns() - start;
        if (passed >= timeout_ns) {
            return HAL_ERROR_TIMEOUT;
        }
        if (passed > SPIN_NS) {
            const uint64_t left = timeout_ns - passed;
            const struct timespec time = {.tv_nsec = (long)(pause < left ? pause : left)};
            nanosleep(&time, NULL);
            pause = 2 * pause < MAX_SLEEP_NS ? 2 * pause : MAX_SLEEP_NS;
        }
    }
}

static void queue_raise_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t reached = atomic_load(&queue->reached);
    while (reached < value && !atomic_compare_exchange_weak(&queue->reached, &reached, value)) {
    }
}

/* Releases the events up to a value, where nobody can ask for their times: some drivers keep the
 * memory of a command as long as its event. */
static void events_release_to(hal_plugin_queue *queue, uint64_t value)
{
    pthread_mutex_lock(&queue->lock);
    const uint64_t oldest = value > OPENCL_POINTS ? value - OPENCL_POINTS : 0;
    uint64_t at = queue->released > oldest ? queue->released : oldest;
    while (at < value) {
        opencl_point *point = &queue->points[++at % OPENCL_POINTS];
        if (point->value == at && point->event != NULL) {
            cl.clReleaseEvent(point->event);
            point->event = NULL;
        }
    }
    queue->released = at > queue->released ? at : queue->released;
    pthread_mutex_unlock(&queue->lock);
}

hal_status opencl_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                               uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        cl_event event = NULL;
        if (waits[i].queue != queue && atomic_load(&waits[i].queue->reached) < waits[i].value) {
            event = event_retain(waits[i].queue, waits[i].value);
        }
        if (event != NULL) {
            const cl_int error = cl.clEnqueueBarrierWithWaitList(queue->commands, 1, &event, NULL);
            cl.clReleaseEvent(event);
            status = error == CL_SUCCESS
                         ? HAL_OK
                         : opencl_fail_result(error, "clEnqueueBarrierWithWaitList");
        }
    }
    return status;
}

hal_status opencl_point_add(hal_plugin_queue *queue, uint64_t value, cl_event event)
{
    opencl_point *point = &queue->points[value % OPENCL_POINTS];
    hal_status status = HAL_OK;
    if (point->event != NULL) { /* the older point is reached before its slot is reused */
        cl.clFlush(queue->commands);
        status = opencl_queue_wait(queue, point->value, UINT64_MAX);
    }
    pthread_mutex_lock(&queue->lock);
    cl_event old = point->event;
    *point = (opencl_point){.value = value, .event = event};
    pthread_mutex_unlock(&queue->lock);
    if (old != NULL) {
        cl.clReleaseEvent(old);
    }
    return status;
}

void opencl_point_destroy_all(hal_plugin_queue *queue)
{
    for (uint32_t i = 0; i < OPENCL_POINTS; i++) {
        if (queue->points[i].event != NULL) {
            cl.clReleaseEvent(queue->points[i].event);
        }
    }
}

hal_status opencl_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return HAL_OK;
    }
    hal_status status = opencl_device_check(queue->device);
    if (status != HAL_OK) {
        return status;
    }
    cl_event event = event_retain(queue, value);
    if (event == NULL) {
        const bool reached = atomic_load(&queue->reached) >= value;
        return reached ? HAL_OK : HAL_ERROR_TIMEOUT; /* nothing was submitted for it yet */
    }
    if (timeout_ns == UINT64_MAX) {
        status = event_wait(queue, event, value);
    } else {
        status = event_poll(queue, event, timeout_ns);
    }
    cl.clReleaseEvent(event);
    if (status == HAL_OK) {
        queue_raise_reached(queue, value);
        if (!queue->device->card->profiling) {
            events_release_to(queue, value);
        }
    }
    return status;
}

hal_status opencl_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    const uint64_t values[2] = {first, second};
    cl_ulong ends[2] = {0, 0};
    *nanoseconds = 0;
    for (uint32_t i = 0; i < 2; i++) {
        cl_event event = event_retain(queue, values[i]);
        if (event == NULL) {
            return opencl_fail(
                HAL_ERROR_INVALID_ARGUMENT,
                "opencl: queue_elapsed: points: expected submitted ones among the last %d, "
                "got %llu",
                (int)OPENCL_POINTS, (unsigned long long)values[i]);
        }
        const cl_int error = cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END,
                                                        sizeof ends[i], &ends[i], NULL);
        cl.clReleaseEvent(event);
        if (error != CL_SUCCESS) {
            return opencl_fail_result(error, "clGetEventProfilingInfo");
        }
    }
    *nanoseconds = ends[1] > ends[0] ? ends[1] - ends[0] : 0;
    return HAL_OK;
}
