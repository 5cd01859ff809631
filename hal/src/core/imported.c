/* Imported blocks, see imported.h. */
#include "imported.h"

#include "hooks.h"
#include "progress.h"

#include "base/status.h"

#include <stdlib.h>

typedef struct imported {
    hal_memory memory; /* the first member */
    hal_progress progress;
    hal_device *device; /* with a reference */
    hal_release_callback release;
    void *user;
    bool is_owned_by_others; /* else allocated to be shared */
} imported;

static imported *imported_of(hal_progress *progress)
{
    return (imported *)((char *)progress - offsetof(imported, progress));
}

/* A forked child does not ask for the parent's work. */
static bool imported_is_idle(hal_progress *progress)
{
    imported *block = imported_of(progress);
    if (hal_device_is_after_fork(block->device)) {
        return false;
    }
    pthread_mutex_lock(&block->memory.uses.lock);
    const bool is_idle = hal_fence_set_pending(&block->memory.uses, true) == 0;
    pthread_mutex_unlock(&block->memory.uses.lock);
    return is_idle;
}

static void imported_free(hal_progress *progress)
{
    imported *block = imported_of(progress);
    hal_device *device = block->device;
    hal_event event = {.kind = HAL_EVENT_FREE,
                       .device = device,
                       .memory = block->memory.handle,
                       .bytes = block->memory.bytes};
    hal_event_begin(&event);
    device->plugin->memory_free(device->handle, block->memory.handle);
    hal_event_end(&event, HAL_OK);
    if (block->is_owned_by_others) {
        hal_pool_count_import(device->pool, -(int64_t)block->memory.bytes);
    }
    if (block->release) {
        block->release(block->user);
    }
    hal_fence_set_destroy(&block->memory.uses);
    free(block->memory.parts);
    free(block);
    hal_device_unref(device);
}

#define RESERVED HAL_HANDLE_KIND_COUNT /* addresses without memory */

/* The plugin makes memory of `handle`, or memory that it exports as `kind`, or RESERVED. */
static hal_status plugin_memory_make(hal_device *device, const hal_memory_handle *handle,
                                     hal_handle_kind kind, uint64_t bytes, hal_plugin_memory **made)
{
    hal_event event = {.kind = HAL_EVENT_ALLOCATE, .device = device, .bytes = bytes};
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        const hal_plugin_entries *plugin = device->plugin;
        status = handle ? plugin->memory_import(device->handle, handle, made)
                 : kind == RESERVED
                     ? plugin->memory_reserve(device->handle, bytes, made)
                     : plugin->memory_allocate_shareable(device->handle, kind, bytes, made);
        status = hal_host_made(status, *made);
    }
    event.memory = *made;
    hal_event_end(&event, status);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status,
                                                handle             ? "hal_buffer_import"
                                                : kind == RESERVED ? "hal_buffer_reserve"
                                                                   : "hal_buffer_create_shareable");
}

static hal_status imported_make(hal_device *device, const hal_memory_handle *handle,
                                hal_handle_kind kind, uint64_t bytes, imported **made)
{
    imported *block = calloc(1, sizeof *block);
    if (!block) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the description of a buffer");
    }
    const hal_status status =
        plugin_memory_make(device, handle, kind, bytes, &block->memory.handle);
    if (status != HAL_OK) {
        free(block);
        return status;
    }
    hal_fence_set_init(&block->memory.uses);
    block->memory.bytes = bytes;
    block->memory.kind = HAL_MEMORY_DEVICE;
    block->memory.is_imported = true;
    block->progress.poll = imported_is_idle;
    block->progress.end = imported_free;
    block->device = hal_device_ref(device);
    *made = block;
    return HAL_OK;
}

hal_status hal_imported_create(hal_device *device, const hal_memory_handle *handle,
                               hal_release_callback release, void *user, hal_memory **memory)
{
    imported *block = NULL;
    HAL_TRY(imported_make(device, handle, 0, handle->bytes, &block));
    if (handle->kind == HAL_HANDLE_HOST) {
        block->memory.kind = HAL_MEMORY_SHARED;
    }
    block->memory.is_read_only = handle->access == HAL_ACCESS_READ;
    block->memory.is_guarded = block->memory.is_read_only;
    block->release = release;
    block->user = user;
    block->is_owned_by_others = true;
    hal_pool_count_import(device->pool, (int64_t)handle->bytes);
    *memory = &block->memory;
    return HAL_OK;
}

hal_status hal_imported_allocate(hal_device *device, hal_handle_kind kind, uint64_t bytes,
                                 hal_memory **memory)
{
    imported *block = NULL;
    HAL_TRY(imported_make(device, NULL, kind, bytes, &block));
    *memory = &block->memory;
    return HAL_OK;
}

hal_status hal_imported_reserve(hal_device *device, uint64_t bytes, uint64_t part_bytes,
                                hal_memory **memory)
{
    _Atomic uint8_t *parts = calloc(bytes / part_bytes, sizeof *parts);
    imported *block = NULL;
    if (!parts) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the parts of a buffer");
    }
    const hal_status status = imported_make(device, NULL, RESERVED, bytes, &block);
    if (status != HAL_OK) {
        free(parts);
        return status;
    }
    block->memory.parts = parts;
    block->memory.part_bytes = part_bytes;
    block->memory.is_guarded = true;
    *memory = &block->memory;
    return HAL_OK;
}

void hal_imported_end(hal_memory *memory)
{
    hal_progress *progress = &((imported *)memory)->progress;
    if (imported_is_idle(progress)) {
        imported_free(progress);
    } else {
        hal_progress_add(progress);
    }
}
