/* The commands of a batch as calls of OpenCL. The end of some batches, or of all, has a mark, see
 * point.c.
 *
 * Of shadowed memory (memory.c) copies read and write the host's side; a dispatch or fill uses the
 * copy on the device, which is written before it and read back after it. */
#include "commands.h"

#include "kernel.h"
#include "memory.h"
#include "point.h"
#include "quirks.h"

#include <kit/copy_rows.h>
#include <string.h>

enum { MAX_UNMARKED = 16 }; /* commands between events */

static hal_status check_call(cl_int error, const char *call, const char *object)
{
    return error == CL_SUCCESS ? HAL_OK : opencl_fail_result(error, "%s of %s", call, object);
}

/* Of a call whose effects the program can see: a submit that fails after it loses the device. */
static hal_status check_run(hal_plugin_queue *queue, cl_int error, const char *call,
                            const char *object)
{
    queue->has_run |= error == CL_SUCCESS;
    return check_call(error, call, object);
}

/* The buffer of a binding; of shadowed memory, after the range is written to the device. */
static hal_status binding_upload(hal_plugin_queue *queue, const hal_binding *binding,
                                 cl_mem *buffer)
{
    hal_plugin_memory *memory = binding->memory;
    const hal_status status = opencl_memory_buffer(queue->device, memory, buffer);
    if (status != HAL_OK || !memory->shadowed) {
        return status;
    }
    return check_call(cl.clEnqueueWriteBuffer(queue->commands, *buffer, CL_FALSE, binding->offset,
                                              binding->length, memory->host + binding->offset, 0,
                                              NULL, NULL),
                      "clEnqueueWriteBuffer", "mapped memory");
}

/* Sets only what differs from the clone's last dispatch. */
static hal_status set_arguments(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_command *command, uint64_t argument_offset,
                                opencl_clone *clone)
{
    const hal_plugin_kernel *kernel = command->kernel;
    const hal_binding *bindings = batch->bindings + command->binding_first;
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; i < kernel->binding_count && error == CL_SUCCESS; i++) {
        const hal_binding *binding = &bindings[i];
        const bool used = binding->length > 0;
        const uint64_t serial = used ? binding->memory->serial : 0;
        cl_mem buffer = used ? binding->memory->buffer : NULL;
        if (used && binding->memory->shadowed) {
            HAL_TRY(binding_upload(queue, binding, &buffer));
        }
        if (clone->memories[i] != serial) {
            error = cl.clSetKernelArg(clone->kernel, i, sizeof buffer, &buffer);
            clone->memories[i] = error == CL_SUCCESS ? serial : UINT64_MAX;
        }
    }
    const cl_uint next = kernel->binding_count;
    if (error == CL_SUCCESS && kernel->in_buffer) {
        const cl_ulong place = argument_offset;
        error = cl.clSetKernelArg(clone->kernel, next, sizeof(cl_mem), &queue->arguments);
        if (error == CL_SUCCESS) {
            error = cl.clSetKernelArg(clone->kernel, next + 1, sizeof place, &place);
        }
    } else if (error == CL_SUCCESS && kernel->argument_bytes > 0) {
        uint8_t block[OPENCL_ARGUMENT_BYTES];
        const uint32_t bytes = opencl_kernel_arguments(batch, command, block);
        if (!clone->has_block || memcmp(clone->block, block, bytes) != 0) {
            error = cl.clSetKernelArg(clone->kernel, next, bytes, block);
            clone->has_block = error == CL_SUCCESS;
            memcpy(clone->block, block, bytes);
        }
    }
    return error == CL_SUCCESS ? HAL_OK : check_call(error, "clSetKernelArg", kernel->name);
}

/* Reads the range of shadowed memory back to the host. The event of the read replaces `*event`. */
static hal_status binding_download(hal_plugin_queue *queue, const hal_binding *binding,
                                   cl_event *event)
{
    hal_plugin_memory *memory = binding->memory;
    if (event && *event) {
        cl.clReleaseEvent(*event);
        *event = NULL;
    }
    return check_call(cl.clEnqueueReadBuffer(queue->commands, memory->buffer, CL_FALSE,
                                             binding->offset, binding->length,
                                             memory->host + binding->offset, 0, NULL, event),
                      "clEnqueueReadBuffer", "mapped memory");
}

