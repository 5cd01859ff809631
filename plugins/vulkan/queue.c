/* Queues: each on one of the device's queues, with a timeline semaphore. Entries of the plugin's
 * table. */
#include "vulkan_plugin.h"

#include <stdlib.h>

enum { MAX_WAITS = 64 }; /* of a submission; more are waited for by the host */

/* Mesa reads the timeline for a moment after the batches that waited for it have ended:
 * destroying it then crashed one run in six on lavapipe. So the queues of those batches become
 * idle first. */
static void queue_await_dependents(hal_plugin_queue *queue)
{
    hal_plugin_device *device = queue->device;
    const uint32_t dependents = atomic_load(&queue->dependents);
    for (uint32_t i = 0; i < device->device_queue_count; i++) {
        if (dependents >> i & 1) {
            pthread_mutex_lock(&device->device_queues[i].lock);
            device->vk.vkQueueWaitIdle(device->device_queues[i].handle);
            pthread_mutex_unlock(&device->device_queues[i].lock);
        }
    }
}

static hal_status slot_submit(hal_plugin_queue *queue, const vulkan_slot *slot,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    VkSemaphore semaphores[MAX_WAITS];
    VkPipelineStageFlags stages[MAX_WAITS];
    uint64_t values[MAX_WAITS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < wait_count; i++) {
        if (count == MAX_WAITS) {
            const hal_status status = vulkan_queue_wait(waits[i].queue, waits[i].value, UINT64_MAX);
            if (status != HAL_OK) {
                return status;
            }
            continue;
        }
        atomic_fetch_or(&waits[i].queue->dependents,
                        1u << (queue->device_queue - device->device_queues));
        semaphores[count] = waits[i].queue->timeline;
        values[count] = waits[i].value;
        stages[count++] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = count,
        .pWaitSemaphoreValues = values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .waitSemaphoreCount = count,
                               .pWaitSemaphores = semaphores,
                               .pWaitDstStageMask = stages,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &slot->commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &queue->timeline};
    pthread_mutex_lock(&queue->device_queue->lock);
    const VkResult result =
        device->vk.vkQueueSubmit(queue->device_queue->handle, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&queue->device_queue->lock);
    return result == VK_SUCCESS ? HAL_OK : vulkan_fail_result(device, result, "submitting a batch");
}

hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    const hal_status status = vulkan_device_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return vulkan_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a queue",
                           device->physical.info.name);
    }
    made->device = device;
    made->device_queue = &device->device_queues[atomic_fetch_add(&device->next_device_queue, 1) %
                                                device->device_queue_count];
    const VkResult result = vulkan_point_create(made);
    if (result != VK_SUCCESS) {
        vulkan_queue_destroy(device, made);
        return vulkan_fail_result(device, result, "creating a queue");
    }
    *queue = made;
    return HAL_OK;
}

void vulkan_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    (void)device;
    if (queue == NULL) {
        return;
    }
    if (queue->submitted > 0) {
        vulkan_queue_wait(queue, queue->submitted, UINT64_MAX);
    }
    queue_await_dependents(queue);
    vulkan_slot_destroy_all(queue);
    vulkan_point_destroy(queue);
    free(queue);
}

hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    vulkan_slot *slot = NULL;
    hal_status status = vulkan_device_check_hardware(device);
    status = status == HAL_OK ? vulkan_slot_acquire(queue, &slot) : status;
    if (status != HAL_OK) {
        return status;
    }
    if (vulkan_batch_is_timed(queue, batch)) {
        vulkan_point_reset_time(queue, value);
    }
    status = vulkan_commands_record(queue, slot, batch, value);
    status = status == HAL_OK ? slot_submit(queue, slot, waits, wait_count, value) : status;
    if (status == HAL_OK) {
        queue->submitted = value;
    }
    vulkan_slot_release(queue, slot, status == HAL_OK ? value : 0);
    return status;
}

hal_status vulkan_queue_warm(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    hal_plugin_queue *queue = NULL;
    hal_status status = vulkan_queue_create(device, &queue);
    if (status != HAL_OK) {
        return status;
    }
    static const hal_binding none[HAL_IR_MAX_BINDINGS];
    static const uint8_t zeros[HAL_IR_MAX_SCALAR_BYTES];
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH, .kernel = kernel};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .commands = &command,
                             .bindings = none,
                             .scalars = zeros};
    status = vulkan_queue_submit(queue, &batch, NULL, 0, 1);
    if (status == HAL_OK) {
        status = vulkan_queue_wait(queue, 1, UINT64_MAX);
    }
    vulkan_queue_destroy(device, queue);
    return status;
}
