/* claims.c: faults in what a plugin says of itself and of its failures, in how many devices and
 * commands it takes, and in limits that are narrower than their fields. */
#include "mutant.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Identity ---- */

static hal_status enumerate_inside(hal_plugin_instance *instance, hal_device_info *infos,
                                   uint32_t capacity, uint32_t *count)
{
    return wrap_inside()->enumerate(instance, infos, capacity, count);
}

#define ENUMERATE_WITH(name, does)                                                            \
    static hal_status enumerate_##name(hal_plugin_instance *instance, hal_device_info *infos, \
                                       uint32_t capacity, uint32_t *count)                    \
    {                                                                                         \
        const hal_status status = enumerate_inside(instance, infos, capacity, count);         \
        if (status == HAL_OK && capacity > 0) {                                               \
            does;                                                                             \
        }                                                                                     \
        return status;                                                                        \
    }                                                                                         \
    static void name(wrap_table *table)                                                       \
    {                                                                                         \
        table->enumerate = enumerate_##name;                                                  \
    }

static _Atomic uint32_t calls;

ENUMERATE_WITH(name_of_process,
               snprintf(infos[0].name, sizeof infos[0].name, "cpu of %d", getpid()))
ENUMERATE_WITH(driver_of_process,
               snprintf(infos[0].driver, sizeof infos[0].driver, "driver of %d", getpid()))
ENUMERATE_WITH(units_of_process, infos[0].compute_units = 1 + (uint32_t)getpid() % 8)
ENUMERATE_WITH(name_of_call, snprintf(infos[0].name, sizeof infos[0].name, "cpu, call %u", ++calls))

/* ---- Messages ---- */

static hal_status create_and_speak(hal_plugin_device *device, const hal_ir_kernel *ir,
                                   hal_plugin_kernel **kernel)
{
    (void)wrap_fail(HAL_ERROR_COMPILE, "mutant: the first try failed");
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void success_speaks(wrap_table *table)
{
    table->kernel_create = create_and_speak;
}

static hal_status open_silently(hal_plugin_instance *instance, const char *id,
                                hal_plugin_device **device)
{
    return strcmp(id, wrap_first_id()) != 0 ? HAL_ERROR_NOT_FOUND
                                            : wrap_inside()->device_open(instance, id, device);
}

static void unknown_device_silent(wrap_table *table)
{
    table->device_open = open_silently;
}

/* ---- How many there are ---- */

static _Atomic uint32_t open_devices;

static hal_status open_three(hal_plugin_instance *instance, const char *id,
                             hal_plugin_device **device)
{
    if (open_devices >= 3) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: three devices are open");
    }
    const hal_status status = wrap_inside()->device_open(instance, id, device);
    open_devices += status == HAL_OK;
    return status;
}

static void close_three(hal_plugin_device *device)
{
    open_devices--;
    wrap_inside()->device_close(device);
}

static void devices_three(wrap_table *table)
{
    table->device_open = open_three;
    table->device_close = close_three;
}

/* The number of a batch's commands is kept in 16 bits. */
static void commands_16_bits(wrap_batch *batch)
{
    batch->batch.command_count &= 0xffff;
}

/* Groups of more than one dimension have at most 256 work-items, though more are claimed. */
static hal_status create_small_groups(hal_plugin_device *device, const hal_ir_kernel *ir,
                                      hal_plugin_kernel **kernel)
{
    const uint32_t *size = ir->group_size;
    return size[1] > 1 && size[0] > 1 && size[0] * size[1] * size[2] > 256
               ? wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: a wide group")
               : wrap_inside()->kernel_create(device, ir, kernel);
}

static void group_flat(wrap_table *table)
{
    table->kernel_create = create_small_groups;
}

/* The number of groups of two dimensions is kept in 24 bits: the last row is lost. */
static void grid_24_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        grid[1] -= (uint64_t)grid[0] * grid[1] * grid[2] > 0xffffff && grid[1] > 1;
    }
}

/* ---- Times and stacks ---- */

static hal_status elapsed_in_32_bits(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                     uint64_t *nanoseconds)
{
    const hal_status status = wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
    *nanoseconds = (uint32_t)*nanoseconds;
    return status;
}

static void elapsed_32_bits(wrap_table *table)
{
    table->queue_elapsed = elapsed_in_32_bits;
}

/* Touches so much of the caller's stack. */
__attribute__((noinline)) static uint32_t stack_touch(uint32_t pages)
{
    volatile char page[4096];
    page[0] = (char)pages;
    return pages == 0 ? 0 : stack_touch(pages - 1) + (uint32_t)page[0];
}

static hal_status submit_deep(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    static volatile uint32_t sum;
    sum = sum + stack_touch(64);
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void submit_256_kib(wrap_table *table)
{
    table->submit = submit_deep;
}

const mutant mutants_claims[] = {
    TABLE(name_of_process), TABLE(driver_of_process), TABLE(units_of_process),
    TABLE(name_of_call),    TABLE(success_speaks),    TABLE(unknown_device_silent),
    TABLE(devices_three),   BATCH(commands_16_bits),  TABLE(group_flat),
    BATCH(grid_24_bits),    TABLE(elapsed_32_bits),   TABLE(submit_256_kib),
    {.name = NULL}};
