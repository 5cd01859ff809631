/* Fences of others: import, creation, export and end. */
#include "fence.h"

#include "hooks.h"

#include "base/status.h"

#include <stdlib.h>

#define PLUGIN_KINDS (HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) | HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD))

static hal_fence *fence_of(hal_progress *progress)
{
    return (hal_fence *)((char *)progress - offsetof(hal_fence, progress));
}

/* A forked child does not ask for the parent's work. */
static bool fence_is_idle(hal_progress *progress)
{
    hal_fence *fence = fence_of(progress);
    if (hal_device_is_after_fork(fence->device)) {
        return false;
    }
    pthread_mutex_lock(&fence->uses.lock);
    const bool is_idle = hal_fence_set_pending(&fence->uses, true) == 0;
    pthread_mutex_unlock(&fence->uses.lock);
    return is_idle;
}

static void fence_free(hal_progress *progress)
{
    hal_fence *fence = fence_of(progress);
    if (fence->handle) {
        fence->device->plugin->fence_destroy(fence->device->handle, fence->handle);
    }
    hal_device_unref(fence->device);
    hal_fence_set_destroy(&fence->uses);
    free(fence);
}

static hal_fence *fence_make(hal_device *device, hal_handle_kind kind)
{
    hal_fence *fence = calloc(1, sizeof *fence);
    if (fence) {
        hal_fence_set_init(&fence->uses);
        atomic_init(&fence->references, 1);
        fence->kind = kind;
        fence->device = hal_device_ref(device);
        fence->progress.poll = fence_is_idle;
        fence->progress.end = fence_free;
    }
    return fence;
}

static hal_status kind_check(const hal_device *device, hal_handle_kind kind, uint32_t kinds,
                             const char *function, const char *does)
{
    if (kind >= HAL_HANDLE_KIND_COUNT || kind == HAL_HANDLE_DMA_BUF) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: kind: expected HAL_HANDLE_HOST, _NATIVE or _OPAQUE_FD, got %u",
                        function, kind);
    }
    return kinds & HAL_HANDLE_BIT(kind)
               ? HAL_OK
               : hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: kind: %s:%u %s fences of the kinds 0x%x, got %u", function,
                          device->plugin->name, device->index, does, kinds, kind);
}

static hal_status fence_check(hal_device *device, hal_handle_kind kind, bool imports,
                              const char *function, hal_fence **fence)
{
    uint32_t import_kinds = 0, export_kinds = 0;
    if (!fence) {
        return hal_null_argument(function, "fence");
    }
    *fence = NULL;
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, function));
    HAL_TRY(hal_device_check(device, function));
    HAL_TRY(hal_fence_kinds(device, &import_kinds, &export_kinds));
    return kind_check(device, kind, imports ? import_kinds : export_kinds, function,
                      imports ? "imports" : "creates");
}

/* Gives the fence to the program, or frees it after an error of the plugin. */
static hal_status fence_finish(hal_fence *made, hal_status status, const char *function,
                               hal_fence **fence)
{
    if (status == HAL_OK) {
        *fence = made;
        return HAL_OK;
    }
    status = hal_device_failed(made->device, status, "%s", function);
    made->handle = NULL;
    fence_free(&made->progress);
    return status;
}

hal_fence *hal_fence_ref(hal_fence *fence)
{
    atomic_fetch_add(&fence->references, 1);
    return fence;
}

void hal_fence_unref(hal_fence *fence)
{
    if (atomic_fetch_sub(&fence->references, 1) > 1) {
        return;
    }
    if (fence_is_idle(&fence->progress)) {
        fence_free(&fence->progress);
    } else {
        hal_progress_add(&fence->progress);
    }
}

hal_status hal_fence_add_use(hal_fence *fence, hal_last_use use)
{
    pthread_mutex_lock(&fence->uses.lock);
    const hal_status status = hal_fence_set_add(&fence->uses, use);
    pthread_mutex_unlock(&fence->uses.lock);
    return status;
}

hal_status hal_fence_kinds(hal_device *device, uint32_t *import_kinds, uint32_t *export_kinds)
{
    const hal_plugin_entries *plugin = device->plugin;
    uint32_t imports = 0, exports = 0;
    if (plugin->fence_info && plugin->fence_import && plugin->fence_destroy &&
        plugin->queue_signal_fence) {
        hal_host_clear_error();
        const hal_status status = plugin->fence_info(device->handle, &imports, &exports);
        if (status != HAL_OK) {
            return hal_device_failed(device, status, "the kinds of fences");
        }
    }
    *import_kinds = (imports & PLUGIN_KINDS) | HAL_HANDLE_BIT(HAL_HANDLE_HOST);
    *export_kinds = plugin->fence_create && plugin->fence_export ? exports & PLUGIN_KINDS : 0;
    return HAL_OK;
}

hal_status hal_fence_import(hal_device *device, hal_handle_kind kind, uint64_t handle,
                            hal_fence **fence)
{
    static const char function[] = "hal_fence_import";
    HAL_TRY(fence_check(device, kind, true, function, fence));
    if (kind != HAL_HANDLE_OPAQUE_FD && handle == 0) {
        return hal_null_argument(function, "handle");
    }
    if (kind == HAL_HANDLE_HOST && handle % sizeof(uint64_t) != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: handle: expected an address that is a multiple of 8, got 0x%llx",
                        function, (unsigned long long)handle);
    }
    hal_fence *made = fence_make(device, kind);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    hal_status status = HAL_OK;
    if (kind == HAL_HANDLE_HOST) {
        made->counter = (_Atomic uint64_t *)(uintptr_t)handle;
    } else {
        hal_host_clear_error();
        status = device->plugin->fence_import(device->handle, kind, handle, &made->handle);
        status = hal_host_made(status, made->handle);
    }
    return fence_finish(made, status, function, fence);
}

hal_status hal_fence_create(hal_device *device, hal_handle_kind kind, hal_fence **fence)
{
    static const char function[] = "hal_fence_create";
    HAL_TRY(fence_check(device, kind, false, function, fence));
    hal_fence *made = fence_make(device, kind);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    hal_host_clear_error();
    hal_status status = device->plugin->fence_create(device->handle, kind, &made->handle);
    status = hal_host_made(status, made->handle);
    return fence_finish(made, status, function, fence);
}

hal_status hal_fence_export(hal_fence *fence, hal_handle_kind kind, uint64_t *handle)
{
    static const char function[] = "hal_fence_export";
    if (!fence || !handle) {
        return hal_null_argument(function, fence ? "handle" : "fence");
    }
    hal_device *device = fence->device;
    HAL_TRY(hal_device_check(device, function));
    if (fence->counter && kind == HAL_HANDLE_HOST) {
        *handle = (uint64_t)(uintptr_t)fence->counter;
        return HAL_OK;
    }
    const bool may_be = fence->handle && device->plugin->fence_export;
    HAL_TRY(kind_check(device, kind, may_be ? PLUGIN_KINDS : 0, function, "exports this fence as"));
    uint64_t value = 0;
    hal_host_clear_error();
    const hal_status status =
        device->plugin->fence_export(device->handle, fence->handle, kind, &value);
    if (status != HAL_OK) {
        return hal_device_failed(device, status, "%s", function);
    }
    *handle = value;
    return HAL_OK;
}

void hal_fence_destroy(hal_fence *fence)
{
    if (fence) {
        hal_fence_unref(fence);
    }
}
