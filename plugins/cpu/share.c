/* Sharing dispatches over the pool, see share.h. The threads go through a run of dispatches side by
 * side: each takes groups of the first until none are left, waits until all of its groups are done,
 * and goes on to the next. So waking the pool is paid once in a run; a thread that comes late finds
 * nothing left of what is behind, and nobody waits for it but at the end. */
#include "share.h"
#include "handover.h"

#include <kit/clock.h>
#include <sched.h>

/* A dispatch of fewer nanoseconds is done by one thread: going on together costs half of one. */
enum { SHARE_FROM = 5000, SPINS = 256 };

/* How far a dispatch is, on a cache line of its own. */
typedef struct progress {
    _Alignas(64) _Atomic uint64_t next; /* the first group that nobody has taken */
    _Atomic uint64_t done;
} progress;

typedef struct run {
    progress progress[CPU_SHARE_MOST];
    hal_plugin_queue *queue;
    const hal_batch *batch;
    const hal_command *commands;
    uint32_t count;
    pthread_t caller;
    uint64_t alone;  /* when the calling thread had nothing left to do */
    uint64_t waited; /* nanoseconds that it waited, beyond what a chunk of groups takes */
} run;

static void go_through(void *context, size_t worker_index);
static void work_on(run *r, uint32_t i, cpu_worker *worker, bool calling);
static void wait_for(run *r, uint32_t i, bool calling);
static void note_waiting(run *r, uint32_t i, uint64_t waited);
static uint64_t chunk_of(const run *r, uint32_t i);

uint32_t cpu_share_count(const hal_plugin_device *device, const hal_batch *batch, uint32_t first,
                         uint64_t *work)
{
    uint32_t count = 0;
    *work = 0;
    while (device->pool != NULL && first + count < batch->command_count && count < CPU_SHARE_MOST) {
        const hal_command *command = &batch->commands[first + count];
        if (command->kind != HAL_COMMAND_DISPATCH || command->kernel->native != NULL) {
            break;
        }
        const uint64_t expected = cpu_dispatch_work(command);
        if (expected < SHARE_FROM || cpu_dispatch_groups(command) == 1) {
            break;
        }
        *work = expected > UINT64_MAX - *work ? UINT64_MAX : *work + expected;
        count++;
    }
    return count;
}

/* Each time work is not shared, a sixteenth of the gain that was missed is taken off the cost, so
 * that it is tried again, and the trials cost little beside the work. */
bool cpu_share_is_worth(hal_plugin_device *device, uint64_t work)
{
    if (device->pool == NULL || work < SHARE_FROM) {
        return false;
    }
    const uint64_t wait = atomic_load_explicit(&device->wait, memory_order_relaxed);
    const uint64_t gain = work - work / device->threads;
    if (gain > wait) {
        cpu_placement_keep_clear(&device->placement);
        return true;
    }
    const uint64_t forgotten = gain / 16 + 1;
    atomic_store_explicit(&device->wait, wait > forgotten ? wait - forgotten : 0,
                          memory_order_relaxed);
    return false;
}

/* Keeps the mean of the last waits: microseconds where the pool's threads are awake, milliseconds
 * where others keep the processors busy. */
void cpu_share_note(hal_plugin_device *device, uint64_t waited)
{
    const uint64_t wait = atomic_load_explicit(&device->wait, memory_order_relaxed);
    atomic_store_explicit(&device->wait, wait - wait / 8 + waited / 8, memory_order_relaxed);
}

void cpu_share_run(hal_plugin_queue *queue, const hal_batch *batch, uint32_t first, uint32_t count)
{
    hal_plugin_device *device = queue->device;
    run all;
    all.queue = queue;
    all.batch = batch;
    all.commands = batch->commands + first;
    all.count = count;
    all.caller = pthread_self();
    all.alone = all.waited = 0;
    for (uint32_t i = 0; i < count; i++) {
        atomic_init(&all.progress[i].next, 0);
        atomic_init(&all.progress[i].done, 0);
    }
    HAND_OVER(&all);
    pthreadpool_parallelize_1d(device->pool, go_through, &all, device->threads, 0);
    TAKE_OVER(&all);
    note_waiting(&all, count - 1, kit_clock_ns() - all.alone);
    cpu_share_note(device, all.waited);
}

/* One thread's part of a run. */
static void go_through(void *context, size_t worker_index)
{
    run *r = context;
    TAKE_OVER(r);
    const bool calling = pthread_equal(pthread_self(), r->caller);
    for (uint32_t i = 0; i < r->count; i++) {
        work_on(r, i, &r->queue->workers[worker_index], calling);
        if (i + 1 < r->count) {
            wait_for(r, i, calling);
        }
    }
    if (calling) {
        r->alone = kit_clock_ns();
    }
    HAND_OVER(r);
}

/* Takes groups of a dispatch until there are none. The calling thread measures what one takes. */
static void work_on(run *r, uint32_t i, cpu_worker *worker, bool calling)
{
    const hal_command *command = &r->commands[i];
    progress *p = &r->progress[i];
    const uint64_t groups = cpu_dispatch_groups(command), chunk = chunk_of(r, i);
    uint64_t first = atomic_fetch_add_explicit(&p->next, chunk, memory_order_relaxed);
    if (first >= groups) {
        return;
    }
    const uint64_t start = calling ? kit_clock_ns() : 0;
    uint64_t done = 0;
    cpu_dispatch_begin(worker, r->batch, command);
    for (; first < groups;
         first = atomic_fetch_add_explicit(&p->next, chunk, memory_order_relaxed)) {
        const uint64_t count = groups - first < chunk ? groups - first : chunk;
        cpu_worker_groups(worker, command->kernel, first, count);
        done += count;
    }
    if (calling) {
        atomic_store_explicit(&command->kernel->work, (kit_clock_ns() - start) / done + 1,
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&p->done, done, memory_order_release);
}

static void wait_for(run *r, uint32_t i, bool calling)
{
    const uint64_t groups = cpu_dispatch_groups(&r->commands[i]);
    _Atomic uint64_t *done = &r->progress[i].done;
    if (atomic_load_explicit(done, memory_order_acquire) == groups) {
        return;
    }
    const uint64_t start = calling ? kit_clock_ns() : 0;
    for (int spins = 0; atomic_load_explicit(done, memory_order_acquire) < groups; spins++) {
        if (spins > SPINS) {
            sched_yield();
        } else {
            cpu_relax();
        }
    }
    if (calling) {
        note_waiting(r, i, kit_clock_ns() - start);
    }
}

/* Whoever takes the last chunk keeps the others waiting for as long as that takes. */
static void note_waiting(run *r, uint32_t i, uint64_t waited)
{
    const uint64_t work = atomic_load_explicit(&r->commands[i].kernel->work, memory_order_relaxed);
    const uint64_t usual = work * chunk_of(r, i);
    r->waited += waited > usual ? waited - usual : 0;
}

static uint64_t chunk_of(const run *r, uint32_t i)
{
    const uint64_t chunk =
        cpu_dispatch_groups(&r->commands[i]) / (r->queue->device->threads * UINT64_C(8));
    return chunk == 0 ? 1 : chunk;
}
