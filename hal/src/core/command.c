/* Commands of a queue: arguments are checked, then the command is recorded in the batch or in a
 * graph. */
#include "flush.h"
#include "graph.h"
#include "hooks.h"
#include "record.h"
#include "reports.h"

#include "base/status.h"
#include "ir/iterations.h"
#include "ir/report.h"

#include <stdio.h>

#define FAULT_BYTES 192

/* Unlike hal_queue_check, this accepts a graph in recording. */
static inline hal_status check_queue(const hal_queue *queue, const char *function)
{
    return queue ? hal_device_check(queue->timeline.device, function)
                 : hal_null_argument(function, "queue");
}

static hal_status fail_dispatch_count(const hal_kernel *kernel, const char *argument,
                                      uint32_t expected, uint32_t value)
{
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                    "hal_queue_dispatch: %s: expected %u, as kernel %s declares, got %u", argument,
                    expected, kernel->names, value);
}

/* Of kernels whose loops are as long as scalars say. */
static hal_status check_iterations(const hal_kernel *kernel, const void *scalars)
{
    const hal_device *device = kernel->device;
    const uint64_t iterations = hal_ir_scalar_iterations(kernel->limited, scalars);
    return iterations <= device->info.max_loop_iterations
               ? HAL_OK
               : hal_fail(HAL_ERROR_UNSUPPORTED,
                          "hal_queue_dispatch: scalars: expected loops of at most %u iterations in "
                          "total for kernel %s, as the driver of %s:%u ends longer ones early, got "
                          "%llu; divide the work among several dispatches or more work-items",
                          device->info.max_loop_iterations, kernel->names, device->plugin->name,
                          device->index, (unsigned long long)iterations);
}

static hal_status check_dispatch(const hal_queue *queue, const hal_kernel *kernel,
                                 const uint32_t grid[3], const hal_range *bindings,
                                 uint32_t binding_count, const void *scalars, uint32_t scalar_bytes)
{
    const hal_device *device = queue->timeline.device;
    if (!kernel || !grid) {
        return hal_null_argument("hal_queue_dispatch", kernel ? "grid" : "kernel");
    }
    if (kernel->device != device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_dispatch: kernel: expected one of %s:%u, the queue's device, "
                        "got %s of %s:%u",
                        device->plugin->name, device->index, kernel->names,
                        kernel->device->plugin->name, kernel->device->index);
    }
    if (binding_count != kernel->binding_count) {
        return fail_dispatch_count(kernel, "binding_count", kernel->binding_count, binding_count);
    }
    if (scalar_bytes != kernel->scalar_bytes) {
        return fail_dispatch_count(kernel, "scalar_bytes", kernel->scalar_bytes, scalar_bytes);
    }
    if ((binding_count > 0 && !bindings) || (scalar_bytes > 0 && !scalars)) {
        return hal_null_argument("hal_queue_dispatch",
                                 binding_count > 0 && !bindings ? "bindings" : "scalars");
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (grid[i] > device->info.max_grid[i]) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_queue_dispatch: grid[%u]: expected at most %u, the device's "
                            "limit, got %u for kernel %s",
                            i, device->info.max_grid[i], grid[i], kernel->names);
        }
    }
    return kernel->limited ? check_iterations(kernel, scalars) : HAL_OK;
}

/* Whether a range is valid for a dispatch; sets its length in bytes. */
static inline bool range_is_valid(const hal_device *device, const hal_range *range,
                                  uint64_t *length)
{
    const hal_buffer *buffer = range->buffer;
    const uint64_t offset = range->offset;
    if (!buffer) {
        *length = 0;
        return range->length == 0 || range->length == HAL_WHOLE;
    }
    const uint64_t rest = buffer->bytes - offset;
    *length = range->length == HAL_WHOLE ? rest : range->length;
    return buffer->device == device && (offset & (device->info.binding_alignment - 1)) == 0 &&
           offset <= buffer->bytes && *length <= rest && *length <= device->info.max_binding;
}

/* Replaces HAL_WHOLE by the length. Returns 0 for a range that is not valid, with `fault` as
 * "expected ..., got ...". */
