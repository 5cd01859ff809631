/* Keeps the pool's threads off the caller's processor; placement.h says why. Failures are ignored:
 * the threads then run where the system puts them. */
#include "placement.h"

#include "handover.h"

#include <unistd.h>

typedef struct roll_call {
    cpu_placement *placement;
    pid_t caller;
    uint32_t expected;
    _Atomic uint32_t present;
} roll_call;

/* Each thread of the pool answers once, because none goes on before all are there. */
static void answer(void *context, size_t item)
{
    roll_call *call = context;
    TAKE_OVER(call);
    (void)item;
    const pid_t self = gettid();
    if (self != call->caller) {
        call->placement->threads[atomic_fetch_add(&call->placement->count, 1)] = self;
    }
    atomic_fetch_add(&call->present, 1);
    while (atomic_load(&call->present) < call->expected) {
        sched_yield();
    }
    HAND_OVER(call);
}

void cpu_placement_learn(cpu_placement *placement, pthreadpool_t pool)
{
    roll_call call = {.placement = placement,
                      .caller = gettid(),
                      .expected = (uint32_t)pthreadpool_get_threads_count(pool)};
    atomic_init(&placement->kept, -1);
    atomic_init(&placement->count, 0);
    if (call.expected > CPU_MAX_THREADS ||
        sched_getaffinity(0, sizeof(placement->allowed), &placement->allowed) != 0 ||
        (uint32_t)CPU_COUNT(&placement->allowed) < call.expected) {
        return;
    }
    HAND_OVER(&call);
    pthreadpool_parallelize_1d(pool, answer, &call, call.expected, 0);
    TAKE_OVER(&call);
}

void cpu_placement_keep_clear(cpu_placement *placement)
{
    const uint32_t count = atomic_load_explicit(&placement->count, memory_order_relaxed);
    const int here = sched_getcpu();
    if (count == 0 || here < 0 ||
        atomic_exchange_explicit(&placement->kept, here, memory_order_relaxed) == here) {
        return;
    }
    cpu_set_t others = placement->allowed;
    CPU_CLR(here, &others);
    for (uint32_t i = 0; i < count; i++) {
        sched_setaffinity(placement->threads[i], sizeof(others), &others);
    }
}
