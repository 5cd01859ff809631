/* Points: how a queue knows, and others wait for, what it has reached.
 *
 * After each batch the stream writes the batch's value to a counter in the host's memory, which a
 * wait only has to read, and records an event, for other queues and for the device's time. Where a
 * stream cannot write, the events alone tell. */
#include "pinned.h"

#include <kit/clock.h>
#include <string.h>
#include <time.h>

enum { COUNTER_BYTES = 64 };
enum { LOOK_AT_DRIVER = 1 << 10 }; /* reads of the counter between questions to the driver */

static const uint64_t spin_ns = 10000000; /* from then on a wait sleeps between looks */

/* An event is taken again when the batch that it stood for has ended. */
static hal_status await_slot(hal_plugin_queue *queue, uint64_t value)
{
    return value > CUDA_EVENTS ? cuda_queue_wait(queue, value - CUDA_EVENTS, UINT64_MAX) : HAL_OK;
}

static void raise_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t known = atomic_load(&queue->reached);
    while (known < value && !atomic_compare_exchange_weak(&queue->reached, &known, value)) {
    }
}

/* Whether the queue has reached a value. With `ask` the driver is asked too, which is where errors
 * of running kernels come to light. */
static hal_status look(hal_plugin_queue *queue, uint64_t value, bool ask)
{
    if (queue->counter != NULL) {
        const uint64_t reached = *queue->counter;
        atomic_thread_fence(memory_order_acquire);
        if (reached >= value) {
            raise_reached(queue, reached);
            return HAL_OK;
        }
    }
    /* An event that was taken for a later batch says nothing of its own, which has ended. */
    if (atomic_load(&queue->reached) >= value) {
        return HAL_OK;
    }
    const cuda_event event = queue->events[value % CUDA_EVENTS];
    if (!ask || event == NULL) {
        return HAL_ERROR_TIMEOUT;
    }
    hal_status status = cuda_enter(queue->device);
    if (status != HAL_OK) {
        return status;
    }
    const cuda_result result = cuda_functions()->cuEventQuery(event);
    cuda_leave();
    if (result == CUDA_NOT_READY) {
        return atomic_load(&queue->reached) >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
    }
    if (result == 0) {
        raise_reached(queue, value);
    }
    return cuda_failed(result, "waiting for a batch");
}

static void pause_thread(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The counter runs ahead of the event behind it by a moment, and the driver has no time of an event
 * that is still to come. */
static hal_status elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                          uint64_t *nanoseconds)
{
    const cuda_driver *cu = cuda_functions();
    const cuda_event last = queue->events[second % CUDA_EVENTS];
    float milliseconds = 0;
    cuda_result result;
    while ((result = cu->cuEventQuery(last)) == CUDA_NOT_READY) {
        pause_thread();
    }
    if (result == 0) {
        result = cu->cuEventElapsedTime(&milliseconds, queue->events[first % CUDA_EVENTS], last);
    }
    *nanoseconds = result == 0 && milliseconds > 0 ? (uint64_t)((double)milliseconds * 1e6) : 0;
    return cuda_failed(result, "reading the time between two points");
}

hal_status cuda_point_begin(hal_plugin_queue *queue)
{
    void *memory = NULL;
    if (!queue->device->stream_writes) {
        return HAL_OK;
    }
    const hal_status status =
        cuda_failed(cuda_pin(queue->device, COUNTER_BYTES, &memory, &queue->counter_address),
                    "making a queue's counter");
    if (status == HAL_OK) {
        memset(memory, 0, COUNTER_BYTES);
        queue->counter = memory;
    }
    return status;
}

void cuda_point_end(hal_plugin_queue *queue)
{
    for (uint32_t i = 0; i < CUDA_EVENTS; i++) {
        if (queue->events[i] != NULL) {
            cuda_functions()->cuEventDestroy_v2(queue->events[i]);
        }
    }
    if (queue->counter != NULL) {
        cuda_unpin(queue->device, (void *)(uintptr_t)queue->counter);
    }
}

hal_status cuda_point_prepare(hal_plugin_queue *queue, uint64_t value)
{
    cuda_event *event = &queue->events[value % CUDA_EVENTS];
    hal_status status = await_slot(queue, value);
    if (status == HAL_OK && *event == NULL) {
        status = cuda_failed(cuda_functions()->cuEventCreate(event, 0), "making an event");
    }
    return status;
}

/* The counter comes first, since a timed event takes the device more than a microsecond. Nothing is
 * left that can fail while the device is well: an error means that it is lost. */
hal_status cuda_point_make(hal_plugin_queue *queue, uint64_t value)
{
    const cuda_driver *cu = cuda_functions();
    cuda_result result = 0;
    if (queue->counter != NULL) {
        result = cu->cuStreamWriteValue64_v2(queue->stream, queue->counter_address, value, 0);
    }
    if (result == 0) {
        result = cu->cuEventRecord(queue->events[value % CUDA_EVENTS], queue->stream);
    }
    if (result != 0) {
        cuda_failed(result, "ending a batch");
        return HAL_ERROR_DEVICE_LOST;
    }
    atomic_store(&queue->submitted, value);
    return HAL_OK;
}

/* Lets the queue's stream wait for other queues. An event that has been taken for a later value
 * needs no waiting: its own was reached before. */
hal_status cuda_point_await(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                            uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        hal_plugin_queue *other = waits[i].queue;
        if (atomic_load(&other->reached) < waits[i].value) {
            status = cuda_failed(cuda_functions()->cuStreamWaitEvent(
                                     queue->stream, other->events[waits[i].value % CUDA_EVENTS], 0),
                                 "waiting for another queue");
        }
    }
    return status;
}

hal_status cuda_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (atomic_load(&queue->reached) >= value) {
        return HAL_OK;
    }
    hal_status status = look(queue, value, timeout_ns == 0);
    if (status != HAL_ERROR_TIMEOUT || timeout_ns == 0) {
        return status;
    }
    const uint64_t start = kit_clock_ns();
    for (uint32_t looks = 1; status == HAL_ERROR_TIMEOUT; looks++) {
        const bool ask = queue->counter == NULL || looks % LOOK_AT_DRIVER == 0;
        status = look(queue, value, ask);
        if (status != HAL_ERROR_TIMEOUT || !ask) {
            pause_thread();
            continue;
        }
        const uint64_t waited = kit_clock_ns() - start;
        if (waited >= timeout_ns) {
            break;
        }
        if (waited > spin_ns) {
            nanosleep(&(struct timespec){0, 20000}, NULL);
        }
    }
    return status;
}

hal_status cuda_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                              uint64_t *nanoseconds)
{
    const uint64_t reached = atomic_load(&queue->reached),
                   submitted = atomic_load(&queue->submitted);
    *nanoseconds = 0;
    if (first > reached || second > reached || first > second || first == 0 ||
        first + CUDA_EVENTS <= submitted) {
        return cuda_fail(HAL_ERROR_INVALID_ARGUMENT,
                         "cuda queue: the time from point %llu to %llu is not known; it has "
                         "reached %llu and remembers the last %d submitted points",
                         (unsigned long long)first, (unsigned long long)second,
                         (unsigned long long)reached, (int)CUDA_EVENTS);
    }
    hal_status status = cuda_enter(queue->device);
    if (status == HAL_OK) {
        status = elapsed(queue, first, second, nanoseconds);
        cuda_leave();
    }
    return status;
}
