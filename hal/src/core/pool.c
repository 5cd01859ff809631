/* The memory pool of a device. The lock guards the lists and counters only: the driver is called
 * and waited for without it. */
#include "pool.h"

#include "hooks.h"

#include "base/array.h"
#include "base/log.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define SMALLEST 256u
#define LARGEST_STEP (UINT64_C(2) << 20) /* between sizes; below: a quarter of a power of two */
#define CLASSES 232                      /* four per power of two from SMALLEST on */
#define MAX_SCANNED 16                   /* blocks of a class that are candidates for one request */
#define MAX_SKIPPED 1024 /* blocks of a class that are skipped because they are busy */
#define POOL_DIVISOR 2   /* the pool keeps at most this part of the device's memory */

/* `end` is the `next` field of the last block; null means `first`. */
typedef struct pool_class {
    hal_memory *first;
    hal_memory **end;
} pool_class;

struct hal_pool {
    hal_device *device;
    pthread_mutex_t lock;
    pool_class classes[HAL_MEMORY_KIND_COUNT][CLASSES];
    uint64_t in_use_bytes;
    uint64_t in_use_count; /* above 0: the pool has a reference to the device */
    uint64_t pooled_bytes;
    hal_memory_peaks peaks;
    uint64_t allocation_count;
    uint64_t reuse_count;
    uint64_t copied_bytes;      /* by queues that are closed */
    hal_copy_counter *counters; /* of the open ones */
    _Atomic uint64_t imported_bytes;
};

/* Uses of any number of blocks. */
typedef struct use_list {
    hal_last_use *items;
    uint32_t count, capacity;
} use_list;

static void blocks_free(hal_pool *pool, hal_memory *list)
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

/* The last class whose smallest size is at most `bytes`. */
static uint32_t class_index(uint64_t bytes)
{
    const uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes);
    return (power - 8) * 4 + (uint32_t)(bytes >> (power - 2) & 3);
}

/* Whether a use of the block is at or after one that is known to be busy. */
static bool block_is_behind(const hal_memory *memory, const hal_last_use *busy, uint32_t count)
{
    for (uint32_t b = 0; b < count; b++) {
        for (uint32_t u = 0; u < memory->uses.count; u++) {
            const hal_last_use use = memory->uses.items[u];
            if (use.timeline == busy[b].timeline && use.value >= busy[b].value) {
                return true;
            }
        }
    }
    return false;
}

/* A queue can wait for submitted work, but not for a batch that another thread is still recording.
 * Work of the queue that this thread records on runs before its next batch in any case. */
static bool block_is_available(hal_memory *memory, bool idle)
{
    if ((!idle && hal_fence_set_is_of(&memory->uses, hal_timeline_recent())) ||
        hal_fence_set_pending(&memory->uses, idle) == 0) {
        return true;
    }
    for (uint32_t i = 0; !idle && i < memory->uses.count; i++) {
        const hal_last_use use = memory->uses.items[i];
        if (use.timeline != hal_timeline_recent() &&
            !hal_timeline_has_submitted(use.timeline, use.value)) {
            return false;
        }
    }
    return !idle;
}

static hal_memory *class_unlink(pool_class *class, hal_memory **at)
{
    hal_memory *block = *at;
    *at = block->next;
    class->end = block->next ? class->end : at;
    return block;
}

/* Unlinks the best fit of the class of `bytes` or the next one, whose sizes are at most half as
 * large again. Blocks of a slow queue are skipped: they would hide idle blocks after them. The
 * caller holds the lock. */
static hal_memory *pool_find(hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle)
{
    const uint32_t first = class_index(bytes);
    for (uint32_t i = first; i <= first + 1; i++) {
        hal_memory **best = NULL;
        hal_last_use busy[MAX_SCANNED];
        uint32_t scanned = 0, skipped = 0, busy_count = 0;
        pool_class *class = &pool->classes[kind][i];
        for (hal_memory **at = &class->first; *at && scanned < MAX_SCANNED && skipped < MAX_SKIPPED;
             at = &(*at)->next) {
            if ((*at)->is_kept || block_is_behind(*at, busy, busy_count)) {
                skipped++;
                continue;
            }
            scanned++;
            if ((*at)->bytes < bytes || (best && (*at)->bytes >= (*best)->bytes)) {
                continue;
            }
            if (block_is_available(*at, idle)) {
                best = at;
                if ((*best)->bytes == bytes) {
                    break;
                }
            } else if (idle) {
                busy[busy_count++] = (*at)->uses.items[0];
            }
        }
        if (best) {
            return class_unlink(class, best);
        }
    }
    return NULL;
}

