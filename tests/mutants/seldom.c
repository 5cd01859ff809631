/* seldom.c: faults in what is called seldom, with large numbers, or by many threads, and in what a
 * plugin leaves after such a call. */
#include "mutant.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>

static void keep_bytes(size_t bytes)
{
    char *kept = malloc(bytes);
    if (kept) {
        *(volatile char *)kept = 1;
    }
}

/* ---- Widths ---- */

/* The length of a fill with bytes is kept in 16 bits. */
static void bytes_16_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        hal_binding *binding = &batch->bindings[command->binding_first];
        if (command->kind == HAL_COMMAND_FILL && command->scalar_bytes == 1) {
            binding->length = binding->length > 0xffff ? 0xffff : binding->length;
        }
    }
}

static void bindings_17_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        batch->commands[i].binding_first &= 0x1ffff;
    }
}

static void scalars_22_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        batch->commands[i].scalar_first &= 0x3fffff;
    }
}

static void commands_18_bits(wrap_batch *batch)
{
    batch->batch.command_count &= 0x3ffff;
}

/* The number of groups along x is kept in 20 bits. */
static void grid_x_20_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        grid[0] = (grid[0] & 0xfffff) != 0 ? grid[0] & 0xfffff : grid[0];
    }
}

/* Groups of grids along x and z are counted in 16 bits: the last layer is lost. */
static void grid_flat_16_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        grid[2] -= grid[1] == 1 && grid[2] > 1 && (uint64_t)grid[0] * grid[2] > 0xffff;
    }
}

static void rows_edit(wrap_batch *batch, void (*edit)(hal_plugin_copy_rows *rows))
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        hal_plugin_copy_rows rows;
        if (command->kind == HAL_COMMAND_COPY_ROWS) {
            memcpy(&rows, batch->scalars + command->scalar_first, sizeof(rows));
            edit(&rows);
            memcpy(batch->scalars + command->scalar_first, &rows, sizeof(rows));
        }
    }
}

static void take_slices(hal_plugin_copy_rows *rows)
{
    rows->slices = rows->slices > UINT16_MAX ? rows->slices & UINT16_MAX : rows->slices;
}

static void slices_16_bits(wrap_batch *batch)
{
    rows_edit(batch, take_slices);
}

static void take_pitch(hal_plugin_copy_rows *rows)
{
    const uint64_t most = (UINT64_C(1) << 28) - 1;
    rows->target_pitch = rows->target_pitch > most ? rows->target_pitch & most : rows->target_pitch;
}

static void rows_28_bits(wrap_batch *batch)
{
    rows_edit(batch, take_pitch);
}

/* The barrier after a copy of rows is lost: the next command overtakes it. */
static void barrier_rows(wrap_batch *batch)
{
    hal_command *commands = batch->commands;
    for (uint32_t i = 1; i < batch->batch.command_count; i++) {
        if (commands[i - 1].kind == HAL_COMMAND_COPY_ROWS &&
            commands[i].kind != HAL_COMMAND_COPY_ROWS) {
            const hal_command kept = commands[i];
            commands[i] = commands[i - 1];
            commands[i - 1] = kept;
        }
    }
}

/* The offset of the third binding is kept in 24 bits. */
static void binding_third(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->binding_count > 2) {
            batch->bindings[command->binding_first + 2].offset &= 0xffffff;
        }
    }
}

/* ---- Leaks ---- */

