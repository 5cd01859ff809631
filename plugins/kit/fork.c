/* Locks of plugins over fork, see fork.h. A plugin is one shared object, so the list is static. */
#include "fork.h"

#include <assert.h>
#include <stddef.h>

enum { MAX_LOCKS = 8 };

static struct {
    pthread_mutex_t *lock;
    void (*reset)(void);
} locks[MAX_LOCKS];
static int lock_count;

static void after_fork_in_child(void)
{
    for (int i = 0; i < lock_count; i++) {
        pthread_mutex_init(locks[i].lock, NULL);
        if (locks[i].reset) {
            locks[i].reset();
        }
    }
}

void kit_fork_reset(pthread_mutex_t *lock, void (*reset)(void))
{
    assert(lock_count < MAX_LOCKS);
    if (lock_count == 0) {
        pthread_atfork(NULL, NULL, after_fork_in_child);
    }
    locks[lock_count].lock = lock;
    locks[lock_count].reset = reset;
    lock_count++;
}
