/* Sharing work over the pool, see share.h. The time of each piece of work goes to a thread_choice,
 * whose key is the work's kernels and the logarithm of its size.
 *
 * Threads execute a run of dispatches together: each takes groups of the first until none are left,
 * waits until all of its groups are done, and goes on to the next. So a run wakes the pool once. A
 * late thread finds no groups left and delays no other. */
#include "share.h"

#include "threads/parts.h"
#include "threads/choice.h"

#include <kit/clock.h>
#include <stdlib.h>
#include <string.h>

/* A dispatch of fewer nanoseconds runs on one thread: going on together costs half of one. */
enum { SHARE_FROM = 3000 };
/* Chunks of groups for each thread of a dispatch. */
enum { CHUNKS = 8 };
/* The table of choices: sets of so many ways, of which the least recently used is replaced. */
enum { SETS = 256, WAYS = 4 };

typedef struct choice_entry {
    uint64_t key;  /* 0: unused */
    uint64_t used; /* number of the latest use */
    thread_choice choice;
} choice_entry;

struct cpu_share {
    thread_counts counts;
    uint32_t processors;
    pthread_mutex_t lock; /* of what follows */
    uint64_t uses;
    choice_entry entries[SETS][WAYS];
};

/* Groups of a dispatch that are done, on a separate cache line. */
typedef struct progress {
    _Alignas(64) _Atomic uint64_t done;
} progress;

typedef struct shared_run {
    progress progress[CPU_SHARE_MAX_RUN];
    cpu_parts parts; /* a stage for each dispatch */
    hal_plugin_queue *queue;
    const hal_batch *batch;
    const hal_command *commands;
    uint32_t count;
    uint32_t threads;
} shared_run;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* Finds the choice with a key or makes it. A new choice begins with a thread for each SHARE_FROM
 * nanoseconds of work. The caller holds the lock. */
static thread_choice *choice_find(cpu_share *share, uint64_t key, double expected)
{
    choice_entry *set = share->entries[key % SETS], *oldest = set;
    share->uses++;
    for (uint32_t way = 0; way < WAYS; way++) {
        if (set[way].key == key) {
            set[way].used = share->uses;
            return &set[way].choice;
        }
        oldest = set[way].used < oldest->used ? &set[way] : oldest;
    }
    const double worth = expected / SHARE_FROM;
    const uint32_t threads = worth < 1                   ? 1
                             : worth < share->processors ? (uint32_t)worth
                                                         : share->processors;
    oldest->key = key;
    oldest->used = share->uses;
    thread_choice_init(&oldest->choice, thread_counts_find(&share->counts, threads));
    return &oldest->choice;
}

static uint64_t chunk_size(const shared_run *run, const hal_command *command)
{
    const uint64_t chunk = cpu_dispatch_groups(command) / (run->threads * (uint64_t)CHUNKS);
    return chunk == 0 ? 1 : chunk;
}

