/* Locks over fork, see fork.h. */
#include "fork.h"

#include "platform.h"

#define MAX_LOCKS 32
#define PAUSE_NS 100000
#define MAX_PAUSES 100000 /* 10 s in all: a driver may wait for the thread that forks */

typedef struct guarded_lock {
    pthread_mutex_t *lock;
    hal_fork_order order;
    bool (*is_own)(void);
    bool is_taken; /* by the thread that forks */
    bool is_left;  /* it held it before */
} guarded_lock;

static guarded_lock locks[MAX_LOCKS]; /* in their order */
static int lock_count;

static void before_fork(void)
{
    int pauses = 0;
    for (int i = 0; i < lock_count; i++) {
        guarded_lock *guarded = &locks[i];
        guarded->is_left = guarded->is_own && guarded->is_own();
        guarded->is_taken = false;
        while (!guarded->is_left && !guarded->is_taken && pauses < MAX_PAUSES) {
            guarded->is_taken = pthread_mutex_trylock(guarded->lock) == 0;
            if (!guarded->is_taken) {
                hal_pause_ns(PAUSE_NS);
                pauses++;
            }
        }
    }
}

static void unlock_taken(void)
{
    for (int i = lock_count - 1; i >= 0; i--) {
        if (locks[i].is_taken) {
            locks[i].is_taken = false;
            pthread_mutex_unlock(locks[i].lock);
        }
    }
}

/* A lock of a thread that the child does not have is made anew. */
static void after_fork_in_child(void)
{
    for (int i = 0; i < lock_count; i++) {
        if (!locks[i].is_taken && !locks[i].is_left) {
            pthread_mutex_init(locks[i].lock, NULL);
        }
    }
    unlock_taken();
}

void hal_fork_guard(pthread_mutex_t *lock, hal_fork_order order, bool (*is_own)(void))
{
    if (lock_count == 0) {
        pthread_atfork(before_fork, unlock_taken, after_fork_in_child);
    }
    if (lock_count == MAX_LOCKS) {
        return;
    }
    int at = lock_count++;
    while (at > 0 && locks[at - 1].order > order) {
        locks[at] = locks[at - 1];
        at--;
    }
    locks[at] = (guarded_lock){.lock = lock, .order = order, .is_own = is_own};
}
