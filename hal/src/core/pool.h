/* The memory pool of a device. Released blocks are kept in size classes together with their last
 * uses, so that a block is reused without a call to the driver and without a wait. */
#ifndef HAL_SRC_CORE_POOL_H
#define HAL_SRC_CORE_POOL_H

#include "block.h"

#include <hal/device.h>
#include <hal/memory_peaks.h>

/* Bytes that the host copies from or to buffers by one queue, so that no two threads write one
 * counter. */
typedef struct hal_copy_counter {
    struct hal_copy_counter *next; /* guarded by the pool's lock */
    _Atomic uint64_t bytes;
} hal_copy_counter;

/* Threads: the queue's. */
static inline void hal_copy_count(hal_copy_counter *counter, uint64_t bytes)
{
    const uint64_t before = atomic_load_explicit(&counter->bytes, memory_order_relaxed);
    atomic_store_explicit(&counter->bytes, before + bytes, memory_order_relaxed);
}

typedef struct hal_pool hal_pool;

/* Returns an empty pool, null without host memory. `device` is used from the first allocation. */
hal_pool *hal_pool_create(hal_device *device);

/* Frees all blocks; no work may use them. Null is allowed. */
void hal_pool_destroy(hal_pool *pool);

/* Returns a block of at least `bytes` bytes, which keeps the device open until it is given back. If
 * `idle`, the host may touch it at once; otherwise its uses may be in flight and the new owner's
 * work must wait for them. Threads: any.
 * Errors: OUT_OF_MEMORY after a trim and a second attempt, those of the plugin. */
hal_status hal_pool_take(hal_pool *pool, hal_memory_kind kind, uint64_t bytes, bool idle,
                         hal_memory **memory);

/* Returns a block to the pool; its uses may be in flight. Closes the device with its pool where
 * nothing else keeps it open. Threads: any. */
void hal_pool_give(hal_pool *pool, hal_memory *memory);

/* Keeps a block, and with it the device, until the process ends: something outside of hal may use
 * it at any time. The block may have an owner, or be in the pool already. Threads: any. */
void hal_pool_keep(hal_pool *pool, hal_memory *memory);

/* Frees idle blocks. If `wait`, submitted work that uses blocks is waited for first. The pool stays
 * available to other threads meanwhile. Threads: any. */
void hal_pool_trim(hal_pool *pool, bool wait);

/* Bytes of blocks that have an owner and of blocks in the pool. Threads: any. */
void hal_pool_usage(hal_pool *pool, uint64_t *in_use_bytes, uint64_t *pooled_bytes);

/* Counts bytes of memory of others that gets a block, negative when it has none any more.
 * Threads: any. */
void hal_pool_count_import(hal_pool *pool, int64_t bytes);

/* Adds a queue's counter to the statistics, and removes it: its bytes still count. Threads: any. */
void hal_pool_add_counter(hal_pool *pool, hal_copy_counter *counter);
void hal_pool_remove_counter(hal_pool *pool, hal_copy_counter *counter);

/* The peaks, and their reset to the present values. Threads: any. */
hal_memory_peaks hal_pool_peaks(hal_pool *pool);
void hal_pool_reset_peaks(hal_pool *pool);

/* Threads: any. Errors: those of the plugin. */
hal_status hal_pool_statistics(hal_pool *pool, hal_memory_statistics *statistics);

/* The host view of a block. The caller holds the lock of `uses` or is the only one to see the
 * block. Errors: those of the plugin. */
hal_status hal_memory_map(hal_device *device, hal_memory *memory, void **pointer);

/* Tell the plugin that the host wrote a range of the view, before a batch that uses it is
 * submitted; and that the host will read one, after the batches that wrote it are reached. Nothing
 * is done where mapped memory is coherent. Threads: any. Errors: those of the plugin. */
hal_status hal_memory_flush(hal_device *device, const hal_memory *memory, uint64_t offset,
                            uint64_t bytes);
hal_status hal_memory_invalidate(hal_device *device, const hal_memory *memory, uint64_t offset,
                                 uint64_t bytes);

#endif
