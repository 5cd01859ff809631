/* The progress callbacks of the process. */
#include "progress.h"

#include "base/fork.h"
#include "base/clock.h"
#include "base/status.h"

#include <pthread.h>
#include <stddef.h>

#define POLL_NS UINT64_C(20000) /* between two polls of all callbacks */

_Atomic unsigned hal_progress_count;

static pthread_mutex_t progress_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(progress_lock, HAL_FORK_LAYER)
static hal_progress *callbacks;
static _Atomic uint64_t next_poll_ns;

void hal_progress_add(hal_progress *progress)
{
    pthread_mutex_lock(&progress_lock);
    progress->is_busy = false;
    progress->next = callbacks;
    callbacks = progress;
    atomic_fetch_add(&hal_progress_count, 1);
    pthread_mutex_unlock(&progress_lock);
}

/* The caller holds the lock. */
static void callback_remove(hal_progress *progress)
{
    hal_progress **at = &callbacks;
    while (*at != progress) {
        at = &(*at)->next;
    }
    *at = progress->next;
    atomic_fetch_sub(&hal_progress_count, 1);
}

/* Polls each callback once, and returns those that have ended as a list. A busy one stays among
 * the others until its thread has the lock again, so its `next` is valid. */
static hal_progress *callbacks_poll(void)
{
    hal_progress *ended = NULL;
    pthread_mutex_lock(&progress_lock);
    for (hal_progress *progress = callbacks, *next; progress; progress = next) {
        if (progress->is_busy) {
            next = progress->next;
            continue;
        }
        progress->is_busy = true;
        pthread_mutex_unlock(&progress_lock);
        const bool has_ended = progress->poll(progress);
        pthread_mutex_lock(&progress_lock);
        progress->is_busy = false;
        next = progress->next;
        if (has_ended) {
            callback_remove(progress);
            progress->next = ended;
            ended = progress;
        }
    }
    pthread_mutex_unlock(&progress_lock);
    return ended;
}

/* The end of one may add the next one, which may have ended as well. */
void hal_progress_poll_all(bool at_once)
{
    const uint64_t now = hal_progress_is_any() ? hal_clock_ns() : 0;
    if (now == 0 || (!at_once && now < atomic_load_explicit(&next_poll_ns, memory_order_relaxed))) {
        return;
    }
    atomic_store_explicit(&next_poll_ns, now + POLL_NS, memory_order_relaxed);
    hal_saved_message before; /* the callbacks' failures are their owners', not the caller's */
    hal_message_save(&before);
    for (hal_progress *ended; (ended = callbacks_poll()) != NULL;) {
        while (ended) {
            hal_progress *progress = ended;
            ended = progress->next;
            progress->end(progress);
        }
    }
    hal_message_restore(&before);
}
