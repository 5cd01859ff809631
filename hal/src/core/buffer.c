/* Buffers: memory of a device, or a part of a larger one. */
#include "buffer.h"

#include "hooks.h"
#include "imported.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Replaces memory that work of earlier owners still uses by idle memory. The contents of a new
 * buffer are undefined, so nothing is copied. The caller holds memory->uses.lock, which this
 * function unlocks. */
static hal_status memory_replace(hal_buffer *buffer, hal_memory *memory)
{
    hal_pool *pool = buffer->device->pool;
    hal_memory *idle = NULL;
    const hal_status status = hal_pool_take(pool, buffer->kind, buffer->bytes, true, &idle);
    if (status == HAL_OK) {
        atomic_store(&buffer->memory, idle);
    }
    pthread_mutex_unlock(&memory->uses.lock);
    if (status == HAL_OK) {
        hal_pool_give(pool, memory);
    }
    return status;
}

/* Returns the buffer's memory with the lock of its uses held, under which it is not replaced. */
static hal_memory *memory_lock(hal_buffer *buffer)
{
    for (;;) {
        hal_memory *memory = atomic_load(&buffer->memory);
        pthread_mutex_lock(&memory->uses.lock);
        if (memory == atomic_load(&buffer->memory)) {
            return memory;
        }
        pthread_mutex_unlock(&memory->uses.lock); /* another thread replaced it meanwhile */
    }
}

/* Returns the buffer's memory, idle but for the buffer's own work, with the lock of its uses held:
 * the memory is not replaced any more. */
static hal_status memory_pin(hal_buffer *buffer, hal_memory **memory)
{
    hal_status status = HAL_OK;
    *memory = memory_lock(buffer);
    if ((*memory)->reused && hal_fence_set_pending(&(*memory)->uses, true) > 0) {
        status = memory_replace(buffer, *memory); /* unlocks */
        *memory = memory_lock(buffer);
    }
    if (status == HAL_OK) {
        (*memory)->reused = false;
    }
    return status;
}

/* Makes the batch wait for the work of earlier owners. The caller holds the lock of the uses.
 * Errors: INVALID_STATE, without a message, if some of that work was not submitted yet. */
static hal_status memory_wait_for_uses(hal_memory *memory, hal_recorder *recorder)
{
    hal_fence_set *uses = &memory->uses;
    for (uint32_t i = 0; i < uses->count; i++) {
        const hal_last_use use = uses->items[i];
        if (use.timeline != recorder->timeline &&
            !hal_timeline_has_submitted(use.timeline, use.value)) {
            return HAL_ERROR_INVALID_STATE;
        }
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        HAL_TRY(hal_recorder_add_wait(recorder, uses->items[i]));
    }
    uses->count = 0;
    return HAL_OK;
}

/* The device is kept open by the block. */
void hal_buffer_init(hal_buffer *buffer, hal_device *device, hal_memory *memory, uint64_t bytes)
{
    atomic_init(&buffer->references, 1);
    atomic_init(&buffer->memory, memory);
    atomic_init(&buffer->mapped, 0);
    atomic_init(&buffer->is_external, false);
    buffer->kind = memory->kind;
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->label[0] = 0;
}

hal_status hal_buffer_create(hal_device *device, hal_memory_kind kind, uint64_t bytes,
                             hal_buffer **buffer)
{
    if (!buffer) {
        return hal_null_argument("hal_buffer_create", "buffer");
    }
    *buffer = NULL;
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_buffer_create"));
    HAL_TRY(hal_device_check(device, "hal_buffer_create"));
    if (kind >= HAL_MEMORY_KIND_COUNT) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_create: kind: expected one of HAL_MEMORY_*, got %u", kind);
    }
    if (bytes > device->info.max_allocation) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_buffer_create: bytes: expected at most %llu, the largest allocation "
                        "of %s:%u, got %llu",
                        (unsigned long long)device->info.max_allocation, device->plugin->name,
                        device->index, (unsigned long long)bytes);
    }
    /* The host often maps a new buffer at once, so its memory should be idle. */
    hal_memory *memory = NULL;
    HAL_TRY(hal_pool_take(device->pool, kind, bytes, kind != HAL_MEMORY_DEVICE, &memory));
    hal_buffer *made = memory->description ? memory->description : malloc(sizeof *made);
    memory->description = NULL;
    if (!made) {
        hal_pool_give(device->pool, memory);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_buffer_create: no host memory");
    }
    hal_buffer_init(made, device, memory, bytes);
    hal_hook_created(HAL_OBJECT_BUFFER, made, device, "", bytes);
    *buffer = made;
    return HAL_OK;
}

