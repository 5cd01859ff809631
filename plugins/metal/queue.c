/* Queues: a command queue each; a batch is one command buffer, whose last command sets the queue's
 * shared event to the value of the batch. Entries of the plugin's table. */
#include "metal_plugin.h"

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
    const hal_status status = metal_device_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return metal_fail(HAL_ERROR_OUT_OF_MEMORY, "metal: no host memory for a queue");
    }
    metal_gpu *gpu = device->card->gpu;
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    made->stream = metal_shim_stream(gpu, METAL_IN_FLIGHT);
    made->event = metal_shim_event(gpu);
    made->fence = metal_shim_fence(gpu);
    if (!made->stream || !made->event || !made->fence) {
        metal_queue_destroy(device, made);
        return metal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: the system has no further queue",
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
        metal_point_destroy_all(queue);
        metal_shim_release(queue->fence);
        metal_shim_release(queue->event);
        metal_shim_release(queue->stream);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static void wait_encode(hal_plugin_queue *queue, const hal_plugin_wait *wait,
                        metal_commands *commands)
{
    if (wait->queue != queue &&
        atomic_load_explicit(&wait->queue->reached, memory_order_acquire) < wait->value) {
        metal_shim_commands_wait_event(commands, wait->queue->event, wait->value);
    }
}

hal_status metal_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = metal_device_check(queue->device);
    if (status == HAL_OK) {
        status = metal_point_reserve(queue, value);
    }
    if (status != HAL_OK) {
        return status;
    }
    metal_commands *commands = metal_shim_commands(queue->stream);
    if (!commands) {
        return metal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no memory for a batch",
                          queue->device->card->info.name);
    }
    bool fence_updated = false;
    for (uint32_t i = 0; i < wait_count; i++) {
        wait_encode(queue, &waits[i], commands);
    }
    status = metal_batch_encode(queue, batch, commands, &fence_updated);
    if (status != HAL_OK) {
        metal_shim_release(commands);
        return status;
    }
    metal_shim_commands_signal_event(commands, queue->event, value);
    metal_shim_commands_commit(commands);
    queue->fence_updated = fence_updated;
    metal_point_add(queue, value, commands);
    return HAL_OK;
}
