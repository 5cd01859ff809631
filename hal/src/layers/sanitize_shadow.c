/* Shadows of device memory: what was ever written, and who accesses it in a dispatch. See
 * sanitize.h. */
#include "sanitize.h"

#include "core/device.h"
#include "base/array.h"
#include "base/log.h"
#include "base/map.h"
#include "base/status.h"

#include <stdlib.h>

static hal_map memory_of; /* by plugin memory */
static hal_map users_of;  /* hal_sanitize_users by queue */

hal_sanitize_memory *hal_sanitize_memory_find(const hal_plugin_memory *memory)
{
    return memory ? hal_map_get(&memory_of, hal_map_key(memory)) : NULL;
}

/* Memory of the layer. At most a quarter of the device's at once: a processor would find out while
 * the memory is written, and end the process. */
static bool memory_take(const hal_sanitize_device *device, uint64_t bytes,
                        hal_plugin_memory **memory)
{
    const hal_device *on = device->device;
    return (on->info.memory_bytes == 0 || bytes <= on->info.memory_bytes / 4) &&
           on->plugin->memory_allocate(on->handle, HAL_MEMORY_DEVICE, bytes, memory) == HAL_OK;
}

hal_sanitize_memory *hal_sanitize_memory_made(hal_sanitize_device *device,
                                              hal_plugin_memory *memory, uint64_t bytes)
{
    hal_sanitize_memory *made = calloc(1, sizeof *made);
    if (!made || !hal_map_put(&memory_of, hal_map_key(memory), made)) {
        free(made);
        hal_log(HAL_LOG_WARN, "sanitize: no host memory: an allocation is not checked");
        return NULL;
    }
    made->device = device;
    made->memory = memory;
    made->bytes = bytes = (bytes + 3) / 4 * 4; /* fills have whole words */
    if (device->has_shadows && !memory_take(device, bytes, &made->shadow)) {
        made->shadow = NULL;
        hal_log(HAL_LOG_WARN, "sanitize: %llu bytes of %s are not checked by init: no memory",
                (unsigned long long)bytes, device->info.name);
    }
    made->is_new = true; /* its first use clears the shadow */
    return made;
}

/* Forgets fills of memory that are still to come. */
static void fills_forget(hal_sanitize_device *device, const hal_plugin_memory *memory)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < device->pending_count; i++) {
        if (device->pending[i].memory != memory) {
            device->pending[kept++] = device->pending[i];
        }
    }
    device->pending_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < device->clear_count; i++) {
        if (device->clears[i].fill.memory != memory) {
            device->clears[kept++] = device->clears[i];
        }
    }
    device->clear_count = kept;
}

void hal_sanitize_shadow_drop(hal_sanitize_memory *memory)
{
    hal_sanitize_device *device = memory->device;
    if (memory->shadow) {
        fills_forget(device, memory->shadow);
        device->device->plugin->memory_free(device->device->handle, memory->shadow);
        memory->shadow = NULL;
    }
}

void hal_sanitize_memory_freeing(const hal_plugin_memory *memory)
{
    hal_sanitize_memory *freed = hal_map_take(&memory_of, hal_map_key(memory));
    if (freed) {
        fills_forget(freed->device, freed->memory);
        hal_sanitize_shadow_drop(freed);
        free(freed);
    }
}

bool hal_sanitize_fill_later(hal_sanitize_device *device, hal_sanitize_fill fill)
{
    if (!HAL_ARRAY_RESERVE(device->pending, device->pending_capacity,
                           (uint64_t)device->pending_count + 1)) {
        return false;
    }
    device->pending[device->pending_count++] = fill;
    return true;
}

hal_sanitize_fill hal_sanitize_written_fill(const hal_sanitize_memory *memory, uint64_t offset,
                                            uint64_t length, bool written)
{
    const uint64_t first = offset / 4 * 4, end = (offset + length + 3) / 4 * 4;
    return (hal_sanitize_fill){.memory = memory->shadow,
                               .offset = first,
                               .length = (end < memory->bytes ? end : memory->bytes) - first,
                               .bits = written ? HAL_SANITIZE_WRITTEN : 0};
}

void hal_sanitize_written_set(hal_sanitize_memory *memory, uint64_t offset, uint64_t length,
                              bool written)
{
    hal_sanitize_device *device = memory->device;
    if (!memory->shadow || length == 0) {
        return;
    }
    if (!hal_sanitize_fill_later(device,
                                 hal_sanitize_written_fill(memory, offset, length, written))) {
        hal_sanitize_shadow_drop(memory);
    }
}

void hal_sanitize_memory_used(hal_sanitize_memory *memory, const hal_recording *batch)
{
    hal_sanitize_device *device = memory->device;
    memory->is_new = false;
    if (!memory->shadow) {
        return;
    }
    if (!HAL_ARRAY_RESERVE(device->clears, device->clear_capacity,
                           (uint64_t)device->clear_count + 1)) {
        hal_sanitize_shadow_drop(memory);
        return;
    }
    device->clears[device->clear_count++] =
        (hal_sanitize_clear){batch, batch->command_count - 1,
                             hal_sanitize_written_fill(memory, 0, memory->bytes, false)};
}

void hal_sanitize_shadows_give_up(const hal_sanitize_device *device)
{
    for (uint32_t i = 0; i < memory_of.capacity; i++) {
        hal_sanitize_memory *memory = memory_of.entries[i].value;
        if (memory && memory->device == device) {
            hal_sanitize_shadow_drop(memory);
        }
    }
}

static void users_free(hal_sanitize_users *users)
{
    while (users) {
        hal_sanitize_users *freed = users;
        const hal_device *device = users->device->device;
        users = users->smaller;
        device->plugin->memory_free(device->handle, freed->memory);
        free(freed);
    }
}

hal_plugin_memory *hal_sanitize_users_take(hal_sanitize_device *device, const hal_queue *queue,
                                           uint64_t bytes)
{
    hal_sanitize_users *users = hal_map_get(&users_of, hal_map_key(queue));
    if (users && users->device == device && users->bytes >= bytes) {
        return users->memory;
    }
    hal_sanitize_users *made = calloc(1, sizeof *made);
    if (!made || !memory_take(device, bytes, &made->memory)) {
        free(made);
        hal_log(HAL_LOG_WARN,
                "sanitize: a dispatch is not checked by race: no memory for %llu bytes",
                (unsigned long long)bytes);
        return NULL;
    }
    made->device = device;
    made->bytes = bytes;
    made->smaller = users;
    hal_map_take(&users_of, hal_map_key(queue));
    if (!hal_map_put(&users_of, hal_map_key(queue), made)) {
        users_free(made);
        return NULL;
    }
    return made->memory;
}

void hal_sanitize_users_trim(const hal_queue *queue)
{
    hal_sanitize_users *users = hal_map_get(&users_of, hal_map_key(queue));
    if (users) {
        users_free(users->smaller);
        users->smaller = NULL;
    }
}

void hal_sanitize_shadows_free(hal_sanitize_device *device)
{
    for (uint32_t i = 0; i < users_of.capacity;) {
        hal_sanitize_users *users = users_of.entries[i].value;
        if (users && users->device == device) {
            hal_map_take(&users_of, users_of.entries[i].key); /* may move another one to i */
            users_free(users);
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i < memory_of.capacity;) {
        hal_sanitize_memory *memory = memory_of.entries[i].value;
        if (memory && memory->device == device) {
            hal_sanitize_memory_freeing(memory->memory);
        } else {
            i++;
        }
    }
    free(device->pending);
    free(device->clears);
}
