/* The commands of a queue: every argument is checked here, then recorded in the batch or kept in a
 * graph. Called by programs through hal/queue.h. */
#include "device.h"
#include "hooks.h"
#include "graph.h"
#include "record.h"
#include "base/status.h"

#include <stdio.h>

#define FAULT_BYTES 192

const uint8_t hal_copy_access[2] = {HAL_ACCESS_READ, HAL_ACCESS_WRITE};
const uint8_t hal_fill_access[1] = {HAL_ACCESS_WRITE};

/* A queue on which a graph is being recorded takes commands too. */
static inline hal_status check_queue(const hal_queue *queue, const char *what)
{
    if (queue && hal_device_is_well(queue->device)) {
        return HAL_OK;
    }
    return queue ? hal_device_check(queue->device, what)
                 : hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: queue is null", what);
}

static hal_status check_dispatch(const hal_queue *queue, const hal_kernel *kernel,
                                 const uint32_t grid[3], const hal_range *bindings,
                                 uint32_t binding_count, const void *scalars,
                                 uint32_t scalar_bytes)
{
    const hal_device *device = queue->device;
    if (!kernel || !grid) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_dispatch: %s is null",
                        kernel ? "grid" : "kernel");
    }
    if (kernel->device != device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_dispatch: kernel %s is of device %s:%u, the queue of %s:%u",
                        kernel->names, kernel->device->plugin->name, kernel->device->index,
                        device->plugin->name, device->index);
    }
    if (binding_count != kernel->binding_count || (binding_count > 0 && !bindings)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_dispatch: kernel %s has %u bindings, %u are given%s",
                        kernel->names, kernel->binding_count, binding_count,
                        binding_count > 0 && !bindings ? ", and bindings is null" : "");
    }
    if (scalar_bytes != kernel->scalar_bytes || (scalar_bytes > 0 && !scalars)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_dispatch: kernel %s has %u bytes of scalars, %u are given%s",
                        kernel->names, kernel->scalar_bytes, scalar_bytes,
                        scalar_bytes > 0 && !scalars ? ", and scalars is null" : "");
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (grid[i] > device->info.max_grid[i]) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_queue_dispatch: kernel %s: grid[%u] is %u, the device's largest "
                            "is %u",
                            kernel->names, i, grid[i], device->info.max_grid[i]);
        }
    }
    return HAL_OK;
}

/* Whether a range lies in its buffer, and how long it is. */
static inline int fits(const hal_device *device, const hal_range *range, uint64_t *length)
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

/* Fills in HAL_WHOLE. 0, and what is wrong, when the range does not lie in its buffer. */
static int check_range(const hal_device *device, hal_range *range, uint64_t alignment,
                       char fault[FAULT_BYTES])
{
    const hal_buffer *buffer = range->buffer;
    const uint64_t offset = range->offset;
    if (buffer->device != device) {
        snprintf(fault, FAULT_BYTES, "buffer \"%s\" is of device %s:%u, the queue of %s:%u",
                 buffer->label, buffer->device->plugin->name, buffer->device->index,
                 device->plugin->name, device->index);
        return 0;
    }
    if (offset & (alignment - 1)) {
        snprintf(fault, FAULT_BYTES, "offset %llu is not a multiple of %s%llu bytes",
                 (unsigned long long)offset, alignment > 4 ? "the device's " : "",
                 (unsigned long long)alignment);
        return 0;
    }
    if (offset <= buffer->bytes) {
        const uint64_t rest = buffer->bytes - offset;
        if (range->length == HAL_WHOLE) {
            range->length = rest;
        }
        if (range->length <= rest) {
            return 1;
        }
    }
    snprintf(fault, FAULT_BYTES,
             "offset %llu and length %llu reach beyond the %llu bytes of buffer \"%s\"",
             (unsigned long long)offset, (unsigned long long)range->length,
             (unsigned long long)buffer->bytes, buffer->label);
    return 0;
}

static int overlap(const hal_range *one, const hal_range *other)
{
    return one->buffer == other->buffer && one->length > 0 && other->length > 0 &&
           one->offset < other->offset + other->length &&
           other->offset < one->offset + one->length;
}

