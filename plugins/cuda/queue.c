/* Queues: a stream each, with its points and chains. Entries of the plugin's table. */
#include "queue.h"

#include "pinned.h"
#include "stream.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTER_BYTES = 64 };

/* What points need, see point.c; destroyed when the stream is idle. */
static hal_status points_create(hal_plugin_queue *queue)
{
    void *memory = NULL;
    if (!queue->device->stream_writes) {
        return HAL_OK;
    }
    const hal_status status = cuda_check(
        cuda_pinned_allocate(queue->device, COUNTER_BYTES, &memory, &queue->counter_address),
        "creating the counter of a queue");
    if (status == HAL_OK) {
        memset(memory, 0, COUNTER_BYTES);
        queue->counter = memory;
    }
    return status;
}

/* A wait may have ended by a batch's event while the stream had still to write the counter: after
 * the event, where the wait asked for it. The counter's memory and the stream serve another queue
 * next, which would take that value for its own. */
static void counter_await(hal_plugin_queue *queue)
{
    while (*queue->counter < atomic_load(&queue->counted) &&
           cuda_functions()->cuStreamQuery(queue->stream) == CUDA_NOT_READY) {
        sched_yield();
    }
}

static void points_destroy(hal_plugin_queue *queue)
{
    if (queue->counter) {
        counter_await(queue);
    }
    for (uint32_t i = 0; i < CUDA_EVENTS; i++) {
        for (int timed = 0; timed < 2; timed++) {
            if (queue->events[i].kinds[timed]) {
                cuda_functions()->cuEventDestroy_v2(queue->events[i].kinds[timed]);
            }
        }
    }
    if (queue->counter) {
        cuda_pinned_free(queue->device, (void *)(uintptr_t)queue->counter);
    }
}

hal_status cuda_queue_create(hal_plugin_device *device, cuda_stream imported,
                             hal_plugin_queue **queue)
{
    *queue = NULL;
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a queue");
    }
    made->device = device;
    made->stream = imported;
    made->is_imported = imported != NULL;
    atomic_init(&made->awaited, true);
    pthread_mutex_init(&made->point_lock, NULL);
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK) {
        status = imported ? HAL_OK : cuda_stream_acquire(device, &made->stream);
        status = status == HAL_OK ? points_create(made) : status;
        cuda_context_pop();
    }
    if (status != HAL_OK) {
        cuda_queue_destroy(device, made);
        return status;
    }
    *queue = made;
    return HAL_OK;
}

void cuda_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    if (cuda_context_push(device) == HAL_OK) {
        points_destroy(queue);
        if (queue->flags != 0) {
            cuda_functions()->cuMemFree_v2(queue->flags);
        }
        if (queue->parts != 0) {
            cuda_functions()->cuMemFree_v2(queue->parts);
        }
        if (!queue->is_imported) {
            cuda_stream_release(device, queue->stream);
        }
        cuda_context_pop();
    }
    pthread_mutex_destroy(&queue->point_lock);
    free(queue);
}
