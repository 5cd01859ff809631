/* The last points up to which queues use a block of memory or a kernel. The owner is kept until all
 * of them are reached. */
#ifndef HAL_SRC_CORE_FENCE_SET_H
#define HAL_SRC_CORE_FENCE_SET_H

#include "timeline.h"

#include <pthread.h>
#include <stdbool.h>

#define HAL_FENCE_SET_INLINE 2

/* At most one entry per timeline. `lock` guards it while several threads can see the owner. */
typedef struct hal_fence_set {
    pthread_mutex_t lock;
    uint32_t count;
    uint32_t capacity;
    hal_last_use *items; /* `few` until it is full */
    hal_last_use few[HAL_FENCE_SET_INLINE];
} hal_fence_set;

void hal_fence_set_init(hal_fence_set *uses);
void hal_fence_set_destroy(hal_fence_set *uses);

/* Adds a use or replaces that of the same timeline. The caller holds the lock.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_fence_set_add(hal_fence_set *uses, hal_last_use use);

/* Whether all uses are by one queue, whose next batch comes after them in any case. The caller has
 * the lock. */
static inline bool hal_fence_set_is_of(const hal_fence_set *uses, const hal_timeline *timeline)
{
    return uses->count == 1 && uses->items[0].timeline == timeline;
}

/* Removes reached uses and returns the number that is left. If `poll`, plugins are asked about
 * uses that are not known to be reached. The caller holds the lock. */
uint32_t hal_fence_set_pending(hal_fence_set *uses, bool poll);

#endif
