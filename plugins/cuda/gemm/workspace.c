/* Memory of a queue for native matrix products, see gemm/workspace.h. */
#include "gemm/workspace.h"

#include "gemm/tile/fma.h"

/* The flags of strict F32 products (gemm/fma.h), which are 0 between kernels. */
hal_status cuda_gemm_flags_create(hal_plugin_queue *queue)
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
hal_status cuda_gemm_parts_create(hal_plugin_queue *queue)
{
    const cuda_driver *cu = cuda_functions();
    const size_t words = 4 * CUDA_GEMM_STATES,
                 bytes = words + (size_t)queue->device->units * CUDA_GEMM_MAX_SUMS;
    cuda_address parts = 0;
    HAL_TRY(cuda_check(cu->cuMemAlloc_v2(&parts, bytes),
                       "allocating %zu bytes for parts of products", bytes));
    const hal_status status = cuda_check(cu->cuMemsetD8Async(parts, 0, words, queue->stream),
                                         "clearing the words of parts of products");
    if (status != HAL_OK) {
        cu->cuMemFree_v2(parts);
        return status;
    }
    queue->parts = parts;
    return HAL_OK;
}
