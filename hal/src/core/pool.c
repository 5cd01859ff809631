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
#define LARGEST_STEP (UINT64_C(2) << 20)  /* between sizes; below: a quarter of a power of two */
#define CLASSES 232                       /* four per power of two from SMALLEST on */
#define LEAST_DIVIDED (UINT64_C(1) << 20) /* requests of as many bytes get parts of blocks */
#define DIVIDED_STEP (UINT64_C(64) << 10) /* between sizes of parts, and the least rest */
#define SEGMENT_DIVISOR 16                /* memory for several parts: this part of what is held */
#define LARGEST_SEGMENT (UINT64_C(64) << 20)
#define MAX_SCANNED 16   /* blocks of a class that are candidates for one request */
#define MAX_SKIPPED 1024 /* blocks of a class that are skipped because they are busy */
#define POOL_DIVISOR 2   /* the pool keeps at most this part of the device's memory */

typedef struct pool_class {
    hal_memory *first, *last;
} pool_class;

struct hal_pool {
    hal_device *device;
    pthread_mutex_t lock;
    pool_class classes[HAL_MEMORY_KIND_COUNT][CLASSES];
    hal_memory *spares; /* descriptions without memory: threads may still look at their locks */
    bool divides;       /* blocks; the layers' tables know memory by what the plugin allocated */
    uint64_t in_use_bytes;
    uint64_t in_use_count; /* above 0: the pool has a reference to the device */
    uint64_t pooled_bytes;
    uint64_t trim_above; /* pooled bytes, after a trim that left more than the limit; else 0 */
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

/* Whether the block is all that the plugin allocated at once. */
static bool block_is_whole(const hal_memory *block)
{
    return !block->before && !block->after;
}

/* The last class whose smallest size is at most `bytes`. */
static uint32_t class_index(uint64_t bytes)
{
    const uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes);
    return (power - 8) * 4 + (uint32_t)(bytes >> (power - 2) & 3);
}

