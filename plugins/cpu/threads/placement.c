/* Placement of the pool's threads, see placement.h. */
#include "threads/placement.h"

#include <kit/clock.h>
#include <unistd.h>

/* Limit of the time for moving threads, as a fraction of all time. The system may stop the caller
 * while it moves them: so they are never left where they are for longer than MAX_PAUSE_NS. */
enum { PLACEMENT_SHARE = 100, MAX_PAUSE_NS = 20000000 };

void cpu_placement_init(cpu_placement *placement, uint32_t threads)
{
    placement->limit = 0;
    atomic_init(&placement->avoided, -1);
    atomic_init(&placement->count, 0);
    atomic_init(&placement->next_ns, 0);
    if (threads <= CPU_MAX_THREADS &&
        sched_getaffinity(0, sizeof(placement->allowed), &placement->allowed) == 0 &&
        (uint32_t)CPU_COUNT(&placement->allowed) >= threads) {
        placement->limit = threads;
    }
}

void cpu_placement_enter(cpu_placement *placement)
{
    if (placement->limit > 0) {
        const uint32_t index = atomic_fetch_add(&placement->count, 1);
        atomic_store(&placement->threads[index], gettid());
        /* The next call places this thread as well. */
        atomic_store(&placement->avoided, -1);
    }
}

void cpu_placement_avoid_caller(cpu_placement *placement)
{
    if (placement->limit == 0) {
        return;
    }
    const int here = sched_getcpu();
    if (here < 0 || atomic_load_explicit(&placement->avoided, memory_order_relaxed) == here) {
        return;
    }
    const uint64_t start = kit_clock_ns();
    if (start < atomic_load_explicit(&placement->next_ns, memory_order_relaxed)) {
        return;
    }
    atomic_store(&placement->avoided, here);
    cpu_set_t others = placement->allowed;
    CPU_CLR(here, &others);
    const uint32_t count = atomic_load(&placement->count);
    for (uint32_t i = 0; i < count; i++) {
        const pid_t thread = atomic_load(&placement->threads[i]);
        if (thread != 0) {
            sched_setaffinity(thread, sizeof(others), &others);
        }
    }
    const uint64_t end = kit_clock_ns(), pause = (end - start) * PLACEMENT_SHARE;
    atomic_store_explicit(&placement->next_ns, end + (pause < MAX_PAUSE_NS ? pause : MAX_PAUSE_NS),
                          memory_order_relaxed);
}
