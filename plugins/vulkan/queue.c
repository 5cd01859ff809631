/* Queues: a timeline semaphore each, on one of the device's queues. Entries of the plugin's
 * table. */
#include "vulkan_plugin.h"

#include <kit/clock.h>
#include <stdlib.h>

enum { MAX_WAITS = 64 };

/* The driver's wait puts the thread to sleep, which takes longer than small work; so it comes after
 * this time of looking. A processor that is the device has better to do. */
enum { SPIN_NS = 100000 };

static VkResult make_timeline(hal_plugin_device *device, VkSemaphore *timeline)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = &type};
    return device->vk.vkCreateSemaphore(device->handle, &info, NULL, timeline);
}

static VkResult make_times(hal_plugin_queue *queue)
{
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = VULKAN_TIMES};
    if (queue->device->is.timestamp_bits == 0) {
        return VK_SUCCESS;
    }
    return queue->device->vk.vkCreateQueryPool(queue->device->handle, &info, NULL, &queue->times);
}

/* Batches that waited for the timeline are done, and Mesa's queues still look at it for a moment: a
 * loop of queues that end behind such a batch crashed one run in six on lavapipe. */
static void let_go(hal_plugin_queue *queue)
{
    hal_plugin_device *device = queue->device;
    const uint32_t dependents = atomic_load(&queue->dependents);
    for (uint32_t i = 0; i < device->lane_count; i++) {
        if (dependents >> i & 1) {
            pthread_mutex_lock(&device->lanes[i].lock);
            device->vk.vkQueueWaitIdle(device->lanes[i].handle);
            pthread_mutex_unlock(&device->lanes[i].lock);
        }
    }
}

/* Makes a batch's place among the times free: by the host, which costs the device nothing, once the
 * batch that had it before is done. Without that ability record.c resets it. */
static void reset_time(hal_plugin_queue *queue, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    if (queue->times == VK_NULL_HANDLE || !device->is.has_host_reset) {
        return;
    }
    if (value > VULKAN_TIMES) {
        vulkan_queue_wait(queue, value - VULKAN_TIMES, UINT64_MAX);
    }
    device->vk.vkResetQueryPool(device->handle, queue->times, (uint32_t)(value % VULKAN_TIMES), 1);
}

static hal_status submit(hal_plugin_queue *queue, const vulkan_slot *slot,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    VkSemaphore semaphores[MAX_WAITS];
    VkPipelineStageFlags stages[MAX_WAITS];
    uint64_t values[MAX_WAITS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < wait_count; i++) {
        if (count == MAX_WAITS) { /* more than a submission takes: waited for here */
            const hal_status status = vulkan_queue_wait(waits[i].queue, waits[i].value, UINT64_MAX);
            if (status != HAL_OK) {
                return status;
            }
            continue;
        }
        atomic_fetch_or(&waits[i].queue->dependents, 1u << (queue->lane - device->lanes));
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
    pthread_mutex_lock(&queue->lane->lock);
    const VkResult result = device->vk.vkQueueSubmit(queue->lane->handle, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&queue->lane->lock);
    return result == VK_SUCCESS ? HAL_OK : vulkan_failed(device, result, "submitting a batch");
}

/* Looks at the timeline once, and again until the time is up. */
static VkResult watch(hal_plugin_queue *queue, uint64_t value, uint64_t nanoseconds)
{
    hal_plugin_device *device = queue->device;
    const uint64_t start = nanoseconds > 0 ? kit_clock_ns() : 0;
    for (;;) {
        uint64_t reached = 0;
        const VkResult result =
            device->vk.vkGetSemaphoreCounterValue(device->handle, queue->timeline, &reached);
        if (result != VK_SUCCESS || reached >= value) {
            return result;
        }
        if (nanoseconds == 0 || kit_clock_ns() - start >= nanoseconds) {
            return VK_TIMEOUT;
        }
    }
}

static void note_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t known = atomic_load_explicit(&queue->reached, memory_order_relaxed);
    while (known < value &&
           !atomic_compare_exchange_weak_explicit(&queue->reached, &known, value,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    const hal_status status = vulkan_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return vulkan_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a queue",
                           device->is.info.name);
    }
    made->device = device;
    made->lane = &device->lanes[atomic_fetch_add(&device->next_lane, 1) % device->lane_count];
    /* A device without hardware has no timelines, and nothing is ever submitted to it. */
    VkResult result = VK_SUCCESS;
    if (!device->is.is_null) {
        result = make_timeline(device, &made->timeline);
        result = result == VK_SUCCESS ? make_times(made) : result;
    }
    if (result != VK_SUCCESS) {
        vulkan_queue_destroy(device, made);
        return vulkan_failed(device, result, "making a queue");
    }
    *queue = made;
    return HAL_OK;
}

