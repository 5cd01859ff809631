/* Recorded batches. Called by queue.c, which fills them, and point.c, which holds them back. */
#include "batch.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static int grow(void **array, uint32_t *capacity, uint32_t count, uint32_t more, size_t bytes)
{
    if (*capacity - count >= more) {
        return 1;
    }
    uint64_t wanted = *capacity ? *capacity : 32;
    while (wanted - count < more) {
        wanted *= 2;
    }
    void *larger = wanted <= UINT32_MAX ? realloc(*array, wanted * bytes) : NULL;
    if (!larger) {
        return 0;
    }
    *array = larger;
    *capacity = (uint32_t)wanted;
    return 1;
}

hal_recording *hal_recording_create(void)
{
    return calloc(1, sizeof(hal_recording));
}

void hal_recording_destroy(hal_recording *recording)
{
    if (recording) {
        free(recording->commands);
        free(recording->bindings);
        free(recording->scalars);
        free(recording->waits);
        free(recording);
    }
}

void hal_recording_clear(hal_recording *recording)
{
    recording->command_count = 0;
    recording->binding_count = 0;
    recording->scalar_bytes = 0;
}

hal_status hal_recording_grow(hal_recording *recording, uint32_t commands, uint32_t bindings,
                              uint32_t scalar_bytes)
{
    void *new_commands = recording->commands;
    void *new_bindings = recording->bindings;
    void *new_scalars = recording->scalars;
    const int grown =
        grow(&new_commands, &recording->command_capacity, recording->command_count, commands,
             sizeof *recording->commands) &
        grow(&new_bindings, &recording->binding_capacity, recording->binding_count, bindings,
             sizeof *recording->bindings) &
        grow(&new_scalars, &recording->scalar_capacity, recording->scalar_bytes, scalar_bytes, 1);
    recording->commands = new_commands;
    recording->bindings = new_bindings;
    recording->scalars = new_scalars;
    return grown ? HAL_OK
                 : hal_fail(HAL_ERROR_OUT_OF_MEMORY,
                            "no host memory to record a command behind %u others",
                            recording->command_count);
}

hal_status hal_recording_wait(hal_recording *recording, hal_last_use use)
{
    for (uint32_t i = 0; i < recording->wait_count; i++) {
        hal_last_use *wait = &recording->waits[i];
        if (wait->queue == use.queue) {
            wait->value = wait->value < use.value ? use.value : wait->value;
            return HAL_OK;
        }
    }
    void *waits = recording->waits;
    const int grown = grow(&waits, &recording->wait_capacity, recording->wait_count, 1, sizeof use);
    recording->waits = waits;
    if (!grown) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note a point to wait for");
    }
    recording->waits[recording->wait_count++] = use;
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
    };
}