static bool range_check(const hal_device *device, hal_range *range, uint64_t alignment,
                        char fault[FAULT_BYTES])
{
    const hal_buffer *buffer = range->buffer;
    const uint64_t offset = range->offset;
    if (buffer->device != device) {
        snprintf(fault, FAULT_BYTES,
                 "expected a buffer of %s:%u, the queue's device, got \"%s\" of %s:%u",
                 device->plugin->name, device->index, buffer->label, buffer->device->plugin->name,
                 buffer->device->index);
        return false;
    }
    if (offset & (alignment - 1)) {
        snprintf(fault, FAULT_BYTES,
                 "expected an offset that is a multiple of %s%llu bytes, got %llu",
                 alignment == device->info.binding_alignment ? "the device's " : "",
                 (unsigned long long)alignment, (unsigned long long)offset);
        return false;
    }
    if (offset <= buffer->bytes) {
        const uint64_t rest = buffer->bytes - offset;
        if (range->length == HAL_WHOLE) {
            range->length = rest;
        }
        if (range->length <= rest) {
            return true;
        }
    }
    snprintf(fault, FAULT_BYTES,
             "expected a range within the %llu bytes of \"%s\", got offset %llu and length %llu",
             (unsigned long long)buffer->bytes, buffer->label, (unsigned long long)offset,
             (unsigned long long)range->length);
    return false;
}

static bool ranges_overlap(const hal_range *one, const hal_range *other)
{
    return one->buffer == other->buffer && one->length > 0 && other->length > 0 &&
           one->offset < other->offset + other->length && other->offset < one->offset + one->length;
}

static hal_status fail_binding(const hal_kernel *kernel, uint32_t binding, const char *fault)
{
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                    "hal_queue_dispatch: bindings[%u] (\"%s\" of kernel %s): %s", binding,
                    hal_kernel_binding_name(kernel, binding), kernel->names, fault);
}

static hal_status check_overlaps(const hal_kernel *kernel, const hal_range *ranges)
{
    const uint32_t count = kernel->binding_count;
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = 0; ranges[i].buffer && j < i; j++) {
            if (ranges_overlap(&ranges[i], &ranges[j]) &&
                ((kernel->access[i] | kernel->access[j]) & HAL_ACCESS_WRITE)) {
                char fault[FAULT_BYTES];
                snprintf(fault, sizeof fault,
                         "expected no overlap with a written range, got one with bindings[%u] "
                         "(\"%s\")",
                         j, hal_kernel_binding_name(kernel, j));
                return fail_binding(kernel, i, fault);
            }
        }
    }
    return HAL_OK;
}

static hal_status check_bindings(const hal_device *device, const hal_kernel *kernel,
                                 const hal_range *bindings, hal_range *checked)
{
    const uint32_t count = kernel->binding_count;
    for (uint32_t i = 0; i < count; i++) {
        char fault[FAULT_BYTES];
        hal_range *range = &checked[i];
        *range = bindings[i];
        if (!range->buffer && range->length != 0 && range->length != HAL_WHOLE) {
            snprintf(fault, sizeof fault,
                     "expected length 0 or HAL_WHOLE without a buffer, got %llu bytes",
                     (unsigned long long)range->length);
            return fail_binding(kernel, i, fault);
        }
        if (!range->buffer) {
            *range = (hal_range){0};
            continue;
        }
        bool is_valid = range_check(device, range, device->info.binding_alignment, fault);
        if (is_valid && range->length > device->info.max_binding) {
            snprintf(fault, sizeof fault,
                     "expected at most %llu bytes, the device's limit, got length %llu",
                     (unsigned long long)device->info.max_binding,
                     (unsigned long long)range->length);
            is_valid = false;
        }
        if (!is_valid) {
            return fail_binding(kernel, i, fault);
        }
    }
    return check_overlaps(kernel, checked);
}

static hal_status action_record(hal_queue *queue, const hal_action *action)
{
    if (queue->graph) {
        return hal_graph_append(queue->graph, action);
    }
    const hal_status status = hal_flush_if_full(queue);
    return status == HAL_OK ? hal_record_action(&queue->recorder, action) : status;
}

