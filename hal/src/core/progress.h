/* Progress callbacks: work that has to be polled until it ends, though no batch waits for it. hal
 * has no threads: the callbacks run in flushes and waits of any queue of the process. */
#ifndef HAL_SRC_CORE_PROGRESS_H
#define HAL_SRC_CORE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct hal_progress hal_progress;
struct hal_progress {
    hal_progress *next;
    bool is_busy; /* a thread is polling it */
    /* Returns whether the work has ended. Threads: one at a time, no lock is held. */
    bool (*poll)(hal_progress *progress);
    /* Comes after that; hal does not use `progress` any more. */
    void (*end)(hal_progress *progress);
};

extern _Atomic unsigned hal_progress_count;

/* Starts to poll. `progress` stays until its `end`. Threads: any. */
void hal_progress_add(hal_progress *progress);

/* Polls all callbacks that no other thread is polling: `at_once`, or if the last time was some
 * microseconds ago. Threads: any. */
void hal_progress_poll_all(bool at_once);

/* Whether there is a callback, so that a wait has to return to hal_progress_poll_all. */
static inline bool hal_progress_is_any(void)
{
    return atomic_load_explicit(&hal_progress_count, memory_order_relaxed) > 0;
}

#endif