/* Takes groups of dispatch i until all are taken. The caller measures what one takes. */
static void groups_run(shared_run *run, uint32_t i, uint32_t thread)
{
    const hal_command *command = &run->commands[i];
    progress *p = &run->progress[i];
    cpu_worker *worker = &run->queue->workers[thread];
    const uint64_t groups = cpu_dispatch_groups(command), chunk = chunk_size(run, command);
    uint64_t first = 0, count = 0, done = 0;
    if (!cpu_parts_take(&run->parts, thread, i, groups, chunk, &first, &count)) {
        return;
    }
    const uint64_t start = thread == 0 ? kit_clock_ns() : 0;
    cpu_dispatch_begin(worker, run->batch, command);
    do {
        cpu_worker_groups(worker, command->kernel, first, count);
        done += count;
    } while (cpu_parts_take(&run->parts, thread, i, groups, chunk, &first, &count));
    if (thread == 0) {
        atomic_store_explicit(&command->kernel->work, (kit_clock_ns() - start) / done + 1,
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&p->done, done, memory_order_release);
}

static void groups_wait(shared_run *run, uint32_t i)
{
    const uint64_t groups = cpu_dispatch_groups(&run->commands[i]);
    _Atomic uint64_t *done = &run->progress[i].done;
    for (uint32_t turn = 0; atomic_load_explicit(done, memory_order_acquire) < groups; turn++) {
        cpu_wait_turn(turn);
    }
}

/* One thread's part of a run. */
static void dispatches_run(void *context, uint32_t thread)
{
    shared_run *run = context;
    for (uint32_t i = 0; i < run->count; i++) {
        groups_run(run, i, thread);
        if (i + 1 < run->count) {
            groups_wait(run, i);
        }
    }
}

cpu_share *cpu_share_create(uint32_t threads, uint32_t processors)
{
    cpu_share *share = calloc(1, sizeof(*share));
    if (share) {
        thread_counts_init(&share->counts, threads);
        share->processors = processors;
        pthread_mutex_init(&share->lock, NULL);
    }
    return share;
}

void cpu_share_destroy(cpu_share *share)
{
    if (share) {
        pthread_mutex_destroy(&share->lock);
        free(share);
    }
}

bool cpu_share_is_possible(const hal_plugin_device *device, uint64_t expected)
{
    return device->pool && expected >= SHARE_FROM;
}

uint64_t cpu_share_key(uint64_t key, uint64_t kind, uint64_t size)
{
    const uint64_t class = size == 0 ? 0 : 64 - (uint64_t)__builtin_clzll(size);
    const uint64_t made = mix(key ^ mix(kind << 7 ^ class));
    return made == 0 ? 1 : made;
}

cpu_share_turn cpu_share_begin(cpu_share *share, uint64_t key, double units, double expected)
{
    cpu_share_turn turn = {.key = key, .units = units, .expected = expected};
    pthread_mutex_lock(&share->lock);
    turn.index = thread_choice_next(choice_find(share, key, expected), &share->counts);
    pthread_mutex_unlock(&share->lock);
    turn.threads = share->counts.threads[turn.index];
    turn.start = kit_clock_ns();
    return turn;
}

void cpu_share_end(cpu_share *share, const cpu_share_turn *turn)
{
    const double took = (double)(kit_clock_ns() - turn->start);
    pthread_mutex_lock(&share->lock);
    thread_choice_note(choice_find(share, turn->key, turn->expected), &share->counts, turn->index,
                       took, turn->expected, turn->units);
    pthread_mutex_unlock(&share->lock);
}

uint32_t cpu_share_count(const hal_plugin_device *device, const hal_batch *batch, uint32_t first)
{
    uint32_t count = 0;
    while (device->pool && first + count < batch->command_count && count < CPU_SHARE_MAX_RUN) {
        const hal_command *command = &batch->commands[first + count];
        if (command->kind != HAL_COMMAND_DISPATCH || command->kernel->native ||
            !cpu_share_is_possible(device, cpu_dispatch_work(command)) ||
            cpu_dispatch_groups(command) == 1) {
            break;
        }
        count++;
    }
    return count;
}

void cpu_share_run(hal_plugin_queue *queue, const hal_batch *batch, uint32_t first, uint32_t count)
{
    cpu_share *share = queue->device->share;
    const hal_command *commands = &batch->commands[first];
    uint64_t key = 0;
    double groups = 0, expected = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t size = cpu_dispatch_groups(&commands[i]);
        key = cpu_share_key(key, CPU_SHARE_KERNELS + commands[i].kernel->number, size);
        groups += (double)size;
        expected += (double)cpu_dispatch_work(&commands[i]);
    }
    const cpu_share_turn turn = cpu_share_begin(share, key, groups, expected);
    if (turn.threads == 1) {
        for (uint32_t i = 0; i < count; i++) {
            cpu_dispatch_run(&queue->workers[0], batch, &commands[i]);
        }
    } else {
        shared_run run;
        run.queue = queue;
        run.batch = batch;
        run.commands = commands;
        run.count = count;
        run.threads = turn.threads;
        cpu_parts_init(&run.parts, turn.threads);
        for (uint32_t i = 0; i < count; i++) {
            atomic_init(&run.progress[i].done, 0);
        }
        cpu_thread_pool_run(queue->device->pool, turn.threads, dispatches_run, &run);
    }
    cpu_share_end(share, &turn);
}
