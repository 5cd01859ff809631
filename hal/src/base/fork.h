/* Locks over fork: the thread that forks takes them before, so that the child, where no other
 * thread exists, finds them free and what they guard whole. */
#ifndef HAL_SRC_BASE_FORK_H
#define HAL_SRC_BASE_FORK_H

#include <pthread.h>
#include <stdbool.h>

/* Locks are taken in this order: a thread that has one may wait for those after it. */
typedef enum hal_fork_order {
    HAL_FORK_REGISTRY = 0, /* a thread holds it while it opens a device */
    HAL_FORK_LAYER = 1,    /* of layers, groups and queues, which call what is below them */
    HAL_FORK_TABLE = 2,    /* only leaves are taken under it */
    HAL_FORK_LEAF = 3      /* no other lock is taken under it */
} hal_fork_order;

/* Adds a lock. `is_own`: null, or whether the calling thread holds the lock: then fork does not
 * wait for it, and the child holds it. Threads: before main, by a constructor. */
void hal_fork_guard(pthread_mutex_t *lock, hal_fork_order order, bool (*is_own)(void));

/* Guards a lock of static storage. */
#define HAL_FORK_GUARD(lock, order)                                  \
    __attribute__((constructor)) static void lock##_fork_guard(void) \
    {                                                                \
        hal_fork_guard(&(lock), order, NULL);                        \
    }

#endif
