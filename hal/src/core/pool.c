/* The pool of a device's memory. Called by buffer.c and device.c. */
#include "pool.h"

#include "device.h"
#include "hooks.h"
#include "base/log.h"
#include "queue.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define SMALLEST 256u
#define LARGE (UINT64_C(2) << 20) /* from here on sizes are multiples of this */
#define MAX_SCANNED 16            /* blocks of a class */
#define MAX_SKIPPED 1024          /* and those among them that are known to be busy */
#define POOL_DIVISOR 2            /* the pool keeps this part of the device's memory at most */

static void free_blocks(hal_pool *pool, hal_memory *list)
{
    while (list) {
        hal_memory *next = list->next;
        hal_event event = {.kind = HAL_EVENT_FREE,
                           .device = pool->device,
                           .memory = list->handle,
                           .bytes = list->bytes};
        hal_event_begin(&event);
        pool->device->plugin->memory_free(pool->device->handle, list->handle);
        hal_event_end(&event, HAL_OK);
        hal_fence_set_destroy(&list->uses);
        free(list->description);
        free(list);
        list = next;
    }
}

/* The last class whose sizes begin at or below `bytes`. */
static uint32_t class_of(uint64_t bytes)
{
    const uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes);
    return (power - 8) * 4 + (uint32_t)(bytes >> (power - 2) & 3);
}

/* Whether a queue uses the block that is known not to have come so far. */
static int is_behind(const hal_memory *memory, const hal_last_use *busy, uint32_t count)
{
    for (uint32_t b = 0; b < count; b++) {
        for (uint32_t u = 0; u < memory->uses.count; u++) {
            const hal_last_use use = memory->uses.items[u];
            if (use.queue == busy[b].queue && use.value >= busy[b].value) {
                return 1;
            }
        }
    }
    return 0;
}

/* A queue can be made to wait for what was handed over, but not for what another thread may still
 * be recording; work of the queue that this thread records on is before its own in any case. */
static int may_take(hal_memory *memory, int idle)
{
    if (hal_fence_set_pending(&memory->uses, idle) == 0) {
        return 1;
    }
    for (uint32_t i = 0; !idle && i < memory->uses.count; i++) {
        const hal_last_use use = memory->uses.items[i];
        if (use.queue != hal_queue_recent() && !hal_queue_has_submitted(use.queue, use.value)) {
            return 0;
        }
    }
    return !idle;
}

static hal_memory *unlink_block(hal_pool_class *class, hal_memory **at)
{
    hal_memory *block = *at;
    *at = block->next;
    class->end = block->next ? class->end : at;
    return block;
}

/* Best fit in the own class and the next, which is at most half as large again. Unlinked. What a
 * queue that lags has under way is passed by: it would hide the idle blocks behind it. */
static hal_memory *find_block(hal_pool *pool, uint32_t kind, uint64_t bytes, int idle)
{
    const uint32_t first = class_of(bytes);
    for (uint32_t i = first; i <= first + 1; i++) {
        hal_memory **best = NULL;
        hal_last_use busy[MAX_SCANNED];
        uint32_t seen = 0, passed = 0, busy_count = 0;
        hal_pool_class *class = &pool->classes[kind][i];
        for (hal_memory **at = &class->first; *at && seen < MAX_SCANNED && passed < MAX_SKIPPED;
             at = &(*at)->next) {
            if (is_behind(*at, busy, busy_count)) {
                passed++;
                continue;
            }
            seen++;
            if ((*at)->bytes < bytes || (best && (*at)->bytes >= (*best)->bytes)) {
                continue;
            }
            if (may_take(*at, idle)) {
                best = at;
                if ((*best)->bytes == bytes) {
                    break;
                }
            } else if (idle) {
                busy[busy_count++] = (*at)->uses.items[0];
            }
        }
        if (best) {
            return unlink_block(class, best);
        }
    }
    return NULL;
}

