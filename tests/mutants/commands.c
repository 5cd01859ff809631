/* commands.c: faults in copies of rows and in dispatches whose grid is in memory. */
#include "mutant.h"

#include <string.h>

/* ---- Copies of rows ---- */

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

static void take_pitch_of_source(hal_plugin_copy_rows *rows)
{
    const uint64_t least = rows->row_bytes;
    rows->target_pitch = rows->source_pitch < rows->target_pitch && rows->source_pitch >= least
                             ? rows->source_pitch
                             : rows->target_pitch;
}

static void rows_pitch(wrap_batch *batch)
{
    rows_edit(batch, take_pitch_of_source);
}

static void take_tight_slices(hal_plugin_copy_rows *rows)
{
    const uint64_t whole = rows->rows * rows->source_pitch;
    rows->source_slice = rows->source_slice > whole ? whole : rows->source_slice;
}

static void rows_slices(wrap_batch *batch)
{
    rows_edit(batch, take_tight_slices);
}

static void take_gap(hal_plugin_copy_rows *rows)
{
    const bool has_gaps =
        rows->source_pitch > rows->row_bytes && rows->target_pitch > rows->row_bytes;
    rows->row_bytes += has_gaps && rows->rows > 1 ? 4 : 0;
    rows->rows -= has_gaps && rows->rows > 1; /* the last one's gap may be out of bounds */
}

static void rows_gaps(wrap_batch *batch)
{
    rows_edit(batch, take_gap);
}

static void take_16_bits(hal_plugin_copy_rows *rows)
{
    rows->rows = rows->rows > UINT16_MAX ? rows->rows & UINT16_MAX : rows->rows;
}

static void rows_16_bits(wrap_batch *batch)
{
    rows_edit(batch, take_16_bits);
}

static void take_26_bits(hal_plugin_copy_rows *rows)
{
    rows->source_pitch =
        rows->source_pitch >> 26 ? rows->source_pitch & ((1 << 26) - 1) : rows->source_pitch;
}

static void rows_26_bits(wrap_batch *batch)
{
    rows_edit(batch, take_26_bits);
}

static void take_slice_26_bits(hal_plugin_copy_rows *rows)
{
    rows->target_slice =
        rows->target_slice >> 26 ? rows->target_slice & ((1 << 26) - 1) : rows->target_slice;
}

static void rows_slice_26_bits(wrap_batch *batch)
{
    rows_edit(batch, take_slice_26_bits);
}

static void take_24_bits(hal_plugin_copy_rows *rows)
{
    rows->row_bytes = rows->row_bytes >> 24 ? rows->row_bytes & ((1 << 24) - 1) : rows->row_bytes;
}

static void rows_24_bits(wrap_batch *batch)
{
    rows_edit(batch, take_24_bits);
}

/* ---- Grids in memory ---- */

static bool reads_early, zero_is_one;

/* The mutant's data of memory. */
typedef struct view {
    void *pointer;
} view;

static hal_status allocate_viewed(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    view *kept = status == HAL_OK ? wrap_keep(*memory, sizeof(*kept)) : NULL;
    if (kept) {
        wrap_inside()->memory_map(device, *memory, &kept->pointer);
    }
    return status;
}

static void free_viewed(hal_plugin_device *device, hal_plugin_memory *memory)
{
    wrap_drop(memory);
    wrap_inside()->memory_free(device, memory);
}

/* Makes an indirect dispatch a direct one, with the grid that is in memory now. */
static void command_fix(wrap_batch *batch, hal_command *command)
{
    const uint32_t last = command->binding_first + command->binding_count - 1;
    const view *seen = wrap_find(batch->bindings[last].memory);
    uint32_t grid[3] = {0};
    if (!seen) {
        return;
    }
    memcpy(grid, (const char *)seen->pointer + batch->bindings[last].offset, sizeof(grid));
    for (int k = 0; k < 3; k++) {
        if (grid[k] == 0 && !zero_is_one) {
            return;
        }
        grid[k] += grid[k] == 0;
    }
    memcpy(command->grid, grid, sizeof(grid));
    command->flags &= (uint16_t)~HAL_COMMAND_INDIRECT;
    command->binding_count--;
}

static hal_status submit_direct(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    wrap_batch copy;
    hal_status status = HAL_OK;
    if (!wrap_batch_copy(&copy, batch)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    hal_batch part = copy.batch;
    part.command_count = 0;
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK; i++) {
        if (copy.commands[i].flags & HAL_COMMAND_INDIRECT) {
            if (!reads_early) {
                status = wrap_inside()->submit(queue, &part, waits, wait_count, value);
                part.commands += part.command_count;
                part.command_count = 0;
            }
            command_fix(&copy, &copy.commands[i]);
        }
        part.command_count++;
    }
    status =
        status == HAL_OK ? wrap_inside()->submit(queue, &part, waits, wait_count, value) : status;
    wrap_batch_free(&copy);
    return status;
}

/* No fault by itself. */
static void grids_fixed(wrap_table *table)
{
    table->memory_allocate = allocate_viewed;
    table->memory_free = free_viewed;
    table->submit = submit_direct;
}

static void indirect_early(wrap_table *table)
{
    reads_early = true;
    grids_fixed(table);
}

static void indirect_zero(wrap_table *table)
{
    zero_is_one = true;
    grids_fixed(table);
}

/* The grid is at a multiple of 16 bytes. */
static void indirect_offset(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->flags & HAL_COMMAND_INDIRECT) {
            hal_binding *grid =
                &batch->bindings[command->binding_first + command->binding_count - 1];
            grid->offset = grid->offset / 16 * 16;
        }
    }
}

/* No fault: refuses batches in which a field that is reserved is not 0. */
static hal_status submit_checking(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    bool is_clean = batch->reserved == 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        is_clean = is_clean && command->reserved == 0 && command->reserved_words[0] == 0;
    }
    for (uint32_t i = 0; i < batch->binding_count; i++) {
        is_clean = is_clean && batch->bindings[i].reserved == 0;
    }
    for (uint32_t i = 0; i < wait_count; i++) {
        is_clean = is_clean && waits[i].reserved == 0 && !waits[i].fence;
    }
    return is_clean ? wrap_inside()->submit(queue, batch, waits, wait_count, value)
                    : wrap_fail(HAL_ERROR_INTERNAL, "mutant: a reserved field is not 0");
}

static void reserved_zero(wrap_table *table)
{
    table->submit = submit_checking;
}

const mutant mutants_commands[] = {{.name = "reserved_zero", .table = reserved_zero},
                                   {.name = "rows_pitch", .batch = rows_pitch},
                                   {.name = "rows_slices", .batch = rows_slices},
                                   {.name = "rows_gaps", .batch = rows_gaps},
                                   {.name = "rows_16_bits", .batch = rows_16_bits},
                                   {.name = "rows_26_bits", .batch = rows_26_bits},
                                   {.name = "rows_slice_26_bits", .batch = rows_slice_26_bits},
                                   {.name = "rows_24_bits", .batch = rows_24_bits},
                                   {.name = "grids_fixed", .table = grids_fixed},
                                   {.name = "indirect_early", .table = indirect_early},
                                   {.name = "indirect_zero", .table = indirect_zero},
                                   {.name = "indirect_offset", .batch = indirect_offset},
                                   {.name = NULL}};
