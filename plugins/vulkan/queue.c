/* Queues: each on one of the device's queues, with a timeline semaphore. Entries of the plugin's
 * table. */
#include "quirks.h"
#include "vulkan_plugin.h"

#include <stdlib.h>

/* Where the driver uses a timeline for a moment after its batches, and those that waited for it,
 * have ended, the device's queues with such batches become idle before it is destroyed. */
static void queue_await_dependents(hal_plugin_queue *queue)
{
    hal_plugin_device *device = queue->device;
    uint32_t dependents = atomic_load(&queue->dependents);
    if (!(device->physical.quirks & VULKAN_QUIRK_LATE_TIMELINES)) {
        return;
    }
    if (atomic_load(&queue->sent) > 0) {
        dependents |= 1u << (queue->device_queue - device->device_queues);
    }
    for (uint32_t i = 0; i < device->device_queue_count; i++) {
        if (dependents >> i & 1) {
            pthread_mutex_lock(&device->device_queues[i].lock);
            device->vk.vkQueueWaitIdle(device->device_queues[i].handle);
            pthread_mutex_unlock(&device->device_queues[i].lock);
        }
    }
}

hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    const hal_status status = vulkan_device_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return vulkan_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a queue",
                           device->physical.info.name);
    }
    made->device = device;
    vulkan_send_start(made);
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
    if (!queue) {
        return;
    }
    if (queue->recorded > 0) {
        vulkan_queue_wait(queue, queue->recorded, UINT64_MAX);
    }
    vulkan_send_stop(queue);
    queue_await_dependents(queue);
    vulkan_slot_destroy_all(queue);
    vulkan_point_destroy(queue);
    free(queue);
}

/* Appends a batch to the open slot. What fails has appended nothing. */
static hal_status queue_append(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    hal_status status = HAL_OK;
    if (!queue->open) {
        vulkan_slot *slot = NULL;
        status = vulkan_slot_acquire(queue, &slot);
        if (status != HAL_OK) {
            return status;
        }
        status = vulkan_commands_begin(device, slot);
        if (status != HAL_OK) {
            vulkan_slot_release(queue, slot, 0);
            return status;
        }
        queue->open = slot;
    }
    if (vulkan_batch_is_timed(queue, batch)) {
        vulkan_point_reset_time(queue, value);
    }
    status = vulkan_commands_append(queue, queue->open, batch, value);
    if (status == HAL_OK) {
        queue->recorded = value;
        queue->held_batches++;
        queue->held_commands += batch->command_count + 1;
        queue->commands_since_wait += batch->command_count + 1;
    }
    return status;
}

hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = vulkan_device_check_hardware(queue->device);
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        status = vulkan_send_up_to(waits[i].queue, waits[i].value);
        if (status == HAL_OK && i >= VULKAN_MAX_WAITS) {
            status = vulkan_point_wait(waits[i].queue, waits[i].value, UINT64_MAX);
        }
    }
    if (status == HAL_OK && vulkan_batch_is_timed(queue, batch)) {
        status = vulkan_point_await_time(queue, value);
    }
    if (status != HAL_OK) {
        return status;
    }
    wait_count = wait_count < VULKAN_MAX_WAITS ? wait_count : VULKAN_MAX_WAITS;
    pthread_mutex_lock(&queue->lock);
    if (queue->open && (wait_count > 0 || queue->one_by_one ||
                                !vulkan_commands_fit(queue->device, queue->open, batch))) {
        status = vulkan_send(queue, NULL, 0);
    }
    status = status == HAL_OK ? queue_append(queue, batch, value) : status;
    if (status == HAL_OK) {
        status =
            wait_count > 0 ? vulkan_send(queue, waits, wait_count) : vulkan_send_recorded(queue);
    }
    if (status == HAL_OK && queue->held_batches > 0) {
        status = vulkan_send_later(queue);
    }
    queue->accepted = status == HAL_OK ? value : queue->accepted;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

hal_status vulkan_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_status status = HAL_OK;
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return HAL_OK;
    }
    /* A program that waits adds nothing to what is held, and one that looks may do so. */
    if (timeout_ns > 0 || atomic_load(&queue->sent) < atomic_load(&queue->recorded)) {
        pthread_mutex_lock(&queue->lock);
        status = timeout_ns > 0 ? vulkan_send(queue, NULL, 0) : vulkan_send_due(queue);
        queue->commands_since_wait = timeout_ns > 0 ? 0 : queue->commands_since_wait;
        /* Once the value is reached, its slot may have been used again. */
        if (atomic_load_explicit(&queue->reached, memory_order_acquire) < value) {
            const uint64_t end = vulkan_slot_end(queue, value);
            if (timeout_ns > 0 && end != value && end == atomic_load(&queue->sent)) {
                vulkan_send_one_by_one(queue, end); /* the device runs dry before the wait ends */
            }
            value = end;
        }
        pthread_mutex_unlock(&queue->lock);
    }
    const int lost = atomic_load(&queue->device->lost);
    if (status != HAL_OK && lost == VULKAN_LOST) {
        return status;
    }
    const uint64_t sent = atomic_load(&queue->sent);
    if (sent < value) {
        status = lost ? vulkan_point_wait(queue, sent, timeout_ns) : HAL_ERROR_TIMEOUT;
        return status == HAL_OK ? vulkan_device_check(queue->device) : status;
    }
    return vulkan_point_wait(queue, value, timeout_ns);
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
