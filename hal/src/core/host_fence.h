/* A host fence: a condition on the host that a batch waits for before it is submitted. Core knows
 * nothing else of it. A fence advances only when hal polls it, in flushes and waits of any queue of
 * the process; its owner says by a policy how a waiting thread polls it. */
#ifndef HAL_SRC_CORE_HOST_FENCE_H
#define HAL_SRC_CORE_HOST_FENCE_H

#include <hal/queue.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hal_host_fence hal_host_fence;

/* How a thread polls the fence that it waits for. An attempt polls all deferred batches once; after
 * the attempts the thread sleeps between two of them. */
typedef struct hal_poll_policy {
    uint32_t attempts;       /* without a sleep */
    uint32_t attempts_alone; /* the same, while no other queue has deferred batches */
    uint32_t polls_alone;    /* of this fence in such an attempt */
    uint32_t yield_after;    /* attempts, after which each one yields the processor */
    uint32_t renew_below;    /* a wait that made fewer attempts begins anew at its next fence */
} hal_poll_policy;

struct hal_wait_chain;

/* How steps with ranks in other processes tell each other what they wait for, see wait_cycle.h.
 * Threads: under the lock of deferred.c, while no thread advances the fence's queue. */
typedef struct hal_fence_peers {
    /* The id of the group, the same in all processes. */
    void (*get_group)(const hal_host_fence *fence, uint64_t group[4]);
    /* Finds the next rank, from `*rank` on, that the fence waits for, and reads its chain, which is
     * empty if there is none. */
    bool (*read)(const hal_host_fence *fence, uint32_t *rank, struct hal_wait_chain *chain);
    /* Tells the others that the rank takes no step after those that it has published, because of
     * the waits of a chain. */
    void (*write)(const hal_host_fence *fence, const struct hal_wait_chain *chain);
    /* Whether the calling thread took the last step of the group as `rank`, and has not recorded
     * `step` yet. */
    bool (*has_left)(const uint64_t group[4], uint32_t rank, uint64_t step);
    /* Tells the others of a chain that the calling thread waits in, before it records the next
     * steps of the groups whose last steps it took. */
    void (*write_left)(const struct hal_wait_chain *chain);
} hal_fence_peers;

struct hal_host_fence {
    /* Does what can be done without a wait, and sets `*signaled` when the batch may be submitted.
     * Called again until it is signaled or failed; never records commands. `repeats`: the call
     * follows another one at once, so the time has not passed. Threads: one at a time, no lock is
     * held. Errors: the batch is dropped, and its queue reports the error. */
    hal_status (*advance)(hal_host_fence *fence, bool repeats, bool *signaled);
    void (*destroy)(hal_host_fence *fence);
    const hal_poll_policy *policy;

    /* Whether only work of `queue` that was not submitted is known to signal the fence; others than
     * hal may. Null: unknown. Threads: under the lock of deferred.c. */
    bool (*is_raised_by)(const hal_host_fence *fence, const struct hal_queue *queue);

    /* Of a step that ranks take together; only has_published changes. */
    const void *group; /* that all its fences have; null: the fence waits for no other fence */
    const char *what;  /* the step does, such as "all_reduce" */
    uint64_t step;     /* in the group's order */
    uint32_t rank;
    bool has_published;           /* others do not wait for this fence any more */
    const hal_fence_peers *peers; /* of a group of processes with common memory, else null */
};

static inline void hal_host_fence_destroy(hal_host_fence *fence)
{
    if (fence) {
        fence->destroy(fence);
    }
}

#endif
