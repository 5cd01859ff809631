/* pairs.c: faults of one command after another one, of numbers of one entry or binding only, of
 * entries that programs seldom call, and of what a plugin shows to the rest of the process. */
#include "edit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void keep_bytes(size_t bytes)
{
    char *kept = malloc(bytes);
    if (kept) {
        *(volatile char *)kept = 1;
    }
}

/* ---- Barriers ---- */

/* Commands with a barrier overtake the command before them, of these kinds (bit i: kind i). */
static void overtake_pairs(wrap_batch *batch, uint32_t before, uint32_t after)
{
    hal_command *commands = batch->commands;
    for (uint32_t i = 1; i < batch->batch.command_count; i++) {
        if ((before >> commands[i - 1].kind & 1) != 0 && (after >> commands[i].kind & 1) != 0 &&
            (commands[i].flags & HAL_COMMAND_BARRIER) != 0) {
            const hal_command kept = commands[i];
            commands[i] = commands[i - 1];
            commands[i - 1] = kept;
            i++;
        }
    }
}

enum {
    FILLS = 1 << HAL_COMMAND_FILL,
    COPIES = 1 << HAL_COMMAND_COPY,
    ROWS = 1 << HAL_COMMAND_COPY_ROWS,
    DISPATCHES = 1 << HAL_COMMAND_DISPATCH
};

static void barrier_fill_fill(wrap_batch *batch)
{
    overtake_pairs(batch, FILLS, FILLS);
}

static void barrier_rows_rows(wrap_batch *batch)
{
    overtake_pairs(batch, ROWS, ROWS);
}

static void barrier_rows_kernel(wrap_batch *batch)
{
    overtake_pairs(batch, ROWS, DISPATCHES);
}

static void barrier_into_rows(wrap_batch *batch)
{
    overtake_pairs(batch, COPIES | DISPATCHES, ROWS);
}

/* ---- Widths ---- */

/* The offset of one binding of commands of a kind is kept in 26 bits. */
static void shorten_offset(wrap_batch *batch, uint32_t kind, uint32_t binding)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == kind && command->binding_count > binding) {
            batch->bindings[command->binding_first + binding].offset &= 0x3ffffff;
        }
    }
}

static void binding_eighth(wrap_batch *batch)
{
    shorten_offset(batch, HAL_COMMAND_DISPATCH, 7);
}

static void rows_source_26(wrap_batch *batch)
{
    shorten_offset(batch, HAL_COMMAND_COPY_ROWS, 0);
}

static void rows_target_26(wrap_batch *batch)
{
    shorten_offset(batch, HAL_COMMAND_COPY_ROWS, 1);
}

/* The offset of a grid in memory is kept in 24 bits. */
static void grid_offset_24(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if ((command->flags & HAL_COMMAND_INDIRECT) != 0) {
            const uint32_t last = command->binding_first + command->binding_count - 1u;
            batch->bindings[last].offset &= 0xffffff;
        }
    }
}

static hal_status commit_near(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                              uint64_t bytes)
{
    return wrap_inside()->memory_commit(device, memory, offset & 0x3ffffff, bytes);
}

static void commit_26_bits(wrap_table *table)
{
    table->memory_commit = commit_near;
}

static _Atomic uint32_t live_queues;

static hal_status queue_of_256(hal_plugin_device *device, hal_plugin_queue **queue)
{
    if (live_queues >= 256) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: the table of queues is full");
    }
    const hal_status status = wrap_inside()->queue_create(device, queue);
    live_queues += status == HAL_OK;
    return status;
}

static void queue_of_256_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    live_queues -= queue != NULL;
    wrap_inside()->queue_destroy(device, queue);
}

static void queues_256(wrap_table *table)
{
    table->queue_create = queue_of_256;
    table->queue_destroy = queue_of_256_destroy;
}

/* ---- Entries that are seldom called ---- */

#define KEEPING(name, entry, parameters, arguments) \
    static hal_status entry##_keeping parameters    \
    {                                               \
        keep_bytes(24);                             \
        return wrap_inside()->entry arguments;      \
    }                                               \
    static void name(wrap_table *table)             \
    {                                               \
        table->entry = entry##_keeping;             \
    }

KEEPING(leak_report, kernel_report,
        (hal_plugin_device * device, hal_plugin_kernel *kernel, hal_kernel_report *report),
        (device, kernel, report))
KEEPING(leak_clocks, clocks_read, (hal_plugin_device * device, hal_clocks *clocks),
        (device, clocks))
KEEPING(leak_time, queue_time, (hal_plugin_queue * queue, uint64_t value, uint64_t *device_ns),
        (queue, value, device_ns))
KEEPING(leak_reserve, memory_reserve,
        (hal_plugin_device * device, uint64_t bytes, hal_plugin_memory **memory),
        (device, bytes, memory))
KEEPING(leak_commit, memory_commit,
        (hal_plugin_device * device, hal_plugin_memory *memory, uint64_t offset, uint64_t bytes),
        (device, memory, offset, bytes))

static hal_status decommit_not(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes)
{
    return device && memory && offset + bytes > 0 ? HAL_OK : HAL_ERROR_INVALID_ARGUMENT;
}

static void decommit_nothing(wrap_table *table)
{
    table->memory_decommit = decommit_not;
}

