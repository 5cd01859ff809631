/* The watches of the process, see watch.h. */
#include "watch.h"

#include "base/clock.h"

#include <pthread.h>
#include <stddef.h>

#define POLL_NS UINT64_C(20000) /* between two polls of all watches */

_Atomic unsigned hal_watch_count;

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static hal_watch *watches;
static _Atomic uint64_t next_poll_ns;

void hal_watch_add(hal_watch *watch)
{
    pthread_mutex_lock(&watch_lock);
    watch->is_busy = 0;
    watch->next = watches;
    watches = watch;
    atomic_fetch_add(&hal_watch_count, 1);
    pthread_mutex_unlock(&watch_lock);
}

/* The caller holds the lock. */
static void watch_remove(hal_watch *watch)
{
    hal_watch **at = &watches;
    while (*at != watch) {
        at = &(*at)->next;
    }
    *at = watch->next;
    atomic_fetch_sub(&hal_watch_count, 1);
}

/* Polls each watch once, and returns those that have ended as a list. A busy watch stays among the
 * others until its thread has the lock again, so its `next` is valid. */
static hal_watch *watches_poll(void)
{
    hal_watch *ended = NULL;
    pthread_mutex_lock(&watch_lock);
    for (hal_watch *watch = watches, *next; watch; watch = next) {
        if (watch->is_busy) {
            next = watch->next;
            continue;
        }
        watch->is_busy = 1;
        pthread_mutex_unlock(&watch_lock);
        const int has_ended = watch->poll(watch);
        pthread_mutex_lock(&watch_lock);
        watch->is_busy = 0;
        next = watch->next;
        if (has_ended) {
            watch_remove(watch);
            watch->next = ended;
            ended = watch;
        }
    }
    pthread_mutex_unlock(&watch_lock);
    return ended;
}

/* The end of a watch may add the next one, which may have ended, too. */
void hal_watch_poll_all(int at_once)
{
    const uint64_t now = hal_watch_is_any() ? hal_clock_ns() : 0;
    if (now == 0 || (!at_once && now < atomic_load_explicit(&next_poll_ns, memory_order_relaxed))) {
        return;
    }
    atomic_store_explicit(&next_poll_ns, now + POLL_NS, memory_order_relaxed);
    for (hal_watch *ended; (ended = watches_poll()) != NULL;) {
        while (ended) {
            hal_watch *watch = ended;
            ended = watch->next;
            watch->end(watch);
        }
    }
}
