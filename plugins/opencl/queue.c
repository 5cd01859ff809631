/* Queues: an in-order queue of the driver each. Some batches, or all, have the event of their last
 * command as a mark, see point.c. Entries of the plugin's table. */
#include "opencl_plugin.h"
#include "quirks.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_UNMARKED = 16 }; /* commands between events */

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
        return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for arguments");
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
        status = opencl_command_submit(queue, batch, command, offset, last ? event : NULL);
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

hal_status opencl_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    const hal_status status = opencl_device_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for a queue");
    }
    cl_int error = CL_SUCCESS;
    made->device = device;
    made->commands =
        cl.clCreateCommandQueue(device->context, device->card->device,
                                device->card->profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
    if (!made->commands) {
        free(made);
        return opencl_fail_result(error, "%s: clCreateCommandQueue", device->card->info.name);
    }
    made->marks_all = (device->card->quirks & OPENCL_QUIRK_EVENT_WAIT) != 0;
    made->serial = atomic_fetch_add(&device->serial, 1) + 1;
    pthread_mutex_init(&made->lock, NULL);
    *queue = made;
    return HAL_OK;
}

void opencl_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    opencl_kernel_release_clones(device, queue->serial);
    if (opencl_device_check(device) == HAL_OK) {
        opencl_point_destroy_all(queue);
        if (queue->arguments) {
            cl.clReleaseMemObject(queue->arguments);
        }
        cl.clReleaseCommandQueue(queue->commands);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
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
