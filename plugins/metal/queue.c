/* Queues: a command queue each; a batch is one command buffer, whose last command sets the queue's
 * shared event to the value of the batch. Entries of the plugin's table. */
#include "queue.h"

#include <stdlib.h>

static void queue_link(hal_plugin_device *device, hal_plugin_queue *queue)
{
    pthread_mutex_lock(&device->lock);
    queue->next = device->queues;
    if (queue->next) {
        queue->next->previous = queue;
    }
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
}

static void queue_unlink(hal_plugin_device *device, hal_plugin_queue *queue)
{
    pthread_mutex_lock(&device->lock);
    if (device->queues == queue || queue->previous) {
        *(queue->previous ? &queue->previous->next : &device->queues) = queue->next;
        if (queue->next) {
            queue->next->previous = queue->previous;
        }
    }
    pthread_mutex_unlock(&device->lock);
}

hal_status metal_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    HAL_TRY(metal_device_check(device));
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "metal: no host memory for a queue");
    }
    metal_gpu *gpu = device->card->gpu;
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    made->stream = metal_shim_stream(gpu, METAL_IN_FLIGHT);
    made->event = metal_shim_event(gpu);
    made->fence = metal_shim_fence(gpu);
    if (!made->stream || !made->event || !made->fence) {
        metal_queue_destroy(device, made);
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: the system has no further queue",
                        device->card->info.name);
    }
    queue_link(device, made);
    *queue = made;
    return HAL_OK;
}

void metal_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    queue_unlink(device, queue);
    if (!metal_device_is_after_fork(device)) {
        metal_shim_release(queue->fence);
        metal_shim_release(queue->event);
        metal_shim_release(queue->stream);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
