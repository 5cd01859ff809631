/* batch.c: faults in how the commands of a batch are carried out: edges of copies and fills,
 * offsets, bindings, scalars, grids, barriers inside a batch. */
#include "mutant.h"

#include <stdlib.h>
#include <string.h>

static hal_binding *binding_of(wrap_batch *batch, uint32_t command, uint32_t index)
{
    return &batch->bindings[batch->commands[command].binding_first + index];
}

static void swap_commands(wrap_batch *batch, uint32_t first, uint32_t second)
{
    const hal_command kept = batch->commands[first];
    batch->commands[first] = batch->commands[second];
    batch->commands[second] = kept;
}

/* None: what is only copied is still right. */
static void none(wrap_batch *batch)
{
    (void)batch;
}

/* A copy works in pieces of 16 bytes and takes the bytes after the last one for whole words. */
static void copy_tail(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_COPY) {
            for (uint32_t side = 0; side < 2; side++) {
                hal_binding *binding = binding_of(batch, i, side);
                binding->length -= binding->length > 256 ? binding->length % 16 % 4 : 0;
            }
        }
    }
}

/* A fill works in pieces of 16 bytes and forgets the last word where three are left. */
static void fill_end(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_binding *binding = binding_of(batch, i, 0);
        if (batch->commands[i].kind == HAL_COMMAND_FILL && binding->length % 16 == 12) {
            binding->length -= 4;
        }
    }
}

/* A fill that begins at an odd word writes the bytes of the pattern in another order. */
static void fill_pattern(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_FILL && binding_of(batch, i, 0)->offset % 8 == 4) {
            uint8_t *at = batch->scalars + command->scalar_first;
            const uint8_t kept[2] = {at[0], at[1]};
            memmove(at, at + 2, 2);
            memcpy(at + 2, kept, 2);
        }
    }
}

/* The offset of a kernel's binding is kept in 24 bits. */
static void binding_far(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        for (uint32_t k = 0; k < command->binding_count; k++) {
            if (command->kind == HAL_COMMAND_DISPATCH) {
                binding_of(batch, i, k)->offset &= 0xffffff;
            }
        }
    }
}

/* The device has room for 256 bytes of scalars; later scalars are zero. */
static void scalars_256(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->scalar_bytes > 256) {
            memset(batch->scalars + command->scalar_first + 256, 0, command->scalar_bytes - 256u);
        }
    }
}

/* Bindings from the 17th on lie in a second table, whose first two entries are swapped. */
static void binding_17(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].binding_count > 17) {
            const hal_binding kept = *binding_of(batch, i, 16);
            *binding_of(batch, i, 16) = *binding_of(batch, i, 17);
            *binding_of(batch, i, 17) = kept;
        }
    }
}

/* A grid that is large in one dimension loses the last layer of the third one. */
static void grid_z(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        grid[2] -= grid[2] > 1 && grid[0] * grid[1] > 6;
    }
}

/* The number of groups along y is kept in 8 bits. */
static void grid_y(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        grid[1] = (grid[1] & 0xff) != 0 ? grid[1] & 0xff : grid[1];
    }
}

/* The number of groups is kept in 16 bits. */
static void grid_16_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        grid[0] = (grid[0] & 0xffff) != 0 ? grid[0] & 0xffff : grid[0];
    }
}

/* The barrier before a fill is lost: it overtakes the kernel before it. */
static void barrier_fill(wrap_batch *batch)
{
    for (uint32_t i = 1; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_FILL &&
            batch->commands[i - 1].kind == HAL_COMMAND_DISPATCH) {
            swap_commands(batch, i - 1, i);
        }
    }
}

/* The barrier is lost where a list of 256 commands is full: the next one overtakes the last. */
static void barrier_256(wrap_batch *batch)
{
    for (uint32_t i = 256; i < batch->batch.command_count; i += 256) {
        swap_commands(batch, i - 1, i);
    }
}

/* Offsets of copies are rounded down to words. */
static void copy_aligned(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_COPY) {
            binding_of(batch, i, 1)->offset &= ~UINT64_C(3);
        }
    }
}

/* The length of a fill is kept in 24 bits. */
static void fill_24_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_FILL) {
            binding_of(batch, i, 0)->length &= 0xffffff;
        }
    }
}

/* The place of a command's scalars is kept in 13 bits. */
static void scalars_far(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        batch->commands[i].scalar_first &= 0x1fff;
    }
}

