/* Queues: an in-order queue of the driver, one event for each batch. Entries of the plugin's
 * table. */
#include "opencl.h"

#include <kit/clock.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a wait with a limit looks without sleeping, and how long it sleeps at most between two
 * looks: OpenCL has no wait with a limit. */
enum { SPIN_NS = 50000, LONGEST_SLEEP_NS = 500000 };

/* One more reference to the event of a batch; null when it is forgotten or was not submitted. */
static cl_event event_of(hal_plugin_queue *queue, uint64_t value)
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

/* Nothing of the batch begins before the other queues' batches have ended. */
static hal_status wait_for_others(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                                  uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        cl_event event = NULL;
        if (waits[i].queue != queue && atomic_load(&waits[i].queue->reached) < waits[i].value) {
            event = event_of(waits[i].queue, waits[i].value);
        }
        if (event != NULL) {
            const cl_int error = cl.clEnqueueBarrierWithWaitList(queue->commands, 1, &event, NULL);
            cl.clReleaseEvent(event);
            status = error == CL_SUCCESS ? HAL_OK
                                         : opencl_fail_call(error, "clEnqueueBarrierWithWaitList");
        }
    }
    return status;
}

/* The blocks of kernels that take them from a buffer, one after the other. The queue is in order,
 * so kernels of earlier batches have read what is overwritten here. */
static hal_status stage_arguments(hal_plugin_queue *queue, const hal_batch *batch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->in_buffer) {
            bytes += OPENCL_ARGUMENT_BYTES;
        }
    }
    if (bytes == 0) {
        return HAL_OK;
    }
    cl_int error = CL_SUCCESS;
    if (bytes > queue->argument_capacity) {
        cl_mem larger =
            cl.clCreateBuffer(queue->device->context, CL_MEM_READ_ONLY, 2 * bytes, NULL, &error);
        if (larger == NULL) {
            return opencl_fail_call(error, "%llu bytes for the arguments of a batch",
                                    (unsigned long long)(2 * bytes));
        }
        if (queue->arguments != NULL) {
            cl.clReleaseMemObject(queue->arguments);
        }
        queue->arguments = larger;
        queue->argument_capacity = 2 * bytes;
    }
    uint8_t *blocks = calloc(1, bytes);
    if (blocks == NULL) {
        return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl queue: no host memory for arguments");
    }
    uint8_t *at = blocks;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->in_buffer) {
            opencl_fill_block(batch, command, at);
            at += OPENCL_ARGUMENT_BYTES;
        }
    }
    error = cl.clEnqueueWriteBuffer(queue->commands, queue->arguments, CL_TRUE, 0, bytes, blocks, 0,
                                    NULL, NULL);
    free(blocks);
    return error == CL_SUCCESS ? HAL_OK
                               : opencl_fail_call(error, "clEnqueueWriteBuffer of arguments");
}

/* `*event` is that of the last command. */
static hal_status run_commands(hal_plugin_queue *queue, const hal_batch *batch, cl_event *event)
{
    uint64_t offset = 0;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK; i++) {
        const hal_command *command = &batch->commands[i];
        const bool last = i + 1 == batch->command_count;
        status = opencl_run_command(queue, batch, command, offset, last ? event : NULL);
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->in_buffer) {
            offset += OPENCL_ARGUMENT_BYTES;
        }
    }
    return status;
}

/* The point that lay there before has to be reached before it is forgotten. */
static hal_status note_point(hal_plugin_queue *queue, uint64_t value, cl_event event)
{
    opencl_point *point = &queue->points[value % OPENCL_POINTS];
    hal_status status = HAL_OK;
    if (point->event != NULL) {
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

/* A command that failed while it ran: nothing later on the device can be trusted. */
static hal_status lost(const hal_plugin_queue *queue, cl_int error)
{
    return opencl_fail(HAL_ERROR_DEVICE_LOST,
                       "%s: a command failed while it ran: %s (%d); the device has to be opened "
                       "anew",
                       queue->device->card->info.name, opencl_error_name(error), (int)error);
}

/* Drivers are quicker to say that a queue is done than that an event is. */
static hal_status wait_without_limit(hal_plugin_queue *queue, cl_event event, uint64_t value)
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
               : lost(queue, error != CL_SUCCESS ? error : state);
}

/* Looks at an event until a limit: without pause at first, then with longer and longer ones. */
static hal_status watch(hal_plugin_queue *queue, cl_event event, uint64_t timeout_ns)
{
    const uint64_t start = kit_clock_ns();
    uint64_t pause = 1000;
    for (;;) {
        cl_int state = CL_QUEUED;
        const cl_int error =
            cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (error != CL_SUCCESS || state < 0) {
            return lost(queue, error != CL_SUCCESS ? error : state);
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
            pause = 2 * pause < LONGEST_SLEEP_NS ? 2 * pause : LONGEST_SLEEP_NS;
        }
    }
}

static void note_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t reached = atomic_load(&queue->reached);
    while (reached < value && !atomic_compare_exchange_weak(&queue->reached, &reached, value)) {
    }
}

