/* An open device: its identity, state and references. */
#ifndef HAL_SRC_CORE_DEVICE_H
#define HAL_SRC_CORE_DEVICE_H

#include "plugin/cache.h"
#include "plugin/host.h"
#include "plugin/loader.h"

#include <hal/device.h>
#include <stdatomic.h>
#include <stdbool.h>

struct hal_device {
    hal_device *next; /* among the open devices; guarded by the registry lock */
    _Atomic uint32_t references;
    _Atomic bool lost;
    uint32_t generation; /* of the process that opened it, see hal_host_generation */
    uint32_t index;      /* among the devices of its plugin */
    hal_module *module;
    const hal_plugin_entries *plugin;
    hal_device_info info;
    hal_plugin_device *handle;
    struct hal_pool *pool;
    struct hal_kernel_cache *kernels;
    void (*close)(hal_device *device); /* drops the last reference, see device_lifecycle.c */
    hal_cache_scope cache;
    char *quirks;           /* of the driver, see hal_device_get_quirks; null: none known */
    const char *limited_by; /* takes a part of info's bindings and shared memory; null: nothing */
};

/* hal_device_open without its checks and without switching layers on, which layers/device_open.c
 * does first. `*device` is null. */
hal_status hal_device_open_selected(const char *selection, hal_device **device);

/* Internal references: hal_device_retain and hal_device_release without the hooks, which count the
 * program's references. Threads: any. */
hal_device *hal_device_ref(hal_device *device);
void hal_device_unref(hal_device *device);

/* Fails for a null argument of a public function. Returns INVALID_ARGUMENT. */
hal_status hal_null_argument(const char *function, const char *argument);

/* Returns the error of a device that cannot be used, see hal_device_check. */
hal_status hal_device_check_failed(const hal_device *device, const char *function);

/* Checks that the device can be used; `function` begins the message. Threads: any.
 * Errors: INVALID_ARGUMENT for null, INVALID_STATE in a forked child, DEVICE_LOST. */
static inline hal_status hal_device_check(const hal_device *device, const char *function)
{
    const bool is_usable = device && device->generation == hal_host_generation() &&
                           !atomic_load_explicit(&device->lost, memory_order_relaxed);
    return is_usable ? HAL_OK : hal_device_check_failed(device, function);
}

/* Calls hal_host_failed with the device's name and records that the device is lost.
 * Returns `status`. Threads: any. */
hal_status hal_device_failed(hal_device *device, hal_status status, const char *format, ...)
    HAL_PRINTF(3, 4);

/* Whether the plugin can make queues of `device` wait for queues of `other` and copy into its
 * memory. True for a device and itself. Threads: any. */
bool hal_device_can_access_peer(const hal_device *device, const hal_device *other);

/* Whether this process is a forked child of the one that opened the device. Its objects must then
 * not be used or freed. */
bool hal_device_is_after_fork(const hal_device *device);

#endif
