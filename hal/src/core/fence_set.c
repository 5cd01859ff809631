/* Uses of memory and kernels. Called by buffer.c, pool.c, kernel.c and queue.c. */
#include "fence_set.h"

#include "queue.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

void hal_fence_set_init(hal_fence_set *uses)
{
    pthread_mutex_init(&uses->lock, NULL);
    uses->count = 0;
    uses->capacity = HAL_USES_FEW;
    uses->items = uses->few;
}

void hal_fence_set_destroy(hal_fence_set *uses)
{
    if (uses->items != uses->few) {
        free(uses->items);
    }
    pthread_mutex_destroy(&uses->lock);
}

hal_status hal_fence_set_add(hal_fence_set *uses, hal_queue *queue, uint64_t value)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->items[i].queue == queue) {
            uses->items[i].value = value;
            return HAL_OK;
        }
    }
    if (uses->count == uses->capacity && hal_fence_set_pending(uses, 1) == uses->capacity) {
        const uint32_t capacity = 2 * uses->capacity;
        hal_last_use *items = malloc(capacity * sizeof *items);
        if (!items) {
            return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note a %uth queue",
                            uses->count + 1);
        }
        memcpy(items, uses->items, uses->count * sizeof *items);
        if (uses->items != uses->few) {
            free(uses->items);
        }
        uses->items = items;
        uses->capacity = capacity;
    }
    uses->items[uses->count++] = (hal_last_use){queue, value};
    return HAL_OK;
}

uint32_t hal_fence_set_pending(hal_fence_set *uses, int ask)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < uses->count; i++) {
        const hal_last_use use = uses->items[i];
        if (!hal_queue_has_reached(use.queue, use.value, ask)) {
            uses->items[left++] = use;
        }
    }
    uses->count = left;
    return left;
}
