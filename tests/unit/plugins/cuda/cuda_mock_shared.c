/* What the driver of cuda_mock.h shares with other APIs: memory and timeline semaphores by
 * descriptors. */
#include "cuda_mock.h"

#include <cuda/driver.h>

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
