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

struct hal_host_fence {
    /* Does what can be done without a wait, and sets `*signaled` when the batch may be submitted.
     * Called again until it is signaled or failed; never records commands. `repeats`: the call
     * follows another one at once, so the time has not passed. Threads: one at a time, no lock is
     * held. Errors: the batch is dropped, and its queue reports the error. */
    hal_status (*advance)(hal_host_fence *fence, bool repeats, bool *signaled);
    void (*destroy)(hal_host_fence *fence);
    const hal_poll_policy *policy;

    /* Of a step that ranks of this process take together; they do not change but for the last. */
    const void *group; /* that all its fences have; null: the fence waits for no other fence */
    const char *what;  /* the step does, such as "all_reduce" */
    uint64_t step;     /* in the group's order */
    uint32_t rank;
    bool has_published; /* others do not wait for this fence any more */
};

static inline void hal_host_fence_destroy(hal_host_fence *fence)
{
    if (fence) {
        fence->destroy(fence);
    }
}

#endif