/* Records through an action, in a graph or for hooks. A grid without groups records nothing. */
static hal_status dispatch_action(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                  const hal_range *bindings, const void *scalars)
{
    hal_range checked[HAL_IR_MAX_BINDINGS];
    const hal_status status = check_bindings(queue->timeline.device, kernel, bindings, checked);
    if (status != HAL_OK || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
        return status;
    }
    const hal_action action = {
        .kind = HAL_COMMAND_DISPATCH,
        .range_count = (uint16_t)kernel->binding_count,
        .scalar_bytes = kernel->scalar_bytes,
        .grid = {grid[0], grid[1], grid[2]},
        .kernel = kernel,
        .scalars = scalars,
        .ranges = checked,
        .access = kernel->access,
    };
    return action_record(queue, &action);
}

/* Whether a dispatch lacks the binding of reports, which the queue then supplies. */
static inline bool lacks_reports(const hal_kernel *kernel, uint32_t binding_count)
{
    return kernel && kernel->reports && binding_count + 1 == kernel->binding_count;
}

/* Completes the bindings of such a dispatch, after a fill that writes its number. */
static hal_status reports_bind(hal_queue *queue, const hal_range *bindings, uint32_t binding_count,
                               hal_range completed[HAL_IR_MAX_BINDINGS])
{
    uint32_t number = 0;
    hal_range *reports = &completed[binding_count];
    HAL_TRY(check_queue(queue, "hal_queue_dispatch"));
    if (binding_count > 0 && !bindings) {
        return hal_null_argument("hal_queue_dispatch", "bindings");
    }
    for (uint32_t i = 0; i < binding_count; i++) {
        completed[i] = bindings[i];
    }
    HAL_TRY(hal_reports_take(queue, reports, &number));
    const hal_range target = {reports->buffer, offsetof(hal_ir_report_head, dispatch),
                              sizeof number};
    return hal_queue_fill(queue, target, number);
}

/* With a layer: checks by its hook, then records through an action. */
static hal_status dispatch_hooked(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                  const hal_range *bindings, uint32_t binding_count,
                                  const void *scalars, uint32_t scalar_bytes)
{
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_dispatch"));
    hal_status status = hal_hooks_table()->dispatch(kernel, bindings, binding_count);
    if (status == HAL_OK) {
        status = check_queue(queue, "hal_queue_dispatch");
    }
    if (status == HAL_OK) {
        status =
            check_dispatch(queue, kernel, grid, bindings, binding_count, scalars, scalar_bytes);
    }
    if (status == HAL_OK) {
        status = dispatch_action(queue, kernel, grid, bindings, scalars);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
}

/* Whether an earlier binding is of the same buffer. */
static inline bool binding_shares_buffer(const hal_range *bindings, uint32_t number)
{
    const hal_buffer *buffer = bindings[number].buffer;
    bool shares = false;
    for (uint32_t i = 0; buffer && i < number; i++) {
        shares |= bindings[i].buffer == buffer;
    }
    return shares;
}

/* Records directly in the batch. Bindings that may be invalid get the full check. */
static hal_status dispatch_record(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                  const hal_range *bindings, const void *scalars)
{
    hal_entry entry;
    const hal_device *device = queue->timeline.device;
    const uint32_t count = kernel->binding_count;
    hal_status status = hal_entry_begin(&entry, &queue->recorder, count, kernel->scalar_bytes);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        const hal_range *range = &bindings[i];
        uint64_t length;
        if (!range_is_valid(device, range, &length) || binding_shares_buffer(bindings, i)) {
            hal_range checked[HAL_IR_MAX_BINDINGS];
            status = check_bindings(device, kernel, bindings, checked);
        }
        if (status == HAL_OK) {
            status =
                hal_entry_bind(&entry, range->buffer, range->offset, length, kernel->access[i]);
        }
    }
    return status == HAL_OK ? hal_entry_end(&entry, HAL_COMMAND_DISPATCH, 0, kernel, grid, scalars,
                                            kernel->scalar_bytes)
                            : status;
}

