/* Buffers of memory that others own, and handles of hal's memory. */
#include "buffer.h"
#include "fence.h"
#include "hooks.h"
#include "imported.h"

#include "base/sized.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

#define DESCRIPTORS (HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD) | HAL_HANDLE_BIT(HAL_HANDLE_DMA_BUF))

static const char *const kind_names[HAL_HANDLE_KIND_COUNT] = {
    [HAL_HANDLE_HOST] = "HAL_HANDLE_HOST",
    [HAL_HANDLE_NATIVE] = "HAL_HANDLE_NATIVE",
    [HAL_HANDLE_OPAQUE_FD] = "HAL_HANDLE_OPAQUE_FD",
    [HAL_HANDLE_DMA_BUF] = "HAL_HANDLE_DMA_BUF"};

/* Kinds without an entry of the plugin are removed; so are unknown ones. */
static hal_status external_get(hal_device *device, hal_external_info *info)
{
    *info = (hal_external_info){.size = sizeof *info, .host_alignment = 1, .host_granularity = 1};
    if (!device->plugin->external_info) {
        return HAL_OK;
    }
    const uint32_t known = HAL_HANDLE_BIT(HAL_HANDLE_KIND_COUNT) - 1;
    *info = (hal_external_info){.size = sizeof *info};
    hal_host_clear_error();
    const hal_status status = device->plugin->external_info(device->handle, info);
    info->size = sizeof *info;
    info->import_kinds &= device->plugin->memory_import ? known : 0;
    info->export_kinds &= device->plugin->memory_export ? known : 0;
    info->export_kinds &= device->plugin->memory_allocate_shareable ? known : ~DESCRIPTORS;
    info->host_alignment += info->host_alignment == 0;
    info->host_granularity += info->host_granularity == 0;
    return status == HAL_OK ? HAL_OK : hal_device_failed(device, status, "hal_device_get_external");
}

static hal_status kind_check(const hal_device *device, uint32_t kind, uint32_t kinds,
                             const char *function, const char *does)
{
    if (kind >= HAL_HANDLE_KIND_COUNT) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: kind: expected one of HAL_HANDLE_*, got %u", function, kind);
    }
    if (kinds & HAL_HANDLE_BIT(kind)) {
        return HAL_OK;
    }
    char others[128] = "no memory";
    for (uint32_t i = 0, used = 0; i < HAL_HANDLE_KIND_COUNT; i++) {
        if (kinds & HAL_HANDLE_BIT(i)) {
            used += (uint32_t)snprintf(others + used, sizeof others - used, "%s%s",
                                       used ? ", " : "", kind_names[i]);
        }
    }
    return hal_fail(HAL_ERROR_UNSUPPORTED, "%s: kind: %s:%u %s %s, got %s", function,
                    device->plugin->name, device->index, does, others, kind_names[kind]);
}

static hal_status host_check(const hal_memory_handle *handle, const hal_external_info *info)
{
    const uint64_t first = handle->handle + handle->offset;
    if (handle->handle == 0) {
        return hal_null_argument("hal_buffer_import", "handle.handle");
    }
    if (first % info->host_alignment != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_import: handle.handle: expected an address that is a multiple "
                        "of %u, got 0x%llx",
                        info->host_alignment, (unsigned long long)first);
    }
    if (handle->bytes % info->host_granularity != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_import: handle.bytes: expected a multiple of %u, got %llu",
                        info->host_granularity, (unsigned long long)handle->bytes);
    }
    return HAL_OK;
}

static hal_status size_check(const hal_device *device, uint64_t bytes, const char *function)
{
    return bytes <= device->info.max_allocation
               ? HAL_OK
               : hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: bytes: expected at most %llu, the largest allocation of %s:%u, got "
                          "%llu",
                          function, (unsigned long long)device->info.max_allocation,
                          device->plugin->name, device->index, (unsigned long long)bytes);
}

static hal_status handle_check(hal_device *device, const hal_memory_handle *handle)
{
    hal_external_info info;
    HAL_TRY(external_get(device, &info));
    HAL_TRY(kind_check(device, handle->kind, info.import_kinds, "hal_buffer_import", "imports"));
    if (handle->access != HAL_ACCESS_READ && handle->access != HAL_ACCESS_READ_WRITE) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_import: handle.access: expected HAL_ACCESS_READ or "
                        "HAL_ACCESS_READ_WRITE, got %u",
                        handle->access);
    }
    const uint64_t rest =
        UINT64_MAX - handle->offset - (handle->kind == HAL_HANDLE_HOST ? handle->handle : 0);
    const bool wraps =
        handle->kind == HAL_HANDLE_HOST && handle->handle > UINT64_MAX - handle->offset;
    if (handle->bytes == 0 || wraps || handle->bytes > rest) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_import: handle.bytes: expected at least 1 byte within the "
                        "address space, got %llu from offset %llu on",
                        (unsigned long long)handle->bytes, (unsigned long long)handle->offset);
    }
    HAL_TRY(size_check(device, handle->bytes, "hal_buffer_import"));
    return handle->kind == HAL_HANDLE_HOST ? host_check(handle, &info) : HAL_OK;
}

