/* Dividing and joining of blocks, see block.h. */
#include "block.h"

#include <stdlib.h>

bool hal_block_divide(hal_memory *block, uint64_t bytes, hal_memory *rest)
{
    if (hal_fence_set_pending(&block->uses, false) > 1) {
        return false;
    }
    rest->before = block;
    rest->after = block->after;
    if (block->after) {
        block->after->before = rest;
    }
    block->after = rest;
    rest->handle = block->handle;
    rest->kind = block->kind;
    rest->is_divisible = true;
    rest->offset = block->offset + bytes;
    rest->bytes = block->bytes - bytes;
    rest->pointer = block->pointer ? (uint8_t *)block->pointer + bytes : NULL;
    rest->uses.count = block->uses.count;
    rest->uses.items[0] = block->uses.items[0];
    block->bytes = bytes;
    return true;
}

bool hal_block_can_join(hal_memory *block)
{
    hal_memory *after = block->after;
    if (!after || !block->is_pooled || !after->is_pooled || block->is_kept || after->is_kept) {
        return false;
    }
    const uint32_t uses = hal_fence_set_pending(&block->uses, false),
                   more = hal_fence_set_pending(&after->uses, false);
    return uses + more <= 1 || (uses == 1 && hal_fence_set_is_of(&after->uses,
                                                                 block->uses.items[0].timeline));
}

void hal_block_join(hal_memory *block)
{
    hal_memory *after = block->after;
    hal_last_use *use = &block->uses.items[0];
    const hal_last_use other = after->uses.items[0];
    if (after->uses.count > 0 && (block->uses.count == 0 || use->value < other.value)) {
        *use = other;
        block->uses.count = 1;
    }
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after) {
        block->after->before = block;
    }
    free(after->description);
    after->description = NULL;
    after->before = after->after = NULL;
    after->uses.count = 0;
}
