/* Who uses a piece of memory or a kernel, and up to which point: what keeps either alive. */
#ifndef HAL_SRC_CORE_USES_H
#define HAL_SRC_CORE_USES_H

#include <hal/queue.h>
#include <pthread.h>

typedef struct hal_use {
    hal_queue *queue;
    uint64_t value;
} hal_use;

#define HAL_USES_FEW 2

/* One entry for each queue. Under `lock` while several threads can see the owner. */
typedef struct hal_uses {
    pthread_mutex_t lock;
    uint32_t count;
    uint32_t capacity;
    hal_use *items; /* `few` as long as they suffice */
    hal_use few[HAL_USES_FEW];
} hal_uses;

void hal_uses_begin(hal_uses *uses);
void hal_uses_end(hal_uses *uses);

/* Notes a use, or raises the queue's value. Needs the lock. Errors: OUT_OF_MEMORY. */
hal_status hal_uses_add(hal_uses *uses, hal_queue *queue, uint64_t value);

/* Forgets the uses that are over and gives the number of the others. `ask`: the plugins are asked,
 * not only what is known already. Needs the lock. */
uint32_t hal_uses_left(hal_uses *uses, int ask);

#endif
