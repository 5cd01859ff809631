/* Points: the values of a queue's timeline semaphore, waiting for them, and the time between
 * them. */
#include "point.h"

#include <kit/clock.h>
#include <stddef.h>

/* A wait polls this long before it calls the driver, which puts the thread to sleep and so takes
 * longer than small work. Software devices need the processor themselves. */
enum { SPIN_NS = 100000 };

/* Polls the timeline at least once, and for up to this long. */
static VkResult timeline_poll(hal_plugin_queue *queue, uint64_t value, uint64_t nanoseconds)
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

static void queue_raise_reached(hal_plugin_queue *queue, uint64_t value)
{
    uint64_t known = atomic_load_explicit(&queue->reached, memory_order_relaxed);
    while (known < value &&
           !atomic_compare_exchange_weak_explicit(&queue->reached, &known, value,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

bool vulkan_batch_is_timed(const hal_plugin_queue *queue, const hal_batch *batch)
{
    const bool has_flags = batch->size >= offsetof(hal_batch, flags) + sizeof batch->flags;
    return queue->times != VK_NULL_HANDLE && !(has_flags && batch->flags & HAL_BATCH_UNTIMED);
}

hal_status vulkan_point_await_time(hal_plugin_queue *queue, uint64_t value)
{
    return queue->device->physical.has_host_reset && value > VULKAN_TIMES
               ? vulkan_point_wait(queue, value - VULKAN_TIMES, UINT64_MAX)
               : HAL_OK;
}

void vulkan_point_reset_time(hal_plugin_queue *queue, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    queue->timed[value % VULKAN_TIMES] = value;
    if (device->physical.has_host_reset) {
        device->vk.vkResetQueryPool(device->handle, queue->times, (uint32_t)(value % VULKAN_TIMES),
                                    1);
    }
}

hal_status vulkan_point_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_plugin_device *device = queue->device;
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return HAL_OK;
    }
    /* A lost device of which the driver knows nothing ends what was sent. */
    const int lost = atomic_load(&device->lost);
    if (lost == VULKAN_LOST) {
        return vulkan_device_check(device);
    }
    const uint64_t spin = device->physical.info.kind == HAL_DEVICE_SOFTWARE ? 0 : SPIN_NS;
    VkResult result = timeline_poll(queue, value, timeout_ns < spin ? timeout_ns : spin);
    if (result == VK_TIMEOUT && timeout_ns > spin) {
        const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                          .semaphoreCount = 1,
                                          .pSemaphores = &queue->timeline,
                                          .pValues = &value};
        result = device->vk.vkWaitSemaphores(device->handle, &info, timeout_ns - spin);
    }
    if (result == VK_SUCCESS) {
        queue_raise_reached(queue, value);
        return lost ? vulkan_device_check(device) : HAL_OK;
    }
    return result == VK_TIMEOUT ? HAL_ERROR_TIMEOUT
                                : vulkan_fail_result(device, result, "waiting for a batch");
}

static uint64_t ticks_mask(const hal_plugin_device *device)
{
    const uint64_t bits = device->physical.timestamp_bits;
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t ns_of(const hal_plugin_device *device, uint64_t ticks)
{
    return (uint64_t)((double)ticks * device->physical.timestamp_period);
}

/* The ticks of a point's end, by the device's clock. */
static hal_status point_ticks(hal_plugin_queue *queue, uint64_t value, uint64_t *ticks)
{
    hal_plugin_device *device = queue->device;
    if (queue->timed[value % VULKAN_TIMES] != value) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: queue_elapsed: points: expected batches without "
                        "HAL_BATCH_UNTIMED, got %llu",
                        device->physical.info.name, (unsigned long long)value);
    }
    const VkResult result = device->vk.vkGetQueryPoolResults(
        device->handle, queue->times, (uint32_t)(value % VULKAN_TIMES), 1, sizeof *ticks, ticks,
        sizeof *ticks, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    *ticks &= ticks_mask(device);
    return result == VK_SUCCESS ? HAL_OK : vulkan_fail_result(device, result, "reading a time");
}

static hal_status points_check(hal_plugin_queue *queue, uint64_t first, uint64_t second)
{
    hal_plugin_device *device = queue->device;
    HAL_TRY(vulkan_device_check(device)); /* a dropped batch gets no time */
    if (device->physical.timestamp_bits == 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED, "%s: queue_elapsed: the device has no timestamps",
                        device->physical.info.name);
    }
    if (first == 0 || first > second || second > queue->recorded ||
        first + VULKAN_TIMES <= queue->recorded) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: queue_elapsed: points: expected submitted ones among the last %d, "
                        "got %llu to %llu; the "
                        "last is %llu",
                        device->physical.info.name, (int)VULKAN_TIMES, (unsigned long long)first,
                        (unsigned long long)second, (unsigned long long)queue->recorded);
    }
    return HAL_OK;
}

hal_status vulkan_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    uint64_t begin = 0, end = 0;
    *nanoseconds = 0;
    HAL_TRY(points_check(queue, first, second));
    HAL_TRY(point_ticks(queue, first, &begin));
    HAL_TRY(point_ticks(queue, second, &end));
    *nanoseconds = ns_of(queue->device, (end - begin) & ticks_mask(queue->device));
    return HAL_OK;
}

hal_status vulkan_clocks_read(hal_plugin_device *device, hal_clocks *clocks)
{
    const VkCalibratedTimestampInfoEXT domains[2] = {
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
         .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT},
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
         .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT}};
    uint64_t times[2] = {0, 0}, deviation = 0;
    HAL_TRY(vulkan_device_check(device));
    if (!device->physical.has_clocks || device->physical.timestamp_bits == 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: clocks_read: expected a driver with VK_EXT_calibrated_timestamps and "
                        "CLOCK_MONOTONIC",
                        device->physical.info.name);
    }
    const VkResult result =
        device->vk.vkGetCalibratedTimestampsEXT(device->handle, 2, domains, times, &deviation);
    if (result != VK_SUCCESS) {
        return vulkan_fail_result(device, result, "reading the clocks");
    }
    clocks->host_ns = times[0];
    clocks->device_ns = ns_of(device, times[1] & ticks_mask(device));
    clocks->deviation_ns = deviation;
    return HAL_OK;
}

hal_status vulkan_queue_time(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns)
{
    uint64_t ticks = 0;
    *device_ns = 0;
    HAL_TRY(points_check(queue, value, value));
    HAL_TRY(point_ticks(queue, value, &ticks));
    *device_ns = ns_of(queue->device, ticks);
    return HAL_OK;
}