static hal_status dispatch_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_command *command, uint64_t argument_offset,
                                  cl_event *event)
{
    hal_plugin_kernel *kernel = command->kernel;
    const hal_binding *bindings = batch->bindings + command->binding_first;
    opencl_clone *clone = opencl_kernel_clone(kernel, queue->serial);
    if (!clone) {
        return HAL_ERROR_OUT_OF_MEMORY; /* the host has the message */
    }
    HAL_TRY(set_arguments(queue, batch, command, argument_offset, clone));
    const size_t global[3] = {command->grid[0] * kernel->group[0],
                              command->grid[1] * kernel->group[1],
                              command->grid[2] * kernel->group[2]};
    const cl_uint dimensions = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    const cl_int error = cl.clEnqueueNDRangeKernel(queue->commands, clone->kernel, dimensions, NULL,
                                                   global, kernel->group, 0, NULL, event);
    hal_status status = check_run(queue, error, "clEnqueueNDRangeKernel", kernel->name);
    for (uint32_t i = 0; i < kernel->binding_count && status == HAL_OK; i++) {
        const hal_binding *binding = &bindings[i];
        if (binding->length > 0 && binding->memory->shadowed &&
            (binding->access & HAL_ACCESS_WRITE)) {
            status = binding_download(queue, binding, event);
        }
    }
    return status;
}

static hal_status copy_submit(hal_plugin_queue *queue, const hal_binding *bindings, cl_event *event)
{
    const hal_binding *from = &bindings[0], *to = &bindings[1];
    const size_t bytes = from->length;
    cl_mem source = NULL, target = NULL;
    if (bytes == 0) {
        return HAL_OK;
    }
    if (!from->memory->shadowed && to->memory->shadowed) {
        return check_run(queue,
                         cl.clEnqueueReadBuffer(queue->commands, from->memory->buffer, CL_FALSE,
                                                from->offset, bytes, to->memory->host + to->offset,
                                                0, NULL, event),
                         "clEnqueueReadBuffer", "a copy");
    }
    if (from->memory->shadowed && !to->memory->shadowed) {
        return check_run(queue,
                         cl.clEnqueueWriteBuffer(queue->commands, to->memory->buffer, CL_FALSE,
                                                 to->offset, bytes,
                                                 from->memory->host + from->offset, 0, NULL, event),
                         "clEnqueueWriteBuffer", "a copy");
    }
    hal_status status = binding_upload(queue, from, &source);
    if (status == HAL_OK) {
        status = opencl_memory_buffer(queue->device, to->memory, &target);
    }
    if (status == HAL_OK) {
        status = check_run(queue,
                           cl.clEnqueueCopyBuffer(queue->commands, source, target, from->offset,
                                                  to->offset, bytes, 0, NULL, event),
                           "clEnqueueCopyBuffer", "a copy");
    }
    if (status == HAL_OK && to->memory->shadowed) {
        status = binding_download(queue, to, event);
    }
    return status;
}

/* A row at a time, where the host's side takes part. */
static hal_status rows_submit_each(hal_plugin_queue *queue, const hal_binding *bindings,
                                   const hal_plugin_copy_rows *rows, cl_event *event)
{
    const uint64_t count = kit_copy_rows_count(rows);
    hal_status status = HAL_OK;
    for (uint64_t i = 0; i < count && status == HAL_OK; i++) {
        hal_binding row[2] = {bindings[0], bindings[1]};
        row[0].offset += kit_copy_rows_source(rows, i);
        row[1].offset += kit_copy_rows_target(rows, i);
        row[0].length = row[1].length = rows->row_bytes;
        status = copy_submit(queue, row, i + 1 == count ? event : NULL);
    }
    return status;
}

/* A slice at a time: the driver takes only slices that are whole numbers of rows. Rows that lie far
 * apart are refused by some (NVIDIA's, 64 MiB), and copied one by one. */
static hal_status rows_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command, cl_event *event)
{
    const hal_binding *from = batch->bindings + command->binding_first, *to = from + 1;
    const hal_plugin_copy_rows rows = kit_copy_rows_read(batch, command);
    const size_t region[3] = {rows.row_bytes, rows.rows, 1};
    if (from->memory->shadowed || to->memory->shadowed) {
        return rows_submit_each(queue, from, &rows, event);
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < rows.slices && status == HAL_OK; i++) {
        const uint64_t source = from->offset + i * rows.source_slice,
                       target = to->offset + i * rows.target_slice;
        const size_t origins[2][3] = {{source % rows.source_pitch, source / rows.source_pitch, 0},
                                      {target % rows.target_pitch, target / rows.target_pitch, 0}};
        const cl_int result = cl.clEnqueueCopyBufferRect(
            queue->commands, from->memory->buffer, to->memory->buffer, origins[0], origins[1],
            region, rows.source_pitch, 0, rows.target_pitch, 0, 0, NULL,
            i + 1 == rows.slices ? event : NULL);
        if (result == CL_INVALID_VALUE) {
            return rows_submit_each(queue, from, &rows, event);
        }
        status = check_run(queue, result, "clEnqueueCopyBufferRect", "a copy of rows");
    }
    return status;
}