static hal_status check_overlaps(const hal_kernel *kernel, const hal_range *ranges)
{
    const uint32_t count = kernel->binding_count;
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = 0; ranges[i].buffer && j < i; j++) {
            if (ranges[i].buffer == ranges[j].buffer && overlap(&ranges[i], &ranges[j]) &&
                ((kernel->access[i] | kernel->access[j]) & HAL_ACCESS_WRITE)) {
                return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                                "hal_queue_dispatch: bindings %u (\"%s\") and %u (\"%s\") of "
                                "kernel %s overlap and one of them is written",
                                j, hal_kernel_binding_name(kernel, j), i,
                                hal_kernel_binding_name(kernel, i), kernel->names);
            }
        }
    }
    return HAL_OK;
}

static hal_status check_bindings(const hal_queue *queue, const hal_kernel *kernel,
                                 const hal_range *bindings, hal_range *checked)
{
    const hal_device *device = queue->device;
    const uint32_t count = kernel->binding_count;
    for (uint32_t i = 0; i < count; i++) {
        char fault[FAULT_BYTES];
        hal_range *range = &checked[i];
        *range = bindings[i];
        if (!range->buffer && range->length != 0 && range->length != HAL_WHOLE) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_queue_dispatch: binding %u (\"%s\") of kernel %s has %llu bytes "
                            "and no buffer",
                            i, hal_kernel_binding_name(kernel, i), kernel->names,
                            (unsigned long long)range->length);
        }
        if (!range->buffer) {
            *range = (hal_range){0};
            continue;
        }
        int fits = check_range(device, range, device->info.binding_alignment, fault);
        if (fits && range->length > device->info.max_binding) {
            snprintf(fault, sizeof fault, "length %llu is above the device's largest binding, %llu",
                     (unsigned long long)range->length,
                     (unsigned long long)device->info.max_binding);
            fits = 0;
        }
        if (!fits) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_queue_dispatch: binding %u (\"%s\") of kernel %s: %s", i,
                            hal_kernel_binding_name(kernel, i), kernel->names, fault);
        }
    }
    return check_overlaps(kernel, checked);
}

static hal_status carry_out(hal_queue *queue, const hal_action *action)
{
    if (queue->graph) {
        return hal_graph_keep(queue->graph, action);
    }
    const hal_status status = hal_queue_make_room(queue);
    return status == HAL_OK ? hal_queue_record(queue, action) : status;
}

/* As an action: into a graph, or nowhere when there are no groups. */
static hal_status keep_dispatch(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                const hal_range *bindings, const void *scalars)
{
    hal_range checked[HAL_IR_MAX_BINDINGS];
    const hal_status status = check_bindings(queue, kernel, bindings, checked);
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
    return carry_out(queue, &action);
}

/* With a layer on: records through an action, which the hook is shown. */
static hal_status dispatch_hooked(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                  const hal_range *bindings, uint32_t binding_count,
                                  const void *scalars, uint32_t scalar_bytes)
{
    hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_dispatch");
    if (status != HAL_OK) {
        return status;
    }
    status = hal_hooks_table()->dispatch(kernel, bindings, binding_count);
    if (status == HAL_OK) {
        status = check_queue(queue, "hal_queue_dispatch");
    }
    if (status == HAL_OK) {
        status = check_dispatch(queue, kernel, grid, bindings, binding_count, scalars,
                                scalar_bytes);
    }
    if (status == HAL_OK) {
        status = keep_dispatch(queue, kernel, grid, bindings, scalars);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
}

/* Whether an earlier binding has the buffer of this one. */
static inline int shares_buffer(const hal_range *bindings, uint32_t number)
{
    const hal_buffer *buffer = bindings[number].buffer;
    int shares = 0;
    for (uint32_t i = 0; buffer && i < number; i++) {
        shares |= bindings[i].buffer == buffer;
    }
    return shares;
}

/* Checks the bindings on the way into the batch; those in doubt are looked at closely. */
static hal_status record_dispatch(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                  const hal_range *bindings, const void *scalars)
{
    hal_entry entry;
    const uint32_t count = kernel->binding_count;
    hal_status status = hal_entry_begin(&entry, queue, count, kernel->scalar_bytes);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        const hal_range *range = &bindings[i];
        uint64_t length;
        if (!fits(queue->device, range, &length) || shares_buffer(bindings, i)) {
            hal_range checked[HAL_IR_MAX_BINDINGS];
            status = check_bindings(queue, kernel, bindings, checked);
        }
        if (status == HAL_OK) {
            status = hal_entry_bind(&entry, range->buffer, range->offset, length,
                                    kernel->access[i]);
        }
    }
    return status == HAL_OK ? hal_entry_end(&entry, HAL_COMMAND_DISPATCH, kernel, grid, 0,
                                            scalars, kernel->scalar_bytes)
                            : status;
}

