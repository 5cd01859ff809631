/* Virtual memory by cuMemAddressReserve. Each part has memory of its own, so that any range of
 * parts can lose it. */
#include "virtual.h"

#include <stdlib.h>

static cuda_physical_kind kind_of(const hal_plugin_device *device)
{
    return (cuda_physical_kind){.kind = CUDA_PHYSICAL_PINNED,
                                .location = {CUDA_LOCATION_DEVICE, device->ordinal}};
}

hal_status cuda_part_bytes(hal_plugin_device *device, uint64_t *bytes)
{
    size_t part = 0;
    const cuda_physical_kind kind = kind_of(device);
    HAL_TRY(cuda_context_push(device));
    const cuda_result result = cuda_functions()->cuMemGetAllocationGranularity(&part, &kind, 0);
    cuda_context_pop();
    *bytes = part;
    return cuda_check(result, "reading the granularity of memory");
}

hal_status cuda_memory_reserve(hal_plugin_device *device, uint64_t bytes,
                               hal_plugin_memory **memory)
{
    uint64_t part = 0;
    *memory = NULL;
    HAL_TRY(cuda_part_bytes(device, &part));
    hal_plugin_memory *made = calloc(1, sizeof *made);
    cuda_physical *parts = made ? calloc(bytes / part, sizeof *parts) : NULL;
    if (!parts) {
        free(made);
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a memory object");
    }
    *made = (hal_plugin_memory){.device = device,
                                .bytes = bytes,
                                .owner = CUDA_MEMORY_RESERVED,
                                .parts = parts,
                                .part_bytes = part};
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK) {
        const cuda_result result =
            cuda_functions()->cuMemAddressReserve(&made->address, bytes, 0, 0, 0);
        cuda_context_pop();
        status = cuda_check(result, "reserving %llu bytes of addresses", (unsigned long long)bytes);
    }
    if (status != HAL_OK) {
        free(parts);
        free(made);
        return status;
    }
    *memory = made;
    return HAL_OK;
}

static cuda_result range_access(hal_plugin_memory *memory, uint64_t offset, uint64_t bytes,
                                int flags)
{
    const cuda_access access = {{CUDA_LOCATION_DEVICE, memory->device->ordinal}, flags};
    return cuda_functions()->cuMemSetAccess(memory->address + offset, bytes, &access, 1);
}

static cuda_result part_make(hal_plugin_memory *memory, uint64_t index)
{
    const cuda_driver *cu = cuda_functions();
    const cuda_physical_kind kind = kind_of(memory->device);
    cuda_physical made = 0;
    cuda_result result = cu->cuMemCreate(&made, memory->part_bytes, &kind, 0);
    if (result == 0) {
        result = cu->cuMemMap(memory->address + index * memory->part_bytes, memory->part_bytes, 0,
                              made, 0);
        if (result != 0) {
            cu->cuMemRelease(made);
        } else {
            memory->parts[index] = made;
        }
    }
    return result;
}

hal_status cuda_memory_commit(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                              uint64_t bytes)
{
    const uint64_t first = offset / memory->part_bytes, count = bytes / memory->part_bytes;
    cuda_result result = 0;
    HAL_TRY(cuda_context_push(device));
    for (uint64_t i = first; i < first + count && result == 0; i++) {
        result = part_make(memory, i);
    }
    if (result == 0) {
        result = range_access(memory, offset, bytes, CUDA_ACCESS_READ_WRITE);
    }
    if (result != 0) {
        cuda_parts_free(memory, first, count);
    }
    cuda_context_pop();
    return cuda_check(result, "giving memory to %llu bytes of addresses",
                      (unsigned long long)bytes);
}

hal_status cuda_memory_decommit(hal_plugin_device *device, hal_plugin_memory *memory,
                                uint64_t offset, uint64_t bytes)
{
    HAL_TRY(cuda_context_push(device));
    const cuda_result result =
        cuda_parts_free(memory, offset / memory->part_bytes, bytes / memory->part_bytes);
    cuda_context_pop();
    return cuda_check(result, "taking memory from %llu bytes of addresses",
                      (unsigned long long)bytes);
}

hal_status cuda_memory_protect(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes, uint32_t access)
{
    HAL_TRY(cuda_context_push(device));
    const cuda_result result =
        range_access(memory, offset, bytes,
                     access == HAL_ACCESS_READ ? CUDA_ACCESS_READ : CUDA_ACCESS_READ_WRITE);
    cuda_context_pop();
    return cuda_check(result, "protecting %llu bytes of addresses", (unsigned long long)bytes);
}