/* Bytes of a part, and what its beginning is a multiple of: at least any device's alignment. */
#define FILL_PART_BYTES (UINT64_C(1) << 30)
#define FILL_PART_ALIGNMENT UINT64_C(4096)

/* A fill by parts of the buffer, for drivers whose own count does not reach its place. */
static hal_status fill_by_parts(hal_plugin_queue *queue, cl_mem target, const hal_binding *binding,
                                const void *pattern, uint32_t pattern_bytes, cl_event *event)
{
    const uint64_t end = binding->offset + binding->length;
    cl_int error = CL_SUCCESS;
    for (uint64_t at = binding->offset; at < end && error == CL_SUCCESS;) {
        const uint64_t bytes = end - at < FILL_PART_BYTES ? end - at : FILL_PART_BYTES;
        const uint64_t inside = at % FILL_PART_ALIGNMENT;
        const cl_buffer_region region = {at - inside, inside + bytes};
        cl_mem part = cl.clCreateSubBuffer(target, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                           &region, &error);
        if (error != CL_SUCCESS) {
            return check_call(error, "clCreateSubBuffer", "a fill");
        }
        at += bytes;
        error = cl.clEnqueueFillBuffer(queue->commands, part, pattern, pattern_bytes, inside, bytes,
                                       0, NULL, at == end ? event : NULL);
        cl.clReleaseMemObject(part); /* the driver keeps it until the fill has ended */
    }
    return check_run(queue, error, "clEnqueueFillBuffer", "a fill");
}

static hal_status fill_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command, cl_event *event)
{
    const hal_binding *binding = batch->bindings + command->binding_first;
    cl_mem target = NULL;
    if (binding->length == 0) {
        return HAL_OK;
    }
    hal_status status = opencl_memory_buffer(queue->device, binding->memory, &target);
    const uint8_t *pattern = batch->scalars + command->scalar_first;
    const uint64_t patterns = (binding->offset + binding->length) / command->scalar_bytes;
    if (status == HAL_OK && patterns > INT32_MAX &&
        (queue->device->card->quirks & OPENCL_QUIRK_WRONG_FILLS)) {
        status = fill_by_parts(queue, target, binding, pattern, command->scalar_bytes, event);
    } else if (status == HAL_OK) {
        status = check_run(queue,
                           cl.clEnqueueFillBuffer(queue->commands, target, pattern,
                                                  command->scalar_bytes, binding->offset,
                                                  binding->length, 0, NULL, event),
                           "clEnqueueFillBuffer", "a fill");
    }
    if (status == HAL_OK && binding->memory->shadowed) {
        status = binding_download(queue, binding, event);
    }
    return status;
}

/* Submits one command to the driver's queue, and sets has_run. `event`, if not null, is set to that
 * of the last call. */
static hal_status command_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_command *command, uint64_t argument_offset,
                                 cl_event *event)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        return dispatch_submit(queue, batch, command, argument_offset, event);
    case HAL_COMMAND_COPY:
        return copy_submit(queue, bindings, event);
    case HAL_COMMAND_COPY_ROWS:
        return rows_submit(queue, batch, command, event);
    case HAL_COMMAND_FILL:
        return fill_submit(queue, batch, command, event);
    default:
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "opencl: submit: command: expected a dispatch, copy or fill, got kind %u",
                        command->kind);
    }
}

/* Writes the argument blocks of kernels that read them from a buffer. The queue is in order, so the
 * kernels of earlier batches have read the blocks that this overwrites. */
