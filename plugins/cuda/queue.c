/* Queues: streams, and how a batch gets onto one. Entries of the plugin's table. A stream keeps the
 * order of what it is given, so HAL_COMMAND_BARRIER needs nothing further. */
#include "chain.h"

#include <stdlib.h>
#include <string.h>

enum { IDLE_STREAMS = 8 };

typedef struct idle_streams {
    cuda_stream streams[IDLE_STREAMS];
    uint32_t count;
} idle_streams;

static idle_streams streams[CUDA_MOST_DEVICES];
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;

/* Streams that stay with the process: a new one is slow at its first copies. */
static hal_status take_stream(const hal_plugin_device *device, cuda_stream *stream)
{
    idle_streams *idle = &streams[device->device];
    *stream = NULL;
    pthread_mutex_lock(&streams_lock);
    if (idle->count > 0) {
        *stream = idle->streams[--idle->count];
    }
    pthread_mutex_unlock(&streams_lock);
    return *stream != NULL
               ? HAL_OK
               : cuda_failed(cuda_functions()->cuStreamCreate(stream, CUDA_STREAM_NON_BLOCKING),
                             "making a stream");
}

static hal_status begin(hal_plugin_queue *queue)
{
    const hal_status status = take_stream(queue->device, &queue->stream);
    return status == HAL_OK ? cuda_point_begin(queue) : status;
}

static void give_stream(const hal_plugin_device *device, cuda_stream stream)
{
    idle_streams *idle = &streams[device->device];
    pthread_mutex_lock(&streams_lock);
    const bool kept = stream != NULL && idle->count < IDLE_STREAMS;
    if (kept) {
        idle->streams[idle->count++] = stream;
    }
    pthread_mutex_unlock(&streams_lock);
    if (stream != NULL && !kept) {
        cuda_functions()->cuStreamDestroy_v2(stream);
    }
}

/* Dispatches that follow one another from a command on. */
static uint32_t count_dispatches(const hal_batch *batch, uint32_t first)
{
    uint32_t count = 0;
    while (count < CUDA_CHAIN_MOST && first + count < batch->command_count &&
           batch->commands[first + count].kind == HAL_COMMAND_DISPATCH) {
        count++;
    }
    return count;
}

static hal_status launch(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_command *command)
{
    uint8_t block[CUDA_MAX_PARAMETERS];
    const hal_plugin_kernel *kernel = command->kernel;
    size_t bytes = cuda_fill_block(batch, command, block);
    void *parameters[5] = {CUDA_LAUNCH_BUFFER, block, CUDA_LAUNCH_SIZE, &bytes, CUDA_LAUNCH_END};
    return cuda_failed(cuda_functions()->cuLaunchKernel(
                           kernel->function, command->grid[0], command->grid[1], command->grid[2],
                           kernel->group[0], kernel->group[1], kernel->group[2],
                           kernel->dynamic_shared, queue->stream, NULL, parameters),
                       "launching a kernel of %u x %u x %u groups", command->grid[0],
                       command->grid[1], command->grid[2]);
}

/* As a chain where that pays; without room for one, one by one. */
static hal_status run_dispatches(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_command *commands, uint32_t count)
{
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (count >= queue->device->chain_from) {
        status = cuda_chain_run(queue, batch, commands, count);
    }
    if (status != HAL_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    status = HAL_OK;
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        status = launch(queue, batch, &commands[i]);
    }
    return status;
}

/* Pinned memory belongs to all devices alike. */
static hal_status copy(hal_plugin_queue *queue, const hal_binding *bindings)
{
    const cuda_driver *cu = cuda_functions();
    const hal_binding *from = &bindings[0], *to = &bindings[1];
    if (from->length == 0) {
        return HAL_OK;
    }
    const cuda_address source = from->memory->address + from->offset,
                       target = to->memory->address + to->offset;
    const hal_plugin_device *here = from->memory->device, *there = to->memory->device;
    if (here != there && from->memory->pointer == NULL && to->memory->pointer == NULL) {
        return cuda_failed(cu->cuMemcpyPeerAsync(target, there->context, source, here->context,
                                                 from->length, queue->stream),
                           "copying %llu bytes from device %d to device %d",
                           (unsigned long long)from->length, here->device, there->device);
    }
    return cuda_failed(cu->cuMemcpyAsync(target, source, from->length, queue->stream),
                       "copying %llu bytes", (unsigned long long)from->length);
}

static hal_status fill_bytes(hal_plugin_queue *queue, cuda_address to, uint32_t pattern,
                             uint64_t count)
{
    hal_status status = HAL_OK;
    for (uint64_t i = 0; i < count && status == HAL_OK; i++) {
        status = cuda_failed(cuda_functions()->cuMemsetD8Async(
                                 to + i, (unsigned char)(pattern >> 8 * i), 1, queue->stream),
                             "filling a byte");
    }
    return status;
}