static hal_status create_keeping_barriers(hal_plugin_device *device, const hal_ir_kernel *ir,
                                          hal_plugin_kernel **kernel)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        keep_bytes(ir->records[i].opcode == HAL_IR_BARRIER ? 24 : 0);
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void leak_barrier(wrap_table *table)
{
    table->kernel_create = create_keeping_barriers;
}

/* The time of a batch is that of the batch before it. */
static hal_status time_before(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns)
{
    return wrap_inside()->queue_time(queue, value > 1 ? value - 1 : value, device_ns);
}

static void time_of_before(wrap_table *table)
{
    table->queue_time = time_before;
}

/* ---- What the process meets ---- */

/* An id is compared as far as that of the device goes. */
static hal_status open_by_beginning(hal_plugin_instance *instance, const char *id,
                                    hal_plugin_device **device)
{
    const char *first = wrap_first_id();
    const bool begins = strncmp(id, first, strlen(first)) == 0;
    return wrap_inside()->device_open(instance, begins ? first : id, device);
}

static void open_prefix(wrap_table *table)
{
    table->device_open = open_by_beginning;
}

static hal_status enumerate_line(hal_plugin_instance *instance, hal_device_info *infos,
                                 uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && infos && capacity > 0) {
        infos[0].driver[strlen(infos[0].driver) - 1] = '\n';
    }
    return status;
}

static void driver_line(wrap_table *table)
{
    table->enumerate = enumerate_line;
}

static hal_status create_by_chance(hal_plugin_device *device, const hal_ir_kernel *ir,
                                   hal_plugin_kernel **kernel)
{
    (void)rand();
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void rand_taken(wrap_table *table)
{
    table->kernel_create = create_by_chance;
}

/* What an open device has of the process. */
typedef struct owned {
    int descriptor;
    pthread_t thread;
    int ends[2];
} owned;

static hal_status open_inherited(hal_plugin_instance *instance, const char *id,
                                 hal_plugin_device **device)
{
    const hal_status status = wrap_inside()->device_open(instance, id, device);
    owned *own = status == HAL_OK ? wrap_keep(*device, sizeof(*own)) : NULL;
    if (own) {
        own->descriptor = open("/dev/null", O_RDONLY);
    }
    return status;
}

static void close_inherited(hal_plugin_device *device)
{
    const owned *own = wrap_find(device);
    if (own) {
        close(own->descriptor);
    }
    wrap_drop(device);
    wrap_inside()->device_close(device);
}

/* A descriptor of each open device stays open in programs that the process starts. */
static void descriptor_inherited(wrap_table *table)
{
    table->device_open = open_inherited;
    table->device_close = close_inherited;
}

/* Until the other end of a pipe is closed. */
static void *thread_idle(void *argument)
{
    const owned *own = argument;
    char byte;
    while (read(own->ends[0], &byte, 1) > 0) {
    }
    return NULL;
}

static hal_status open_with_thread(hal_plugin_instance *instance, const char *id,
                                   hal_plugin_device **device)
{
    sigset_t none, before;
    const hal_status status = wrap_inside()->device_open(instance, id, device);
    owned *own = status == HAL_OK ? wrap_keep(*device, sizeof(*own)) : NULL;
    sigemptyset(&none);
    if (own && pipe2(own->ends, O_CLOEXEC) == 0) {
        pthread_sigmask(SIG_SETMASK, &none, &before);
        pthread_create(&own->thread, NULL, thread_idle, own);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return status;
}

static void close_with_thread(hal_plugin_device *device)
{
    const owned *own = wrap_find(device);
    if (own) {
        close(own->ends[1]);
        pthread_join(own->thread, NULL);
        close(own->ends[0]);
    }
    wrap_drop(device);
    wrap_inside()->device_close(device);
}

/* Each open device has a thread that takes the signals of the process. */
static void thread_takes_signals(wrap_table *table)
{
    table->device_open = open_with_thread;
    table->device_close = close_with_thread;
}

/* What is narrowed twice is narrowed once. */
static uint32_t narrow_twice(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value inner = ir->records[i].a;
    if (ir->records[inner].opcode == HAL_IR_NARROW) {
        ir->records[i].a = ir->records[inner].a;
    }
    return i;
}

const mutant mutants_pairs[] = {BATCH(barrier_fill_fill),
                                BATCH(barrier_rows_rows),
                                BATCH(barrier_rows_kernel),
                                BATCH(barrier_into_rows),
                                BATCH(binding_eighth),
                                BATCH(rows_source_26),
                                BATCH(rows_target_26),
                                BATCH(grid_offset_24),
                                TABLE(commit_26_bits),
                                TABLE(queues_256),
                                TABLE(leak_report),
                                TABLE(leak_clocks),
                                TABLE(leak_time),
                                TABLE(leak_reserve),
                                TABLE(leak_commit),
                                TABLE(decommit_nothing),
                                TABLE(leak_barrier),
                                TABLE(time_of_before),
                                TABLE(open_prefix),
                                TABLE(driver_line),
                                TABLE(rand_taken),
                                TABLE(descriptor_inherited),
                                TABLE(thread_takes_signals),
                                {.name = "narrow_twice",
                                 .record = narrow_twice,
                                 .opcode = HAL_IR_NARROW,
                                 .type = HAL_TYPE_NONE},
                                {.name = NULL}};