static hal_status stage_arguments(hal_plugin_queue *queue, const hal_batch *batch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->in_buffer) {
            bytes += OPENCL_ARGUMENT_BYTES;
        }
    }
    if (bytes == 0) {
        return HAL_OK;
    }
    cl_int error = CL_SUCCESS;
    if (bytes > queue->argument_capacity) {
        cl_mem larger =
            cl.clCreateBuffer(queue->device->context, CL_MEM_READ_ONLY, 2 * bytes, NULL, &error);
        if (!larger) {
            return opencl_fail_result(error, "%llu bytes for the arguments of a batch",
                                      (unsigned long long)(2 * bytes));
        }
        if (queue->arguments) {
            cl.clReleaseMemObject(queue->arguments);
        }
        queue->arguments = larger;
        queue->argument_capacity = 2 * bytes;
    }
    uint8_t *blocks = calloc(1, bytes);
    if (!blocks) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for arguments");
    }
    uint8_t *at = blocks;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->in_buffer) {
            opencl_kernel_arguments(batch, command, at);
            at += OPENCL_ARGUMENT_BYTES;
        }
    }
    error = cl.clEnqueueWriteBuffer(queue->commands, queue->arguments, CL_TRUE, 0, bytes, blocks, 0,
                                    NULL, NULL);
    free(blocks);
    return error == CL_SUCCESS ? HAL_OK
                               : opencl_fail_result(error, "clEnqueueWriteBuffer of arguments");
}

static bool batch_has_copies(const hal_batch *batch)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        if (batch->commands[i].kind != HAL_COMMAND_DISPATCH) {
            return true;
        }
    }
    return false;
}

/* Whether the end of a batch has an event. Without profiling, of many small batches one now and
 * then has it, until the program waits for one that has none and is not the newest. The end of
 * copies gets a marker when more work follows, as programs wait for pieces of a transfer while the
 * queue has others. */
static bool batch_is_marked(hal_plugin_queue *queue, const hal_batch *batch)
{
    queue->unmarked += batch->command_count;
    const bool marked = queue->device->card->profiling || queue->unmarked >= MAX_UNMARKED ||
                        atomic_load_explicit(&queue->marks_all, memory_order_relaxed);
    queue->unmarked = marked ? 0 : queue->unmarked;
    queue->unmarked_copies = !marked && batch_has_copies(batch);
    return marked;
}

/* Sets `*event`, if not null, to that of the last command. */
static hal_status batch_submit(hal_plugin_queue *queue, const hal_batch *batch, cl_event *event)
{
    uint64_t offset = 0;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK; i++) {
        const hal_command *command = &batch->commands[i];
        const bool last = i + 1 == batch->command_count;
        status = command_submit(queue, batch, command, offset, last ? event : NULL);
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->in_buffer) {
            offset += OPENCL_ARGUMENT_BYTES;
        }
    }
    return status;
}

/* Of a batch that failed after a command of it may have run. Its commands end before their memory
 * is freed. The host has the message. */
static hal_status fail_in_part(hal_plugin_queue *queue)
{
    cl.clFinish(queue->commands);
    atomic_store(&queue->device->lost, true);
    return HAL_ERROR_DEVICE_LOST;
}

void opencl_queue_fail_next(hal_plugin_queue *queue)
{
    queue->fails_next = true;
}

hal_status opencl_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    cl_event event = NULL;
    hal_status status = opencl_device_check(queue->device);
    if (status == HAL_OK) {
        status = opencl_device_check_lost(queue->device);
    }
    if (status == HAL_OK && queue->unmarked_copies) {
        status = opencl_point_mark(queue);
    }
    const bool marked = batch_is_marked(queue, batch);
    queue->has_run = false;
    if (status == HAL_OK && wait_count > 0) {
        status = opencl_point_follow(queue, waits, wait_count);
    }
    if (status == HAL_OK) {
        status = stage_arguments(queue, batch);
    }
    if (status == HAL_OK) {
        status = batch_submit(queue, batch, marked ? &event : NULL);
    }
    if (status == HAL_OK && marked && !event) {
        const cl_int error = cl.clEnqueueMarkerWithWaitList(queue->commands, 0, NULL, &event);
        if (error != CL_SUCCESS) {
            status = opencl_fail_result(error, "clEnqueueMarkerWithWaitList");
        }
    }
    if (status == HAL_OK) {
        if (queue->fails_next) {
            atomic_store(&queue->fails_from, value);
            queue->fails_next = false;
        }
        status = opencl_point_add(queue, value, event);
    }
    if (status != HAL_OK && queue->has_run) {
        return fail_in_part(queue);
    }
    if (!(queue->device->card->quirks & OPENCL_QUIRK_EAGER)) {
        opencl_point_flush(queue);
    }
    return status;
}
