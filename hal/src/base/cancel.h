/* Cancellation of threads. A call of the library is no cancellation point: a thread that ends
 * inside one leaves locks taken and helper threads with its stack. */
#ifndef HAL_SRC_BASE_CANCEL_H
#define HAL_SRC_BASE_CANCEL_H

#include <pthread.h>

static inline int hal_cancel_disable(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void hal_cancel_restore(const int *before)
{
    int disabled;
    pthread_setcancelstate(*before, &disabled);
}

/* A declaration: until the end of the block the thread is not cancelled. For functions that call
 * cancellation points of POSIX: waits, files, processes. Entries of plugins do it themselves. */
#define HAL_UNCANCELLED                                                                \
    __attribute__((cleanup(hal_cancel_restore), unused)) const int hal_cancel_before = \
        hal_cancel_disable()

#endif
