/* What a queue has recorded and not handed over yet: the arrays of a hal_batch, kept for reuse. */
#ifndef HAL_SRC_CORE_BATCH_H
#define HAL_SRC_CORE_BATCH_H

#include "fence_set.h"

typedef struct hal_recording {
    struct hal_recording *next; /* among a queue's held or spare ones */
    uint64_t value;             /* the point it stands for, once held */
    hal_command *commands;
    hal_binding *bindings;
    uint8_t *scalars;
    hal_last_use *waits; /* points that come before it */
    uint32_t command_count, command_capacity;
    uint32_t binding_count, binding_capacity;
    uint32_t scalar_bytes, scalar_capacity;
    uint32_t wait_count, wait_capacity;
} hal_recording;

/* An empty one; null when memory is out. */
hal_recording *hal_recording_create(void);
void hal_recording_destroy(hal_recording *recording);

/* Empties commands, bindings and scalars; waits stay, the room too. */
void hal_recording_clear(hal_recording *recording);

/* Makes room for more. Errors: OUT_OF_MEMORY; the recording is as before. */
hal_status hal_recording_grow(hal_recording *recording, uint32_t commands, uint32_t bindings,
                              uint32_t scalar_bytes);

/* Notes a point that comes before, the later one for each queue. Errors: OUT_OF_MEMORY. */
hal_status hal_recording_wait(hal_recording *recording, hal_last_use use);

/* The recording as the plugin reads it; valid as long as it is not changed. */
hal_batch hal_recording_view(const hal_recording *recording);

/* Room is the rule: growing is the exception. */
static inline hal_status hal_recording_reserve(hal_recording *recording, uint32_t commands,
                                               uint32_t bindings, uint32_t scalar_bytes)
{
    if (recording->command_capacity - recording->command_count >= commands &&
        recording->binding_capacity - recording->binding_count >= bindings &&
        recording->scalar_capacity - recording->scalar_bytes >= scalar_bytes) {
        return HAL_OK;
    }
    return hal_recording_grow(recording, commands, bindings, scalar_bytes);
}

#endif