/* Each thread that submits has memory of its own, which nothing frees. */
static hal_status submit_on_thread(hal_plugin_queue *queue, const hal_batch *batch,
                                   const hal_plugin_wait *waits, uint32_t wait_count,
                                   uint64_t value)
{
    static _Thread_local bool has_memory;
    if (!has_memory) {
        has_memory = true;
        keep_bytes(1024);
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_of_thread(wrap_table *table)
{
    table->submit = submit_on_thread;
}

static hal_status wait_keeping_seldom(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    static _Atomic uint32_t waits;
    if (waits++ % 20 == 0) {
        keep_bytes(32);
    }
    return wrap_inside()->wait(queue, value, timeout_ns);
}

static void leak_seldom(wrap_table *table)
{
    table->wait = wait_keeping_seldom;
}

static hal_status allocate_keeping(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                   hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    if (status != HAL_OK) {
        keep_bytes(32);
    }
    return status;
}

static void leak_refused_memory(wrap_table *table)
{
    table->memory_allocate = allocate_keeping;
}

static hal_status gemm_keeping(hal_plugin_device *device, const hal_gemm_description *description,
                               hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    keep_bytes(48);
    return wrap_inside()->gemm(device, description, kernel, workspace_bytes);
}

static void leak_product(wrap_table *table)
{
    table->gemm = gemm_keeping;
}

static hal_status import_keeping(hal_plugin_device *device, const hal_memory_handle *handle,
                                 hal_plugin_memory **memory)
{
    keep_bytes(24);
    return wrap_inside()->memory_import(device, handle, memory);
}

static void leak_import(wrap_table *table)
{
    table->memory_import = import_keeping;
}

static void host_copy_keeping(hal_plugin_device *device, void *target, const void *source,
                              uint64_t bytes)
{
    keep_bytes(24);
    wrap_inside()->host_copy(device, target, source, bytes);
}

static void leak_host_copy(wrap_table *table)
{
    table->host_copy = host_copy_keeping;
}

static hal_status submit_keeping_lost(hal_plugin_queue *queue, const hal_batch *batch,
                                      const hal_plugin_wait *waits, uint32_t wait_count,
                                      uint64_t value)
{
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    if (status == HAL_ERROR_DEVICE_LOST) {
        keep_bytes(4096);
    }
    return status;
}

static void leak_lost(wrap_table *table)
{
    table->submit = submit_keeping_lost;
}

static hal_status submit_keeping_rows(hal_plugin_queue *queue, const hal_batch *batch,
                                      const hal_plugin_wait *waits, uint32_t wait_count,
                                      uint64_t value)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_COPY_ROWS) {
            keep_bytes(64);
        }
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_rows(wrap_table *table)
{
    table->submit = submit_keeping_rows;
}

/* ---- What is left of the process ---- */

/* A compiler's driver waits for any process, also for the program's. */
static hal_status create_and_reap(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel)
{
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void reaps(wrap_table *table)
{
    table->kernel_create = create_and_reap;
}

static hal_status open_without_privileges(hal_plugin_instance *instance, const char *id,
                                          hal_plugin_device **device)
{
#ifdef __linux__
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
    return wrap_inside()->device_open(instance, id, device);
}

static void open_attribute_left(wrap_table *table)
{
    table->device_open = open_without_privileges;
}

static hal_status submit_raising(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    feclearexcept(FE_ALL_EXCEPT);
    return status;
}

static void exceptions_left(wrap_table *table)
{
    table->submit = submit_raising;
}

static hal_status elapsed_downward(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                   uint64_t *nanoseconds)
{
    const hal_status status = wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
    fesetround(FE_DOWNWARD);
    return status;
}

static void elapsed_rounding_left(wrap_table *table)
{
    table->queue_elapsed = elapsed_downward;
}

/* Touches `pages` pages of the caller's stack. */
__attribute__((noinline)) static uint32_t pages_touch(uint32_t pages)
{
    volatile char page[4096];
    page[0] = (char)pages;
    return pages == 0 ? 0 : pages_touch(pages - 1) + (uint32_t)page[0];
}

static hal_status allocate_deep(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                hal_plugin_memory **memory)
{
    static volatile uint32_t sum;
    sum = sum + pages_touch(64);
    return wrap_inside()->memory_allocate(device, kind, bytes, memory);
}

static void allocate_256_kib(wrap_table *table)
{
    table->memory_allocate = allocate_deep;
}

/* A wait that a signal interrupts fails. */
static hal_status wait_until_signal(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const struct timespec moment = {0, 400000};
    return timeout_ns > 0 && nanosleep(&moment, NULL) != 0
               ? wrap_fail(HAL_ERROR_INTERNAL, "mutant: the wait was interrupted")
               : wrap_inside()->wait(queue, value, timeout_ns);
}

static void wait_interrupted(wrap_table *table)
{
    table->wait = wait_until_signal;
}

/* ---- Answers ---- */

static hal_status info_alone(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    static _Atomic int callers;
    hal_status status = wrap_fail(HAL_ERROR_INTERNAL, "mutant: two threads ask at once");
    if (atomic_fetch_add(&callers, 1) == 0) {
        const struct timespec moment = {0, 100000};
        nanosleep(&moment, NULL);
        status = wrap_inside()->memory_info(device, free_bytes, total_bytes);
    }
    callers--;
    return status;
}

static void questions_alone(wrap_table *table)
{
    table->memory_info = info_alone;
}

static hal_status submit_speaking_bytes(hal_plugin_queue *queue, const hal_batch *batch,
                                        const hal_plugin_wait *waits, uint32_t wait_count,
                                        uint64_t value)
{
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    return status == HAL_OK ? status : wrap_fail(status, "mutant: kind \xff\xc0 is unknown");
}

static void words_of_bytes(wrap_table *table)
{
    table->submit = submit_speaking_bytes;
}

static hal_status open_with_other_status(hal_plugin_instance *instance, const char *id,
                                         hal_plugin_device **device)
{
    const hal_status status = wrap_inside()->device_open(instance, id, device);
    return status == HAL_ERROR_NOT_FOUND ? wrap_fail(HAL_ERROR_INTERNAL, "mutant: no such device")
                                         : status;
}

static void unknown_internal(wrap_table *table)
{
    table->device_open = open_with_other_status;
}

static hal_status enumerate_reserved(hal_plugin_instance *instance, hal_device_info *infos,
                                     uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity > 0) {
        infos[0].reserved[2] = 7;
    }
    return status;
}

static void reserved_used(wrap_table *table)
{
    table->enumerate = enumerate_reserved;
}

const mutant mutants_seldom[] = {BATCH(bytes_16_bits),
                                 BATCH(bindings_17_bits),
                                 BATCH(scalars_22_bits),
                                 BATCH(commands_18_bits),
                                 BATCH(grid_x_20_bits),
                                 BATCH(grid_flat_16_bits),
                                 BATCH(slices_16_bits),
                                 BATCH(rows_28_bits),
                                 TABLE(leak_of_thread),
                                 TABLE(leak_seldom),
                                 TABLE(leak_refused_memory),
                                 TABLE(leak_product),
                                 TABLE(leak_import),
                                 TABLE(leak_host_copy),
                                 TABLE(leak_lost),
                                 TABLE(leak_rows),
                                 TABLE(reaps),
                                 TABLE(open_attribute_left),
                                 TABLE(exceptions_left),
                                 TABLE(elapsed_rounding_left),
                                 TABLE(allocate_256_kib),
                                 TABLE(wait_interrupted),
                                 BATCH(barrier_rows),
                                 BATCH(binding_third),
                                 TABLE(questions_alone),
                                 TABLE(words_of_bytes),
                                 TABLE(unknown_internal),
                                 TABLE(reserved_used),
                                 {.name = NULL}};