void vulkan_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    if (queue->submitted > 0) {
        vulkan_queue_wait(queue, queue->submitted, UINT64_MAX);
    }
    let_go(queue);
    vulkan_slot_release_all(queue);
    device->vk.vkDestroyQueryPool(device->handle, queue->times, NULL);
    device->vk.vkDestroySemaphore(device->handle, queue->timeline, NULL);
    free(queue);
}

hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    vulkan_slot *slot = NULL;
    hal_status status = vulkan_check_runs(device);
    status = status == HAL_OK ? vulkan_slot_take(queue, &slot) : status;
    if (status != HAL_OK) {
        return status;
    }
    reset_time(queue, value);
    status = vulkan_record(queue, slot, batch, value);
    status = status == HAL_OK ? submit(queue, slot, waits, wait_count, value) : status;
    if (status == HAL_OK) {
        queue->submitted = value;
    }
    vulkan_slot_give_back(queue, slot, status == HAL_OK ? value : 0);
    return status;
}

hal_status vulkan_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_plugin_device *device = queue->device;
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return HAL_OK;
    }
    const hal_status status = vulkan_check(device);
    if (status != HAL_OK) {
        return status;
    }
    const uint64_t spin = device->is.info.kind == HAL_DEVICE_SOFTWARE ? 0 : SPIN_NS;
    VkResult result = watch(queue, value, timeout_ns < spin ? timeout_ns : spin);
    if (result == VK_TIMEOUT && timeout_ns > spin) {
        const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                          .semaphoreCount = 1,
                                          .pSemaphores = &queue->timeline,
                                          .pValues = &value};
        result = device->vk.vkWaitSemaphores(device->handle, &info, timeout_ns - spin);
    }
    if (result == VK_SUCCESS) {
        note_reached(queue, value);
        return HAL_OK;
    }
    return result == VK_TIMEOUT ? HAL_ERROR_TIMEOUT
                                : vulkan_failed(device, result, "waiting for a batch");
}

hal_status vulkan_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    hal_plugin_device *device = queue->device;
    const uint64_t bits = device->is.timestamp_bits;
    const uint64_t mask = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t ticks[2] = {0, 0};
    const uint64_t points[2] = {first, second};
    *nanoseconds = 0;
    if (bits == 0) {
        return vulkan_fail(HAL_ERROR_UNSUPPORTED, "%s counts no time", device->is.info.name);
    }
    if (first == 0 || first > second || second > queue->submitted ||
        first + VULKAN_TIMES <= queue->submitted) {
        return vulkan_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "%s: the time from point %llu to %llu is not known; the queue is at %llu "
            "and remembers the last %d points",
            device->is.info.name, (unsigned long long)first, (unsigned long long)second,
            (unsigned long long)queue->submitted, (int)VULKAN_TIMES);
    }
    for (int i = 0; i < 2; i++) {
        const VkResult result = device->vk.vkGetQueryPoolResults(
            device->handle, queue->times, (uint32_t)(points[i] % VULKAN_TIMES), 1, sizeof ticks[i],
            &ticks[i], sizeof ticks[i], VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
        if (result != VK_SUCCESS) {
            return vulkan_failed(device, result, "reading a time");
        }
    }
    const uint64_t passed = (ticks[1] - ticks[0]) & mask;
    *nanoseconds = (uint64_t)((double)passed * device->is.timestamp_period);
    return HAL_OK;
}

/* Machine code is made when the driver executes a dispatch, even one of no groups. */
hal_status vulkan_queue_warm(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    hal_plugin_queue *queue = NULL;
    hal_status status = vulkan_queue_create(device, &queue);
    if (status != HAL_OK) {
        return status;
    }
    static const hal_binding nothing[HAL_IR_MAX_BINDINGS];
    static const uint8_t zeros[HAL_IR_MAX_SCALAR_BYTES];
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH, .kernel = kernel};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .commands = &command,
                             .bindings = nothing,
                             .scalars = zeros};
    status = vulkan_queue_submit(queue, &batch, NULL, 0, 1);
    if (status == HAL_OK) {
        status = vulkan_queue_wait(queue, 1, UINT64_MAX);
    }
    vulkan_queue_destroy(device, queue);
    return status;
}