/* The grid's range, with the largest grid: what the program says, or the device's limits. */
static hal_status check_indirect(const hal_queue *queue, hal_range *grid, const uint32_t most[3],
                                 uint32_t largest[3])
{
    const hal_device *device = queue->timeline.device;
    char fault[FAULT_BYTES];
    if (!(device->info.features & HAL_FEATURE_INDIRECT)) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_queue_dispatch_indirect: %s:%u reads no grids from memory; read it by "
                        "hal_queue_read and call hal_queue_dispatch",
                        device->plugin->name, device->index);
    }
    if (!grid->buffer) {
        return hal_null_argument("hal_queue_dispatch_indirect", "grid.buffer");
    }
    if (!range_check(device, grid, 4, fault)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_dispatch_indirect: grid: %s", fault);
    }
    if (grid->length != 3 * sizeof(uint32_t)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_dispatch_indirect: grid: expected 12 bytes, got length %llu",
                        (unsigned long long)grid->length);
    }
    for (uint32_t i = 0; i < 3; i++) {
        largest[i] = most ? most[i] : device->info.max_grid[i];
        if (largest[i] == 0) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_queue_dispatch_indirect: most[%u]: expected at least 1, got 0", i);
        }
    }
    return HAL_OK;
}

/* The grid is one more range, which no binding that is written overlaps. */
static hal_status indirect_action(hal_queue *queue, hal_kernel *kernel, const hal_range *grid,
                                  const uint32_t largest[3], const hal_range *bindings,
                                  const void *scalars)
{
    hal_range ranges[HAL_IR_MAX_BINDINGS + 1];
    const uint32_t count = kernel->binding_count;
    HAL_TRY(check_bindings(queue->timeline.device, kernel, bindings, ranges));
    ranges[count] = *grid;
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].buffer && ranges_overlap(&ranges[i], grid) &&
            (kernel->access[i] & HAL_ACCESS_WRITE)) {
            return fail_binding(kernel, i, "expected no overlap with the grid's range, got one");
        }
    }
    const hal_action action = {
        .kind = HAL_COMMAND_DISPATCH,
        .flags = HAL_COMMAND_INDIRECT,
        .range_count = (uint16_t)(count + 1),
        .scalar_bytes = kernel->scalar_bytes,
        .grid = {largest[0], largest[1], largest[2]},
        .kernel = kernel,
        .scalars = scalars,
        .ranges = ranges,
        .access = kernel->access,
    };
    return action_record(queue, &action);
}

static hal_status queue_dispatch_indirect(hal_queue *queue, hal_kernel *kernel, hal_range grid,
                                          const uint32_t most[3], const hal_range *bindings,
                                          uint32_t binding_count, const void *scalars,
                                          uint32_t scalar_bytes)
{
    uint32_t largest[3] = {1, 1, 1};
    HAL_TRY(check_queue(queue, "hal_queue_dispatch_indirect"));
    HAL_TRY(check_indirect(queue, &grid, most, largest));
    HAL_TRY(check_dispatch(queue, kernel, largest, bindings, binding_count, scalars, scalar_bytes));
    return indirect_action(queue, kernel, &grid, largest, bindings, scalars);
}

/* A range at the end of its buffer may have any length. */
static hal_status check_multiple_of_4(const char *argument, const hal_range *range)
{
    const bool to_end = range->offset + range->length == hal_buffer_get_bytes(range->buffer);
    if (range->offset % 4 != 0 || (range->length % 4 != 0 && !to_end)) {
        const bool offset = range->offset % 4 != 0;
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy: %s: expected a multiple of 4 bytes%s, got %s %llu",
                        argument, offset ? "" : " or a range that ends with its buffer",
                        offset ? "offset" : "length",
                        (unsigned long long)(offset ? range->offset : range->length));
    }
    return HAL_OK;
}

