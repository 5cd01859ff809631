/* Points: the values that a queue reaches, and waiting for them.
 *
 * After each batch the stream records an event, which other queues wait for and which has the
 * device's time where hal may ask for it. Before it, it writes the batch's value to a counter in
 * pinned host memory, which a wait polls without calling the driver. Such a write keeps the device
 * from the next batch for some microseconds. So a batch has one where the queue is idle and the
 * batch before was waited for, as it will be waited for itself; of others, one now and then has it.
 * A wait for the last batch then makes the stream write; a wait for an earlier one, and all waits
 * where streams cannot write, poll the event. */
#include "point.h"

#include "fence.h"

#include <kit/clock.h>
#include <stddef.h>
#include <time.h>

enum { UNCOUNTED_BATCHES = 16 };    /* that nobody waits for, between writes of the counter */
enum { POLLS_PER_QUERY = 1 << 10 }; /* reads of the counter between queries of the driver */

static const uint64_t max_spin_ns = 10000000; /* after this a wait sleeps between polls */

/* Waits until the batch that had the event of this value before has ended. */
static hal_status event_await_free(hal_plugin_queue *queue, uint64_t value)
{
    return value > CUDA_EVENTS ? cuda_queue_wait(queue, value - CUDA_EVENTS, UINT64_MAX) : HAL_OK;
}

/* The event that the last batch with this place among the values has recorded, or records. */
static cuda_event event_of(hal_plugin_queue *queue, uint64_t value)
{
    cuda_batch_event *event = &queue->events[value % CUDA_EVENTS];
    return event->kinds[atomic_load(&event->is_timed)];
}

static void queue_raise_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t known = atomic_load(&queue->reached);
    while (known < value && !atomic_compare_exchange_weak(&queue->reached, &known, value)) {
    }
}

/* OK where the queue has reached a value, else TIMEOUT. With `query` the driver is asked too, which
 * reports the errors of running kernels. */
static hal_status queue_poll(hal_plugin_queue *queue, uint64_t value, bool query)
{
    if (queue->counter) {
        const uint64_t reached = *queue->counter;
        atomic_thread_fence(memory_order_acquire);
        if (reached >= value) {
            queue_raise_reached(queue, reached);
            return HAL_OK;
        }
    }
    /* An event that a later batch reuses is not asked: its own batch has ended. */
    if (atomic_load(&queue->reached) >= value) {
        return HAL_OK;
    }
    const cuda_event event = event_of(queue, value);
    const uint64_t deferred = atomic_load(&queue->deferred);
    if (!query || !event || (deferred != 0 && value >= deferred)) {
        return HAL_ERROR_TIMEOUT;
    }
    HAL_TRY(cuda_context_push(queue->device));
    const cuda_result result = cuda_functions()->cuEventQuery(event);
    cuda_context_pop();
    if (result == CUDA_NOT_READY) {
        return atomic_load(&queue->reached) >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
    }
    if (result == 0) {
        queue_raise_reached(queue, value);
    }
    return cuda_check(result, "waiting for a batch");
}

static void pause_thread(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The counter is written before the event is recorded, and the driver has no time of an event that
 * is not recorded yet: so this polls for it. */
static hal_status events_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                 uint64_t *nanoseconds)
{
    const cuda_driver *cu = cuda_functions();
    const cuda_event from = event_of(queue, first), last = event_of(queue, second);
    float milliseconds = 0;
    cuda_result result;
    while ((result = cu->cuEventQuery(last)) == CUDA_NOT_READY) {
        pause_thread();
    }
    if (result == 0) {
        result = cu->cuEventElapsedTime(&milliseconds, from, last);
    }
    *nanoseconds = result == 0 && milliseconds > 0 ? (uint64_t)((double)milliseconds * 1e6) : 0;
    return cuda_check(result, "reading the time between two points");
}

hal_status cuda_point_prepare(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value)
{
    const bool has_flags = batch->size >= offsetof(hal_batch, flags) + sizeof batch->flags;
    const bool is_timed = !has_flags || !(batch->flags & HAL_BATCH_UNTIMED);
    cuda_batch_event *event = &queue->events[value % CUDA_EVENTS];
    hal_status status = event_await_free(queue, value);
    if (status == HAL_OK && !event->kinds[is_timed]) {
        status = cuda_check(cuda_functions()->cuEventCreate(&event->kinds[is_timed],
                                                            is_timed ? 0 : CUDA_EVENT_UNTIMED),
                            "creating an event");
    }
    if (status == HAL_OK) {
        atomic_store(&event->is_timed, is_timed);
    }
    return status;
}

