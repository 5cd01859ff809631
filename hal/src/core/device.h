/* An open device, as the sources of hal see it. */
#ifndef HAL_SRC_CORE_DEVICE_H
#define HAL_SRC_CORE_DEVICE_H

#include "plugin/cache.h"
#include "plugin/host.h"
#include "kernel.h"
#include "plugin/loader.h"
#include "pool.h"

#include <hal/device.h>
#include <stdatomic.h>

struct hal_device {
    hal_device *next; /* of the open devices, under the registry's lock */
    _Atomic uint32_t references;
    _Atomic int lost;
    uint32_t generation; /* of the process that opened it, see hal_host_generation */
    uint32_t index;
    hal_module *module;
    const hal_plugin *plugin;
    hal_device_info info;
    hal_plugin_device *handle;
    hal_pool pool;
    hal_kernel_table kernels;
    hal_cache_scope cache;
};

/* hal_device_open without its checks and without switching layers on, which layers/device_open.c
 * does first. `*device` is null. */
hal_status hal_device_open_selected(const char *selection, hal_device **device);

/* References that hal's own objects hold: as hal_device_retain and hal_device_release, but not the
 * program's. */
hal_device *hal_device_ref(hal_device *device);
void hal_device_unref(hal_device *device);

/* Whether the device can be used: `what` begins the sentence. Cheap.
 * Errors: INVALID_ARGUMENT for null, INVALID_STATE in a forked child, DEVICE_LOST. */
hal_status hal_device_check(const hal_device *device, const char *what);

/* The same, without a sentence. */
static inline int hal_device_is_well(const hal_device *device)
{
    return device->generation == hal_host_generation() &&
           !atomic_load_explicit(&device->lost, memory_order_relaxed);
}

/* As hal_host_failed, and notes a lost device. */
hal_status hal_device_failed(hal_device *device, hal_status status, const char *format, ...)
    HAL_PRINTF(3, 4);

/* Whether the plugin itself can make the device's queues wait for those of the other and copy into
 * its memory; so it is with a device and itself. Threads: any. */
int hal_device_can_access_peer(const hal_device *device, const hal_device *other);

/* Whether objects of the device may only be forgotten: this is a forked child. */
int hal_device_is_after_fork(const hal_device *device);

#endif