/* `bytes` has been checked against the device's largest allocation and does not overflow here. */
static uint64_t size_of_block(uint64_t bytes)
{
    if (bytes <= SMALLEST) {
        return SMALLEST;
    }
    uint64_t step = LARGE;
    if (bytes < LARGE) {
        step = (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / 4;
        step = step < SMALLEST ? SMALLEST : step;
    }
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

static hal_status ask_device(hal_pool *pool, uint32_t kind, uint64_t bytes, hal_memory *memory)
{
    hal_device *device = pool->device;
    hal_event event = {.kind = HAL_EVENT_ALLOCATE, .device = device, .bytes = bytes};
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        status = device->plugin->memory_allocate(device->handle, kind, bytes, &memory->handle);
        status = hal_host_made(status, memory->handle);
    }
    event.memory = memory->handle;
    hal_event_end(&event, status);
    if (status != HAL_OK) {
        return hal_device_failed(device, status, "allocating %llu bytes",
                                 (unsigned long long)bytes);
    }
    memory->bytes = bytes < SMALLEST ? SMALLEST : bytes;
    pthread_mutex_lock(&pool->lock);
    pool->allocation_count++;
    pool->in_use_bytes += memory->bytes;
    pthread_mutex_unlock(&pool->lock);
    return HAL_OK;
}

static hal_status out_of_memory(hal_pool *pool, uint32_t kind, uint64_t bytes)
{
    static const char *const kinds[] = {"device", "upload", "download", "shared"};
    const hal_device *device = pool->device;
    hal_memory_statistics now;
    if (hal_pool_statistics(pool, &now) != HAL_OK) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    return hal_fail(HAL_ERROR_OUT_OF_MEMORY,
                    "%s:%u is out of memory: %llu bytes of %s memory asked for, %llu of %llu free, "
                    "%llu held by buffers of this process; release some or ask for less",
                    device->plugin->name, device->index, (unsigned long long)bytes, kinds[kind],
                    (unsigned long long)now.free_bytes, (unsigned long long)now.total_bytes,
                    (unsigned long long)now.in_use_bytes);
}

static hal_status allocate(hal_pool *pool, uint32_t kind, uint64_t bytes, hal_memory **memory)
{
    hal_memory *block = calloc(1, sizeof *block);
    if (!block) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a buffer's description");
    }
    uint64_t size = size_of_block(bytes);
    if (size > pool->device->info.max_allocation) {
        size = bytes;
    }
    hal_fence_set_init(&block->uses);
    block->kind = kind;
    hal_status status = ask_device(pool, kind, size, block);
    if (status == HAL_ERROR_OUT_OF_MEMORY) {
        hal_log(HAL_LOG_INFO, "out of memory at %llu bytes: trimming the pool",
                (unsigned long long)bytes);
        hal_pool_trim(pool, 1);
        size = bytes > UINT64_MAX - SMALLEST ? bytes : (bytes + SMALLEST - 1) & ~(SMALLEST - 1ull);
        status = ask_device(pool, kind, size, block);
    }
    if (status != HAL_OK) {
        hal_fence_set_destroy(&block->uses);
        free(block);
        return status == HAL_ERROR_OUT_OF_MEMORY ? out_of_memory(pool, kind, bytes) : status;
    }
    *memory = block;
    return HAL_OK;
}

/* Needs the lock. */
static hal_memory *unlink_idle(hal_pool *pool, int wait)
{
    hal_memory *list = NULL;
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < HAL_POOL_CLASSES; i++) {
            hal_pool_class *class = &pool->classes[kind][i];
            hal_memory **at = &class->first;
            while (*at) {
                hal_memory *block = *at;
                for (uint32_t u = 0; wait && u < block->uses.count; u++) {
                    hal_queue_wait_submitted(block->uses.items[u].queue,
                                             block->uses.items[u].value);
                }
                if (hal_fence_set_pending(&block->uses, 1) > 0) {
                    at = &block->next;
                    continue;
                }
                unlink_block(class, at);
                pool->pooled_bytes -= block->bytes;
                block->next = list;
                list = block;
            }
        }
    }
    return list;
}

void hal_pool_begin(hal_pool *pool, hal_device *device)
{
    memset(pool, 0, sizeof *pool);
    pool->device = device;
    pthread_mutex_init(&pool->lock, NULL);
}

