/* Dispatches. Threads execute a run of dispatches together: each takes groups of the first until
 * none are left, waits until all of its groups are done, and continues with the next. So a run
 * wakes the pool once. A late thread finds no groups left and delays no other. */
#include "dispatch.h"

#include "device.h"
#include "kernel.h"
#include "memory.h"
#include "threads/parts.h"
#include "threads/share.h"

#include <kit/clock.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Nanoseconds from which a dispatch is measured to improve its estimate. */
enum { MEASURE_FROM = 2000 };
/* Chunks of groups for each thread of a dispatch. */
enum { CHUNKS = 8 };
/* Dispatches of one run, at most. */
enum { MAX_RUN = 64 };

/* Groups of a dispatch that are done, on a separate cache line. */
typedef struct progress {
    _Alignas(64) _Atomic uint64_t done;
} progress;

typedef struct shared_run {
    progress progress[MAX_RUN];
    cpu_parts parts;     /* a stage for each dispatch */
    cpu_worker *workers; /* of each thread */
    const hal_batch *batch;
    const hal_command *commands;
    uint32_t count;
    uint32_t threads;
} shared_run;

struct cpu_dispatch_memory {
    _Alignas(64) uint8_t workspace[CPU_PRODUCT_WORKSPACE]; /* of a product */
    shared_run run;
};

cpu_dispatch_memory *cpu_dispatch_memory_create(void)
{
    return aligned_alloc(_Alignof(cpu_dispatch_memory), sizeof(cpu_dispatch_memory));
}

static uint32_t bindings_find(const hal_batch *batch, const hal_command *command,
                              void *bindings[HAL_IR_MAX_BINDINGS],
                              uint64_t sizes[HAL_IR_MAX_BINDINGS])
{
    uint32_t i = 0;
    for (; i < command->binding_count && i < HAL_IR_MAX_BINDINGS; i++) {
        const hal_binding *binding = &batch->bindings[command->binding_first + i];
        bindings[i] = binding->length > 0 ? binding->memory->address + binding->offset : NULL;
        sizes[i] = binding->length;
    }
    return i;
}

static uint64_t dispatch_groups(const hal_command *command)
{
    return (uint64_t)command->grid[0] * command->grid[1] * command->grid[2];
}

static uint64_t dispatch_work(const hal_command *command)
{
    const uint64_t groups = dispatch_groups(command);
    const uint64_t work = atomic_load_explicit(&command->kernel->work, memory_order_relaxed);
    return work > UINT64_MAX / groups ? UINT64_MAX : work * groups;
}

static void dispatch_begin(cpu_worker *worker, const hal_batch *batch, const hal_command *command)
{
    /* Only those of the kernel are set: clearing all of them shows in small dispatches. */
    void *bindings[HAL_IR_MAX_BINDINGS];
    uint64_t sizes[HAL_IR_MAX_BINDINGS];
    const uint32_t found = bindings_find(batch, command, bindings, sizes);
    for (uint32_t i = found; i < command->kernel->executable->program.binding_count; i++) {
        bindings[i] = NULL;
        sizes[i] = 0;
    }
    cpu_worker_begin(worker, command->kernel->executable, bindings, sizes,
                     batch->scalars + command->scalar_first, command->grid);
}

static void dispatch_run(cpu_worker *worker, const hal_batch *batch, const hal_command *command)
{
    hal_plugin_kernel *kernel = command->kernel;
    const uint64_t groups = dispatch_groups(command);
    const bool measured = dispatch_work(command) >= MEASURE_FROM;
    const uint64_t start = measured ? kit_clock_ns() : 0;
    dispatch_begin(worker, batch, command);
    cpu_worker_groups(worker, kernel->executable, 0, groups);
    if (measured) {
        atomic_store_explicit(&kernel->work, (kit_clock_ns() - start) / groups + 1,
                              memory_order_relaxed);
    }
}

static uint64_t chunk_size(const shared_run *run, const hal_command *command)
{
    const uint64_t chunk = dispatch_groups(command) / (run->threads * (uint64_t)CHUNKS);
    return chunk == 0 ? 1 : chunk;
}

