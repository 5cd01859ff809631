/* Runs a file on a device, see replay_run.h. */
#include "replay_run.h"

#include "../src/base/array.h"

#include <hal/dump.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GEMM_WORKSPACE = 3, GEMM_INPUTS = 4 };

static hal_status record_memory(replay_run *run, const replay_record *record)
{
    replay_memory *memory;
    HAL_TRY(replay_memory_add(&run->memories, run->device, record->id, record->bytes, &memory));
    return memory->bytes % 4 == 0
               ? hal_queue_fill(run->queue, (hal_range){memory->buffer, 0, HAL_WHOLE}, 0)
               : hal_queue_write(run->queue, memory->buffer, 0, memory->recorded, memory->bytes);
}

/* Contents of memory. Results of a batch are compared at its outcome. */
static hal_status record_data(replay_run *run, const replay_record *record)
{
    replay_memory *memory = replay_memory_find(&run->memories, record->id);
    const uint64_t bytes = record->data.count;
    if (!memory || record->offset > memory->bytes || bytes > memory->bytes - record->offset) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "data: expected a declared memory that is large enough, got %llu",
                              (unsigned long long)record->id);
    }
    memcpy(memory->recorded + record->offset, record->data.data, bytes);
    return record->kind == HAL_DUMP_RESULT && run->is_open
               ? HAL_OK
               : hal_queue_write(run->queue, memory->buffer, record->offset, record->data.data,
                                 bytes);
}

static hal_status check_ranges(const replay_run *run, const replay_command *command)
{
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const replay_range *range = &command->bindings[i];
        const replay_memory *memory = replay_memory_find(&run->memories, range->memory);
        if (range->length > 0 && (!memory || range->offset + range->length > memory->bytes)) {
            return hal_status_set(
                HAL_ERROR_INVALID_ARGUMENT,
                "command: expected a declared memory that is large enough, got %llu",
                (unsigned long long)range->memory);
        }
        if (range->length == 0 && command->kind != HAL_COMMAND_DISPATCH) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "command: expected a length above 0 of a copy or fill");
        }
    }
    return command->kind != HAL_COMMAND_COPY ||
                   command->bindings[0].length == command->bindings[1].length
               ? HAL_OK
               : hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                "copy: expected ranges of equal length");
}

static hal_status fail_memory(void)
{
    return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory to replay a batch");
}

/* Adds a written range, in place of those of earlier commands. */
static hal_status written_add(replay_run *run, const replay_command *command, uint32_t number,
                              uint32_t binding)
{
    const replay_range *range = &command->bindings[binding];
    const uint64_t begin = range->offset, end = range->offset + range->length;
    /* Each range may be split in two. */
    if (!HAL_ARRAY_RESERVE(run->written, run->written_capacity,
                           2 * (uint64_t)run->written_count + 1)) {
        return fail_memory();
    }
    uint32_t count = run->written_count;
    for (uint32_t i = run->written_count; i-- > 0;) {
        replay_written *one = &run->written[i];
        if (one->memory != range->memory || one->end <= begin || one->begin >= end) {
            continue;
        }
        if (one->begin < begin && one->end > end) {
            run->written[count] = *one;
            run->written[count++].begin = end;
            one->end = begin;
        } else if (one->begin < begin) {
            one->end = begin;
        } else if (one->end > end) {
            one->begin = end;
        } else {
            *one = run->written[--count];
        }
    }
    run->written[count++] = (replay_written){.memory = range->memory,
                                             .begin = begin,
                                             .end = end,
                                             .command = number,
                                             .binding = binding,
                                             .kernel = command->kernel,
                                             .kind = command->kind};
    run->written_count = count;
    return HAL_OK;
}

static hal_status track_copy(replay_run *run, const replay_command *command, uint32_t number)
{
    const replay_range *from = &command->bindings[0], *to = &command->bindings[1];
    hal_status status = HAL_OK;
    for (uint64_t done = 0; status == HAL_OK && done < from->length;) {
        uint64_t end = from->offset + from->length;
        hal_type type = replay_memory_type(replay_memory_find(&run->memories, from->memory),
                                           from->offset + done, &end);
        const uint64_t next = end - from->offset, size = hal_type_size(type);
        if (size > 0 && (to->offset - from->offset) % size != 0) {
            type = HAL_TYPE_NONE; /* elements are aligned to their size */
        }
        status = replay_memory_set_type(replay_memory_find(&run->memories, to->memory),
                                        to->offset + done, to->offset + next, type, 0);
        done = next;
    }
    return status == HAL_OK ? written_add(run, command, number, 1) : status;
}

