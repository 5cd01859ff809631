/* Placement of the pool's threads. */
#include "threads/placement.h"

#include "threads/processors.h"

#include <kit/clock.h>
#include <string.h>
#include <unistd.h>

/* Limit of the time for moving threads, as a fraction of all time. The system may stop the caller
 * while it moves them: so they are never left where they are for longer than MAX_PAUSE_NS. */
enum { PLACEMENT_SHARE = 100, MAX_PAUSE_NS = 20000000 };

void cpu_placement_init(cpu_placement *placement, uint32_t threads)
{
    *placement = (cpu_placement){.avoided = -1};
    if (threads > CPU_MAX_THREADS) {
        return;
    }
    size_t bytes = 0;
    placement->allowed = cpu_processors_set(0, &placement->bytes);
    placement->own = placement->allowed ? cpu_processors_set(0, &bytes) : NULL;
    placement->others = placement->own ? cpu_processors_set(0, &bytes) : NULL;
    if (placement->others && bytes == placement->bytes &&
        (uint32_t)CPU_COUNT_S(bytes, placement->allowed) >= threads) {
        placement->limit = threads;
    }
    for (uint32_t i = 0; i < CPU_MAX_THREADS; i++) {
        placement->kept_off[i] = -1;
    }
}

void cpu_placement_release(cpu_placement *placement)
{
    CPU_FREE(placement->allowed);
    CPU_FREE(placement->own);
    CPU_FREE(placement->others);
}

/* The processors of a thread that keeps off one; -1: off none. */
static void others_set(cpu_placement *placement, int processor)
{
    memcpy(placement->others, placement->allowed, placement->bytes);
    if (processor >= 0) {
        CPU_CLR_S((size_t)processor, placement->bytes, placement->others);
    }
}

/* Moves a thread, if it may still run where placement left it. */
static void thread_move(cpu_placement *placement, uint32_t index, int processor)
{
    const pid_t thread = atomic_load(&placement->threads[index]);
    const size_t bytes = placement->bytes;
    if (thread == 0 || sched_getaffinity(thread, bytes, placement->own) != 0) {
        return;
    }
    others_set(placement, placement->kept_off[index]);
    if (!CPU_EQUAL_S(bytes, placement->own, placement->others)) {
        atomic_store(&placement->threads[index], 0);
        return;
    }
    others_set(placement, processor);
    if (sched_setaffinity(thread, bytes, placement->others) == 0) {
        placement->kept_off[index] = processor;
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
    const uint32_t count = atomic_load(&placement->count);
    for (uint32_t i = 0; i < count; i++) {
        thread_move(placement, i, here);
    }
    const uint64_t end = kit_clock_ns(), pause = (end - start) * PLACEMENT_SHARE;
    atomic_store_explicit(&placement->next_ns, end + (pause < MAX_PAUSE_NS ? pause : MAX_PAUSE_NS),
                          memory_order_relaxed);
}
