/* Growing arrays:
 *
 *     struct { hal_candidate *items; uint32_t count, capacity; } found = {0};
 *     if (!HAL_ARRAY_RESERVE(found.items, found.capacity, (uint64_t)found.count + 1)) {
 *         return hal_fail(HAL_ERROR_OUT_OF_MEMORY, ...);
 *     }
 *     found.items[found.count++] = candidate;
 *     ...
 *     free(found.items);
 *
 * The array is any pointer that is null or from malloc; its capacity is a uint32_t of items. */
#ifndef HAL_SRC_BASE_ARRAY_H
#define HAL_SRC_BASE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `needed` items. Returns 0, without a change, if memory is out. Evaluates its
 * arguments once; costs one comparison if there is room. */
#define HAL_ARRAY_RESERVE(items, capacity, needed) \
    hal_array_reserve(&(items), &(capacity), (needed), sizeof *(items))

/* As HAL_ARRAY_RESERVE; `items` points to the array's pointer, which may have any type. */
static inline bool hal_array_reserve(void *items, uint32_t *capacity, uint64_t needed,
                                     size_t item_bytes)
{
    enum { FIRST_ITEMS = 8 };
    if (needed <= *capacity) {
        return true;
    }
    uint64_t wanted = *capacity ? 2 * (uint64_t)*capacity : FIRST_ITEMS;
    wanted = wanted < needed ? needed : wanted;
    if (wanted > UINT32_MAX) {
        wanted = UINT32_MAX;
    }
    if (wanted < needed || wanted > SIZE_MAX / item_bytes) {
        return false;
    }
    void *now;
    memcpy(&now, items, sizeof now); /* not by a void **, which would break strict aliasing */
    void *larger = realloc(now, (size_t)wanted * item_bytes);
    if (!larger) {
        return false;
    }
    memcpy(items, &larger, sizeof larger);
    *capacity = (uint32_t)wanted;
    return true;
}

#endif