static hal_status queue_copy(hal_queue *queue, hal_range source, hal_range target)
{
    HAL_TRY(check_queue(queue, "hal_queue_copy"));
    hal_range ranges[2] = {source, target};
    static const char *const names[2] = {"source", "target"};
    for (uint32_t i = 0; i < 2; i++) {
        char fault[FAULT_BYTES];
        HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, ranges[i].buffer, "hal_queue_copy"));
        if (!ranges[i].buffer) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_queue_copy: %s: expected a buffer, got null", names[i]);
        }
        if (!range_check(queue->timeline.device, &ranges[i], 1, fault)) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_copy: %s: %s", names[i], fault);
        }
        HAL_TRY(check_multiple_of_4(names[i], &ranges[i]));
    }
    if (ranges[0].length != ranges[1].length) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy: target: expected %llu bytes, the length of source, got "
                        "%llu",
                        (unsigned long long)ranges[0].length, (unsigned long long)ranges[1].length);
    }
    if (ranges_overlap(&ranges[0], &ranges[1])) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy: target: expected no overlap with source, got offset %llu "
                        "and %llu in one buffer",
                        (unsigned long long)ranges[1].offset, (unsigned long long)ranges[0].offset);
    }
    if (ranges[0].length == 0) {
        return HAL_OK;
    }
    const hal_action action = hal_copy_action(ranges);
    return action_record(queue, &action);
}

/* ---- Copies of rows ---- */

/* One side of a copy of rows. */
typedef struct row_side {
    const char *name;
    hal_buffer *buffer;
    uint64_t offset, pitch, slice;
} row_side;

/* Bytes from the first row to the end of the last; false if they do not fit in 64 bits. */
static bool rows_extent(const row_side *side, const hal_row_copy *copy, uint64_t *extent)
{
    uint64_t rows = 0, slices = 0;
    return !__builtin_mul_overflow(side->pitch, copy->rows - 1, &rows) &&
           !__builtin_mul_overflow(side->slice, copy->slices - 1, &slices) &&
           !__builtin_add_overflow(rows, slices, extent) &&
           !__builtin_add_overflow(*extent, copy->row_bytes, extent);
}

/* Sets the range that encloses the rows. */
static hal_status rows_check(const hal_device *device, const row_side *side,
                             const hal_row_copy *copy, hal_range *range)
{
    char fault[FAULT_BYTES];
    uint64_t extent = 0;
    if (!side->buffer) {
        return hal_null_argument("hal_queue_copy_rows", side->name);
    }
    if ((side->pitch | side->slice | copy->row_bytes) % 4 != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy_rows: %s: expected a pitch, a slice and row_bytes that are "
                        "multiples of 4 bytes, got %llu, %llu and %llu",
                        side->name, (unsigned long long)side->pitch,
                        (unsigned long long)side->slice, (unsigned long long)copy->row_bytes);
    }
    if (copy->rows > 1 && side->pitch < copy->row_bytes) {
        return hal_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "hal_queue_copy_rows: %s_pitch: expected at least row_bytes, %llu, got %llu",
            side->name, (unsigned long long)copy->row_bytes, (unsigned long long)side->pitch);
    }
    if (!rows_extent(side, copy, &extent)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy_rows: %s: expected rows within 2^64 bytes", side->name);
    }
    if (copy->slices > 1 && side->slice < extent - side->slice * (copy->slices - 1)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy_rows: %s_slice: expected at least a slice's rows, %llu "
                        "bytes, got %llu",
                        side->name, (unsigned long long)(extent - side->slice * (copy->slices - 1)),
                        (unsigned long long)side->slice);
    }
    *range = (hal_range){side->buffer, side->offset, extent};
    return range_check(device, range, 4, fault)
               ? HAL_OK
               : hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_copy_rows: %s: %s", side->name,
                          fault);
}

/* Rows that follow each other on both sides become one, so that all that is left has gaps. */
static void rows_merge(hal_plugin_copy_rows *rows)
{
    if (rows->slices > 1 && rows->source_slice == rows->rows * rows->source_pitch &&
        rows->target_slice == rows->rows * rows->target_pitch &&
        rows->rows <= UINT32_MAX / rows->slices) {
        rows->rows *= rows->slices;
        rows->slices = 1;
    }
    for (int turn = 0; turn < 2; turn++) {
        if (rows->source_pitch == rows->row_bytes && rows->target_pitch == rows->row_bytes) {
            rows->row_bytes *= rows->rows;
            rows->rows = 1;
        }
        if (rows->rows == 1) {
            rows->rows = rows->slices;
            rows->source_pitch = rows->source_slice;
            rows->target_pitch = rows->target_slice;
            rows->slices = 1;
        }
    }
}

