/* State and references of an open device. */
#include "device.h"

#include "hooks.h"

#include "base/log.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

hal_device *hal_device_retain(hal_device *device)
{
    if (hal_hook_retain(HAL_OBJECT_DEVICE, device, "hal_device_retain") != HAL_OK) {
        return device;
    }
    return hal_device_ref(device);
}

void hal_device_release(hal_device *device)
{
    if (hal_hook_release(HAL_OBJECT_DEVICE, device, "hal_device_release") != HAL_OK) {
        return;
    }
    hal_device_unref(device);
}

hal_device *hal_device_ref(hal_device *device)
{
    if (device) {
        atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
    }
    return device;
}

void hal_device_unref(hal_device *device)
{
    if (!device || hal_device_is_after_fork(device)) {
        return;
    }
    uint32_t count = atomic_load_explicit(&device->references, memory_order_relaxed);
    while (count > 1) {
        if (atomic_compare_exchange_weak_explicit(&device->references, &count, count - 1,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            return;
        }
    }
    device->close(device);
}

const hal_device_info *hal_device_get_info(const hal_device *device)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_info");
    return device && status == HAL_OK ? &device->info : NULL;
}

const char *hal_device_get_quirks(const hal_device *device)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_quirks");
    return device && status == HAL_OK && device->quirks ? device->quirks : "";
}

const char *hal_device_get_plugin_name(const hal_device *device)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_plugin_name");
    return device && status == HAL_OK ? device->plugin->name : "";
}

uint32_t hal_device_get_index(const hal_device *device)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_index");
    return device && status == HAL_OK ? device->index : 0;
}

hal_status hal_null_argument(const char *function, const char *argument)
{
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: %s: expected a valid pointer, got null",
                    function, argument);
}

hal_status hal_device_check_failed(const hal_device *device, const char *function)
{
    if (!device) {
        return hal_null_argument(function, "device");
    }
    if (hal_device_is_after_fork(device)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "%s: device: expected one that this process opened, got %s:%u, opened "
                        "before the process forked; open devices in the child, or fork before "
                        "opening them",
                        function, device->plugin->name, device->index);
    }
    if (atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        return hal_fail(HAL_ERROR_DEVICE_LOST,
                        "%s: device %s:%u (%s) was lost earlier; release every object of the "
                        "device and open it again",
                        function, device->plugin->name, device->index, device->info.name);
    }
    return HAL_OK;
}

hal_status hal_device_failed(hal_device *device, hal_status status, const char *format, ...)
{
    char what[HAL_MESSAGE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (status == HAL_ERROR_DEVICE_LOST && !atomic_exchange(&device->lost, 1)) {
        hal_log(HAL_LOG_ERROR, "device %s:%u (%s) is lost", device->plugin->name, device->index,
                device->info.name);
    }
    return hal_host_failed(status, "%s (%s:%u)", what, device->plugin->name, device->index);
}

bool hal_device_can_access_peer(const hal_device *device, const hal_device *other)
{
    return device == other ||
           (device->module == other->module && device->plugin->device_can_access_peer &&
            device->plugin->device_can_access_peer(device->handle, other->handle) != 0);
}

bool hal_device_is_after_fork(const hal_device *device)
{
    return device->generation != hal_host_generation();
}

hal_status hal_device_get_clocks(hal_device *device, hal_clocks *clocks)
{
    static const char function[] = "hal_device_get_clocks";
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, function));
    HAL_TRY(hal_device_check(device, function));
    if (!clocks) {
        return hal_null_argument(function, "clocks");
    }
    if (!device->plugin->clocks_read || !device->plugin->queue_time) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: device: expected a clock of the device, which the plugin of %s:%u "
                        "does not read",
                        function, device->plugin->name, device->index);
    }
    hal_clocks own = {.size = sizeof own};
    hal_host_clear_error();
    const hal_status status = device->plugin->clocks_read(device->handle, &own);
    if (status != HAL_OK) {
        return hal_device_failed(device, status, "%s", function);
    }
    own.size = sizeof own;
    *clocks = own;
    return HAL_OK;
}

hal_status hal_device_get_quirk(hal_device *device, uint32_t index, hal_quirk *quirk)
{
    static const char function[] = "hal_device_get_quirk";
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, function));
    HAL_TRY(hal_device_check(device, function));
    if (!quirk) {
        return hal_null_argument(function, "quirk");
    }
    hal_quirk own = {.size = sizeof own};
    if (device->plugin->device_quirk) {
        hal_host_clear_error();
        const hal_status status = device->plugin->device_quirk(device->handle, index, &own);
        if (status != HAL_OK) {
            return hal_device_failed(device, status, "%s", function);
        }
    }
    if (!own.name) {
        return hal_fail(HAL_ERROR_NOT_FOUND,
                        "%s: index: expected one below the number of quirks that the plugin of "
                        "%s:%u knows, got %u",
                        function, device->plugin->name, device->index, index);
    }
    *quirk = (hal_quirk){.size = sizeof own,
                         .is_active = own.is_active != 0,
                         .name = own.name,
                         .reason = own.reason ? own.reason : ""};
    return HAL_OK;
}