/* Bindings without that of an indirect grid. */
static uint32_t own_bindings(const replay_command *command)
{
    return command->binding_count - ((command->flags & HAL_COMMAND_INDIRECT) != 0);
}

/* The type that a binding's memory gets. Kernels that move elements declare unsigned integers: if
 * they read floats of that size, they write floats. */
static hal_type written_type(const replay_run *run, const replay_command *command,
                             const replay_made *kernel, uint32_t binding)
{
    const hal_type type = replay_binding_type(kernel, binding);
    const bool may_move = hal_type_is_integer(type) && !hal_type_is_signed(type);
    for (uint32_t i = 0; may_move && i < own_bindings(command); i++) {
        const replay_range *range = &command->bindings[i];
        const replay_memory *memory = replay_memory_find(&run->memories, range->memory);
        uint64_t end = UINT64_MAX;
        if (memory && range->length > 0 && (range->access & HAL_ACCESS_READ) &&
            replay_binding_type(kernel, i) == type) {
            const hal_type moved = replay_memory_type(memory, range->offset, &end);
            if (hal_type_is_float(moved) && hal_type_size(moved) == hal_type_size(type)) {
                return moved;
            }
        }
    }
    return type;
}

static hal_status track_dispatch(replay_run *run, const replay_command *command, uint32_t number,
                                 const replay_made *kernel)
{
    hal_type types[HAL_IR_MAX_BINDINGS];
    hal_status status = HAL_OK;
    const uint32_t count = own_bindings(command);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = written_type(run, command, kernel, i);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        const replay_range *range = &command->bindings[i];
        replay_memory *memory = replay_memory_find(&run->memories, range->memory);
        const bool writes = (range->access & HAL_ACCESS_WRITE) != 0;
        if (range->length == 0 || (kernel->is_gemm && i == GEMM_WORKSPACE)) {
            continue; /* the replay has its own workspace */
        }
        status = replay_memory_set_type(memory, range->offset, range->offset + range->length,
                                        types[i], !writes);
        if (status == HAL_OK && writes) {
            status = written_add(run, command, number, i);
        }
    }
    return status;
}

/* Checks the objects of a batch, and tracks types and the last writer of each range. Sets *reason
 * if a kernel is missing. */
static hal_status batch_check(replay_run *run, const replay_record *record, char **reason)
{
    replay_bytes commands = record->commands;
    replay_command command;
    hal_status status = HAL_OK;
    for (uint32_t number = 0; status == HAL_OK && replay_next_command(&commands, &command);
         number++) {
        const replay_made *kernel = replay_kernel_find(&run->kernels, command.kernel);
        status = check_ranges(run, &command);
        if (status != HAL_OK) {
            break;
        }
        if (command.kind == HAL_COMMAND_COPY) {
            status = track_copy(run, &command, number);
        } else if (command.kind == HAL_COMMAND_FILL) {
            status = written_add(run, &command, number, 0);
        } else if (command.kind == HAL_COMMAND_COPY_ROWS) {
            status = written_add(run, &command, number, 1);
        } else if (!kernel) {
            status = hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                    "command: expected a declared kernel, got %llu",
                                    (unsigned long long)command.kernel);
        } else {
            status = track_dispatch(run, &command, number, kernel);
            if (!kernel->kernel && !*reason) {
                hal_status_set(HAL_ERROR_UNSUPPORTED, "kernel %s: %s", kernel->name,
                               kernel->reason ? kernel->reason : "");
                *reason = strdup(hal_status_message());
                status = *reason ? status : fail_memory();
            }
        }
    }
    return status;
}