/* Makes the stream write the counter. The caller holds the lock, so that values increase. */
static cuda_result counter_write(hal_plugin_queue *queue, uint64_t value)
{
    const cuda_result result =
        cuda_functions()->cuStreamWriteValue64_v2(queue->stream, queue->counter_address, value, 0);
    if (result == 0) {
        atomic_store(&queue->counted, value);
    }
    return result;
}

/* The counter comes before the event, which takes the device about a microsecond. Everything was
 * prepared, so an error means that the device is lost. */
hal_status cuda_point_submit(hal_plugin_queue *queue, uint64_t value)
{
    cuda_result result = 0;
    pthread_mutex_lock(&queue->point_lock);
    const uint64_t before = atomic_load(&queue->submitted);
    const bool is_idle =
        atomic_load(&queue->reached) >= before || (queue->counter && *queue->counter >= before);
    const bool awaited = atomic_exchange(&queue->awaited, false);
    if (queue->counter &&
        ((is_idle && awaited) || value - atomic_load(&queue->counted) >= UNCOUNTED_BATCHES)) {
        result = counter_write(queue, value);
    }
    if (result == 0) {
        result = cuda_functions()->cuEventRecord(event_of(queue, value), queue->stream);
    }
    if (result == 0) {
        atomic_store(&queue->submitted, value);
    }
    pthread_mutex_unlock(&queue->point_lock);
    if (result != 0) {
        cuda_check(result, "submitting the point of a batch");
        return HAL_ERROR_DEVICE_LOST;
    }
    return HAL_OK;
}

/* Before a wait: if the value is that of the last batch, its counter is written. */
static hal_status counter_request(hal_plugin_queue *queue, uint64_t value)
{
    if (!queue->counter || atomic_load(&queue->counted) >= value ||
        atomic_load(&queue->submitted) != value) {
        return HAL_OK;
    }
    HAL_TRY(cuda_context_push(queue->device));
    cuda_result result = 0;
    pthread_mutex_lock(&queue->point_lock);
    if (atomic_load(&queue->counted) < atomic_load(&queue->submitted)) {
        result = counter_write(queue, atomic_load(&queue->submitted));
    }
    pthread_mutex_unlock(&queue->point_lock);
    cuda_context_pop();
    return cuda_check(result, "waiting for a batch");
}

hal_status cuda_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                             uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        hal_plugin_queue *other = waits[i].queue;
        if (waits[i].kind == HAL_WAIT_FENCE) {
            status = cuda_fence_follow(queue, waits[i].fence, waits[i].value);
            continue;
        }
        /* An event that a later value reuses would only make the wait longer: its own was
         * reached. */
        if (atomic_load(&other->reached) < waits[i].value) {
            status = cuda_check(cuda_functions()->cuStreamWaitEvent(
                                    queue->stream, event_of(other, waits[i].value), 0),
                                "waiting for another queue");
        }
    }
    return status;
}

hal_status cuda_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (timeout_ns > 0 && value >= atomic_load(&queue->submitted)) {
        atomic_store(&queue->awaited, true);
    }
    if (atomic_load(&queue->reached) >= value) {
        return HAL_OK;
    }
    hal_status status = queue_poll(queue, value, timeout_ns == 0);
    if (status != HAL_ERROR_TIMEOUT || timeout_ns == 0) {
        return status;
    }
    const uint64_t start = kit_clock_ns();
    HAL_TRY(counter_request(queue, value));
    /* A counter that was written for a later batch only would make the wait longer. */
    const bool is_counted = queue->counter && atomic_load(&queue->counted) == value;
    status = HAL_ERROR_TIMEOUT;
    for (uint32_t polls = 1; status == HAL_ERROR_TIMEOUT; polls++) {
        const bool query = !is_counted || polls % POLLS_PER_QUERY == 0;
        status = queue_poll(queue, value, query);
        if (status != HAL_ERROR_TIMEOUT || !query) {
            pause_thread();
            continue;
        }
        const uint64_t waited = kit_clock_ns() - start;
        if (waited >= timeout_ns) {
            break;
        }
        if (waited > max_spin_ns) {
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
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "cuda: queue_elapsed: points: expected reached ones among the last %d, "
                        "got %llu to %llu; the queue has reached %llu",
                        (int)CUDA_EVENTS, (unsigned long long)first, (unsigned long long)second,
                        (unsigned long long)reached);
    }
    if (!atomic_load(&queue->events[first % CUDA_EVENTS].is_timed) ||
        !atomic_load(&queue->events[second % CUDA_EVENTS].is_timed)) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "cuda: queue_elapsed: points: expected batches without HAL_BATCH_UNTIMED, "
                        "got %llu to %llu",
                        (unsigned long long)first, (unsigned long long)second);
    }
    hal_status status = cuda_context_push(queue->device);
    if (status == HAL_OK) {
        status = events_elapsed(queue, first, second, nanoseconds);
        cuda_context_pop();
    }
    return status;
}
