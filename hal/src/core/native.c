/* The driver's own objects, and queues of the driver that others own. */
#include "flush.h"
#include "hooks.h"
#include "kernel_cache.h"
#include "kernel.h"
#include "queue.h"

#include "base/status.h"

#include <hal/native.h>

static hal_status native_check(hal_object_kind kind, const void *object, hal_device *device,
                               const char *function, const char *type, const uint64_t *handle)
{
    HAL_TRY(hal_hook_use(kind, object, function));
    if (!object || !type || !handle) {
        return hal_null_argument(function, !object ? "object" : !type ? "type" : "handle");
    }
    HAL_TRY(hal_device_check(device, function));
    hal_host_clear_error();
    return device->plugin->device_handle && device->plugin->queue_handle &&
                   device->plugin->kernel_handle
               ? HAL_OK
               : hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: type: %s:%u has no native handles, got \"%s\"", function,
                          device->plugin->name, device->index, type);
}

static hal_status native_end(hal_device *device, hal_status status, const char *function,
                             uint64_t value, uint64_t *handle)
{
    if (status != HAL_OK) {
        return hal_device_failed(device, status, "%s", function);
    }
    *handle = value;
    return HAL_OK;
}

hal_status hal_device_get_native(hal_device *device, const char *type, uint64_t *handle)
{
    static const char function[] = "hal_device_get_native";
    uint64_t value = 0;
    HAL_TRY(native_check(HAL_OBJECT_DEVICE, device, device, function, type, handle));
    const hal_status status = device->plugin->device_handle(device->handle, type, &value);
    return native_end(device, status, function, value, handle);
}

hal_status hal_queue_get_native(hal_queue *queue, const char *type, uint64_t *handle)
{
    static const char function[] = "hal_queue_get_native";
    hal_device *device = queue ? queue->timeline.device : NULL;
    uint64_t value = 0;
    HAL_TRY(native_check(HAL_OBJECT_QUEUE, queue, device, function, type, handle));
    const hal_status status = device->plugin->queue_handle(queue->timeline.handle, type, &value);
    return native_end(device, status, function, value, handle);
}

hal_status hal_kernel_get_native(hal_kernel *kernel, const char *type, uint64_t *handle)
{
    static const char function[] = "hal_kernel_get_native";
    hal_device *device = kernel ? kernel->device : NULL;
    uint64_t value = 0;
    HAL_TRY(native_check(HAL_OBJECT_KERNEL, kernel, device, function, type, handle));
    HAL_TRY(hal_kernel_cache_await(kernel));
    const hal_status status =
        device->plugin->kernel_handle(device->handle, kernel->handle, type, &value);
    return native_end(device, status, function, value, handle);
}

static hal_status order_check(hal_queue *queue, const char *function, const char *type)
{
    HAL_TRY(hal_queue_check(queue, function));
    if (!type) {
        return hal_null_argument(function, "type");
    }
    const hal_device *device = queue->timeline.device;
    return device->plugin->queue_wait_native && device->plugin->queue_block_native
               ? HAL_OK
               : hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: type: %s:%u has no order with queues of others, got \"%s\"",
                          function, device->plugin->name, device->index, type);
}

/* The next batch, an empty one if nothing is recorded, has a point that is after the work of the
 * driver's queue. */
static hal_status queue_wait_native(hal_queue *queue, const char *type, uint64_t handle)
{
    static const char function[] = "hal_queue_wait_native";
    HAL_TRY(order_check(queue, function, type));
    HAL_TRY(hal_flush_waits(queue, NULL));
    hal_device *device = queue->timeline.device;
    hal_host_clear_error();
    const hal_status status =
        device->plugin->queue_wait_native(queue->timeline.handle, type, handle);
    queue->needs_batch = status == HAL_OK;
    return status == HAL_OK ? HAL_OK : hal_device_failed(device, status, "%s", function);
}

static hal_status queue_block_native(hal_queue *queue, const char *type, uint64_t handle)
{
    static const char function[] = "hal_queue_block_native";
    hal_point point = {0};
    HAL_TRY(order_check(queue, function, type));
    HAL_TRY(hal_flush_waits(queue, &point));
    if (!hal_timeline_has_submitted(&queue->timeline, point.value)) {
        HAL_TRY(hal_point_wait(point, HAL_WAIT_FOREVER));
    }
    hal_device *device = queue->timeline.device;
    hal_host_clear_error();
    const hal_status status =
        device->plugin->queue_block_native(queue->timeline.handle, type, handle);
    return status == HAL_OK ? HAL_OK : hal_device_failed(device, status, "%s", function);
}

hal_status hal_queue_wait_native(hal_queue *queue, const char *type, uint64_t handle)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_wait_native");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_wait_native(queue, type, handle))
               : status;
}

hal_status hal_queue_block_native(hal_queue *queue, const char *type, uint64_t handle)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_block_native");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_block_native(queue, type, handle))
               : status;
}
