/* Opens and closes devices, each once per process, and owns their pool and kernel cache. */
#include "device.h"
#include "hooks.h"
#include "kernel_cache.h"
#include "pool.h"

#include "base/log.h"
#include "base/status.h"
#include "plugin/probe.h"
#include "plugin/registry.h"
#include "plugin/selection.h"

#include <hal/memory_peaks.h>
#include <stdio.h>
#include <stdlib.h>

/* Guarded by the registry lock. */
static hal_device *open_devices;

/* The last reference is dropped under the registry lock, so that hal_device_open cannot return a
 * device that is being closed. */
static void device_close(hal_device *device)
{
    hal_registry_lock();
    if (atomic_fetch_sub(&device->references, 1) > 1) {
        hal_registry_unlock();
        return;
    }
    hal_device **at = &open_devices;
    while (*at && *at != device) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = device->next;
    }
    hal_kernel_cache_destroy(device->kernels);
    hal_pool_destroy(device->pool);
    hal_event event = {.kind = HAL_EVENT_CLOSE, .device = device};
    hal_event_begin(&event);
    device->plugin->device_close(device->handle);
    hal_event_end(&event, HAL_OK);
    hal_log(HAL_LOG_INFO, "closed %s:%u", device->plugin->name, device->index);
    free(device->quirks);
    hal_hook_retire(HAL_OBJECT_DEVICE, device, sizeof *device, free);
    hal_registry_unlock();
}

static hal_status device_open_plugin(hal_device *device)
{
    const hal_cache_scope *outer = hal_cache_enter(&device->cache);
    hal_event event = {.kind = HAL_EVENT_OPEN, .device = device};
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        status =
            device->plugin->device_open(device->plugin->instance, device->info.id, &device->handle);
        status = hal_host_made(status, device->handle);
    }
    hal_event_end(&event, status);
    hal_cache_enter(outer);
    return status;
}

static hal_status device_create(const hal_candidate *candidate, hal_device **device)
{
    hal_module *module = candidate->module;
    hal_device *made = calloc(1, sizeof *made);
    hal_pool *pool = hal_pool_create(made);
    hal_kernel_cache *kernels = hal_kernel_cache_create(made);
    if (!made || !pool || !kernels) {
        hal_kernel_cache_destroy(kernels);
        hal_pool_destroy(pool);
        free(made);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_device_open: no host memory to open %s:%u",
                        module->table.name, candidate->index);
    }
    atomic_init(&made->references, 1);
    made->generation = hal_host_generation();
    made->index = candidate->index;
    made->module = module;
    made->plugin = &module->table;
    made->info = module->infos[candidate->index];
    made->pool = pool;
    made->kernels = kernels;
    made->close = device_close;
    made->cache.device_id = made->info.id;
    snprintf(made->cache.identity, sizeof made->cache.identity, "%s %s %s %s", module->table.name,
             module->table.build_id, made->info.driver, made->info.architecture);
    hal_probe_device(module, made->index, &made->cache, &made->info, &made->quirks);
    const hal_status status = device_open_plugin(made);
    if (status != HAL_OK) {
        hal_device_failed(made, status, "opening %s", made->info.name);
        hal_kernel_cache_destroy(kernels);
        hal_pool_destroy(pool);
        free(made->quirks);
        free(made);
        return status;
    }
    made->next = open_devices;
    open_devices = made;
    hal_log(HAL_LOG_INFO, "opened %s:%u, %s", module->table.name, made->index, made->info.name);
    *device = made;
    return HAL_OK;
}

static hal_status candidate_open(const hal_candidate *candidate, hal_device **device)
{
    for (hal_device *open = open_devices; open; open = open->next) {
        if (open->module == candidate->module && open->index == candidate->index &&
            !hal_device_is_after_fork(open) && !atomic_load(&open->lost)) {
            *device = hal_device_ref(open);
            return HAL_OK;
        }
    }
    return device_create(candidate, device);
}

/* Appends the thread's message to the list of failed attempts. */
static void attempts_add(hal_text *attempts)
{
    hal_text_add(attempts, "%s%s", attempts->length ? "; then " : "", hal_status_message());
}

static hal_status item_open(const char *item, hal_device **device)
{
    hal_candidates found = {0};
    hal_status status = hal_selection_match(item, &found);
    hal_text attempts = {0};
    hal_status first = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && !*device && i < found.count; i++) {
        const hal_status opened = candidate_open(&found.items[i], device);
        if (opened != HAL_OK) {
            first = first ? first : opened;
            attempts_add(&attempts);
        }
    }
    if (status == HAL_OK && !*device) {
        status = hal_fail(first, "%s", hal_text_get(&attempts));
    }
    hal_text_free(&attempts);
    free(found.items);
    return status;
}

/* Tells the hooks about the program's new reference. The device may have been open already. */
static void device_report_opened(const hal_device *device)
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
    hal_text attempts = {0};
    hal_status first = HAL_OK;
    hal_registry_lock();
    while (!*device) {
        char item[HAL_SELECTION_ITEM_BYTES];
        hal_status status = hal_selection_next(&rest, item);
        if (status == HAL_OK && !item[0]) {
            break;
        }
        if (status == HAL_OK) {
            status = item_open(item, device);
        }
        if (status != HAL_OK) {
            first = first ? first : status;
            attempts_add(&attempts);
        }
    }
    if (*device) {
        device_report_opened(*device);
    }
    hal_registry_unlock();
    hal_status status = HAL_OK;
    if (!*device) {
        status = hal_fail(first, "%s \"%s\": %s", origin, text, hal_text_get(&attempts));
    } else if (first != HAL_OK) {
        hal_log(HAL_LOG_WARN, "%s \"%s\": %s", origin, text, hal_text_get(&attempts));
    }
    hal_text_free(&attempts);
    return status;
}

hal_status hal_device_get_memory(hal_device *device, hal_memory_statistics *statistics)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_memory"));
    HAL_TRY(hal_device_check(device, "hal_device_get_memory"));
    if (!statistics) {
        return hal_null_argument("hal_device_get_memory", "statistics");
    }
    return hal_pool_statistics(device->pool, statistics);
}

hal_status hal_device_get_memory_peaks(hal_device *device, hal_memory_peaks *peaks)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_memory_peaks"));
    HAL_TRY(hal_device_check(device, "hal_device_get_memory_peaks"));
    if (!peaks) {
        return hal_null_argument("hal_device_get_memory_peaks", "peaks");
    }
    *peaks = hal_pool_peaks(device->pool);
    return HAL_OK;
}

hal_status hal_device_reset_memory_peaks(hal_device *device)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_reset_memory_peaks"));
    HAL_TRY(hal_device_check(device, "hal_device_reset_memory_peaks"));
    hal_pool_reset_peaks(device->pool);
    return HAL_OK;
}

hal_status hal_device_trim(hal_device *device)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_trim");
    if (status == HAL_OK) {
        status = hal_device_check(device, "hal_device_trim");
    }
    if (status == HAL_OK) {
        hal_pool_trim(device->pool, false);
    }
    return status;
}
