/* Buffers: memory of a device by reference. Called by programs through hal/buffer.h and by the
 * sources that record commands. */
#include "buffer.h"

#include "device.h"
#include "hooks.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Puts an idle block in the place of one that still belongs to others' work; what a new buffer
 * holds is not defined, so nothing is lost. Unlocks the uses of `memory`. */
static hal_status replace_memory(hal_buffer *buffer, hal_memory *memory)
{
    hal_pool *pool = &buffer->device->pool;
    hal_memory *idle = NULL;
    const hal_status status = hal_pool_take(pool, buffer->kind, buffer->bytes, 1, &idle);
    if (status == HAL_OK) {
        atomic_store(&buffer->memory, idle);
    }
    pthread_mutex_unlock(&memory->uses.lock);
    if (status == HAL_OK) {
        hal_pool_give(pool, memory);
    }
    return status;
}

/* Makes the queue's batch wait for the work of the memory's earlier owners. Needs the uses' lock.
 * INVALID_STATE, without a message: some of that work has not been handed over yet. */
static hal_status come_after(hal_queue *queue, hal_memory *memory)
{
    hal_fence_set *uses = &memory->uses;
    for (uint32_t i = 0; i < uses->count; i++) {
        const hal_last_use use = uses->items[i];
        if (use.queue != queue && !hal_queue_has_submitted(use.queue, use.value)) {
            return HAL_ERROR_INVALID_STATE;
        }
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->items[i].queue != queue) {
            const hal_status status = hal_queue_add_wait(queue, uses->items[i]);
            if (status != HAL_OK) {
                return status;
            }
        }
    }
    uses->count = 0;
    return HAL_OK;
}

hal_status hal_buffer_create(hal_device *device, uint32_t kind, uint64_t bytes, hal_buffer **buffer)
{
    if (!buffer) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_buffer_create: buffer is null");
    }
    *buffer = NULL;
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_buffer_create");
    if (status == HAL_OK) {
        status = hal_device_check(device, "hal_buffer_create");
    }
    if (status != HAL_OK) {
        return status;
    }
    if (kind >= HAL_MEMORY_KIND_COUNT) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_buffer_create: kind is %u, which is none of HAL_MEMORY_*", kind);
    }
    if (bytes == 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_buffer_create: bytes is 0");
    }
    if (bytes > device->info.max_allocation) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_buffer_create: bytes is %llu, the largest allocation of %s:%u is %llu",
                        (unsigned long long)bytes, device->plugin->name, device->index,
                        (unsigned long long)device->info.max_allocation);
    }
    /* What the host will touch is best idle at once. */
    hal_memory *memory = NULL;
    status = hal_pool_take(&device->pool, kind, bytes, kind != HAL_MEMORY_DEVICE, &memory);
    if (status != HAL_OK) {
        return status;
    }
    hal_buffer *made = memory->description ? memory->description : malloc(sizeof *made);
    memory->description = NULL;
    if (!made) {
        hal_pool_give(&device->pool, memory);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_buffer_create: no host memory");
    }
    atomic_init(&made->references, 1);
    atomic_init(&made->memory, memory);
    atomic_init(&made->mapped, 0);
    made->kind = kind;
    made->device = hal_device_ref(device);
    made->bytes = bytes;
    made->label[0] = 0;
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
    if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1) {
        hal_device *device = buffer->device;
        hal_memory *memory = atomic_load(&buffer->memory);
        if (hal_hooks_on(HAL_HOOK_CALLS)) {
            hal_hook_retire(HAL_OBJECT_BUFFER, buffer, sizeof *buffer, free);
        } else if (memory->description) { /* the block took the place of the buffer's first */
            free(buffer);
        } else {
            memory->description = buffer;
        }
        hal_pool_give(&device->pool, memory);
        hal_device_unref(device);
    }
}

uint64_t hal_buffer_get_bytes(const hal_buffer *buffer)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_get_bytes");
    return buffer && status == HAL_OK ? buffer->bytes : 0;
}

