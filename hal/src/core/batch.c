/* Recorded batches. */
#include "batch.h"

#include "base/array.h"
#include "base/status.h"

#include <stdlib.h>

hal_recording *hal_recording_create(void)
{
    return calloc(1, sizeof(hal_recording));
}

void hal_recording_destroy(hal_recording *recording)
{
    if (recording) {
        hal_host_fence_destroy(recording->fence);
        hal_recording_clear_fences(recording);
        free(recording->fences);
        free(recording->commands);
        free(recording->bindings);
        free(recording->scalars);
        free(recording->waits);
        free(recording->pending);
        free(recording);
    }
}

void hal_recording_clear(hal_recording *recording)
{
    recording->command_count = 0;
    recording->binding_count = 0;
    recording->scalar_bytes = 0;
    recording->pending_count = 0;
}

void hal_recording_remove_fence(hal_recording *recording)
{
    hal_host_fence_destroy(recording->fence);
    recording->fence = NULL;
}

hal_status hal_recording_add_fence(hal_recording *recording, hal_fence *fence, uint64_t value,
                                   bool is_signal)
{
    if (!HAL_ARRAY_RESERVE(recording->fences, recording->fence_capacity,
                           (uint64_t)recording->fence_count + 1)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to record a value of a fence");
    }
    recording->fences[recording->fence_count++] =
        (hal_fence_value){hal_fence_ref(fence), value, is_signal};
    return HAL_OK;
}

void hal_recording_clear_fences(hal_recording *recording)
{
    const uint32_t count = recording->fence_count;
    recording->fence_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        hal_fence_unref(recording->fences[i].fence);
    }
}

hal_status hal_recording_grow(hal_recording *recording, uint32_t commands, uint32_t bindings,
                              uint32_t scalar_bytes)
{
    return HAL_ARRAY_RESERVE(recording->commands, recording->command_capacity,
                             (uint64_t)recording->command_count + commands) &&
                   HAL_ARRAY_RESERVE(recording->bindings, recording->binding_capacity,
                                     (uint64_t)recording->binding_count + bindings) &&
                   HAL_ARRAY_RESERVE(recording->scalars, recording->scalar_capacity,
                                     (uint64_t)recording->scalar_bytes + scalar_bytes)
               ? HAL_OK
               : hal_fail(HAL_ERROR_OUT_OF_MEMORY,
                          "no host memory to record a command after %u others",
                          recording->command_count);
}

hal_status hal_recording_wait(hal_recording *recording, hal_last_use use)
{
    for (uint32_t i = 0; i < recording->wait_count; i++) {
        hal_last_use *wait = &recording->waits[i];
        if (wait->timeline == use.timeline) {
            wait->value = wait->value < use.value ? use.value : wait->value;
            return HAL_OK;
        }
    }
    if (!HAL_ARRAY_RESERVE(recording->waits, recording->wait_capacity,
                           (uint64_t)recording->wait_count + 1)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to record a point to wait for");
    }
    recording->waits[recording->wait_count++] = use;
    return HAL_OK;
}

hal_status hal_recording_add_pending(hal_recording *recording, struct hal_kernel *kernel)
{
    if (!HAL_ARRAY_RESERVE(recording->pending, recording->pending_capacity,
                           (uint64_t)recording->pending_count + 1)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY,
                        "no host memory to record a kernel that is being compiled");
    }
    recording->pending[recording->pending_count++] =
        (hal_pending_kernel){kernel, recording->command_count};
    return HAL_OK;
}

hal_batch hal_recording_view(const hal_recording *recording)
{
    return (hal_batch){
        .size = sizeof(hal_batch),
        .command_count = recording->command_count,
        .binding_count = recording->binding_count,
        .scalar_bytes = recording->scalar_bytes,
        .commands = recording->commands,
        .bindings = recording->bindings,
        .scalars = recording->scalars,
        .flags = recording->flags,
    };
}