hal_buffer *hal_buffer_retain(hal_buffer *buffer)
{
    if (hal_hook_retain(HAL_OBJECT_BUFFER, buffer, "hal_buffer_retain") != HAL_OK) {
        return buffer;
    }
    return hal_buffer_ref(buffer);
}

void hal_buffer_release(hal_buffer *buffer)
{
    if (hal_hook_release(HAL_OBJECT_BUFFER, buffer, "hal_buffer_release") != HAL_OK) {
        return;
    }
    hal_buffer_unref(buffer);
}

hal_buffer *hal_buffer_ref(hal_buffer *buffer)
{
    if (buffer) {
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    }
    return buffer;
}

void hal_buffer_unref(hal_buffer *buffer)
{
    if (!buffer || hal_device_is_after_fork(buffer->device)) {
        return;
    }
    const bool is_only = atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
    if (is_only) { /* no other thread changes it */
        atomic_store_explicit(&buffer->references, 0, memory_order_relaxed);
    }
    if (is_only || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1) {
        hal_pool *pool = buffer->device->pool;
        hal_memory *memory = atomic_load(&buffer->memory);
        if (hal_hooks_on(HAL_HOOK_CALLS)) {
            hal_hook_retire(HAL_OBJECT_BUFFER, buffer, sizeof *buffer, free);
        } else if (memory->description || memory->is_imported) { /* memory_replace was called */
            free(buffer);
        } else {
            memory->description = buffer;
        }
        if (memory->is_imported) {
            hal_imported_end(memory);
        } else {
            hal_pool_give(pool, memory);
        }
    }
}

int hal_buffer_is_shared(const hal_buffer *buffer)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_is_shared");
    return buffer && status == HAL_OK &&
           (atomic_load_explicit(&buffer->references, memory_order_acquire) > 1 ||
            atomic_load_explicit(&buffer->is_external, memory_order_relaxed));
}

uint64_t hal_buffer_get_bytes(const hal_buffer *buffer)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_get_bytes");
    return buffer && status == HAL_OK ? buffer->bytes : 0;
}

hal_memory_kind hal_buffer_get_kind(const hal_buffer *buffer)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_get_kind");
    return buffer && status == HAL_OK ? buffer->kind : 0;
}

hal_device *hal_buffer_get_device(const hal_buffer *buffer)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_get_device");
    return buffer && status == HAL_OK ? buffer->device : NULL;
}

void hal_buffer_set_label(hal_buffer *buffer, const char *label)
{
    if (buffer && hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_set_label") == HAL_OK) {
        const size_t length = label ? strnlen(label, sizeof buffer->label - 1) : 0;
        if (length) {
            memcpy(buffer->label, label, length);
        }
        buffer->label[length] = 0;
        hal_hook_labelled(buffer, buffer->label);
    }
}

hal_status hal_buffer_map_begin(hal_buffer *buffer, void **pointer)
{
    if (!buffer || !pointer) {
        return hal_null_argument("hal_buffer_map_begin", buffer ? "pointer" : "buffer");
    }
    *pointer = NULL;
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_map_begin"));
    hal_device *device = buffer->device;
    HAL_TRY(hal_device_check(device, "hal_buffer_map_begin"));
    if (!hal_buffer_is_mapped_kind(buffer)) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_buffer_map_begin: buffer: expected a kind that %s:%u maps, got "
                        "HAL_MEMORY_DEVICE; use hal_queue_write and hal_queue_read",
                        device->plugin->name, device->index);
    }
    if (atomic_exchange(&buffer->mapped, 1)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "hal_buffer_map_begin: buffer: expected an unmapped one, got \"%s\", "
                        "which is mapped already",
                        buffer->label);
    }
    hal_memory *memory = NULL;
    hal_status status = memory_pin(buffer, &memory); /* locks */
    if (status == HAL_OK) {
        status = hal_memory_map(device, memory, pointer);
    }
    if (status == HAL_OK) { /* the device writes to upload memory too: copies and fills */
        status = hal_memory_invalidate(device, memory, 0, buffer->bytes);
    }
    pthread_mutex_unlock(&memory->uses.lock);
    if (status != HAL_OK) {
        *pointer = NULL;
        atomic_store(&buffer->mapped, 0);
    } else {
        hal_hook_mapped(buffer);
    }
    return status;
}