/* The place of a command's bindings is kept in 10 bits. */
static void bindings_far(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        batch->commands[i].binding_first &= 0x3ff;
    }
}

/* The barrier before a copy is lost: it overtakes the kernel before it. */
static void barrier_copy(wrap_batch *batch)
{
    for (uint32_t i = 1; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_COPY &&
            batch->commands[i - 1].kind == HAL_COMMAND_DISPATCH) {
            swap_commands(batch, i - 1, i);
        }
    }
}

/* A kernel with a binding of no length is skipped. */
static void binding_empty(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_command *command = &batch->commands[i];
        for (uint32_t k = 0; k < command->binding_count; k++) {
            if (!binding_of(batch, i, k)->memory) {
                command->kind = HAL_COMMAND_FILL;
                command->binding_count = 1;
                binding_of(batch, i, 0)->length = 0;
                break;
            }
        }
    }
}

/* No fault: commands between two barriers may run in any order, so they do in the other one. */
static void reversed(wrap_batch *batch)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i <= batch->batch.command_count; i++) {
        if (i < batch->batch.command_count &&
            (batch->commands[i].flags & HAL_COMMAND_BARRIER) == 0) {
            continue;
        }
        for (uint32_t low = first, high = i - 1; low < high; low++, high--) {
            swap_commands(batch, low, high);
        }
        first = i;
    }
}

/* Puts a fill with 0 of a dispatch's binding in front of it. */
static void insert_fill(wrap_batch *batch, uint32_t at, uint32_t binding)
{
    hal_command *commands =
        realloc(batch->commands, (batch->batch.command_count + 1) * sizeof(*commands));
    if (!commands) {
        return;
    }
    memmove(commands + at + 1, commands + at,
            (batch->batch.command_count - at) * sizeof(*commands));
    commands[at] = (hal_command){.kind = HAL_COMMAND_FILL,
                                 .flags = HAL_COMMAND_BARRIER,
                                 .binding_count = 1,
                                 .scalar_bytes = 4,
                                 .scalar_first = batch->batch.scalar_bytes,
                                 .binding_first = commands[at + 1].binding_first + binding,
                                 .grid = {1, 1, 1}};
    commands[at + 1].flags |= HAL_COMMAND_BARRIER;
    batch->batch.command_count++;
    batch->commands = commands;
    batch->batch.commands = commands;
}

/* Memory that a kernel only writes begins without contents, where it is long. */
static void write_discards(wrap_batch *batch)
{
    enum { LONG = 128 * 1024 };
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command command = batch->commands[i];
        for (uint32_t k = 0; command.kind == HAL_COMMAND_DISPATCH && k < command.binding_count;
             k++) {
            const hal_binding *binding = binding_of(batch, i, k);
            if (binding->access == HAL_ACCESS_WRITE && binding->length >= LONG &&
                binding->length % 4 == 0 && binding->offset % 4 == 0) {
                insert_fill(batch, i++, k);
            }
        }
    }
}

const mutant mutants_batch[] = {{.name = "none", .batch = none},
                                {.name = "unlinked", .batch = none},
                                {.name = "exports", .batch = none},
                                {.name = "reversed", .batch = reversed},
                                {.name = "copy_tail", .batch = copy_tail},
                                {.name = "fill_end", .batch = fill_end},
                                {.name = "fill_pattern", .batch = fill_pattern},
                                {.name = "binding_far", .batch = binding_far},
                                {.name = "scalars_256", .batch = scalars_256},
                                {.name = "binding_17", .batch = binding_17},
                                {.name = "grid_z", .batch = grid_z},
                                {.name = "grid_y", .batch = grid_y},
                                {.name = "grid_16_bits", .batch = grid_16_bits},
                                {.name = "barrier_fill", .batch = barrier_fill},
                                {.name = "barrier_256", .batch = barrier_256},
                                {.name = "barrier_copy", .batch = barrier_copy},
                                {.name = "copy_aligned", .batch = copy_aligned},
                                {.name = "fill_24_bits", .batch = fill_24_bits},
                                {.name = "scalars_far", .batch = scalars_far},
                                {.name = "bindings_far", .batch = bindings_far},
                                {.name = "binding_empty", .batch = binding_empty},
                                {.name = "write_discards", .batch = write_discards},
                                {.name = NULL}};
