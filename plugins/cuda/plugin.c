/* The cuda plugin's table and its one symbol. */
#include "chain/chain.h"
#include "collectives/comm.h"
#include "collectives/nccl.h"
#include "commands.h"
#include "describe.h"
#include "external.h"
#include "fence.h"
#include "attention/attention.h"
#include "gemm/gemm.h"
#include "gemm/variables.h"
#include "gemm/workspace.h"
#include "modules.h"
#include "kernel.h"
#include "memory.h"
#include "pinned.h"
#include "point.h"
#include "stream.h"
#include "virtual.h"

#include <kit/plugin.h>

static hal_status device_open(uint32_t index, hal_plugin_device **device)
{
    HAL_TRY(cuda_device_open(index, device));
    const hal_status status = cuda_gemm_read_variables(*device);
    if (status != HAL_OK) {
        cuda_device_close(*device, false);
        *device = NULL;
    }
    return status;
}

/* What the folders keep for a device goes before the device. */
static void device_close(hal_plugin_device *device)
{
    uint64_t available = 0, total = 0;
    if (!device) {
        return;
    }
    const bool lost = cuda_memory_info(device, &available, &total) == HAL_ERROR_DEVICE_LOST;
    cuda_modules_forget(device, lost);
    if (cuda_device_gives_up(device, lost)) {
        cuda_pinned_forget(device);
        cuda_stream_forget(device);
    }
    cuda_device_close(device, lost);
}

/* The same of a queue. Its stream ends first: the value of a batch is reached a moment before its
 * event is recorded. */
static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    cuda_comm_forget_queue(queue);
    if (cuda_context_push(device) == HAL_OK) {
        cuda_functions()->cuStreamSynchronize(queue->stream);
        cuda_chain_destroy_all(queue);
        cuda_context_pop();
    }
    cuda_queue_destroy(device, queue);
}

static hal_status queue_make(hal_plugin_device *device, cuda_stream imported,
                             hal_plugin_queue **queue)
{
    HAL_TRY(cuda_queue_create(device, imported, queue));
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK) {
        status = cuda_gemm_flags_create(*queue);
        cuda_context_pop();
    }
    if (status != HAL_OK) {
        queue_destroy(device, *queue);
        *queue = NULL;
    }
    return status;
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    return queue_make(device, NULL, queue);
}

static hal_status queue_import(hal_plugin_device *device, const char *type, uint64_t handle,
                               hal_plugin_queue **queue)
{
    cuda_stream stream = NULL;
    HAL_TRY(cuda_native_stream(type, handle, &stream));
    return queue_make(device, stream, queue);
}

static kit_plugin plugin = {
    .table = {.name = "cuda",
              .version = "0.1.0",
              .device_close = device_close,
              .memory_allocate = cuda_memory_allocate,
              .memory_free = cuda_memory_free,
              .memory_map = cuda_memory_map,
              .kernel_create = cuda_kernel_create,
              .kernel_destroy = cuda_kernel_destroy,
              .queue_create = queue_create,
              .queue_destroy = queue_destroy,
              .submit = cuda_queue_submit,
              .wait = cuda_queue_wait},
    .enumerate = cuda_enumerate,
    .device_open = device_open,
    .memory_info = {.memory_info = cuda_memory_info},
    .handles = {.device_handle = cuda_device_handle,
                .queue_handle = cuda_queue_handle,
                .kernel_handle = cuda_kernel_handle},
    .native_queues = {.queue_import = queue_import,
                      .queue_wait_native = cuda_queue_wait_native,
                      .queue_block_native = cuda_queue_block_native},
    .external = {.external_info = cuda_external_info,
                 .memory_import = cuda_memory_import,
                 .memory_export = cuda_memory_export},
    .reports = {.kernel_report = cuda_kernel_report},
    .quirks = {.device_quirk = cuda_device_quirk},
    .virtual_memory = {.part_bytes = cuda_part_bytes,
                       .memory_reserve = cuda_memory_reserve,
                       .memory_commit = cuda_memory_commit,
                       .memory_decommit = cuda_memory_decommit,
                       .memory_protect = cuda_memory_protect},
    .fences = {.fence_info = cuda_fence_info,
               .fence_import = cuda_fence_import,
               .fence_destroy = cuda_fence_destroy,
               .queue_signal_fence = cuda_queue_signal_fence},
    .faults = {.queue_fail_next = cuda_queue_fail_next},
    .timing = {.queue_elapsed = cuda_queue_elapsed},
    .native = {.formats = "ptx,cubin", .kernel_create_native = cuda_kernel_create_native},
    .gemm = {.gemm = cuda_gemm,
             .gemm_estimate = cuda_gemm_estimate,
             .gemm_workspace = cuda_gemm_workspace},
    .attention = {.attention = cuda_attention},
    .peers = {.device_can_access_peer = cuda_device_can_access_peer},
    .collectives = {.comm_backend = cuda_comm_backend,
                    .comm_id = cuda_comm_id,
                    .comm_create = cuda_comm_create,
                    .comm_poll = cuda_comm_poll,
                    .comm_abort = cuda_comm_abort,
                    .comm_destroy = cuda_comm_destroy},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return kit_plugin_create(&plugin, host_abi, host, instance);
}