/* Takes groups of dispatch i until all are taken. The caller measures what one takes. */
static void groups_run(shared_run *run, uint32_t i, uint32_t thread)
{
    const hal_command *command = &run->commands[i];
    progress *p = &run->progress[i];
    cpu_worker *worker = &run->workers[thread];
    const uint64_t groups = dispatch_groups(command), chunk = chunk_size(run, command);
    uint64_t first = 0, count = 0, done = 0;
    if (!cpu_parts_take(&run->parts, thread, i, groups, chunk, &first, &count)) {
        return;
    }
    const uint64_t start = thread == 0 ? kit_clock_ns() : 0;
    dispatch_begin(worker, run->batch, command);
    do {
        cpu_worker_groups(worker, command->kernel->executable, first, count);
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
    const uint64_t groups = dispatch_groups(&run->commands[i]);
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

/* A product is told how many threads to use. */
static hal_status product_run(hal_plugin_device *device, cpu_dispatch_memory *memory,
                              const hal_batch *batch, const hal_command *command)
{
    void *bindings[HAL_IR_MAX_BINDINGS];
    uint64_t sizes[HAL_IR_MAX_BINDINGS];
    const hal_plugin_kernel *kernel = command->kernel;
    const uint64_t work = atomic_load_explicit(&kernel->work, memory_order_relaxed);
    cpu_product_call call = {.memory = bindings,
                             .workspace = memory->workspace,
                             .scalars = batch->scalars + command->scalar_first};
    bindings_find(batch, command, bindings, sizes);
    if (cpu_product_is_alone(kernel->product) || !device->pool || !cpu_share_is_worth(work)) {
        return cpu_product_run(kernel->product, &call);
    }
    const uint64_t key = cpu_share_key(0, CPU_SHARE_KERNELS + kernel->number, 0);
    const cpu_share_turn turn = cpu_share_begin(device->share, key, 1, (double)work);
    call.pool = turn.threads > 1 ? device->pool : NULL;
    call.threads = turn.threads;
    const hal_status status = cpu_product_run(kernel->product, &call);
    cpu_share_end(device->share, &turn);
    return status;
}

hal_status cpu_dispatch_run(hal_plugin_device *device, const cpu_dispatch_state *state,
                            const hal_batch *batch, const hal_command *command)
{
    if (command->kernel->product) {
        return product_run(device, state->memory, batch, command);
    }
    dispatch_run(&state->workers[0], batch, command);
    return HAL_OK;
}

uint32_t cpu_dispatch_count_shared(const hal_plugin_device *device, const hal_batch *batch,
                                   uint32_t first)
{
    uint32_t count = 0;
    while (device->pool && first + count < batch->command_count && count < MAX_RUN) {
        const hal_command *command = &batch->commands[first + count];
        if (command->kind != HAL_COMMAND_DISPATCH || command->kernel->product ||
            (command->flags & HAL_COMMAND_INDIRECT) ||
            !cpu_share_is_worth(dispatch_work(command)) || dispatch_groups(command) == 1) {
            break;
        }
        count++;
    }
    return count;
}

void cpu_dispatch_run_shared(hal_plugin_device *device, const cpu_dispatch_state *state,
                             const hal_batch *batch, uint32_t first, uint32_t count)
{
    const hal_command *commands = &batch->commands[first];
    uint64_t key = 0;
    double groups = 0, expected = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t size = dispatch_groups(&commands[i]);
        key = cpu_share_key(key, CPU_SHARE_KERNELS + commands[i].kernel->number, size);
        groups += (double)size;
        expected += (double)dispatch_work(&commands[i]);
    }
    const cpu_share_turn turn = cpu_share_begin(device->share, key, groups, expected);
    if (turn.threads == 1) {
        for (uint32_t i = 0; i < count; i++) {
            dispatch_run(&state->workers[0], batch, &commands[i]);
        }
    } else {
        shared_run *run = &state->memory->run;
        run->workers = state->workers;
        run->batch = batch;
        run->commands = commands;
        run->count = count;
        run->threads = turn.threads;
        cpu_parts_init(&run->parts, turn.threads);
        for (uint32_t i = 0; i < count; i++) {
            atomic_init(&run->progress[i].done, 0);
        }
        cpu_thread_pool_run(device->pool, turn.threads, dispatches_run, run);
    }
    cpu_share_end(device->share, &turn);
}
