/* A recorded batch: the arrays of a hal_batch before it is submitted, kept for reuse. */
#ifndef HAL_SRC_CORE_BATCH_H
#define HAL_SRC_CORE_BATCH_H

#include "fence.h"
#include "host_fence.h"
#include "timeline.h"

#include <hal/plugin.h>

/* A command whose kernel is being compiled: the handle is put in before the batch is submitted. */
typedef struct hal_pending_kernel {
    struct hal_kernel *kernel;
    uint32_t command;
} hal_pending_kernel;

/* A value of a fence that the batch waits for, or raises it to afterwards. */
typedef struct hal_fence_value {
    hal_fence *fence; /* with a reference */
    uint64_t value;
    bool is_signal;
} hal_fence_value;

typedef struct hal_recording {
    struct hal_recording *next; /* among the deferred or spare batches of a queue */
    uint64_t value;             /* of its point */
    uint64_t serial;            /* of the batch, see hal_recorder */
    hal_command *commands;
    hal_binding *bindings;
    uint8_t *scalars;
    hal_last_use *waits;     /* points that come before the batch, one per timeline */
    hal_fence_value *fences; /* of others */
    hal_pending_kernel *pending;
    hal_host_fence *fence; /* signaled before the batch is submitted; may be null */
    uint32_t flags;        /* HAL_BATCH_* */
    uint32_t had_fence;    /* 1: counted among the deferred batches with a fence; of deferred.c */
    uint32_t command_count, command_capacity;
    uint32_t binding_count, binding_capacity;
    uint32_t scalar_bytes, scalar_capacity;
    uint32_t wait_count, wait_capacity;
    uint32_t fence_count, fence_capacity;
    uint32_t pending_count, pending_capacity;
} hal_recording;

/* Returns an empty batch, null without host memory. */
hal_recording *hal_recording_create(void);
void hal_recording_destroy(hal_recording *recording);

/* Removes commands, bindings and scalars; waits, fences and capacities stay. */
void hal_recording_clear(hal_recording *recording);

/* Destroys the host fence, signaled or not. */
void hal_recording_remove_fence(hal_recording *recording);

/* Adds a value of a fence of others. Errors: OUT_OF_MEMORY. */
hal_status hal_recording_add_fence(hal_recording *recording, hal_fence *fence, uint64_t value,
                                   bool is_signal);

/* Removes the values of fences of others. */
void hal_recording_clear_fences(hal_recording *recording);

/* Adds capacity. Errors: OUT_OF_MEMORY; the contents are unchanged. */
hal_status hal_recording_grow(hal_recording *recording, uint32_t commands, uint32_t bindings,
                              uint32_t scalar_bytes);

/* Adds a point that comes before the batch; the later one per timeline is kept.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_recording_wait(hal_recording *recording, hal_last_use use);

/* Notes that the next command has a kernel that is being compiled. Errors: OUT_OF_MEMORY. */
hal_status hal_recording_add_pending(hal_recording *recording, struct hal_kernel *kernel);

/* The batch as the plugin reads it, valid until the recording changes. */
hal_batch hal_recording_view(const hal_recording *recording);

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
