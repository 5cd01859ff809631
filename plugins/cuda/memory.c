/* Memory: device memory, and pinned host memory that kernels can access for all mapped kinds.
 * Entries of the plugin's table. hal pools memory, so these calls are rare. */
#include "memory.h"

#include "pinned.h"

#include <stdlib.h>

hal_status cuda_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t available = 0, total = 0;
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK) {
        status = cuda_check(cuda_functions()->cuMemGetInfo_v2(&available, &total),
                            "reading the free memory");
        cuda_context_pop();
    }
    *free_bytes = available;
    *total_bytes = total;
    return status;
}

hal_status cuda_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                hal_plugin_memory **memory)
{
    const cuda_driver *cu = cuda_functions();
    hal_plugin_memory *made = calloc(1, sizeof *made);
    *memory = NULL;
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a memory object");
    }
    made->device = device;
    made->bytes = bytes;
    hal_status status = cuda_context_push(device);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    const bool on_device = kind == HAL_MEMORY_DEVICE;
    cuda_result result;
    if (on_device) {
        result = cu->cuMemAlloc_v2(&made->address, bytes);
    } else {
        result = cuda_pinned_allocate(device, bytes, &made->pointer, &made->address);
    }
    cuda_context_pop();
    status = cuda_check(result, "allocating %llu bytes of %s memory", (unsigned long long)bytes,
                        on_device ? "device" : "pinned host");
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *memory = made;
    return HAL_OK;
}

cuda_result cuda_parts_free(hal_plugin_memory *memory, uint64_t first, uint64_t count)
{
    const cuda_driver *cu = cuda_functions();
    cuda_result result = 0;
    for (uint64_t i = first; i < first + count; i++) {
        if (memory->parts[i] == 0) {
            continue;
        }
        const cuda_result unmapped =
            cu->cuMemUnmap(memory->address + i * memory->part_bytes, memory->part_bytes);
        const cuda_result released = cu->cuMemRelease(memory->parts[i]);
        memory->parts[i] = 0;
        result = result ? result : unmapped ? unmapped : released;
    }
    return result;
}

static void reserved_free(hal_plugin_memory *memory)
{
    cuda_parts_free(memory, 0, memory->bytes / memory->part_bytes);
    cuda_functions()->cuMemAddressFree(memory->address, memory->bytes);
}

void cuda_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    if (!memory) {
        return;
    }
    atomic_fetch_add(&device->frees, 1);
    if (cuda_context_push(device) == HAL_OK) {
        if (memory->owner == CUDA_MEMORY_HOST) {
            cuda_unregister(memory->registration);
        } else if (memory->owner == CUDA_MEMORY_SHARED) {
            cuda_functions()->cuMemFree_v2(memory->address);
            cuda_functions()->cuDestroyExternalMemory(memory->shared);
        } else if (memory->owner == CUDA_MEMORY_RESERVED) {
            reserved_free(memory);
        } else if (memory->owner == CUDA_MEMORY_NATIVE) {
            /* its owner frees it */
        } else if (memory->pointer) {
            cuda_pinned_free(device, memory->pointer);
        } else {
            cuda_functions()->cuMemFree_v2(memory->address);
        }
        cuda_context_pop();
    }
    free(memory->parts);
    free(memory);
}

hal_status cuda_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->pointer;
    if (!memory->pointer) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "cuda: memory_map: memory: expected a mapped kind, got device memory");
    }
    return HAL_OK;
}
