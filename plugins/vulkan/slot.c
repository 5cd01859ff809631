/* Slots: command buffers and argument memory, which are reused after their batches have ended. */
#include "slot.h"

#include "point.h"

#include <stdlib.h>

/* Submissions of a queue in flight, at most; one more waits for the oldest. */
enum { MAX_SLOTS = 64 };

enum { MIN_ARGUMENT_BYTES = 1 << 16 };

static bool slot_is_idle(hal_plugin_queue *queue, const vulkan_slot *slot)
{
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= slot->value) {
        return true;
    }
    return vulkan_point_wait(queue, slot->value, 0) == HAL_OK;
}

static void slot_destroy(hal_plugin_queue *queue, vulkan_slot *slot)
{
    hal_plugin_device *device = queue->device;
    queue->slot_count--;
    device->vk.vkDestroyCommandPool(device->handle, slot->pool, NULL);
    vulkan_memory_free(device, slot->arguments);
    free(slot);
}

static hal_status slot_create(hal_plugin_queue *queue, vulkan_slot **slot)
{
    hal_plugin_device *device = queue->device;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                          .queueFamilyIndex = device->physical.family};
    vulkan_slot *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a batch",
                        device->physical.info.name);
    }
    queue->slot_count++;
    VkResult result = device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &made->pool);
    if (result == VK_SUCCESS) {
        const VkCommandBufferAllocateInfo buffer = {
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = made->pool,
            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
            .commandBufferCount = 1};
        result = device->vk.vkAllocateCommandBuffers(device->handle, &buffer, &made->commands);
    }
    if (result != VK_SUCCESS) {
        slot_destroy(queue, made);
        return vulkan_fail_result(device, result, "creating a command buffer");
    }
    *slot = made;
    return HAL_OK;
}

hal_status vulkan_slot_acquire(hal_plugin_queue *queue, vulkan_slot **slot)
{
    hal_plugin_device *device = queue->device;
    vulkan_slot *oldest = queue->oldest;
    if (!oldest || !slot_is_idle(queue, oldest)) {
        if (queue->slot_count < MAX_SLOTS) {
            return slot_create(queue, slot);
        }
        /* Other threads may wait and look meanwhile. Nothing is held, so they send nothing, and the
         * oldest slot stays the same. */
        pthread_mutex_unlock(&queue->lock);
        const hal_status status = vulkan_point_wait(queue, oldest->value, UINT64_MAX);
        pthread_mutex_lock(&queue->lock);
        if (status != HAL_OK) {
            return status;
        }
    }
    queue->oldest = oldest->next;
    queue->newest = !queue->oldest ? NULL : queue->newest;
    oldest->next = NULL;
    const VkResult result = device->vk.vkResetCommandPool(device->handle, oldest->pool, 0);
    if (result != VK_SUCCESS) {
        slot_destroy(queue, oldest);
        return vulkan_fail_result(device, result, "resetting a command buffer");
    }
    *slot = oldest;
    return HAL_OK;
}

void vulkan_slot_release(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t value)
{
    slot->value = value;
    slot->next = NULL;
    if (queue->newest) {
        queue->newest->next = slot;
    } else {
        queue->oldest = slot;
    }
    queue->newest = slot;
}

uint64_t vulkan_slot_end(const hal_plugin_queue *queue, uint64_t value)
{
    for (const vulkan_slot *slot = queue->oldest; slot != NULL; slot = slot->next) {
        if (slot->value >= value) {
            return slot->value;
        }
    }
    return value;
}

hal_status vulkan_slot_arguments(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t bytes)
{
    if (bytes == 0 || (slot->arguments && slot->arguments->bytes >= bytes)) {
        return HAL_OK;
    }
    uint64_t larger = !slot->arguments ? MIN_ARGUMENT_BYTES : 2 * slot->arguments->bytes;
    larger = larger < bytes ? bytes : larger;
    vulkan_memory_free(queue->device, slot->arguments);
    slot->arguments = NULL;
    return vulkan_memory_allocate(queue->device, HAL_MEMORY_UPLOAD, larger, &slot->arguments);
}

void vulkan_slot_destroy_all(hal_plugin_queue *queue)
{
    if (queue->open) {
        slot_destroy(queue, queue->open);
    }
    while (queue->oldest) {
        vulkan_slot *slot = queue->oldest;
        queue->oldest = slot->next;
        slot_destroy(queue, slot);
    }
    queue->newest = NULL;
}
