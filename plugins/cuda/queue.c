/* Queues: a stream each, with its points and chains. Entries of the plugin's table. */
#include "chain/chain.h"
#include "gemm/tile/fma.h"
#include "gemm/launch.h"

#include <stdlib.h>

/* The flags of strict F32 products (gemm/fma.h), which are 0 between kernels. */
static hal_status flags_create(hal_plugin_queue *queue)
{
    const cuda_driver *cu = cuda_functions();
    const size_t words = CUDA_FMA_MAX_GROUPS;
    if (queue->device->capability != 90) {
        return HAL_OK;
    }
    const hal_status status =
        cuda_check(cu->cuMemAlloc_v2(&queue->flags, 4 * words), "creating the flags of a queue");
    return status == HAL_OK
               ? cuda_check(cu->cuMemsetD32Async(queue->flags, 0, words, queue->stream),
                            "clearing the flags of a queue")
               : status;
}

/* The memory in which kernels add parts of matrix products (gemm/end/partial.h): words of tiles, 0
 * between kernels, and the sums of as many groups as the device has multiprocessors. */
static hal_status parts_create(hal_plugin_queue *queue)
{
    const cuda_driver *cu = cuda_functions();
    const size_t words = 4 * CUDA_GEMM_STATES,
                 bytes = words + (size_t)queue->device->units * CUDA_GEMM_MAX_SUMS;
    cuda_address parts = 0;
    hal_status status = cuda_check(cu->cuMemAlloc_v2(&parts, bytes),
                                   "allocating %zu bytes for parts of products", bytes);
    if (status != HAL_OK) {
        return status;
    }
    status = cuda_check(cu->cuMemsetD8Async(parts, 0, words, queue->stream),
                        "clearing the words of parts of products");
    if (status != HAL_OK) {
        cu->cuMemFree_v2(parts);
        return status;
    }
    queue->parts = parts;
    return HAL_OK;
}

/* Whether the queue lacks the memory of parts and the batch has a kernel that uses it. */
static bool batch_needs_parts(const hal_plugin_queue *queue, const hal_batch *batch)
{
    if (queue->parts != 0 || !atomic_load(&queue->device->needs_parts)) {
        return false;
    }
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->gemm &&
            command->kernel->gemm->in_memory) {
            return true;
        }
    }
    return false;
}

hal_status cuda_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = NULL;
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return cuda_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a queue");
    }
    made->device = device;
    atomic_init(&made->awaited, true);
    pthread_mutex_init(&made->point_lock, NULL);
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK) {
        status = cuda_stream_acquire(device, &made->stream);
        status = status == HAL_OK ? cuda_point_create(made) : status;
        status = status == HAL_OK ? flags_create(made) : status;
        cuda_context_pop();
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
    if (!queue) {
        return;
    }
    cuda_group_forget_queue(queue);
    if (cuda_context_push(device) == HAL_OK) {
        if (queue->stream) {
            /* The value of a batch is reached a moment before its event is recorded. */
            cuda_functions()->cuStreamSynchronize(queue->stream);
        }
        cuda_chain_destroy_all(queue);
        cuda_point_destroy(queue);
        if (queue->flags != 0) {
            cuda_functions()->cuMemFree_v2(queue->flags);
        }
        if (queue->parts != 0) {
            cuda_functions()->cuMemFree_v2(queue->parts);
        }
        cuda_stream_release(device, queue->stream);
        cuda_context_pop();
    }
    pthread_mutex_destroy(&queue->point_lock);
    free(queue);
}

static bool batch_is_collective(const hal_batch *batch)
{
    return batch->command_count == 1 && batch->commands[0].kind == HAL_COMMAND_COLLECTIVE;
}

hal_status cuda_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = cuda_context_push(queue->device);
    if (status != HAL_OK) {
        return status;
    }
    status = cuda_point_prepare(queue, batch, value);
    if (status == HAL_OK) {
        status = cuda_point_follow(queue, waits, wait_count);
    }
    if (status == HAL_OK && batch_needs_parts(queue, batch)) {
        status = parts_create(queue);
    }
    if (status == HAL_OK && batch_is_collective(batch)) {
        status = cuda_group_submit(queue, batch, value);
    } else if (status == HAL_OK) {
        status = cuda_commands_submit(queue, batch);
        status = status == HAL_OK ? cuda_point_submit(queue, value) : status;
        if (status != HAL_OK) {
            /* The commands submitted so far have no point: they end before their memory is
             * freed. */
            cuda_functions()->cuStreamSynchronize(queue->stream);
        }
    }
    cuda_context_pop();
    return status;
}
