/* Devices: opened once for each process, shared by reference. Called by programs through
 * hal/device.h and by every source that checks a device before use. */
#include "device.h"

#include "hooks.h"
#include "plugin/host.h"
#include "base/log.h"
#include "plugin/registry.h"
#include "plugin/selection.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under the registry's lock. */
static hal_device *open_devices;

static hal_status make_device(const hal_candidate *candidate, hal_device **device)
{
    hal_module *module = candidate->module;
    hal_device *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "opening %s:%u: no host memory",
                        module->table.name, candidate->index);
    }
    atomic_init(&made->references, 1);
    made->generation = hal_host_generation();
    made->index = candidate->index;
    made->module = module;
    made->plugin = &module->table;
    made->info = module->infos[candidate->index];
    made->cache.device_id = made->info.id;
    snprintf(made->cache.identity, sizeof made->cache.identity, "%s %s %s %s", module->table.name,
             module->table.build_id, made->info.driver, made->info.architecture);
    const hal_cache_scope *outer = hal_cache_enter(&made->cache);
    hal_event event = {.kind = HAL_EVENT_OPEN, .device = made};
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        status = made->plugin->device_open(candidate->index, &made->handle);
        status = hal_host_made(status, made->handle);
    }
    hal_event_end(&event, status);
    hal_cache_enter(outer);
    if (status != HAL_OK) {
        const hal_status failed = hal_device_failed(made, status, "opening %s", made->info.name);
        free(made);
        return failed;
    }
    hal_pool_begin(&made->pool, made);
    hal_kernel_table_begin(&made->kernels);
    made->next = open_devices;
    open_devices = made;
    hal_log(HAL_LOG_INFO, "opened %s:%u, %s", module->table.name, made->index, made->info.name);
    *device = made;
    return HAL_OK;
}

static hal_status open_candidate(const hal_candidate *candidate, hal_device **device)
{
    for (hal_device *open = open_devices; open; open = open->next) {
        if (open->module == candidate->module && open->index == candidate->index &&
            !hal_device_is_after_fork(open) && !atomic_load(&open->lost)) {
            *device = hal_device_ref(open);
            return HAL_OK;
        }
    }
    return make_device(candidate, device);
}

static hal_status open_item(const char *item, hal_device **device)
{
    hal_candidates found = {0};
    hal_status status = hal_selection_match(item, &found);
    hal_text tried = {0};
    hal_status first = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && !*device && i < found.count; i++) {
        const hal_status opened = open_candidate(&found.items[i], device);
        if (opened != HAL_OK) {
            first = first ? first : opened;
            hal_text_add(&tried, "%s%s", tried.length ? "; then " : "", hal_status_message());
        }
    }
    if (status == HAL_OK && !*device) {
        status = hal_fail(first, "%s", hal_text_get(&tried));
    }
    hal_text_free(&tried);
    free(found.items);
    return status;
}

static void close_device(hal_device *device)
{
    hal_kernel_table_end(device);
    hal_pool_end(&device->pool);
    hal_event event = {.kind = HAL_EVENT_CLOSE, .device = device};
    hal_event_begin(&event);
    device->plugin->device_close(device->handle);
    hal_event_end(&event, HAL_OK);
    hal_log(HAL_LOG_INFO, "closed %s:%u", device->plugin->name, device->index);
    hal_hook_retire(HAL_OBJECT_DEVICE, device, sizeof *device, free);
}

/* The program has a reference to a device, which may have been open already. */
static void note_opened(const hal_device *device)
{
    char name[64];
    snprintf(name, sizeof name, "%s:%u", device->plugin->name, device->index);
    hal_hook_created(HAL_OBJECT_DEVICE, device, device, name, 0);
}

hal_status hal_device_open_selected(const char *selection, hal_device **device)
{
    const char *origin;
    const char *text = hal_selection_text(selection, &origin);
    const char *rest = text;
    hal_text tried = {0};
    hal_status first = HAL_OK;
    hal_registry_lock();
    while (!*device) {
        char item[HAL_SELECTION_ITEM_BYTES];
        hal_status status = hal_selection_next(&rest, item);
        if (status == HAL_OK && !item[0]) {
            break;
        }
        if (status == HAL_OK) {
            status = open_item(item, device);
        }
        if (status != HAL_OK) {
            first = first ? first : status;
            hal_text_add(&tried, "%s%s", tried.length ? "; then " : "", hal_status_message());
        }
    }
    if (*device) {
        note_opened(*device);
    }
    hal_registry_unlock();
    hal_status status = HAL_OK;
    if (!*device) {
        status = hal_fail(first, "%s \"%s\": %s", origin, text, hal_text_get(&tried));
    } else if (first != HAL_OK) {
        hal_log(HAL_LOG_WARN, "%s \"%s\": %s", origin, text, hal_text_get(&tried));
    }
    hal_text_free(&tried);
    return status;
}

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
    /* The last one goes under the lock, so that nobody finds a device that is being closed. */
    hal_registry_lock();
    if (atomic_fetch_sub(&device->references, 1) == 1) {
        hal_device **at = &open_devices;
        while (*at && *at != device) {
            at = &(*at)->next;
        }
        if (*at) {
            *at = device->next;
        }
        close_device(device);
    }
    hal_registry_unlock();
}

const hal_device_info *hal_device_get_info(const hal_device *device)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_info");
    return device && status == HAL_OK ? &device->info : NULL;
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

hal_status hal_device_get_memory(hal_device *device, hal_memory_statistics *statistics)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_memory");
    if (status == HAL_OK) {
        status = hal_device_check(device, "hal_device_get_memory");
    }
    if (status != HAL_OK) {
        return status;
    }
    if (!statistics) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_device_get_memory: statistics is null");
    }
    return hal_pool_statistics(&device->pool, statistics);
}

hal_status hal_device_trim(hal_device *device)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_trim");
    if (status == HAL_OK) {
        status = hal_device_check(device, "hal_device_trim");
    }
    if (status == HAL_OK) {
        hal_pool_trim(&device->pool, 0);
    }
    return status;
}

hal_status hal_device_check(const hal_device *device, const char *what)
{
    if (!device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: device is null", what);
    }
    if (hal_device_is_after_fork(device)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "%s: device %s:%u was opened before the process forked; open devices "
                        "in the child, or fork before opening them",
                        what, device->plugin->name, device->index);
    }
    if (atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        return hal_fail(HAL_ERROR_DEVICE_LOST,
                        "%s: device %s:%u (%s) was lost earlier; release all that belongs to it "
                        "and open it anew",
                        what, device->plugin->name, device->index, device->info.name);
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

int hal_device_can_access_peer(const hal_device *device, const hal_device *other)
{
    return device == other ||
           (device->module == other->module && device->plugin->device_can_access_peer &&
            device->plugin->device_can_access_peer(device->handle, other->handle) != 0);
}

int hal_device_is_after_fork(const hal_device *device)
{
    return device->generation != hal_host_generation();
}