/* Whether requests of a size get parts of larger blocks. */
static bool pool_divides(const hal_pool *pool, hal_memory_kind kind, uint64_t bytes)
{
    return pool->divides && kind == HAL_MEMORY_DEVICE && bytes >= LEAST_DIVIDED;
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

/* The caller holds the lock, as of the functions up to pool_count_block. */
static void pool_unlink(hal_pool *pool, hal_memory *block)
{
    pool_class *class = &pool->classes[block->kind][class_index(block->bytes)];
    *(block->previous ? &block->previous->next : &class->first) = block->next;
    *(block->next ? &block->next->previous : &class->last) = block->previous;
    block->is_pooled = false;
    pool->pooled_bytes -= block->bytes;
}

/* Device memory is reused last in, first out: it may still be in caches. Memory that the host
 * touches must be idle, so it is reused first in, first out. */
static void pool_link(hal_pool *pool, hal_memory *block)
{
    pool_class *class = &pool->classes[block->kind][class_index(block->bytes)];
    const bool is_first = block->kind == HAL_MEMORY_DEVICE;
    block->previous = is_first ? NULL : class->last;
    block->next = is_first ? class->first : NULL;
    *(block->previous ? &block->previous->next : &class->first) = block;
    *(block->next ? &block->next->previous : &class->last) = block;
    block->is_pooled = true;
    pool->pooled_bytes += block->bytes;
}

/* Returns a description of a block, null without host memory. */
static hal_memory *pool_take_spare(hal_pool *pool)
{
    hal_memory *block = pool->spares;
    if (block) {
        pool->spares = block->next;
        block->uses.count = 0;
        block->offset = 0;
        block->pointer = NULL;
        block->reused = block->is_kept = false;
        atomic_store_explicit(&block->batch_serial, 0, memory_order_relaxed);
    } else if ((block = calloc(1, sizeof *block)) != NULL) {
        hal_fence_set_init(&block->uses);
    }
    return block;
}

static void pool_give_spare(hal_pool *pool, hal_memory *block)
{
    block->next = pool->spares;
    pool->spares = block;
}

/* Without the lock. */
static void blocks_free(hal_pool *pool, hal_memory *list)
{
    hal_memory *last = NULL;
    for (hal_memory *block = list; block; block = block->next) {
        hal_event event = {.kind = HAL_EVENT_FREE,
                           .device = pool->device,
                           .memory = block->handle,
                           .bytes = block->bytes};
        hal_event_begin(&event);
        pool->device->plugin->memory_free(pool->device->handle, block->handle);
        hal_event_end(&event, HAL_OK);
        free(block->description);
        block->description = NULL;
        last = block;
    }
    if (last) {
        pthread_mutex_lock(&pool->lock);
        last->next = pool->spares;
        pool->spares = list;
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Keeps in the pool what a block has beyond `bytes`. */
static void pool_divide(hal_pool *pool, hal_memory *block, uint64_t bytes)
{
    hal_memory *rest = NULL;
    if (block->is_divisible && block->bytes >= bytes + DIVIDED_STEP) {
        rest = pool_take_spare(pool);
    }
    if (rest && hal_block_divide(block, bytes, rest)) {
        pool_link(pool, rest);
    } else if (rest) {
        pool_give_spare(pool, rest);
    }
}

static void pool_join_next(hal_pool *pool, hal_memory *block)
{
    hal_memory *after = block->after;
    pool_unlink(pool, after);
    pool_unlink(pool, block);
    hal_block_join(block);
    pool_link(pool, block);
    pool_give_spare(pool, after);
}

/* Joins a block of the pool with its neighbours where that makes no queue wait. */
static hal_memory *pool_join(hal_pool *pool, hal_memory *block)
{
    while (hal_block_can_join(block)) {
        pool_join_next(pool, block);
    }
    while (block->before && hal_block_can_join(block->before)) {
        block = block->before;
        pool_join_next(pool, block);
    }
    return block;
}

/* A block that several queues use stays whole, see hal_block_divide. */
static bool block_can_be_divided(hal_memory *block)
{
    return block->is_divisible && hal_fence_set_pending(&block->uses, false) <= 1;
}

/* The best fit of a class; null if none. Blocks of a slow queue are skipped: they would hide idle
 * blocks after them. */
static hal_memory *class_find(const pool_class *class, uint64_t bytes, bool idle)
{
    hal_memory *best = NULL;
    hal_last_use busy[MAX_SCANNED];
    uint32_t scanned = 0, skipped = 0, busy_count = 0;
    for (hal_memory *block = class->first; block && scanned < MAX_SCANNED && skipped < MAX_SKIPPED;
         block = block->next) {
        if (block->is_kept || block_is_behind(block, busy, busy_count)) {
            skipped++;
            continue;
        }
        scanned++;
        if (block->bytes < bytes || (best && block->bytes >= best->bytes)) {
            continue;
        }
        if (block->bytes > bytes + bytes / 2 && !block_can_be_divided(block)) {
            continue; /* all of it would be in use */
        }
        if (block_is_available(block, idle)) {
            best = block;
            if (best->bytes == bytes) {
                break;
            }
        } else if (idle) {
            busy[busy_count++] = block->uses.items[0];
        }
    }
    return best;
}

/* The best fit of the class of `bytes` or the next one, whose sizes are at most half as large
 * again; where the rest stays in the pool, of any class. */
static hal_memory *pool_find(const hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle)
{
    const uint32_t first = class_index(bytes);
    const uint32_t end = pool_divides(pool, kind, bytes) ? CLASSES : first + 2;
    hal_memory *block = NULL;
    for (uint32_t i = first; i < end && !block; i++) {
        block = class_find(&pool->classes[kind][i], bytes, idle);
    }
    return block;
}

/* The owners of blocks have one reference to the device together. */
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
static uint64_t block_size(const hal_pool *pool, hal_memory_kind kind, uint64_t bytes)
{
    if (bytes <= SMALLEST) {
        return SMALLEST;
    }
    uint64_t step = (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / 4;
    step = step < SMALLEST ? SMALLEST : step > LARGEST_STEP ? LARGEST_STEP : step;
    step = pool_divides(pool, kind, bytes) ? DIVIDED_STEP : step;
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

/* What the plugin is asked for where a block of `bytes` is needed. The caller holds the lock. */
static uint64_t allocation_size(const hal_pool *pool, hal_memory_kind kind, uint64_t bytes)
{
    uint64_t size = bytes;
    if (pool_divides(pool, kind, bytes)) {
        uint64_t segment = (pool->in_use_bytes + pool->pooled_bytes) / SEGMENT_DIVISOR;
        segment = segment < LARGEST_SEGMENT ? segment : LARGEST_SEGMENT;
        size = bytes < segment / 2 ? segment : bytes;
        if (size <= UINT64_MAX - LARGEST_STEP) {
            size = (size + LARGEST_STEP - 1) / LARGEST_STEP * LARGEST_STEP;
        }
    }
    return size <= pool->device->info.max_allocation ? size : bytes;
}

/* Parts have views of the host from the beginning: a plugin maps memory once. */
static bool block_map(hal_device *device, hal_memory *memory)
{
    void *pointer = NULL;
    return !(device->info.features & HAL_FEATURE_MAP_DEVICE) ||
           hal_memory_map(device, memory, &pointer) == HAL_OK;
}

/* Allocates `bytes` and keeps in the pool what is not needed of them. */
static hal_status block_allocate(hal_pool *pool, hal_memory_kind kind, uint64_t bytes,
                                 uint64_t needed, hal_memory *memory)
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
    memory->kind = kind;
    memory->is_divisible = pool_divides(pool, kind, needed) && block_map(device, memory);
    pthread_mutex_lock(&pool->lock);
    pool->allocation_count++;
    pool_divide(pool, memory, needed);
    pool_count_block(pool, memory);
    pthread_mutex_unlock(&pool->lock);
    return HAL_OK;
}

/* Frees idle blocks that are smaller than an allocation to come, until they have as many bytes: the
 * larger one can serve their requests as well, but they cannot serve its. */
static void pool_make_room(hal_pool *pool, uint64_t bytes)
{
    hal_memory *list = NULL;
    uint64_t freed = 0;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = class_index(bytes) + 1; i-- > class_index(LEAST_DIVIDED);) {
        hal_memory *next, *block = pool->classes[HAL_MEMORY_DEVICE][i].first;
        for (; block && freed < bytes; block = next) {
            next = block->next;
            if (block->bytes < bytes && block_is_whole(block) && !block->is_kept &&
                hal_fence_set_pending(&block->uses, false) == 0) {
                pool_unlink(pool, block);
                freed += block->bytes;
                block->next = list;
                list = block;
            }
        }
    }
    pthread_mutex_unlock(&pool->lock);
    blocks_free(pool, list);
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

/* Takes a block of the pool, null if none fits. */
static hal_memory *pool_reuse(hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle)
{
    pthread_mutex_lock(&pool->lock);
    const uint64_t size = block_size(pool, kind, bytes);
    hal_memory *block = pool_find(pool, kind, size, idle);
    if (block) {
        pool_unlink(pool, block);
        pool_divide(pool, block, size);
        pool_count_block(pool, block);
        pool->reuse_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (block) {
        block->next = NULL;
        block->reused = block->uses.count > 0;
        atomic_store_explicit(&block->batch_serial, 0, memory_order_relaxed);
    }
    return block;
}

static hal_status block_create(hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle,
                               hal_memory **memory)
{
    uint64_t size = block_size(pool, kind, bytes);
    if (size > pool->device->info.max_allocation) {
        size = bytes;
    }
    pthread_mutex_lock(&pool->lock);
    hal_memory *block = pool_take_spare(pool);
    const uint64_t allocated = allocation_size(pool, kind, size);
    pthread_mutex_unlock(&pool->lock);
    if (!block) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the description of a buffer");
    }
    hal_saved_message before;
    hal_message_save(&before);
    if (pool_divides(pool, kind, size)) {
        pool_make_room(pool, allocated);
    }
    hal_status status = block_allocate(pool, kind, allocated, size, block);
    if (status == HAL_ERROR_OUT_OF_MEMORY && allocated > size) {
        status = block_allocate(pool, kind, size, size, block);
    }
    *memory = NULL;
    if (status == HAL_ERROR_OUT_OF_MEMORY) {
        hal_log(HAL_LOG_INFO, "out of memory at %llu bytes: trimming the pool",
                (unsigned long long)bytes);
        hal_pool_trim(pool, true);
        /* The trim joined neighbours that it could not free; they are idle now. */
        *memory = pool_reuse(pool, kind, bytes, idle);
        size = bytes > UINT64_MAX - SMALLEST ? bytes : (bytes + SMALLEST - 1) & ~(SMALLEST - 1ull);
        status = *memory ? HAL_OK : block_allocate(pool, kind, size, size, block);
    }
    if (status == HAL_OK && !*memory) {
        *memory = block;
    } else {
        pthread_mutex_lock(&pool->lock);
        pool_give_spare(pool, block);
        pthread_mutex_unlock(&pool->lock);
    }
    if (status == HAL_OK) {
        hal_message_restore(&before); /* a failure that trimming has cured */
        return HAL_OK;
    }
    return status == HAL_ERROR_OUT_OF_MEMORY ? fail_out_of_memory(pool, kind, bytes) : status;
}

/* Without host memory the list stays incomplete, and fewer blocks are freed. */
static void use_list_add(use_list *uses, hal_last_use use)
{
    if (!HAL_ARRAY_RESERVE(uses->items, uses->capacity, (uint64_t)uses->count + 1)) {
        return;
    }
    uses->items[uses->count++] = use;
}

/* Joins blocks that were in use by several queues when they came to the pool. The caller holds the
 * lock. */
static void pool_join_all(hal_pool *pool)
{
    for (uint32_t i = 0; i < CLASSES; i++) {
        pool_class *class = &pool->classes[HAL_MEMORY_DEVICE][i];
        for (hal_memory *block = class->first, *next; block; block = next) {
            const uint64_t bytes = block->bytes;
            hal_memory *joined = pool_join(pool, block);
            next = joined == block && block->bytes == bytes ? block->next : class->first;
        }
    }
}

/* Unlinks the blocks whose uses are all known to be reached, and lists the uses of the others. */
static hal_memory *pool_unlink_idle(hal_pool *pool, use_list *busy)
{
    hal_memory *list = NULL;
    pthread_mutex_lock(&pool->lock);
    pool_join_all(pool);
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < CLASSES; i++) {
            pool_class *class = &pool->classes[kind][i];
            for (hal_memory *block = class->first, *next; block; block = next) {
                next = block->next;
                const uint32_t pending = hal_fence_set_pending(&block->uses, false);
                for (uint32_t u = 0; busy && u < pending; u++) {
                    use_list_add(busy, block->uses.items[u]);
                }
                if (pending == 0 && !block->is_kept && block_is_whole(block)) {
                    pool_unlink(pool, block);
                    block->next = list;
                    list = block;
                }
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
        pool->divides = !hal_hooks_on(HAL_HOOK_EVENTS);
        pthread_mutex_init(&pool->lock, NULL);
    }
    return pool;
}

void hal_pool_destroy(hal_pool *pool)
{
    if (!pool) {
        return;
    }
    for (uint32_t i = 0; i < CLASSES; i++) {
        for (hal_memory *block; (block = pool->classes[HAL_MEMORY_DEVICE][i].first) != NULL;) {
            while (block->before) {
                block = block->before;
            }
            while (block->after) {
                pool_join_next(pool, block);
            }
            pool_unlink(pool, block);
            block->next = NULL;
            blocks_free(pool, block);
        }
    }
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < CLASSES; i++) {
            blocks_free(pool, pool->classes[kind][i].first);
        }
    }
    for (hal_memory *spare; (spare = pool->spares) != NULL;) {
        pool->spares = spare->next;
        hal_fence_set_destroy(&spare->uses);
        free(spare);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

hal_status hal_pool_take(hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle,
                         hal_memory **memory)
{
    bytes = bytes ? bytes : 1; /* an empty buffer has memory as well, and can be mapped */
    *memory = pool_reuse(pool, kind, bytes, idle);
    return *memory ? HAL_OK : block_create(pool, kind, bytes, idle, memory);
}

void hal_pool_give(hal_pool *pool, hal_memory *memory)
{
    hal_device *device = pool->device;
    pthread_mutex_lock(&pool->lock);
    pool->in_use_bytes -= memory->bytes;
    pool_link(pool, memory); /* a kept block as well, which is not taken again */
    pool_join(pool, memory);
    /* Other processes need memory too, and on some devices it is the host's memory. */
    const uint64_t limit = device->info.memory_bytes / POOL_DIVISOR;
    pool->trim_above = pool->pooled_bytes > limit ? pool->trim_above : 0;
    const bool trims =
        limit > 0 && pool->pooled_bytes > limit && pool->pooled_bytes > pool->trim_above;
    const bool is_last = --pool->in_use_count == 0;
    if (trims && !is_last) {
        hal_device_ref(device); /* another thread may give the last block meanwhile */
    }
    pthread_mutex_unlock(&pool->lock);
    if (trims) {
        hal_pool_trim(pool, false);
        pthread_mutex_lock(&pool->lock);
        /* A part is not freed while its neighbours are in use: trimming again would be in vain. */
        const bool is_vain = pool->pooled_bytes > limit;
        pool->trim_above = is_vain ? pool->pooled_bytes + limit / 8 : 0;
        pthread_mutex_unlock(&pool->lock);
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
    const hal_status status = device->plugin->memory_flush(device->handle, memory->handle,
                                                           memory->offset + offset, bytes);
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
    const hal_status status = device->plugin->memory_invalidate(device->handle, memory->handle,
                                                                memory->offset + offset, bytes);
    return status == HAL_OK ? HAL_OK
                            : hal_device_failed(device, status, "invalidating %llu mapped bytes",
                                                (unsigned long long)bytes);
}