uint32_t hal_buffer_get_kind(const hal_buffer *buffer)
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
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_buffer_map_begin: %s is null",
                        buffer ? "pointer" : "buffer");
    }
    *pointer = NULL;
    hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_map_begin");
    if (status != HAL_OK) {
        return status;
    }
    hal_device *device = buffer->device;
    status = hal_device_check(device, "hal_buffer_map_begin");
    if (status != HAL_OK) {
        return status;
    }
    if (!hal_buffer_is_mapped_kind(buffer)) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_buffer_map_begin: %s:%u does not map memory of kind "
                        "HAL_MEMORY_DEVICE; use hal_queue_write and hal_queue_read",
                        device->plugin->name, device->index);
    }
    if (atomic_exchange(&buffer->mapped, 1)) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "hal_buffer_map_begin: buffer \"%s\" is mapped already", buffer->label);
    }
    hal_memory *memory = atomic_load(&buffer->memory);
    pthread_mutex_lock(&memory->uses.lock);
    if (memory->reused && hal_fence_set_pending(&memory->uses, 1) > 0) {
        status = replace_memory(buffer, memory); /* unlocks */
        memory = atomic_load(&buffer->memory);
        pthread_mutex_lock(&memory->uses.lock);
    }
    if (status == HAL_OK) {
        memory->reused = 0;
        status = hal_memory_map(device, memory, pointer);
    }
    pthread_mutex_unlock(&memory->uses.lock);
    if (status != HAL_OK) {
        atomic_store(&buffer->mapped, 0);
    } else {
        hal_hook_mapped(buffer);
    }
    return status;
}

hal_status hal_buffer_map_end(hal_buffer *buffer)
{
    if (!buffer) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_buffer_map_end: buffer is null");
    }
    const hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_buffer_map_end");
    if (status != HAL_OK) {
        return status;
    }
    if (!atomic_exchange(&buffer->mapped, 0)) {
        return hal_fail(HAL_ERROR_INVALID_STATE, "hal_buffer_map_end: buffer \"%s\" is not mapped",
                        buffer->label);
    }
    hal_hook_unmapped(buffer);
    return HAL_OK;
}

hal_status hal_buffer_note_use(hal_buffer *buffer, hal_queue *queue)
{
    hal_status status = HAL_OK;
    hal_memory *memory = atomic_load(&buffer->memory);
    pthread_mutex_lock(&memory->uses.lock);
    while (memory != atomic_load(&buffer->memory)) {
        pthread_mutex_unlock(&memory->uses.lock);
        memory = atomic_load(&buffer->memory);
        pthread_mutex_lock(&memory->uses.lock);
    }
    if (memory->reused && hal_fence_set_pending(&memory->uses, 0) > 0) {
        status = come_after(queue, memory);
        if (status == HAL_ERROR_INVALID_STATE) {
            status = replace_memory(buffer, memory); /* unlocks */
            memory = atomic_load(&buffer->memory);
            pthread_mutex_lock(&memory->uses.lock);
        }
    }
    if (status == HAL_OK) {
        memory->reused = 0;
        status = hal_fence_set_add(&memory->uses, queue, hal_queue_next_value(queue));
    }
    pthread_mutex_unlock(&memory->uses.lock);
    if (status == HAL_OK) {
        atomic_store_explicit(&memory->stamp, queue->serial, memory_order_relaxed);
        hal_queue_count_memory(queue, memory->bytes);
    }
    return status;
}

void *hal_buffer_idle_pointer(hal_buffer *buffer)
{
    if (!hal_buffer_is_mapped_kind(buffer)) {
        return NULL;
    }
    void *pointer = NULL;
    hal_memory *memory = atomic_load(&buffer->memory);
    pthread_mutex_lock(&memory->uses.lock);
    if (memory == atomic_load(&buffer->memory) && hal_fence_set_pending(&memory->uses, 1) == 0) {
        memory->reused = 0;
        if (hal_memory_map(buffer->device, memory, &pointer) != HAL_OK) {
            pointer = NULL; /* the caller has another way */
        }
    }
    pthread_mutex_unlock(&memory->uses.lock);
    return pointer;
}

int hal_buffer_is_mapped_kind(const hal_buffer *buffer)
{
    return buffer->kind != HAL_MEMORY_DEVICE ||
           (buffer->device->info.abilities & HAL_ABILITY_MAP_DEVICE) != 0;
}
