/* What the driver of cuda_mock.h shares with other APIs: memory and timeline semaphores by
 * descriptors; and its virtual memory, which is the host's. */
#include "cuda_mock.h"

#include <cuda/driver.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
#define SYMBOL(name, parameters) EXPORT cuda_result name parameters;
#define OPTIONAL(name, parameters) EXPORT cuda_result name parameters;
#include <cuda/symbols.inl>
#undef SYMBOL
#undef OPTIONAL

extern EXPORT cuda_mock cuda_mock_state;
static cuda_mock *const mock = &cuda_mock_state;
enum { CUDA_INVALID_VALUE = 1 };

/* A descriptor is a number, and its memory that of the mock: 0: there is none. */
cuda_result cuImportExternalMemory(cuda_shared_memory *memory, const cuda_shared_handle *handle)
{
    if (handle->kind != CUDA_SHARED_OPAQUE_FD || handle->handle.descriptor != mock->descriptor) {
        return CUDA_INVALID_VALUE;
    }
    mock->shared_bytes = handle->bytes;
    mock->live_objects++;
    *memory = (cuda_shared_memory)(void *)mock;
    return 0;
}

cuda_result cuExternalMemoryGetMappedBuffer(cuda_address *address, cuda_shared_memory memory,
                                            const cuda_shared_range *range)
{
    if (range->offset + range->bytes > mock->shared_bytes) {
        return CUDA_INVALID_VALUE;
    }
    return cuMemAlloc_v2(address, range->bytes);
}

cuda_result cuDestroyExternalMemory(cuda_shared_memory memory)
{
    mock->live_objects--;
    return 0;
}

cuda_result cuImportExternalSemaphore(cuda_semaphore *semaphore,
                                      const cuda_semaphore_handle *handle)
{
    if (handle->kind != CUDA_SHARED_TIMELINE_FD || handle->handle.descriptor != mock->descriptor) {
        return CUDA_INVALID_VALUE;
    }
    mock->live_objects++;
    *semaphore = (cuda_semaphore)(void *)mock;
    return 0;
}

cuda_result cuDestroyExternalSemaphore(cuda_semaphore semaphore)
{
    mock->live_objects--;
    return 0;
}

/* The values only; the mock's streams run at once. */
cuda_result cuWaitExternalSemaphoresAsync(const cuda_semaphore *semaphores,
                                          const cuda_semaphore_value *values, unsigned count,
                                          cuda_stream stream)
{
    mock->semaphore_awaited = values[0].value;
    return mock->semaphore_value >= values[0].value ? 0 : CUDA_INVALID_VALUE;
}

cuda_result cuSignalExternalSemaphoresAsync(const cuda_semaphore *semaphores,
                                            const cuda_semaphore_value *values, unsigned count,
                                            cuda_stream stream)
{
    mock->semaphore_value = values[0].value;
    return 0;
}

enum { PART_BYTES = 2 << 20 };

cuda_result cuMemGetAllocationGranularity(size_t *bytes, const cuda_physical_kind *kind,
                                          int recommended)
{
    *bytes = PART_BYTES;
    return kind->kind == CUDA_PHYSICAL_PINNED ? 0 : CUDA_INVALID_VALUE;
}

cuda_result cuMemAddressReserve(cuda_address *address, size_t bytes, size_t alignment,
                                cuda_address wanted, unsigned long long flags)
{
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *made = mmap(NULL, bytes, PROT_NONE, kind, -1, 0);
    mock->live_objects += made != MAP_FAILED;
    *address = (uint64_t)(uintptr_t)made;
    return made == MAP_FAILED ? CUDA_OUT_OF_MEMORY : 0;
}

cuda_result cuMemAddressFree(cuda_address address, size_t bytes)
{
    mock->live_objects--;
    return munmap((void *)(uintptr_t)address, bytes) ? CUDA_INVALID_VALUE : 0;
}

/* Handles are numbers. */
cuda_result cuMemCreate(cuda_physical *memory, size_t bytes, const cuda_physical_kind *kind,
                        unsigned long long flags)
{
    if (mock->physical_left == 0 || bytes != PART_BYTES ||
        kind->location.kind != CUDA_LOCATION_DEVICE) {
        return CUDA_OUT_OF_MEMORY;
    }
    mock->physical_left--;
    *memory = ++mock->physical_made;
    return 0;
}

cuda_result cuMemRelease(cuda_physical memory)
{
    mock->physical_left++;
    return memory > 0 ? 0 : CUDA_INVALID_VALUE;
}

cuda_result cuMemMap(cuda_address address, size_t bytes, size_t offset, cuda_physical memory,
                     unsigned long long flags)
{
    mock->mapped++;
    return address % 4096 == 0 && bytes == PART_BYTES && memory > 0 ? 0 : CUDA_INVALID_VALUE;
}

cuda_result cuMemUnmap(cuda_address address, size_t bytes)
{
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    mock->mapped--;
    return mmap((void *)(uintptr_t)address, bytes, PROT_NONE, kind, -1, 0) == MAP_FAILED
               ? CUDA_INVALID_VALUE
               : 0;
}

cuda_result cuMemSetAccess(cuda_address address, size_t bytes, const cuda_access *accesses,
                           size_t count)
{
    const int writes = accesses[0].flags == CUDA_ACCESS_READ_WRITE ? PROT_WRITE : 0;
    return mprotect((void *)(uintptr_t)address, bytes, PROT_READ | writes) ? CUDA_INVALID_VALUE : 0;
}
