/* The cuda plugin's table and its one symbol. */
#include "cuda_plugin.h"
#include "gemm/gemm.h"
#include "collectives/nccl.h"

#include <kit/query.h>

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    static hal_plugin table = {
        .size = sizeof(hal_plugin),
        .abi = HAL_PLUGIN_ABI,
        .name = "cuda",
        .version = "0.1.0",
        .enumerate = cuda_enumerate,
        .device_open = cuda_device_open,
        .device_close = cuda_device_close,
        .memory_info = cuda_memory_info,
        .memory_allocate = cuda_memory_allocate,
        .memory_free = cuda_memory_free,
        .memory_map = cuda_memory_map,
        .kernel_create = cuda_kernel_create,
        .kernel_destroy = cuda_kernel_destroy,
        .queue_create = cuda_queue_create,
        .queue_destroy = cuda_queue_destroy,
        .submit = cuda_queue_submit,
        .wait = cuda_queue_wait,
        .queue_elapsed = cuda_queue_elapsed,
        .formats = "ptx,cubin",
        .kernel_create_native = cuda_kernel_create_native,
        .gemm = cuda_gemm,
        .device_can_access_peer = cuda_device_can_access_peer,
        .group_engine = cuda_group_engine,
        .group_id = cuda_group_id,
        .group_create = cuda_group_create,
        .group_poll = cuda_group_poll,
        .group_abort = cuda_group_abort,
        .group_destroy = cuda_group_destroy,
    };
    return kit_plugin_query(&table, host_abi, host, cuda_set_host);
}