/* A copy for each row. */
static hal_status rows_record_each(hal_queue *queue, const hal_plugin_copy_rows *rows,
                                   const hal_range ranges[2])
{
    hal_status status = HAL_OK;
    for (uint64_t i = 0; i < (uint64_t)rows->rows * rows->slices && status == HAL_OK; i++) {
        const uint64_t slice = i / rows->rows, row = i % rows->rows;
        const hal_range one[2] = {
            {ranges[0].buffer,
             ranges[0].offset + slice * rows->source_slice + row * rows->source_pitch,
             rows->row_bytes},
            {ranges[1].buffer,
             ranges[1].offset + slice * rows->target_slice + row * rows->target_pitch,
             rows->row_bytes}};
        const hal_action action = hal_copy_action(one);
        status = action_record(queue, &action);
    }
    return status;
}

static hal_status rows_record(hal_queue *queue, const hal_row_copy *copy, const hal_range ranges[2])
{
    hal_plugin_copy_rows rows = {.row_bytes = copy->row_bytes,
                                 .source_pitch = copy->source_pitch,
                                 .target_pitch = copy->target_pitch,
                                 .source_slice = copy->source_slice,
                                 .target_slice = copy->target_slice,
                                 .rows = copy->rows,
                                 .slices = copy->slices};
    rows_merge(&rows);
    if ((rows.rows == 1 && rows.slices == 1) ||
        !(queue->timeline.device->info.features & HAL_FEATURE_COPY_ROWS)) {
        return rows_record_each(queue, &rows, ranges);
    }
    hal_action action = hal_copy_action(ranges);
    action.kind = HAL_COMMAND_COPY_ROWS;
    action.scalars = &rows;
    action.scalar_bytes = sizeof rows;
    return action_record(queue, &action);
}

static hal_status queue_copy_rows(hal_queue *queue, const hal_row_copy *copy)
{
    HAL_TRY(check_queue(queue, "hal_queue_copy_rows"));
    if (!copy) {
        return hal_null_argument("hal_queue_copy_rows", "copy");
    }
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, copy->source, "hal_queue_copy_rows"));
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, copy->target, "hal_queue_copy_rows"));
    if (copy->rows == 0 || copy->slices == 0 || copy->row_bytes == 0) {
        return HAL_OK;
    }
    const row_side sides[2] = {
        {"source", copy->source, copy->source_offset, copy->source_pitch, copy->source_slice},
        {"target", copy->target, copy->target_offset, copy->target_pitch, copy->target_slice}};
    hal_range ranges[2];
    for (uint32_t i = 0; i < 2; i++) {
        HAL_TRY(rows_check(queue->timeline.device, &sides[i], copy, &ranges[i]));
    }
    if (ranges_overlap(&ranges[0], &ranges[1])) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy_rows: target: expected no overlap with source, got offset "
                        "%llu and %llu in one buffer",
                        (unsigned long long)ranges[1].offset, (unsigned long long)ranges[0].offset);
    }
    return rows_record(queue, copy, ranges);
}

/* ---- Fills ---- */

/* The pattern as 4 bytes; false if it is longer or the range is not made of words. */
static bool pattern_as_word(const hal_range *target, const uint8_t *pattern, uint32_t bytes,
                            uint8_t word[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        word[i] = pattern[i % bytes];
    }
    bool repeats = (target->offset | target->length) % 4 == 0;
    for (uint32_t i = 4; i < bytes; i++) {
        repeats &= pattern[i] == pattern[i % 4];
    }
    return repeats;
}