/* The owners of blocks have one reference to the device together. The caller holds the lock. */
static void pool_count_block(hal_pool *pool, const hal_memory *memory)
{
    pool->in_use_bytes += memory->bytes;
    const uint64_t held = pool->in_use_bytes + pool->pooled_bytes;
    pool->peaks.held_bytes = held > pool->peaks.held_bytes ? held : pool->peaks.held_bytes;
    if (pool->in_use_bytes > pool->peaks.in_use_bytes) {
        pool->peaks.in_use_bytes = pool->in_use_bytes;
    }
    if (pool->in_use_count++ == 0) {
        hal_device_ref(pool->device);
    }
}

/* `bytes` is at most the device's largest allocation, so the sum does not overflow. */
static uint64_t block_size(uint64_t bytes)
{
    if (bytes <= SMALLEST) {
        return SMALLEST;
    }
    uint64_t step = (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / 4;
    step = step < SMALLEST ? SMALLEST : step > LARGEST_STEP ? LARGEST_STEP : step;
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

static hal_status block_allocate(hal_pool *pool, hal_memory_kind kind, uint64_t bytes,
                                 hal_memory *memory)
{
    hal_device *device = pool->device;
    hal_event event = {.kind = HAL_EVENT_ALLOCATE,
                       .device = device,
                       .bytes = bytes,
                       .is_unmapped = kind == HAL_MEMORY_DEVICE};
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        status = device->plugin->memory_allocate(device->handle, kind, bytes + event.more_bytes,
                                                 &memory->handle);
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
    pool_count_block(pool, memory);
    pthread_mutex_unlock(&pool->lock);
    return HAL_OK;
}

static hal_status fail_out_of_memory(hal_pool *pool, hal_memory_kind kind, uint64_t bytes)
{
    static const char *const kinds[] = {[HAL_MEMORY_DEVICE] = "device",
                                        [HAL_MEMORY_UPLOAD] = "upload",
                                        [HAL_MEMORY_DOWNLOAD] = "download",
                                        [HAL_MEMORY_SHARED] = "shared"};
    const hal_device *device = pool->device;
    hal_memory_statistics now;
    if (hal_pool_statistics(pool, &now) != HAL_OK) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    return hal_fail(HAL_ERROR_OUT_OF_MEMORY,
                    "hal_buffer_create: %s:%u is out of memory: %llu bytes of %s memory requested, "
                    "%llu of %llu free, %llu held by buffers of this process; release some or "
                    "request less",
                    device->plugin->name, device->index, (unsigned long long)bytes, kinds[kind],
                    (unsigned long long)now.free_bytes, (unsigned long long)now.total_bytes,
                    (unsigned long long)now.in_use_bytes);
}

static hal_status block_create(hal_pool *pool, hal_memory_kind kind, uint64_t bytes,
                               hal_memory **memory)
{
    hal_memory *block = calloc(1, sizeof *block);
    if (!block) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the description of a buffer");
    }
    uint64_t size = block_size(bytes);
    if (size > pool->device->info.max_allocation) {
        size = bytes;
    }
    hal_saved_message before;
    hal_message_save(&before);
    hal_fence_set_init(&block->uses);
    block->kind = kind;
    hal_status status = block_allocate(pool, kind, size, block);
    if (status == HAL_ERROR_OUT_OF_MEMORY) {
        hal_log(HAL_LOG_INFO, "out of memory at %llu bytes: trimming the pool",
                (unsigned long long)bytes);
        hal_pool_trim(pool, true);
        size = bytes > UINT64_MAX - SMALLEST ? bytes : (bytes + SMALLEST - 1) & ~(SMALLEST - 1ull);
        status = block_allocate(pool, kind, size, block);
    }
    if (status == HAL_OK) {
        hal_message_restore(&before); /* a failure that trimming has cured */
    } else {
        hal_fence_set_destroy(&block->uses);
        free(block);
        return status == HAL_ERROR_OUT_OF_MEMORY ? fail_out_of_memory(pool, kind, bytes) : status;
    }
    *memory = block;
    return HAL_OK;
}

/* Without host memory the list stays incomplete, and fewer blocks are freed. */
static void use_list_add(use_list *uses, hal_last_use use)
{
    if (!HAL_ARRAY_RESERVE(uses->items, uses->capacity, (uint64_t)uses->count + 1)) {
        return;
    }
    uses->items[uses->count++] = use;
}

/* Unlinks the blocks whose uses are all known to be reached, and lists the uses of the others. */
static hal_memory *pool_unlink_idle(hal_pool *pool, use_list *busy)
{
    hal_memory *list = NULL;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < CLASSES; i++) {
            pool_class *class = &pool->classes[kind][i];
            hal_memory **at = &class->first;
            while (*at) {
                hal_memory *block = *at;
                const uint32_t pending = hal_fence_set_pending(&block->uses, false);
                for (uint32_t u = 0; busy && u < pending; u++) {
                    use_list_add(busy, block->uses.items[u]);
                }
                if (pending > 0 || block->is_kept) {
                    at = &block->next;
                    continue;
                }
                class_unlink(class, at);
                pool->pooled_bytes -= block->bytes;
                block->next = list;
                list = block;
            }
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return list;
}

hal_pool *hal_pool_create(hal_device *device)
{
    hal_pool *pool = calloc(1, sizeof *pool);
    if (pool) {
        pool->device = device;
        pthread_mutex_init(&pool->lock, NULL);
    }
    return pool;
}

void hal_pool_destroy(hal_pool *pool)
{
    if (!pool) {
        return;
    }
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < CLASSES; i++) {
            blocks_free(pool, pool->classes[kind][i].first);
        }
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

hal_status hal_pool_take(hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle,
                         hal_memory **memory)
{
    bytes = bytes ? bytes : 1; /* an empty buffer has memory as well, and can be mapped */
    pthread_mutex_lock(&pool->lock);
    hal_memory *block = pool_find(pool, kind, block_size(bytes), idle);
    if (block) {
        pool->pooled_bytes -= block->bytes;
        pool_count_block(pool, block);
        pool->reuse_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!block) {
        return block_create(pool, kind, bytes, memory);
    }
    block->next = NULL;
    block->reused = block->uses.count > 0;
    atomic_store_explicit(&block->batch_serial, 0, memory_order_relaxed);
    *memory = block;
    return HAL_OK;
}

void hal_pool_give(hal_pool *pool, hal_memory *memory)
{
    hal_device *device = pool->device;
    pool_class *class = &pool->classes[memory->kind][class_index(memory->bytes)];
    pthread_mutex_lock(&pool->lock);
    pool->in_use_bytes -= memory->bytes;
    pool->pooled_bytes += memory->bytes; /* of a kept block as well, which is not taken again */
    /* Device memory is reused last in, first out: it may still be in caches. Memory that the host
     * touches must be idle, so it is reused first in, first out. */
    hal_memory **at = memory->kind == HAL_MEMORY_DEVICE || !class->end ? &class->first : class->end;
    memory->next = *at;
    *at = memory;
    class->end = memory->next ? class->end : &memory->next;
    /* Other processes need memory too, and on some devices it is the host's memory. */
    const bool trims = device->info.memory_bytes > 0 &&
                       pool->pooled_bytes > device->info.memory_bytes / POOL_DIVISOR;
    const bool is_last = --pool->in_use_count == 0;
    if (trims && !is_last) {
        hal_device_ref(device); /* another thread may give the last block meanwhile */
    }
    pthread_mutex_unlock(&pool->lock);
    if (trims) {
        hal_pool_trim(pool, false);
    }
    if (trims || is_last) {
        hal_device_unref(device);
    }
}

void hal_pool_keep(hal_pool *pool, hal_memory *memory)
{
    pthread_mutex_lock(&pool->lock);
    const bool was_kept = memory->is_kept;
    memory->is_kept = true;
    pthread_mutex_unlock(&pool->lock);
    if (!was_kept) {
        hal_device_ref(pool->device);
    }
}

void hal_pool_trim(hal_pool *pool, bool wait)
{
    use_list busy = {0};
    blocks_free(pool, pool_unlink_idle(pool, &busy));
    for (uint32_t i = 0; i < busy.count; i++) {
        const hal_last_use use = busy.items[i];
        if (wait) {
            hal_timeline_wait_submitted(use.timeline, use.value);
        } else {
            hal_timeline_has_reached(use.timeline, use.value, true);
        }
    }
    if (busy.count > 0) {
        blocks_free(pool, pool_unlink_idle(pool, NULL));
    }
    free(busy.items);
}

void hal_pool_usage(hal_pool *pool, uint64_t *in_use_bytes, uint64_t *pooled_bytes)
{
    pthread_mutex_lock(&pool->lock);
    *in_use_bytes = pool->in_use_bytes;
    *pooled_bytes = pool->pooled_bytes;
    pthread_mutex_unlock(&pool->lock);
}

void hal_pool_count_import(hal_pool *pool, int64_t bytes)
{
    atomic_fetch_add_explicit(&pool->imported_bytes, (uint64_t)bytes, memory_order_relaxed);
}

void hal_pool_add_counter(hal_pool *pool, hal_copy_counter *counter)
{
    atomic_store(&counter->bytes, 0);
    pthread_mutex_lock(&pool->lock);
    counter->next = pool->counters;
    pool->counters = counter;
    pthread_mutex_unlock(&pool->lock);
}

void hal_pool_remove_counter(hal_pool *pool, hal_copy_counter *counter)
{
    pthread_mutex_lock(&pool->lock);
    hal_copy_counter **at = &pool->counters;
    while (*at != counter) {
        at = &(*at)->next;
    }
    *at = counter->next;
    pool->copied_bytes += atomic_load(&counter->bytes);
    pthread_mutex_unlock(&pool->lock);
}

hal_memory_peaks hal_pool_peaks(hal_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const hal_memory_peaks peaks = pool->peaks;
    pthread_mutex_unlock(&pool->lock);
    return peaks;
}

void hal_pool_reset_peaks(hal_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->peaks = (hal_memory_peaks){pool->in_use_bytes, pool->in_use_bytes + pool->pooled_bytes};
    pthread_mutex_unlock(&pool->lock);
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
    statistics->copied_bytes = pool->copied_bytes;
    for (const hal_copy_counter *counter = pool->counters; counter; counter = counter->next) {
        statistics->copied_bytes += atomic_load(&counter->bytes);
    }
    pthread_mutex_unlock(&pool->lock);
    statistics->imported_bytes = atomic_load(&pool->imported_bytes);

    const uint64_t held = statistics->in_use_bytes + statistics->pooled_bytes;
    statistics->total_bytes = device->info.memory_bytes;
    statistics->free_bytes = statistics->total_bytes > held ? statistics->total_bytes - held : 0;
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

hal_status hal_memory_flush(hal_device *device, const hal_memory *memory, uint64_t offset,
                            uint64_t bytes)
{
    if (!device->plugin->memory_flush || bytes == 0) {
        return HAL_OK;
    }
    hal_host_clear_error();
    const hal_status status =
        device->plugin->memory_flush(device->handle, memory->handle, offset, bytes);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status, "flushing %llu mapped bytes",
                                                (unsigned long long)bytes);
}

hal_status hal_memory_invalidate(hal_device *device, const hal_memory *memory, uint64_t offset,
                                 uint64_t bytes)
{
    if (!device->plugin->memory_invalidate || bytes == 0) {
        return HAL_OK;
    }
    hal_host_clear_error();
    const hal_status status =
        device->plugin->memory_invalidate(device->handle, memory->handle, offset, bytes);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status, "invalidating %llu mapped bytes",
                                                (unsigned long long)bytes);
}
