/* Fences of others: timeline semaphores of another API of the same GPU, by a descriptor, and
 * external semaphores of the context. The driver exports none. */
#include "fence.h"

#include <stdlib.h>

struct hal_plugin_fence {
    cuda_semaphore semaphore;
    bool is_native;  /* another owner's */
    cuda_event last; /* after the last value that was asked for; or null */
};

hal_status cuda_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                           uint32_t *export_kinds)
{
    (void)device;
    const cuda_driver *cu = cuda_functions();
    const bool has = cu->cuImportExternalSemaphore && cu->cuDestroyExternalSemaphore &&
                     cu->cuWaitExternalSemaphoresAsync && cu->cuSignalExternalSemaphoresAsync;
    *import_kinds =
        has ? HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) | HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD) : 0;
    *export_kinds = 0;
    return HAL_OK;
}

/* The driver owns the descriptor once it has imported it. */
static hal_status descriptor_import(hal_plugin_device *device, hal_plugin_fence *fence,
                                    int descriptor)
{
    const cuda_semaphore_handle shared = {.kind = CUDA_SHARED_TIMELINE_FD,
                                          .handle = {.descriptor = descriptor}};
    HAL_TRY(cuda_context_push(device));
    const cuda_result result =
        cuda_functions()->cuImportExternalSemaphore(&fence->semaphore, &shared);
    cuda_context_pop();
    return result == 0 ? HAL_OK
                       : kit_fail(HAL_ERROR_UNSUPPORTED,
                                  "cuda: fence_import: the driver refuses the descriptor %d of a "
                                  "timeline semaphore (result %d)",
                                  descriptor, (int)result);
}

hal_status cuda_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                             hal_plugin_fence **fence)
{
    *fence = NULL;
    hal_plugin_fence *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a fence");
    }
    made->is_native = kind == HAL_HANDLE_NATIVE;
    hal_status status = HAL_OK;
    if (made->is_native) {
        made->semaphore = (cuda_semaphore)(uintptr_t)handle;
    } else {
        status = descriptor_import(device, made, (int)handle);
    }
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *fence = made;
    return HAL_OK;
}

void cuda_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence)
{
    const cuda_driver *cu = cuda_functions();
    if (cuda_context_push(device) == HAL_OK) {
        if (fence->last) {
            cu->cuEventSynchronize(fence->last);
            cu->cuEventDestroy_v2(fence->last);
        }
        if (!fence->is_native) {
            cu->cuDestroyExternalSemaphore(fence->semaphore);
        }
        cuda_context_pop();
    }
    free(fence);
}

hal_status cuda_fence_follow(hal_plugin_queue *queue, hal_plugin_fence *fence, uint64_t value)
{
    const cuda_semaphore_value at = {.value = value};
    return cuda_check(
        cuda_functions()->cuWaitExternalSemaphoresAsync(&fence->semaphore, &at, 1, queue->stream),
        "waiting for a fence");
}

hal_status cuda_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence, uint64_t value)
{
    const cuda_driver *cu = cuda_functions();
    const cuda_semaphore_value at = {.value = value};
    HAL_TRY(cuda_context_push(queue->device));
    cuda_result result = fence->last ? 0 : cu->cuEventCreate(&fence->last, CUDA_EVENT_UNTIMED);
    if (result == 0) {
        result = cu->cuSignalExternalSemaphoresAsync(&fence->semaphore, &at, 1, queue->stream);
    }
    if (result == 0) {
        result = cu->cuEventRecord(fence->last, queue->stream);
    }
    cuda_context_pop();
    return cuda_check(result, "raising a fence");
}
