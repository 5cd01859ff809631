/* Queues: each on one of the device's queues, with a timeline semaphore. Entries of the plugin's
 * table. */
#include "queue.h"

#include "quirks.h"

#include <stdlib.h>
#include <time.h>

static VkResult timeline_create(hal_plugin_device *device, VkSemaphore *timeline)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = &type};
    return device->vk.vkCreateSemaphore(device->handle, &info, NULL, timeline);
}

static VkResult times_create(hal_plugin_queue *queue)
{
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = VULKAN_TIMES};
    if (queue->device->physical.timestamp_bits == 0) {
        return VK_SUCCESS;
    }
    return queue->device->vk.vkCreateQueryPool(queue->device->handle, &info, NULL, &queue->times);
}

static VkResult points_create(hal_plugin_queue *queue)
{
    /* A device without hardware has no timelines, and nothing is ever submitted to it. */
    if (queue->device->physical.quirks & VULKAN_QUIRK_NO_HARDWARE) {
        return VK_SUCCESS;
    }
    const VkResult result = timeline_create(queue->device, &queue->timeline);
    return result == VK_SUCCESS ? times_create(queue) : result;
}

static void locks_create(hal_plugin_queue *queue)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->helper.wakes, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&queue->lock, NULL);
}

hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    HAL_TRY(vulkan_device_check(device));
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a queue",
                        device->physical.info.name);
    }
    made->device = device;
    locks_create(made);
    made->device_queue = &device->device_queues[atomic_fetch_add(&device->next_device_queue, 1) %
                                                device->device_queue_count];
    const VkResult result = points_create(made);
    if (result != VK_SUCCESS) {
        vulkan_queue_destroy(device, made);
        return vulkan_fail_result(device, result, "creating a queue");
    }
    *queue = made;
    return HAL_OK;
}

void vulkan_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    device->vk.vkDestroyQueryPool(device->handle, queue->times, NULL);
    device->vk.vkDestroySemaphore(device->handle, queue->timeline, NULL);
    pthread_cond_destroy(&queue->helper.wakes);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
