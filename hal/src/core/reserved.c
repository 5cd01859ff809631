/* Reserved buffers: parts of a range of addresses get memory and lose it. */
#include "buffer.h"
#include "hooks.h"
#include "imported.h"

#include "base/status.h"

#include <hal/reserved.h>
#include <stdlib.h>

static hal_status device_check(hal_device *device, const char *function)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, function));
    HAL_TRY(hal_device_check(device, function));
    hal_host_clear_error();
    return (device->info.features & HAL_FEATURE_VIRTUAL_MEMORY) != 0
               ? HAL_OK
               : hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: device: expected HAL_FEATURE_VIRTUAL_MEMORY, which %s:%u does not "
                          "have; use hal_buffer_create",
                          function, device->plugin->name, device->index);
}

static hal_status part_bytes_get(hal_device *device, const char *function, uint64_t *bytes)
{
    *bytes = 0;
    const hal_status status = device->plugin->part_bytes(device->handle, bytes);
    if (status == HAL_OK && (*bytes == 0 || (*bytes & (*bytes - 1)) != 0)) {
        return hal_fail(HAL_ERROR_INTERNAL, "%s: %s says that a part has %llu bytes", function,
                        device->plugin->name, (unsigned long long)*bytes);
    }
    return status == HAL_OK ? HAL_OK : hal_device_failed(device, status, "%s", function);
}

hal_status hal_device_get_part_bytes(hal_device *device, uint64_t *bytes)
{
    static const char function[] = "hal_device_get_part_bytes";
    HAL_TRY(device_check(device, function));
    return bytes ? part_bytes_get(device, function, bytes) : hal_null_argument(function, "bytes");
}

hal_status hal_buffer_reserve(hal_device *device, uint64_t bytes, hal_buffer **buffer)
{
    static const char function[] = "hal_buffer_reserve";
    uint64_t part = 0;
    if (!buffer) {
        return hal_null_argument(function, "buffer");
    }
    *buffer = NULL;
    HAL_TRY(device_check(device, function));
    HAL_TRY(part_bytes_get(device, function, &part));
    if (bytes == 0 || bytes % part != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: bytes: expected a multiple of %llu, a part, got %llu", function,
                        (unsigned long long)part, (unsigned long long)bytes);
    }
    hal_buffer *made = malloc(sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    hal_memory *memory = NULL;
    const hal_status status = hal_imported_reserve(device, bytes, part, &memory);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    hal_buffer_init(made, device, memory, bytes);
    hal_hook_created(HAL_OBJECT_BUFFER, made, device, "", bytes);
    *buffer = made;
    return HAL_OK;
}

/* Checks the range, and that all of its parts have memory, or that none has. */
static hal_status range_check(hal_buffer *buffer, uint64_t offset, uint64_t bytes, bool has,
                              const char *function)
{
    if (!buffer) {
        return hal_null_argument(function, "buffer");
    }
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, buffer, function));
    HAL_TRY(hal_device_check(buffer->device, function));
    const hal_memory *memory = atomic_load(&buffer->memory);
    if (!memory || !memory->parts) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: buffer: expected one of hal_buffer_reserve, got buffer \"%s\"",
                        function, buffer->label);
    }
    const uint64_t part = memory->part_bytes;
    if (offset % part != 0 || bytes % part != 0 || bytes == 0 || offset > buffer->bytes ||
        bytes > buffer->bytes - offset) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: expected parts of %llu bytes within the %llu of the buffer, got %llu "
                        "bytes from %llu on",
                        function, (unsigned long long)part, (unsigned long long)buffer->bytes,
                        (unsigned long long)bytes, (unsigned long long)offset);
    }
    for (uint64_t i = offset / part; i < (offset + bytes) / part; i++) {
        if ((atomic_load(&memory->parts[i]) != 0) != has) {
            return hal_fail(HAL_ERROR_INVALID_STATE,
                            "%s: expected parts %s memory, got one %s at byte %llu", function,
                            has ? "with" : "without", has ? "without" : "with",
                            (unsigned long long)(i * part));
        }
    }
    return HAL_OK;
}

static hal_status idle_check(hal_buffer *buffer, const char *function)
{
    hal_memory *memory = atomic_load(&buffer->memory);
    pthread_mutex_lock(&memory->uses.lock);
    const bool is_idle = hal_fence_set_pending(&memory->uses, true) == 0;
    pthread_mutex_unlock(&memory->uses.lock);
    return is_idle ? HAL_OK
                   : hal_fail(HAL_ERROR_INVALID_STATE,
                              "%s: buffer: expected one that no work uses, got work that has not "
                              "ended; call hal_queue_wait",
                              function);
}

static hal_status range_end(hal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access,
                            hal_status status, const char *function)
{
    if (status != HAL_OK) {
        return hal_device_failed(buffer->device, status, "%s", function);
    }
    hal_memory *memory = atomic_load(&buffer->memory);
    const uint64_t part = memory->part_bytes;
    for (uint64_t i = offset / part; i < (offset + bytes) / part; i++) {
        atomic_store(&memory->parts[i], (uint8_t)access);
    }
    return HAL_OK;
}

hal_status hal_buffer_commit(hal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    static const char function[] = "hal_buffer_commit";
    HAL_TRY(range_check(buffer, offset, bytes, false, function));
    hal_device *device = buffer->device;
    hal_host_clear_error();
    const hal_status status = device->plugin->memory_commit(
        device->handle, atomic_load(&buffer->memory)->handle, offset, bytes);
    return range_end(buffer, offset, bytes, HAL_ACCESS_READ_WRITE, status, function);
}

hal_status hal_buffer_decommit(hal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    static const char function[] = "hal_buffer_decommit";
    HAL_TRY(range_check(buffer, offset, bytes, true, function));
    HAL_TRY(idle_check(buffer, function));
    hal_device *device = buffer->device;
    hal_host_clear_error();
    const hal_status status = device->plugin->memory_decommit(
        device->handle, atomic_load(&buffer->memory)->handle, offset, bytes);
    return range_end(buffer, offset, bytes, 0, status, function);
}

hal_status hal_buffer_protect(hal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access)
{
    static const char function[] = "hal_buffer_protect";
    HAL_TRY(range_check(buffer, offset, bytes, true, function));
    if (access != HAL_ACCESS_READ && access != HAL_ACCESS_READ_WRITE) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: access: expected HAL_ACCESS_READ or HAL_ACCESS_READ_WRITE, got %u",
                        function, access);
    }
    HAL_TRY(idle_check(buffer, function));
    hal_device *device = buffer->device;
    hal_host_clear_error();
    const hal_status status =
        device->plugin->memory_protect
            ? device->plugin->memory_protect(device->handle, atomic_load(&buffer->memory)->handle,
                                             offset, bytes, access)
            : HAL_OK;
    return range_end(buffer, offset, bytes, access, status, function);
}
