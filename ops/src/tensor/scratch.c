/* Memory for large structures, see scratch.h. */
#include "scratch.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>

/* More than recording takes at once; what does not fit is allocated. Unused pages cost nothing. */
enum { BLOCK_BYTES = 128 << 10, ALIGNMENT = alignof(max_align_t) };

static bool block_has(const ops_scratch *scratch, const void *memory)
{
    const uintptr_t at = (uintptr_t)memory, first = (uintptr_t)scratch->block;
    return scratch->block && at >= first && at < first + BLOCK_BYTES;
}

void *ops_scratch_take(ops_scratch *scratch, const char *function, size_t bytes)
{
    const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!scratch->block) {
        scratch->block = malloc(BLOCK_BYTES);
    }
    void *memory = NULL;
    if (scratch->block && rounded <= BLOCK_BYTES - scratch->used) {
        memory = scratch->block + scratch->used;
        scratch->used += rounded;
    } else {
        memory = malloc(rounded);
    }
    if (!memory) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "%s: the host has no %zu bytes", function, rounded);
    }
    return memory;
}

void ops_scratch_return(ops_scratch *scratch, void *memory)
{
    if (block_has(scratch, memory)) {
        scratch->used = (size_t)((uint8_t *)memory - scratch->block);
    } else {
        free(memory);
    }
}

void ops_scratch_release(ops_scratch *scratch)
{
    free(scratch->block);
    *scratch = (ops_scratch){0};
}
