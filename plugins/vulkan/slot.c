/* Command buffers and the memory of arguments, used again when their batch is done. Called by
 * queue.c and record.c. */
#include "vulkan_plugin.h"

#include <stdlib.h>

enum { FIRST_ARGUMENTS = 1 << 16 };

static int is_done(hal_plugin_queue *queue, const vulkan_slot *slot)
{
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= slot->value) {
        return 1;
    }
    return vulkan_queue_wait(queue, slot->value, 0) == HAL_OK;
}

static void release(hal_plugin_queue *queue, vulkan_slot *slot)
{
    hal_plugin_device *device = queue->device;
    device->vk.vkDestroyCommandPool(device->handle, slot->pool, NULL);
    vulkan_memory_free(device, slot->arguments);
    free(slot);
}

static hal_status make(hal_plugin_queue *queue, vulkan_slot **slot)
{
    hal_plugin_device *device = queue->device;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                          .queueFamilyIndex = device->is.family};
    vulkan_slot *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return vulkan_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a batch",
                           device->is.info.name);
    }
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
        release(queue, made);
        return vulkan_failed(device, result, "making a command buffer");
    }
    *slot = made;
    return HAL_OK;
}

hal_status vulkan_slot_take(hal_plugin_queue *queue, vulkan_slot **slot)
{
    hal_plugin_device *device = queue->device;
    vulkan_slot *oldest = queue->oldest;
    if (oldest == NULL || !is_done(queue, oldest)) {
        return make(queue, slot);
    }
    queue->oldest = oldest->next;
    queue->newest = queue->oldest == NULL ? NULL : queue->newest;
    oldest->next = NULL;
    const VkResult result = device->vk.vkResetCommandPool(device->handle, oldest->pool, 0);
    if (result != VK_SUCCESS) {
        release(queue, oldest);
        return vulkan_failed(device, result, "using a command buffer again");
    }
    *slot = oldest;
    return HAL_OK;
}

/* With the value of its batch; with one that is reached when nothing was submitted. */
void vulkan_slot_give_back(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t value)
{
    slot->value = value;
    slot->next = NULL;
    if (queue->newest != NULL) {
        queue->newest->next = slot;
    } else {
        queue->oldest = slot;
    }
    queue->newest = slot;
}

hal_status vulkan_slot_arguments(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t bytes)
{
    if (bytes == 0 || (slot->arguments != NULL && slot->arguments->bytes >= bytes)) {
        return HAL_OK;
    }
    uint64_t larger = slot->arguments == NULL ? FIRST_ARGUMENTS : 2 * slot->arguments->bytes;
    larger = larger < bytes ? bytes : larger;
    vulkan_memory_free(queue->device, slot->arguments);
    slot->arguments = NULL;
    return vulkan_memory_allocate(queue->device, HAL_MEMORY_UPLOAD, larger, &slot->arguments);
}

void vulkan_slot_release_all(hal_plugin_queue *queue)
{
    while (queue->oldest != NULL) {
        vulkan_slot *slot = queue->oldest;
        queue->oldest = slot->next;
        release(queue, slot);
    }
    queue->newest = NULL;
}