/* The range itself, or a copy of it if the device does not allow its offset. */
static hal_status range_bind(replay_run *run, const replay_range *from, hal_range *range)
{
    const replay_memory *memory = replay_memory_find(&run->memories, from->memory);
    if (from->length == 0) {
        *range = (hal_range){0};
        return HAL_OK;
    }
    *range = (hal_range){memory->buffer, from->offset, from->length};
    if (from->offset % run->alignment == 0) {
        return HAL_OK;
    }
    hal_buffer *copy = NULL;
    hal_status status = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, from->length, &copy);
    if (status == HAL_OK) {
        status = hal_queue_transfer(run->queue, memory->buffer, from->offset, run->queue, copy, 0,
                                    from->length);
    }
    if (status != HAL_OK) {
        hal_buffer_release(copy);
        return status;
    }
    *range = (hal_range){copy, 0, from->length};
    return HAL_OK;
}

static hal_status dispatch_plain(replay_run *run, const replay_command *command,
                                 const replay_made *kernel, hal_range *ranges)
{
    hal_range bindings[HAL_IR_MAX_BINDINGS];
    double scale[2];
    float single[2];
    uint32_t grid[3];
    uint32_t count = 0;
    if (command->scalars.count != sizeof scale || command->binding_count < GEMM_INPUTS) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "gemm: expected its bindings and scalars");
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        if (i != GEMM_WORKSPACE) {
            bindings[count++] = ranges[i];
        }
    }
    memcpy(scale, command->scalars.data, sizeof scale);
    single[0] = (float)scale[0];
    single[1] = (float)scale[1];
    const bool is_double = replay_gemm_accumulator(&kernel->gemm) == HAL_TYPE_F64;
    replay_plain_grid(&kernel->gemm, grid);
    return hal_queue_dispatch(run->queue, kernel->kernel, grid, bindings, count,
                              is_double ? (const void *)scale : single,
                              is_double ? sizeof scale : sizeof single);
}

static hal_status range_unbind(replay_run *run, const replay_range *from, hal_range *range)
{
    const replay_memory *memory = replay_memory_find(&run->memories, from->memory);
    hal_status status = HAL_OK;
    if (!range->buffer || range->buffer == memory->buffer) {
        return HAL_OK;
    }
    if (from->access & HAL_ACCESS_WRITE) {
        status = hal_queue_transfer(run->queue, range->buffer, 0, run->queue, memory->buffer,
                                    from->offset, from->length);
    }
    hal_buffer_release(range->buffer);
    return status;
}

static hal_status queue_dispatch(replay_run *run, const replay_command *command)
{
    const replay_made *kernel = replay_kernel_find(&run->kernels, command->kernel);
    hal_range ranges[HAL_IR_MAX_BINDINGS + 1] = {{0}};
    hal_status status = HAL_OK;
    uint32_t bound = 0;
    while (status == HAL_OK && bound < command->binding_count) {
        if (kernel->is_gemm && bound == GEMM_WORKSPACE) {
            ranges[bound] =
                (hal_range){kernel->workspace, 0, hal_buffer_get_bytes(kernel->workspace)};
        } else {
            status = range_bind(run, &command->bindings[bound], &ranges[bound]);
        }
        bound += status == HAL_OK;
    }
    if (status == HAL_OK && (command->flags & HAL_COMMAND_INDIRECT)) {
        const uint32_t count = own_bindings(command);
        const uint32_t *limits = hal_device_get_info(run->device)->max_grid;
        uint32_t most[3]; /* a program that names none has the limits of its device */
        for (uint32_t i = 0; i < 3; i++) {
            most[i] = command->grid[i] < limits[i] ? command->grid[i] : limits[i];
        }
        status = hal_queue_dispatch_indirect(run->queue, kernel->kernel, ranges[count], most,
                                             ranges, count, command->scalars.data,
                                             (uint32_t)command->scalars.count);
    } else if (status == HAL_OK) {
        status = kernel->is_plain
                     ? dispatch_plain(run, command, kernel, ranges)
                     : hal_queue_dispatch(run->queue, kernel->kernel, command->grid, ranges,
                                          command->binding_count, command->scalars.data,
                                          (uint32_t)command->scalars.count);
    }
    for (uint32_t i = 0; i < bound; i++) {
        if (!(kernel->is_gemm && i == GEMM_WORKSPACE)) {
            const hal_status unbound = range_unbind(run, &command->bindings[i], &ranges[i]);
            status = status == HAL_OK ? unbound : status;
        }
    }
    return status;
}