void hal_pool_end(hal_pool *pool)
{
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < HAL_POOL_CLASSES; i++) {
            free_blocks(pool, pool->classes[kind][i].first);
            pool->classes[kind][i] = (hal_pool_class){0};
        }
    }
    pthread_mutex_destroy(&pool->lock);
}

hal_status hal_pool_take(hal_pool *pool, uint32_t kind, uint64_t bytes, int idle,
                         hal_memory **memory)
{
    pthread_mutex_lock(&pool->lock);
    hal_memory *block = find_block(pool, kind, size_of_block(bytes), idle);
    if (block) {
        pool->pooled_bytes -= block->bytes;
        pool->in_use_bytes += block->bytes;
        pool->reuse_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!block) {
        return allocate(pool, kind, bytes, memory);
    }
    block->next = NULL;
    block->reused = block->uses.count > 0;
    atomic_store_explicit(&block->stamp, 0, memory_order_relaxed);
    *memory = block;
    return HAL_OK;
}

void hal_pool_give(hal_pool *pool, hal_memory *memory)
{
    hal_pool_class *class = &pool->classes[memory->kind][class_of(memory->bytes)];
    pthread_mutex_lock(&pool->lock);
    pool->in_use_bytes -= memory->bytes;
    pool->pooled_bytes += memory->bytes;
    /* What the host will touch has to be idle: longest so is what was given back first. Kernels
     * find in the caches what was given back last. */
    hal_memory **at =
        memory->kind == HAL_MEMORY_DEVICE || !class->end ? &class->first : class->end;
    memory->next = *at;
    *at = memory;
    class->end = memory->next ? class->end : &memory->next;
    const uint64_t pooled = pool->pooled_bytes;
    pthread_mutex_unlock(&pool->lock);
    /* Others on the machine want memory too, and on some devices it is the host's own. */
    if (pooled > pool->device->info.memory_bytes / POOL_DIVISOR &&
        pool->device->info.memory_bytes) {
        hal_pool_trim(pool, 0);
    }
}

void hal_pool_trim(hal_pool *pool, int wait)
{
    pthread_mutex_lock(&pool->lock);
    hal_memory *list = unlink_idle(pool, wait);
    pthread_mutex_unlock(&pool->lock);
    free_blocks(pool, list);
}

hal_status hal_pool_statistics(hal_pool *pool, hal_memory_statistics *statistics)
{
    hal_device *device = pool->device;
    memset(statistics, 0, sizeof *statistics);
    pthread_mutex_lock(&pool->lock);
    statistics->in_use_bytes = pool->in_use_bytes;
    statistics->pooled_bytes = pool->pooled_bytes;
    statistics->allocation_count = pool->allocation_count;
    statistics->reuse_count = pool->reuse_count;
    pthread_mutex_unlock(&pool->lock);

    const uint64_t held = statistics->in_use_bytes + statistics->pooled_bytes;
    statistics->total_bytes = device->info.memory_bytes;
    statistics->free_bytes =
        statistics->total_bytes > held ? statistics->total_bytes - held : 0;
    if (device->plugin->memory_info) {
        hal_host_clear_error();
        const hal_status status = device->plugin->memory_info(
            device->handle, &statistics->free_bytes, &statistics->total_bytes);
        if (status != HAL_OK) {
            return hal_device_failed(device, status, "asking for the device's free memory");
        }
    }
    return HAL_OK;
}

hal_status hal_memory_map(hal_device *device, hal_memory *memory, void **pointer)
{
    if (!memory->pointer) {
        hal_host_clear_error();
        hal_status status =
            device->plugin->memory_map(device->handle, memory->handle, &memory->pointer);
        status = hal_host_made(status, memory->pointer);
        if (status != HAL_OK) {
            memory->pointer = NULL;
            return hal_device_failed(device, status, "mapping %llu bytes",
                                     (unsigned long long)memory->bytes);
        }
    }
    *pointer = memory->pointer;
    return HAL_OK;
}
