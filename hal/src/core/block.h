/* A block of device memory: what the plugin allocated at once, or a part of it. A buffer or the
 * pool owns it; the pool divides blocks for smaller requests and joins the parts again. */
#ifndef HAL_SRC_CORE_BLOCK_H
#define HAL_SRC_CORE_BLOCK_H

#include "fence_set.h"

#include <hal/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct hal_memory {
    struct hal_memory *previous, *next; /* in a list of the pool */
    struct hal_memory *before, *after;  /* neighbours in the plugin's memory; null at its ends */
    void *description;        /* of the last buffer, for reuse by the next; freed with the block */
    hal_plugin_memory *handle; /* neighbours have one together */
    uint64_t offset;          /* bytes from the beginning of the plugin's memory */
    uint64_t bytes;           /* size of the block; at least the requested size */
    hal_memory_kind kind;
    bool is_divisible; /* of a size that is divided and joined, by a pool that does so */
    bool is_pooled;    /* in a list of the pool; guarded by its lock, as the neighbours are */
    bool is_kept;      /* see hal_pool_keep; guarded by the pool's lock */
    bool is_imported;  /* see imported.h; never in the pool */
    bool is_read_only; /* imported with HAL_ACCESS_READ */
    bool is_guarded;   /* a command's accesses are checked: read only, or reserved */
    bool reused;       /* `uses` are those of an earlier owner; guarded by the lock of `uses` */
    void *pointer;     /* host view, null until mapped; guarded by the lock of `uses` */
    _Atomic uint64_t batch_serial; /* of the last batch that recorded a use */
    hal_fence_set uses;
    /* Of reserved memory, else null: HAL_ACCESS_* of each part, 0 without memory. */
    _Atomic uint8_t *parts;
    uint64_t part_bytes;
} hal_memory;

/* Cuts an unowned block after `bytes` of it. `rest`, a block without uses, becomes the part after
 * them, with the same uses. Returns false, and changes nothing, where several queues use it. */
bool hal_block_divide(hal_memory *block, uint64_t bytes, hal_memory *rest);

/* Whether the block and the one after it are unowned and joining them makes no queue wait for
 * another one. */
bool hal_block_can_join(hal_memory *block);

/* Makes the one after it a part of the block. That has no memory then. */
void hal_block_join(hal_memory *block);

#endif