static hal_status queue_copy_rows(replay_run *run, const replay_command *command)
{
    const replay_memory *one = replay_memory_find(&run->memories, command->bindings[0].memory);
    const replay_memory *other = replay_memory_find(&run->memories, command->bindings[1].memory);
    hal_plugin_copy_rows rows;
    memcpy(&rows, command->scalars.data, sizeof rows);
    const hal_row_copy copy = {.source = one->buffer,
                               .target = other->buffer,
                               .source_offset = command->bindings[0].offset,
                               .target_offset = command->bindings[1].offset,
                               .source_pitch = rows.source_pitch,
                               .target_pitch = rows.target_pitch,
                               .source_slice = rows.source_slice,
                               .target_slice = rows.target_slice,
                               .row_bytes = rows.row_bytes,
                               .rows = rows.rows,
                               .slices = rows.slices};
    return hal_queue_copy_rows(run->queue, &copy);
}

static hal_status queue_batch(replay_run *run, const replay_record *record)
{
    enum { COMMANDS_PER_COMMAND = 2 * HAL_IR_MAX_BINDINGS + 1, MOST = 1 << 24 };
    const uint32_t count = record->command_count < MOST ? record->command_count : MOST;
    const uint32_t limit = count * COMMANDS_PER_COMMAND + 1;
    replay_bytes commands = record->commands;
    replay_command command;
    hal_status status = hal_queue_flush(run->queue, NULL);
    if (status == HAL_OK) { /* one batch, as recorded */
        status = hal_queue_set_batch(run->queue, limit, limit);
    }
    while (status == HAL_OK && replay_next_command(&commands, &command)) {
        const replay_range *first = &command.bindings[0], *second = &command.bindings[1];
        const replay_memory *one = replay_memory_find(&run->memories, first->memory);
        if (command.kind == HAL_COMMAND_FILL) {
            status = hal_queue_fill_pattern(run->queue,
                                            (hal_range){one->buffer, first->offset, first->length},
                                            command.scalars.data, (uint32_t)command.scalars.count);
        } else if (command.kind == HAL_COMMAND_COPY_ROWS) {
            status = queue_copy_rows(run, &command);
        } else if (command.kind == HAL_COMMAND_COPY) { /* of any number of bytes */
            const replay_memory *other = replay_memory_find(&run->memories, second->memory);
            status = hal_queue_transfer(run->queue, one->buffer, first->offset, run->queue,
                                        other->buffer, second->offset, first->length);
        } else {
            status = queue_dispatch(run, &command);
        }
    }
    return status;
}

static hal_status record_batch(replay_run *run, const replay_record *record)
{
    char *reason = NULL;
    if (run->is_open) {
        replay_report_failed(run->report, run->batch, "did not end on the recorded device");
    }
    run->batch = ++run->report->batches;
    run->report->commands += record->command_count;
    run->written_count = 0;
    run->is_open = 1;
    run->has_run = 0;
    hal_status status = batch_check(run, record, &reason);
    if (status == HAL_OK && !reason) {
        status = queue_batch(run, record);
        const hal_status waited = hal_queue_wait(run->queue, HAL_WAIT_FOREVER);
        status = status == HAL_OK ? waited : status;
        if (status != HAL_OK && status != HAL_ERROR_DEVICE_LOST) {
            reason = strdup(hal_status_message());
            status = reason ? HAL_OK : fail_memory();
        }
        run->has_run = !reason;
    }
    if (reason) {
        replay_report_not_run(run->report, run->batch, reason);
    }
    free(reason);
    return status;
}

static hal_status written_restore(replay_run *run, const replay_written *written)
{
    const replay_memory *memory = replay_memory_find(&run->memories, written->memory);
    return memory
               ? hal_queue_write(run->queue, memory->buffer, written->begin,
                                 memory->recorded + written->begin, written->end - written->begin)
               : HAL_OK;
}

