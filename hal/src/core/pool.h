/* The pool of a device's memory: blocks in classes of sizes, ordered by the points of their last
 * uses, so that taking one again needs neither the driver nor a wait. */
#ifndef HAL_SRC_CORE_POOL_H
#define HAL_SRC_CORE_POOL_H

#include "fence_set.h"

#include <hal/device.h>
#include <stdatomic.h>

/* A block of a device's memory. It belongs to one buffer, to a transfer, or to the pool. */
typedef struct hal_memory {
    struct hal_memory *next; /* in the pool */
    void *description;       /* the last buffer's, in the pool, for the next one; freed with it */
    hal_plugin_memory *handle;
    uint64_t bytes; /* of the block, at least as many as were asked for */
    uint32_t kind;
    int reused;              /* `uses` are those of an earlier owner; under the uses' lock */
    void *pointer;           /* the host's view once asked for; under the uses' lock */
    _Atomic uint64_t stamp;  /* serial of the last batch that noted its use */
    hal_fence_set uses;
} hal_memory;

#define HAL_POOL_CLASSES 232 /* four to each power of two from 256 bytes on */

/* The end is where the last block's `next` is; null stands for that of `first`. */
typedef struct hal_pool_class {
    hal_memory *first;
    hal_memory **end;
} hal_pool_class;

typedef struct hal_pool {
    hal_device *device;
    pthread_mutex_t lock;
    hal_pool_class classes[HAL_MEMORY_KIND_COUNT][HAL_POOL_CLASSES];
    uint64_t in_use_bytes;
    uint64_t pooled_bytes;
    uint64_t allocation_count;
    uint64_t reuse_count;
} hal_pool;

void hal_pool_begin(hal_pool *pool, hal_device *device);

/* Frees what is pooled; nothing is in use any more. */
void hal_pool_end(hal_pool *pool);

/* Gives a block of at least `bytes` bytes. `idle`: one that the host may touch at once; otherwise
 * its uses may be under way, and whoever touches it first has to come after them.
 * Threads: any. Errors: OUT_OF_MEMORY after trimming and trying again, what the plugin answers. */
hal_status hal_pool_take(hal_pool *pool, uint32_t kind, uint64_t bytes, int idle,
                         hal_memory **memory);

/* Gives a block back; its uses may be under way. Threads: any. */
void hal_pool_give(hal_pool *pool, hal_memory *memory);

/* Gives blocks that nothing uses any more back to the device; `wait`: work that was handed over is
 * waited for. Threads: any. */
void hal_pool_trim(hal_pool *pool, int wait);

/* Threads: any. Errors: what the plugin answers. */
hal_status hal_pool_statistics(hal_pool *pool, hal_memory_statistics *statistics);

/* The host's view of a block. Needs the uses' lock, or a block that nobody else sees.
 * Errors: what the plugin answers. */
hal_status hal_memory_map(hal_device *device, hal_memory *memory, void **pointer);

#endif