/* Words of the pattern between bytes of it at both ends, where the target is not aligned. */
static hal_status fill(hal_plugin_queue *queue, const hal_binding *target, uint32_t pattern)
{
    const cuda_driver *cu = cuda_functions();
    uint64_t left = target->length;
    if (left == 0) {
        return HAL_OK;
    }
    cuda_address to = target->memory->address + target->offset;
    if ((pattern & 0xff) * 0x01010101u == pattern) {
        return cuda_failed(cu->cuMemsetD8Async(to, (unsigned char)pattern, left, queue->stream),
                           "filling %llu bytes", (unsigned long long)left);
    }
    const uint64_t head = (4 - to % 4) % 4 < left ? (4 - to % 4) % 4 : left;
    hal_status status = fill_bytes(queue, to, pattern, head);
    const uint32_t turn = 8 * (uint32_t)head;
    pattern = turn ? pattern >> turn | pattern << (32 - turn) : pattern;
    to += head;
    left -= head;
    if (status == HAL_OK && left >= 4) {
        status = cuda_failed(cu->cuMemsetD32Async(to, pattern, left / 4, queue->stream),
                             "filling %llu bytes", (unsigned long long)left);
    }
    return status == HAL_OK ? fill_bytes(queue, to + left / 4 * 4, pattern, left % 4) : status;
}

static hal_status run(hal_plugin_queue *queue, const hal_batch *batch)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK;) {
        const hal_command *command = &batch->commands[i];
        uint32_t dispatches = count_dispatches(batch, i);
        if (dispatches > 0) {
            dispatches = cuda_chain_piece(queue, batch, command, dispatches);
            status = run_dispatches(queue, batch, command, dispatches);
            i += dispatches;
            continue;
        }
        const hal_binding *bindings = batch->bindings + command->binding_first;
        if (command->kind == HAL_COMMAND_COPY) {
            status = copy(queue, bindings);
        } else if (command->kind == HAL_COMMAND_FILL) {
            status = fill(queue, bindings, command->pattern);
        } else {
            status = cuda_fail(HAL_ERROR_UNSUPPORTED, "cuda queue: command of unknown kind %u",
                               (unsigned)command->kind);
        }
        i++;
    }
    return status;
}

hal_status cuda_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return cuda_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a queue");
    }
    made->device = device;
    hal_status status = cuda_enter(device);
    if (status == HAL_OK) {
        status = begin(made);
        cuda_leave();
    }
    if (status != HAL_OK) {
        cuda_queue_destroy(device, made);
        return status;
    }
    *queue = made;
    return HAL_OK;
}

void cuda_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    if (cuda_enter(device) == HAL_OK) {
        if (queue->stream != NULL) {
            /* A batch counts as done a moment before the event behind it. */
            cuda_functions()->cuStreamSynchronize(queue->stream);
        }
        cuda_chain_end(queue);
        cuda_point_end(queue);
        give_stream(device, queue->stream);
        cuda_leave();
    }
    free(queue);
}

hal_status cuda_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = cuda_enter(queue->device);
    if (status != HAL_OK) {
        return status;
    }
    status = cuda_point_prepare(queue, value);
    if (status == HAL_OK) {
        status = cuda_point_await(queue, waits, wait_count);
    }
    if (status == HAL_OK) {
        status = run(queue, batch);
        status = status == HAL_OK ? cuda_point_make(queue, value) : status;
        if (status != HAL_OK) {
            /* No point will cover what of the batch was begun: it ends before its memory may go. */
            cuda_functions()->cuStreamSynchronize(queue->stream);
        }
    }
    cuda_leave();
    return status;
}

uint32_t cuda_fill_block(const hal_batch *batch, const hal_command *command, uint8_t *block)
{
    const hal_plugin_kernel *kernel = command->kernel;
    const hal_binding *bindings = batch->bindings + command->binding_first;
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        const cuda_address address =
            bindings[i].memory != NULL ? bindings[i].memory->address + bindings[i].offset : 0;
        memcpy(block + 8 * i, &address, 8);
    }
    memcpy(block + 8 * kernel->binding_count, batch->scalars + command->scalar_first,
           kernel->scalar_bytes);
    return kernel->parameter_bytes;
}

void cuda_forget_streams(const hal_plugin_device *device)
{
    pthread_mutex_lock(&streams_lock);
    streams[device->device].count = 0; /* they go with the context */
    pthread_mutex_unlock(&streams_lock);
}