static void written_compare_types(replay_run *run, const replay_written *written,
                                  const replay_memory *memory)
{
    const replay_made *kernel = replay_kernel_find(&run->kernels, written->kernel);
    replay_place place = {.batch = run->batch,
                          .command = written->command,
                          .kernel = written->kind == HAL_COMMAND_FILL ? "fill" : "copy",
                          .binding = "target",
                          .memory = written->memory};
    if (kernel) {
        place.kernel = kernel->name;
        place.binding = replay_binding_name(kernel, written->binding);
    }
    for (uint64_t at = written->begin; at < written->end;) {
        replay_comparison comparison;
        uint64_t end = written->end;
        place.type = replay_memory_type(memory, at, &end);
        place.begin = at;
        const uint64_t size = hal_type_size(place.type);
        if (size > 0 && at % size != 0) { /* the rest of an element */
            const uint64_t next = at - at % size + size;
            end = next < end ? next : end;
            place.type = HAL_TYPE_NONE;
        }
        replay_compare(place.type, run->here + (at - written->begin), memory->recorded + at,
                       end - at, &run->bound, &comparison);
        replay_report_range(run->report, &place, &comparison);
        at = end;
    }
}

static hal_status written_compare(replay_run *run, const replay_written *written)
{
    const replay_memory *memory = replay_memory_find(&run->memories, written->memory);
    const uint64_t bytes = written->end - written->begin;
    if (!memory) {
        return HAL_OK; /* freed meanwhile */
    }
    if (bytes > run->here_bytes) {
        uint8_t *larger = realloc(run->here, bytes);
        if (!larger) {
            return fail_memory();
        }
        run->here = larger;
        run->here_bytes = bytes;
    }
    HAL_TRY(hal_queue_read(run->queue, memory->buffer, written->begin, bytes, run->here));
    written_compare_types(run, written, memory);
    /* Differences do not spread to later batches. */
    return run->free_running || memcmp(run->here, memory->recorded + written->begin, bytes) == 0
               ? HAL_OK
               : written_restore(run, written);
}

static hal_status record_outcome(replay_run *run, const replay_record *record)
{
    hal_status status = HAL_OK;
    if (!run->is_open) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "outcome: expected a batch before it");
    }
    const bool failed = record->status != HAL_OK;
    if (failed) {
        hal_status_set(record->status, "failed on the recorded device (%s: %.*s)",
                       hal_status_name(record->status), (int)record->message.count,
                       (const char *)record->message.data);
        replay_report_failed(run->report, run->batch, hal_status_message());
    }
    for (uint32_t i = 0; status == HAL_OK && i < run->written_count; i++) {
        const replay_written *written = &run->written[i];
        status =
            failed || !run->has_run ? written_restore(run, written) : written_compare(run, written);
    }
    run->is_open = 0;
    return status;
}

hal_status replay_run_begin(replay_run *run, hal_device *device, replay_report *report)
{
    run->device = device;
    run->report = report;
    run->alignment = hal_device_get_info(device)->binding_alignment;
    run->lanes = HAL_IR_EMULATED_SUBGROUP;
    return hal_queue_create(device, &run->queue);
}

hal_status replay_run_record(replay_run *run, const replay_record *record)
{
    switch (record->kind) {
    case HAL_DUMP_DEVICE:
        run->lanes = record->device.subgroup_width ? record->device.subgroup_width
                                                   : HAL_IR_EMULATED_SUBGROUP;
        return HAL_OK;
    case HAL_DUMP_KERNEL:
        return replay_kernel_add(&run->kernels, run->device, &record->kernel, run->lanes);
    case HAL_DUMP_MEMORY:
        return record_memory(run, record);
    case HAL_DUMP_FREE:
        replay_memory_remove(&run->memories, record->id);
        return HAL_OK;
    case HAL_DUMP_DATA:
    case HAL_DUMP_RESULT:
        return record_data(run, record);
    case HAL_DUMP_BATCH:
        return record_batch(run, record);
    case HAL_DUMP_VALUE:
        return HAL_OK;
    default:
        return record_outcome(run, record);
    }
}

void replay_run_end(replay_run *run)
{
    if (run->is_open) {
        replay_report_failed(run->report, run->batch, "did not end on the recorded device");
    }
    replay_memories_free(&run->memories);
    replay_kernels_free(&run->kernels);
    hal_queue_destroy(run->queue);
    free(run->written);
    free(run->here);
}