hal_status hal_buffer_map_end(hal_buffer *buffer)
{
    if (!buffer) {
        return hal_null_argument("hal_buffer_map_end", "buffer");
    }
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_map_end"));
    if (!atomic_exchange(&buffer->mapped, 0)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "hal_buffer_map_end: buffer: expected a mapped one, got \"%s\", which is "
                        "not mapped",
                        buffer->label);
    }
    hal_hook_unmapped(buffer);
    return hal_buffer_flush(buffer, 0, buffer->bytes); /* the host may have written to any kind */
}

hal_status hal_buffer_note_use(hal_buffer *buffer, hal_recorder *recorder)
{
    hal_status status = HAL_OK;
    hal_memory *memory = memory_lock(buffer);
    if (memory->reused && !hal_fence_set_is_of(&memory->uses, recorder->timeline) &&
        hal_fence_set_pending(&memory->uses, false) > 0) {
        status = memory_wait_for_uses(memory, recorder);
        if (status == HAL_ERROR_INVALID_STATE) {
            status = memory_replace(buffer, memory); /* unlocks */
            memory = memory_lock(buffer);
        }
    }
    if (status == HAL_OK) {
        memory->reused = false;
        status = hal_fence_set_add(&memory->uses, hal_recorder_use(recorder));
    }
    pthread_mutex_unlock(&memory->uses.lock);
    if (status == HAL_OK) {
        atomic_store_explicit(&memory->batch_serial, recorder->serial, memory_order_relaxed);
        hal_recorder_count_memory(recorder, memory->bytes);
    }
    return status;
}

hal_status hal_buffer_pin(hal_buffer *buffer, hal_memory **memory)
{
    const hal_status status = memory_pin(buffer, memory);
    pthread_mutex_unlock(&(*memory)->uses.lock);
    return status;
}

hal_status hal_buffer_refuse_write(const hal_buffer *buffer)
{
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                    "buffer \"%s\": expected one that may be written, got memory that was imported "
                    "with HAL_ACCESS_READ",
                    buffer->label);
}

hal_status hal_buffer_check_access(const hal_buffer *buffer, uint64_t offset, uint64_t length,
                                   uint32_t access)
{
    const hal_memory *memory = atomic_load(&buffer->memory);
    if (memory->is_read_only && (access & HAL_ACCESS_WRITE)) {
        return hal_buffer_refuse_write(buffer);
    }
    if (!memory->parts) {
        return HAL_OK;
    }
    const uint64_t last = (offset + length - 1) / memory->part_bytes;
    for (uint64_t i = offset / memory->part_bytes; i <= last; i++) {
        const uint8_t has = atomic_load_explicit(&memory->parts[i], memory_order_relaxed);
        if ((access & ~(uint32_t)has) != 0) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "buffer \"%s\": expected %s from byte %llu on, got a part %s",
                            buffer->label,
                            has ? "one that may be written" : "memory by hal_buffer_commit",
                            (unsigned long long)(i * memory->part_bytes),
                            has ? "that hal_buffer_protect made read only" : "without");
        }
    }
    return HAL_OK;
}

void *hal_buffer_idle_pointer(hal_buffer *buffer)
{
    if (!hal_buffer_is_mapped_kind(buffer)) {
        return NULL;
    }
    void *pointer = NULL;
    hal_memory *memory = memory_lock(buffer);
    if (hal_fence_set_pending(&memory->uses, true) == 0) {
        memory->reused = false;
        if (hal_memory_map(buffer->device, memory, &pointer) != HAL_OK) {
            pointer = NULL; /* the caller uses staging memory */
        }
    }
    pthread_mutex_unlock(&memory->uses.lock);
    return pointer;
}

hal_status hal_buffer_view(hal_buffer *buffer, void **pointer)
{
    hal_memory *memory = memory_lock(buffer);
    const hal_status status = hal_memory_map(buffer->device, memory, pointer);
    pthread_mutex_unlock(&memory->uses.lock);
    return status;
}

hal_status hal_buffer_flush(hal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return hal_memory_flush(buffer->device, atomic_load(&buffer->memory), offset, bytes);
}

hal_status hal_buffer_invalidate(hal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return hal_memory_invalidate(buffer->device, atomic_load(&buffer->memory), offset, bytes);
}

bool hal_buffer_is_mapped_kind(const hal_buffer *buffer)
{
    return buffer->kind != HAL_MEMORY_DEVICE ||
           ((buffer->device->info.features & HAL_FEATURE_MAP_DEVICE) != 0 &&
            !atomic_load_explicit(&buffer->memory, memory_order_acquire)->is_imported);
}
