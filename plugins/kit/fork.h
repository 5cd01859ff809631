/* Locks of plugins over fork. A child may open its own devices, so it starts with these locks free
 * and with what they guard as at load. They are not taken before the fork, as hal takes its own
 * there: a thread may wait for them under a lock of hal. */
#ifndef PLUGINS_KIT_FORK_H
#define PLUGINS_KIT_FORK_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a lock of static storage. `reset`, null for none, brings what it guards into its first
 * state in the child; it frees nothing, as the state may be half changed. Threads: before the first
 * query, by a constructor. */
void kit_fork_reset(pthread_mutex_t *lock, void (*reset)(void));

#define KIT_FORK_RESET(lock, reset)                                  \
    __attribute__((constructor)) static void lock##_fork_reset(void) \
    {                                                                \
        kit_fork_reset(&(lock), (reset));                            \
    }

#ifdef __cplusplus
}
#endif
#endif