static hal_status queue_fill(hal_queue *queue, const char *function, hal_range target,
                             const uint8_t *pattern, uint32_t bytes)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, target.buffer, function));
    HAL_TRY(check_queue(queue, function));
    const hal_device *device = queue->timeline.device;
    char fault[FAULT_BYTES];
    if (!target.buffer || !pattern) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: %s, got null", function,
                        target.buffer ? "pattern: expected an address"
                                      : "target: expected a buffer");
    }
    if (bytes == 0 || bytes > 16 || (bytes & (bytes - 1)) != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: bytes: expected 1, 2, 4, 8 or 16, got %u",
                        function, bytes);
    }
    if (!range_check(device, &target, bytes, fault)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: target: %s", function, fault);
    }
    if (target.length % bytes != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: target: expected a multiple of %u bytes, got length %llu", function,
                        bytes, (unsigned long long)target.length);
    }
    if (target.length == 0) {
        return HAL_OK;
    }
    uint8_t word[4];
    if (pattern_as_word(&target, pattern, bytes, word)) {
        pattern = word;
        bytes = sizeof word;
    } else if (!(device->info.features & HAL_FEATURE_FILL_PATTERNS)) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: %s:%u fills whole words with 4 bytes only, got a pattern of %u",
                        function, device->plugin->name, device->index, bytes);
    }
    const hal_action action = {.kind = HAL_COMMAND_FILL,
                               .range_count = 1,
                               .scalar_bytes = bytes,
                               .grid = {1, 1, 1},
                               .scalars = pattern,
                               .ranges = &target,
                               .access = hal_fill_access};
    return action_record(queue, &action);
}

hal_status hal_queue_dispatch(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                              const hal_range *bindings, uint32_t binding_count,
                              const void *scalars, uint32_t scalar_bytes)
{
    if (lacks_reports(kernel, binding_count)) {
        hal_range completed[HAL_IR_MAX_BINDINGS];
        HAL_TRY(reports_bind(queue, bindings, binding_count, completed));
        return hal_queue_dispatch(queue, kernel, grid, completed, binding_count + 1, scalars,
                                  scalar_bytes);
    }
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        return dispatch_hooked(queue, kernel, grid, bindings, binding_count, scalars, scalar_bytes);
    }
    HAL_TRY(check_queue(queue, "hal_queue_dispatch"));
    HAL_TRY(check_dispatch(queue, kernel, grid, bindings, binding_count, scalars, scalar_bytes));
    if (queue->graph || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
        return dispatch_action(queue, kernel, grid, bindings, scalars);
    }
    hal_status status = hal_flush_if_full(queue);
    return status == HAL_OK ? dispatch_record(queue, kernel, grid, bindings, scalars) : status;
}

hal_status hal_queue_dispatch_indirect(hal_queue *queue, hal_kernel *kernel, hal_range grid,
                                       const uint32_t most[3], const hal_range *bindings,
                                       uint32_t binding_count, const void *scalars,
                                       uint32_t scalar_bytes)
{
    if (lacks_reports(kernel, binding_count)) {
        hal_range completed[HAL_IR_MAX_BINDINGS];
        HAL_TRY(reports_bind(queue, bindings, binding_count, completed));
        return hal_queue_dispatch_indirect(queue, kernel, grid, most, completed, binding_count + 1,
                                           scalars, scalar_bytes);
    }
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_dispatch_indirect"));
    hal_status status = HAL_OK;
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        status = hal_hooks_table()->dispatch(kernel, bindings, binding_count);
    }
    if (status == HAL_OK) {
        status = hal_hook_use(HAL_OBJECT_BUFFER, grid.buffer, "hal_queue_dispatch_indirect");
    }
    if (status == HAL_OK) {
        status = queue_dispatch_indirect(queue, kernel, grid, most, bindings, binding_count,
                                         scalars, scalar_bytes);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
}

hal_status hal_queue_copy_rows(hal_queue *queue, const hal_row_copy *copy)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_copy_rows");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_copy_rows(queue, copy))
                            : status;
}

hal_status hal_queue_copy(hal_queue *queue, hal_range source, hal_range target)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_copy");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_copy(queue, source, target))
               : status;
}

hal_status hal_queue_fill(hal_queue *queue, hal_range target, uint32_t pattern)
{
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_fill"));
    uint8_t bytes[sizeof pattern];
    memcpy(bytes, &pattern, sizeof pattern);
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue,
                          queue_fill(queue, "hal_queue_fill", target, bytes, sizeof bytes));
}

hal_status hal_queue_fill_pattern(hal_queue *queue, hal_range target, const void *pattern,
                                  uint32_t bytes)
{
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_fill_pattern"));
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue,
                          queue_fill(queue, "hal_queue_fill_pattern", target, pattern, bytes));
}
