/* Work that somebody has to look at until it has ended, though no batch waits for it: a collective
 * that an engine of a plugin runs, which never ends if another rank is lost. hal has no threads:
 * watches are polled in flushes and waits of any queue of the process (held.c).
 * Used by timeline.c, held.c and hal/src/comm. */
#ifndef HAL_SRC_CORE_WATCH_H
#define HAL_SRC_CORE_WATCH_H

#include <stdatomic.h>

typedef struct hal_watch hal_watch;
struct hal_watch {
    hal_watch *next;
    int is_busy; /* a thread is polling it */
    /* Returns 1 when the work has ended. Threads: one at a time, no lock is held. */
    int (*poll)(hal_watch *watch);
    /* Comes after that; the watch is not in use any more. */
    void (*end)(hal_watch *watch);
};

extern _Atomic unsigned hal_watch_count;

/* Starts to poll. The watch stays until its `end`. Threads: any. */
void hal_watch_add(hal_watch *watch);

/* Polls all watches that no other thread is polling: `at_once`, or if the last time was some
 * microseconds ago. Threads: any. */
void hal_watch_poll_all(int at_once);

/* Whether there is a watch, so that a wait has to return to hal_watch_poll_all. */
static inline int hal_watch_is_any(void)
{
    return atomic_load_explicit(&hal_watch_count, memory_order_relaxed) > 0;
}

#endif