/* Makes the description the buffer of a new block, or frees it after an error. */
static hal_status buffer_finish(hal_status status, hal_buffer *made, hal_device *device,
                                hal_memory *memory, uint64_t bytes, hal_buffer **buffer)
{
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    hal_buffer_init(made, device, memory, bytes);
    atomic_store(&made->is_external, true);
    hal_hook_created(HAL_OBJECT_BUFFER, made, device, "", bytes);
    *buffer = made;
    return HAL_OK;
}

hal_status hal_device_get_external(hal_device *device, hal_external_info *info)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_external"));
    HAL_TRY(hal_device_check(device, "hal_device_get_external"));
    if (!info) {
        return hal_null_argument("hal_device_get_external", "info");
    }
    HAL_TRY(external_get(device, info));
    return hal_fence_kinds(device, &info->fence_imports, &info->fence_exports);
}

hal_status hal_buffer_import(hal_device *device, const hal_memory_handle *handle,
                             hal_release_callback release, void *user, hal_buffer **buffer)
{
    if (!handle || !buffer) {
        return hal_null_argument("hal_buffer_import", handle ? "buffer" : "handle");
    }
    *buffer = NULL;
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_buffer_import"));
    HAL_TRY(hal_device_check(device, "hal_buffer_import"));
    hal_memory_handle own;
    if (!hal_sized_take(&own, sizeof own, handle, HAL_MEMORY_HANDLE_LEAST_BYTES)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_import: handle.size: expected sizeof(hal_memory_handle), %zu, "
                        "got %u",
                        sizeof own, handle->size);
    }
    HAL_TRY(handle_check(device, &own));
    hal_buffer *made = malloc(sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_buffer_import: no host memory");
    }
    hal_memory *memory = NULL;
    const hal_status status = hal_imported_create(device, &own, release, user, &memory);
    return buffer_finish(status, made, device, memory, own.bytes, buffer);
}

hal_status hal_buffer_create_shareable(hal_device *device, hal_handle_kind kind, uint64_t bytes,
                                       hal_buffer **buffer)
{
    static const char name[] = "hal_buffer_create_shareable";
    if (!buffer) {
        return hal_null_argument(name, "buffer");
    }
    *buffer = NULL;
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, name));
    HAL_TRY(hal_device_check(device, name));
    if ((kind != HAL_HANDLE_OPAQUE_FD && kind != HAL_HANDLE_DMA_BUF) || bytes == 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: expected HAL_HANDLE_OPAQUE_FD or HAL_HANDLE_DMA_BUF and at least 1 "
                        "byte, got kind %u and %llu bytes",
                        name, kind, (unsigned long long)bytes);
    }
    hal_external_info info;
    HAL_TRY(external_get(device, &info));
    HAL_TRY(kind_check(device, kind, info.export_kinds, name, "exports"));
    HAL_TRY(size_check(device, bytes, name));
    hal_buffer *made = malloc(sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", name);
    }
    hal_memory *memory = NULL;
    const hal_status status = hal_imported_allocate(device, kind, bytes, &memory);
    return buffer_finish(status, made, device, memory, bytes, buffer);
}

hal_status hal_buffer_export(hal_buffer *buffer, hal_handle_kind kind, hal_memory_handle *handle)
{
    if (!buffer || !handle) {
        return hal_null_argument("hal_buffer_export", buffer ? "handle" : "buffer");
    }
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_export"));
    hal_device *device = buffer->device;
    HAL_TRY(hal_device_check(device, "hal_buffer_export"));
    hal_external_info info;
    HAL_TRY(external_get(device, &info));
    HAL_TRY(kind_check(device, kind, info.export_kinds, "hal_buffer_export", "exports"));
    hal_memory *memory = NULL;
    HAL_TRY(hal_buffer_pin(buffer, &memory));
    hal_memory_handle own = {.size = sizeof own};
    hal_host_clear_error();
    const hal_status status =
        device->plugin->memory_export(device->handle, memory->handle, kind, &own);
    if (status != HAL_OK) {
        return hal_device_failed(device, status, "hal_buffer_export");
    }
    atomic_store(&buffer->is_external, true);
    hal_hook_exported(buffer);
    own.size = sizeof own;
    own.kind = kind;
    own.offset += memory->offset;
    own.bytes = buffer->bytes;
    own.access = memory->is_read_only ? HAL_ACCESS_READ : HAL_ACCESS_READ_WRITE;
    *handle = own;
    return HAL_OK;
}
