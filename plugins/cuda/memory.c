/* Memory: the device's own, and the host's, pinned and seen by kernels, for all mapped kinds.
 * Entries of the plugin's table. hal keeps what it frees in a pool, so these calls are rare. */
#include "pinned.h"

#include <stdlib.h>

hal_status cuda_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t left = 0, total = 0;
    hal_status status = cuda_enter(device);
    if (status == HAL_OK) {
        status =
            cuda_failed(cuda_functions()->cuMemGetInfo_v2(&left, &total), "asking for free memory");
        cuda_leave();
    }
    *free_bytes = left;
    *total_bytes = total;
    return status;
}

hal_status cuda_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                hal_plugin_memory **memory)
{
    const cuda_driver *cu = cuda_functions();
    hal_plugin_memory *made = calloc(1, sizeof *made);
    *memory = NULL;
    if (made == NULL) {
        return cuda_fail(HAL_ERROR_OUT_OF_MEMORY,
                         "cuda: no host memory for the description of an allocation");
    }
    made->device = device;
    made->bytes = bytes;
    hal_status status = cuda_enter(device);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    const char *where = kind == HAL_MEMORY_DEVICE ? "the device" : "pinned host memory";
    cuda_result result;
    if (kind == HAL_MEMORY_DEVICE) {
        result = cu->cuMemAlloc_v2(&made->address, bytes);
    } else {
        result = cuda_pin(device, bytes, &made->pointer, &made->address);
    }
    cuda_leave();
    status = cuda_failed(result, "allocating %llu bytes of %s", (unsigned long long)bytes, where);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *memory = made;
    return HAL_OK;
}

void cuda_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    atomic_fetch_add(&device->frees, 1);
    if (cuda_enter(device) == HAL_OK) {
        if (memory->pointer != NULL) {
            cuda_unpin(device, memory->pointer);
        } else {
            cuda_functions()->cuMemFree_v2(memory->address);
        }
        cuda_leave();
    }
    free(memory);
}

hal_status cuda_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->pointer;
    if (memory->pointer == NULL) {
        return cuda_fail(HAL_ERROR_INVALID_ARGUMENT, "cuda: memory of the device is not mapped");
    }
    return HAL_OK;
}
