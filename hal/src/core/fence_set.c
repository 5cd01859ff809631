/* Last uses of memory and kernels by queues, see fence_set.h. */
#include "fence_set.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static hal_status fence_set_grow(hal_fence_set *uses)
{
    const uint32_t capacity = 2 * uses->capacity;
    hal_last_use *items = malloc(capacity * sizeof *items);
    if (!items) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to record the use by queue %u",
                        uses->count + 1);
    }
    memcpy(items, uses->items, uses->count * sizeof *items);
    if (uses->items != uses->few) {
        free(uses->items);
    }
    uses->items = items;
    uses->capacity = capacity;
    return HAL_OK;
}

void hal_fence_set_init(hal_fence_set *uses)
{
    pthread_mutex_init(&uses->lock, NULL);
    uses->count = 0;
    uses->capacity = HAL_FENCE_SET_INLINE;
    uses->items = uses->few;
}

void hal_fence_set_destroy(hal_fence_set *uses)
{
    if (uses->items != uses->few) {
        free(uses->items);
    }
    pthread_mutex_destroy(&uses->lock);
}

hal_status hal_fence_set_add(hal_fence_set *uses, hal_last_use use)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->items[i].timeline == use.timeline) {
            uses->items[i].value = use.value;
            return HAL_OK;
        }
    }
    if (uses->count == uses->capacity && hal_fence_set_pending(uses, true) == uses->capacity) {
        HAL_TRY(fence_set_grow(uses));
    }
    uses->items[uses->count++] = use;
    return HAL_OK;
}

uint32_t hal_fence_set_pending(hal_fence_set *uses, bool poll)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < uses->count; i++) {
        const hal_last_use use = uses->items[i];
        if (!hal_timeline_has_reached(use.timeline, use.value, poll)) {
            uses->items[left++] = use;
        }
    }
    uses->count = left;
    return left;
}