/* Events that nobody will ask for times: some drivers keep the memory of a command as long as its
 * event. */
static void forget_reached(hal_plugin_queue *queue, uint64_t value)
{
    pthread_mutex_lock(&queue->lock);
    const uint64_t oldest = value > OPENCL_POINTS ? value - OPENCL_POINTS : 0;
    uint64_t at = queue->forgotten > oldest ? queue->forgotten : oldest;
    while (at < value) {
        opencl_point *point = &queue->points[++at % OPENCL_POINTS];
        if (point->value == at && point->event != NULL) {
            cl.clReleaseEvent(point->event);
            point->event = NULL;
        }
    }
    queue->forgotten = at > queue->forgotten ? at : queue->forgotten;
    pthread_mutex_unlock(&queue->lock);
}

hal_status opencl_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    const hal_status status = opencl_device_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl queue: no host memory");
    }
    cl_int error = CL_SUCCESS;
    made->device = device;
    made->commands =
        cl.clCreateCommandQueue(device->context, device->card->device,
                                device->card->profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
    if (made->commands == NULL) {
        free(made);
        return opencl_fail_call(error, "%s: clCreateCommandQueue", device->card->info.name);
    }
    made->serial = atomic_fetch_add(&device->serial, 1) + 1;
    pthread_mutex_init(&made->lock, NULL);
    *queue = made;
    return HAL_OK;
}

void opencl_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    opencl_kernel_leave(device, queue->serial);
    if (opencl_device_check(device) == HAL_OK) {
        for (uint32_t i = 0; i < OPENCL_POINTS; i++) {
            if (queue->points[i].event != NULL) {
                cl.clReleaseEvent(queue->points[i].event);
            }
        }
        if (queue->arguments != NULL) {
            cl.clReleaseMemObject(queue->arguments);
        }
        cl.clReleaseCommandQueue(queue->commands);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

hal_status opencl_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    cl_event event = NULL;
    hal_status status = opencl_device_check(queue->device);
    if (status == HAL_OK && wait_count > 0) {
        status = wait_for_others(queue, waits, wait_count);
    }
    if (status == HAL_OK) {
        status = stage_arguments(queue, batch);
    }
    if (status == HAL_OK) {
        status = run_commands(queue, batch, &event);
    }
    if (status == HAL_OK && event == NULL) {
        const cl_int error = cl.clEnqueueMarkerWithWaitList(queue->commands, 0, NULL, &event);
        if (error != CL_SUCCESS) {
            status = opencl_fail_call(error, "clEnqueueMarkerWithWaitList");
        }
    }
    if (status == HAL_OK) {
        status = note_point(queue, value, event);
        atomic_store(&queue->submitted, value);
    }
    cl.clFlush(queue->commands);
    return status;
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
    cl_event event = event_of(queue, value);
    if (event == NULL) {
        const bool reached = atomic_load(&queue->reached) >= value;
        return reached ? HAL_OK : HAL_ERROR_TIMEOUT; /* nothing was submitted for it yet */
    }
    if (timeout_ns == UINT64_MAX) {
        status = wait_without_limit(queue, event, value);
    } else {
        status = watch(queue, event, timeout_ns);
    }
    cl.clReleaseEvent(event);
    if (status == HAL_OK) {
        note_reached(queue, value);
        if (!queue->device->card->profiling) {
            forget_reached(queue, value);
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
        cl_event event = event_of(queue, values[i]);
        if (event == NULL) {
            return opencl_fail(HAL_ERROR_INVALID_ARGUMENT,
                               "opencl queue: the end of point %llu is not known; it remembers the "
                               "last %d points",
                               (unsigned long long)values[i], (int)OPENCL_POINTS);
        }
        const cl_int error = cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END,
                                                        sizeof ends[i], &ends[i], NULL);
        cl.clReleaseEvent(event);
        if (error != CL_SUCCESS) {
            return opencl_fail_call(error, "clGetEventProfilingInfo");
        }
    }
    *nanoseconds = ends[1] > ends[0] ? ends[1] - ends[0] : 0;
    return HAL_OK;
}
