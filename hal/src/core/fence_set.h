/* Who uses a piece of memory or a kernel, and up to which point: what keeps either alive. */
#ifndef HAL_SRC_CORE_FENCE_SET_H
#define HAL_SRC_CORE_FENCE_SET_H

#include <hal/queue.h>
#include <pthread.h>

typedef struct hal_last_use {
    hal_queue *queue;
    uint64_t value;
} hal_last_use;

#define HAL_USES_FEW 2

/* One entry for each queue. Under `lock` while several threads can see the owner. */
typedef struct hal_fence_set {
    pthread_mutex_t lock;
    uint32_t count;
    uint32_t capacity;
    hal_last_use *items; /* `few` as long as they suffice */
    hal_last_use few[HAL_USES_FEW];
} hal_fence_set;

void hal_fence_set_init(hal_fence_set *uses);
void hal_fence_set_destroy(hal_fence_set *uses);

/* Notes a use, or raises the queue's value. Needs the lock. Errors: OUT_OF_MEMORY. */
hal_status hal_fence_set_add(hal_fence_set *uses, hal_queue *queue, uint64_t value);

/* Forgets the uses that are over and gives the number of the others. `ask`: the plugins are asked,
 * not only what is known already. Needs the lock. */
uint32_t hal_fence_set_pending(hal_fence_set *uses, int ask);

#endif