/* Offset and length, or up to the buffer's end. */
static hal_status check_multiple_of_4(const char *what, const char *name, const hal_range *range)
{
    const int to_end = range->offset + range->length == hal_buffer_get_bytes(range->buffer);
    if (range->offset % 4 != 0 || (range->length % 4 != 0 && !to_end)) {
        const int offset = range->offset % 4 != 0;
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: %s: %s %llu is not a multiple of 4 bytes%s", what, name,
                        offset ? "offset" : "length",
                        (unsigned long long)(offset ? range->offset : range->length),
                        offset ? "" : " and does not end with the buffer");
    }
    return HAL_OK;
}

static hal_status copy(hal_queue *queue, hal_range source, hal_range target)
{
    hal_status status = check_queue(queue, "hal_queue_copy");
    if (status != HAL_OK) {
        return status;
    }
    hal_range ranges[2] = {source, target};
    static const char *const names[2] = {"source", "target"};
    for (uint32_t i = 0; i < 2; i++) {
        char fault[FAULT_BYTES];
        status = hal_hook_use(HAL_OBJECT_BUFFER, ranges[i].buffer, "hal_queue_copy");
        if (status != HAL_OK) {
            return status;
        }
        if (!ranges[i].buffer) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_copy: %s has no buffer",
                            names[i]);
        }
        if (!check_range(queue->device, &ranges[i], 1, fault)) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_copy: %s: %s", names[i], fault);
        }
        status = check_multiple_of_4("hal_queue_copy", names[i], &ranges[i]);
        if (status != HAL_OK) {
            return status;
        }
    }
    if (ranges[0].length != ranges[1].length) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_copy: source has %llu bytes, target %llu",
                        (unsigned long long)ranges[0].length,
                        (unsigned long long)ranges[1].length);
    }
    if (overlap(&ranges[0], &ranges[1])) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_copy: source and target overlap");
    }
    if (ranges[0].length == 0) {
        return HAL_OK;
    }
    const hal_action action = {.kind = HAL_COMMAND_COPY,
                               .range_count = 2,
                               .grid = {1, 1, 1},
                               .ranges = ranges,
                               .access = hal_copy_access};
    return carry_out(queue, &action);
}

static hal_status fill(hal_queue *queue, hal_range target, uint32_t pattern)
{
    hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, target.buffer, "hal_queue_fill");
    if (status == HAL_OK) {
        status = check_queue(queue, "hal_queue_fill");
    }
    if (status != HAL_OK) {
        return status;
    }
    char fault[FAULT_BYTES];
    if (!target.buffer) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_fill: target has no buffer");
    }
    if (!check_range(queue->device, &target, 4, fault)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_fill: target: %s", fault);
    }
    if (target.length % 4 != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_fill: target: length %llu is not a multiple of 4 bytes",
                        (unsigned long long)target.length);
    }
    if (target.length == 0) {
        return HAL_OK;
    }
    const hal_action action = {.kind = HAL_COMMAND_FILL,
                               .range_count = 1,
                               .grid = {1, 1, 1},
                               .pattern = pattern,
                               .ranges = &target,
                               .access = hal_fill_access};
    return carry_out(queue, &action);
}

hal_status hal_queue_dispatch(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                              const hal_range *bindings, uint32_t binding_count,
                              const void *scalars, uint32_t scalar_bytes)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        return dispatch_hooked(queue, kernel, grid, bindings, binding_count, scalars,
                               scalar_bytes);
    }
    hal_status status = check_queue(queue, "hal_queue_dispatch");
    if (status == HAL_OK) {
        status = check_dispatch(queue, kernel, grid, bindings, binding_count, scalars,
                                scalar_bytes);
    }
    if (status != HAL_OK) {
        return status;
    }
    if (queue->graph || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
        return keep_dispatch(queue, kernel, grid, bindings, scalars);
    }
    status = hal_queue_make_room(queue);
    return status == HAL_OK ? record_dispatch(queue, kernel, grid, bindings, scalars) : status;
}

hal_status hal_queue_copy(hal_queue *queue, hal_range source, hal_range target)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_copy");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, copy(queue, source, target))
                            : status;
}

hal_status hal_queue_fill(hal_queue *queue, hal_range target, uint32_t pattern)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_fill");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, fill(queue, target, pattern))
               : status;
}
