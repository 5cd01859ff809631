/* Points: the command buffers of a queue's batches until their results are read, waiting for them,
 * and the time between them.
 *
 * The result of every command buffer is read, in order. One that failed makes the device lost: its
 * writes are undefined, and those of later batches that read them. */
#include "point.h"

#include <kit/clock.h>
#include <time.h>

/* A wait polls for SPIN_NS before it sleeps, which takes longer than small work. It sleeps for at
 * most SLICE_MS in Metal: a batch that failed may never set its event. */
enum { SPIN_NS = 50000, SLICE_MS = 100, NS_PER_MS = 1000000 };

/* The queue is locked. Later batches of other queues may wait for the failed one. */
static hal_status queue_fail(hal_plugin_queue *queue, const metal_error *error)
{
    atomic_store(&queue->device->lost, true);
    metal_shim_event_set(queue->event, atomic_load(&queue->submitted));
    return metal_fail_commands(queue->device->card->info.name, error);
}

/* Reads the results of the batches that have ended. */
static hal_status queue_collect(hal_plugin_queue *queue)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&queue->lock);
    const uint64_t submitted = atomic_load(&queue->submitted);
    for (uint64_t value = atomic_load(&queue->ended) + 1; value <= submitted; value++) {
        metal_slot *slot = &queue->slots[value % METAL_IN_FLIGHT];
        metal_error error = {0};
        double end = 0;
        if (slot->commands && slot->value == value) {
            const metal_progress progress =
                metal_shim_commands_progress(slot->commands, &end, &error);
            if (progress == METAL_RUNNING) {
                break;
            }
            if ((progress == METAL_FAILED || slot->fails) && status == HAL_OK) {
                status = queue_fail(queue, &error);
            }
            metal_shim_release(slot->commands);
            slot->commands = NULL;
        }
        queue->times[value % METAL_POINTS] = (metal_time){.value = value, .end = end};
        atomic_store(&queue->ended, value);
        if (!atomic_load(&queue->device->lost)) {
            atomic_store_explicit(&queue->reached, value, memory_order_release);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* All queues of the device: a batch may wait for one of another queue that has failed. */
static hal_status device_collect(hal_plugin_device *device)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&device->lock);
    for (hal_plugin_queue *queue = device->queues; queue != NULL; queue = queue->next) {
        const hal_status collected = queue_collect(queue);
        status = status == HAL_OK ? collected : status;
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* The commands of a value, with a reference; null when they have ended. */
static metal_commands *commands_retain(hal_plugin_queue *queue, uint64_t value)
{
    metal_commands *commands = NULL;
    pthread_mutex_lock(&queue->lock);
    const metal_slot *slot = &queue->slots[value % METAL_IN_FLIGHT];
    if (slot->value == value && slot->commands) {
        commands = slot->commands;
        metal_shim_retain(commands);
    }
    pthread_mutex_unlock(&queue->lock);
    return commands;
}

/* Sleeps until the batch has ended, for at most a slice. */
static hal_status queue_sleep(hal_plugin_queue *queue, uint64_t value, uint64_t left_ns)
{
    enum { SHORT_NS = 2 * NS_PER_MS, PAUSE_NS = 50000 };
    if (left_ns < SHORT_NS) {
        const struct timespec pause = {.tv_nsec = (long)(left_ns < PAUSE_NS ? left_ns : PAUSE_NS)};
        nanosleep(&pause, NULL);
        return HAL_OK;
    }
    const uint64_t milliseconds = left_ns / NS_PER_MS;
    if (!metal_shim_event_wait(queue->event, value,
                               milliseconds < SLICE_MS ? milliseconds : SLICE_MS)) {
        return device_collect(queue->device);
    }
    /* The event is set before the commands have their result. */
    metal_commands *commands = commands_retain(queue, value);
    if (commands) {
        metal_shim_commands_finish(commands);
        metal_shim_release(commands);
    }
    return HAL_OK;
}

/* Until the batch has ended. The first failure of the device that is met goes to `failure`. */
static hal_status queue_wait_end(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns,
                                 hal_status *failure)
{
    const uint64_t start = kit_clock_ns();
    for (;;) {
        hal_status met = queue_collect(queue);
        if (atomic_load(&queue->ended) < value) {
            const uint64_t passed = kit_clock_ns() - start;
            if (passed >= timeout_ns) {
                return HAL_ERROR_TIMEOUT;
            }
            if (met == HAL_OK && passed >= SPIN_NS) {
                met = queue_sleep(queue, value, timeout_ns - passed);
            }
        }
        *failure = *failure == HAL_OK ? met : *failure;
        if (atomic_load(&queue->ended) >= value) {
            return HAL_OK;
        }
    }
}

hal_status metal_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_plugin_device *device = queue->device;
    hal_status failure = HAL_OK;
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return HAL_OK;
    }
    if (metal_device_is_after_fork(device)) {
        return metal_device_check(device);
    }
    if (atomic_load(&queue->submitted) < value) {
        return HAL_ERROR_TIMEOUT; /* nothing was submitted for it yet */
    }
    const hal_status status = queue_wait_end(queue, value, timeout_ns, &failure);
    if (failure != HAL_OK || status != HAL_OK) {
        return failure != HAL_OK ? failure : status;
    }
    return atomic_load_explicit(&queue->reached, memory_order_acquire) >= value
               ? HAL_OK
               : metal_device_check(device);
}

hal_status metal_point_reserve(hal_plugin_queue *queue, uint64_t value)
{
    return value > METAL_IN_FLIGHT ? metal_queue_wait(queue, value - METAL_IN_FLIGHT, UINT64_MAX)
                                   : HAL_OK;
}

void metal_queue_fail_next(hal_plugin_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->fails_next = true;
    pthread_mutex_unlock(&queue->lock);
}

void metal_point_add(hal_plugin_queue *queue, uint64_t value, metal_commands *commands)
{
    pthread_mutex_lock(&queue->lock);
    queue->slots[value % METAL_IN_FLIGHT] =
        (metal_slot){.value = value, .commands = commands, .fails = queue->fails_next};
    queue->fails_next = false;
    atomic_store(&queue->submitted, value);
    pthread_mutex_unlock(&queue->lock);
}

/* Of a lost device a batch may still run, or wait for one of another queue. */
void metal_point_destroy_all(hal_plugin_queue *queue)
{
    const uint64_t limit_ns = UINT64_C(10000000000);
    hal_status failure = HAL_OK;
    (void)queue_wait_end(queue, atomic_load(&queue->submitted), limit_ns, &failure);
    for (uint32_t i = 0; i < METAL_IN_FLIGHT; i++) {
        metal_shim_release(queue->slots[i].commands);
    }
}

hal_status metal_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                               uint64_t *nanoseconds)
{
    const uint64_t values[2] = {first, second};
    double ends[2] = {0, 0};
    *nanoseconds = 0;
    for (uint32_t i = 0; i < 2; i++) {
        pthread_mutex_lock(&queue->lock);
        const metal_time *time = &queue->times[values[i] % METAL_POINTS];
        const bool known = values[i] > 0 && time->value == values[i];
        ends[i] = time->end;
        pthread_mutex_unlock(&queue->lock);
        if (!known) {
            return kit_fail(
                HAL_ERROR_INVALID_ARGUMENT,
                "metal: queue_elapsed: points: expected reached ones among the last %d, got %llu",
                (int)METAL_POINTS, (unsigned long long)values[i]);
        }
    }
    *nanoseconds = ends[1] > ends[0] ? (uint64_t)((ends[1] - ends[0]) * 1e9) : 0;
    return HAL_OK;
}
