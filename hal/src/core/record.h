/* Appends one command to the batch in recording: begin reserves room, bind adds the bindings in
 * order, end makes the command part of the batch. A command without end leaves the batch unchanged.
 * Inline for command.c and record.c, because recording takes about ten nanoseconds per command.
 * Threads: the queue's. */
#ifndef HAL_SRC_CORE_RECORD_H
#define HAL_SRC_CORE_RECORD_H

#include "buffer.h"
#include "kernel_cache.h"
#include "recorder.h"

#include <string.h>

/* A call that a graph records in place of a command: it records its own commands and fences each
 * time that the graph is launched. `ranges` are those of the action. */
typedef struct hal_graph_call hal_graph_call;
struct hal_graph_call {
    hal_status (*record)(hal_graph_call *call, hal_queue *queue, const hal_range *ranges);
    void (*destroy)(hal_graph_call *call);
};

/* A checked command: every range has its length, which is 0 for null buffers only. */
typedef struct hal_action {
    uint16_t kind;  /* HAL_COMMAND_* */
    uint16_t flags; /* 0 or HAL_COMMAND_INDIRECT */
    uint16_t range_count;
    uint32_t scalar_bytes;
    uint32_t grid[3];
    hal_kernel *kernel;
    const void *scalars;
    const hal_range *ranges;
    const uint8_t *access; /* HAL_ACCESS_* of each range */
    hal_graph_call *call;  /* of a graph: records commands in place of this one; else null */
} hal_action;

/* HAL_ACCESS_* of the ranges of a copy (source, target) and of a fill. */
extern const uint8_t hal_copy_access[2];
extern const uint8_t hal_fill_access[1];

/* A copy of ranges[0] to ranges[1], which have one length. The action refers to both. */
static inline hal_action hal_copy_action(const hal_range ranges[2])
{
    return (hal_action){.kind = HAL_COMMAND_COPY,
                        .range_count = 2,
                        .grid = {1, 1, 1},
                        .ranges = ranges,
                        .access = hal_copy_access};
}

/* Appends a checked command to the batch, which has room for it. Errors: OUT_OF_MEMORY. */
hal_status hal_record_action(hal_recorder *recorder, const hal_action *action);

typedef struct hal_entry {
    hal_recorder *recorder;
    hal_binding *binding;    /* the next one to write */
    hal_hazard_range *range; /* the next one to write */
} hal_entry;

/* Errors: OUT_OF_MEMORY. */
static inline hal_status hal_entry_begin(hal_entry *entry, hal_recorder *recorder,
                                         uint32_t bindings, uint32_t scalar_bytes)
{
    hal_recording *recording = recorder->recording;
    const hal_status status =
        hal_recording_reserve(recording, 1, bindings, (scalar_bytes + 7) & ~7u);
    entry->recorder = recorder;
    entry->binding = recording->bindings + recording->binding_count;
    entry->range = hal_hazards_next(&recorder->hazards);
    return status;
}

/* Adds a binding; with a null buffer or length 0 the command does not access it.
 * Errors: OUT_OF_MEMORY. */
static inline hal_status hal_entry_bind(hal_entry *entry, hal_buffer *buffer, uint64_t offset,
                                        uint64_t length, uint32_t access)
{
    hal_binding *binding = entry->binding++;
    hal_memory *memory;
    if (!buffer || length == 0) {
        *binding = (hal_binding){.access = access};
        return HAL_OK;
    }
    memory = atomic_load_explicit(&buffer->memory, memory_order_acquire);
    if (memory->is_guarded) {
        HAL_TRY(hal_buffer_check_access(buffer, offset, length, access));
    }
    HAL_TRY(hal_buffer_use(buffer, entry->recorder, &memory));
    hal_hazard_range *range = entry->range++;
    binding->memory = memory->handle;
    binding->offset = memory->offset + offset;
    binding->length = length;
    binding->access = access;
    binding->reserved = 0;
    range->memory = memory->handle;
    range->begin = binding->offset;
    range->end = binding->offset + length;
    range->access = access;
    return HAL_OK;
}

/* `kernel` is null for copies and fills. `flags`: without HAL_COMMAND_BARRIER.
 * Errors: OUT_OF_MEMORY. */
static inline hal_status hal_entry_end(const hal_entry *entry, uint16_t kind, uint16_t flags,
                                       hal_kernel *kernel, const uint32_t grid[3],
                                       const void *scalars, uint32_t scalar_bytes)
{
    hal_recorder *recorder = entry->recorder;
    hal_recording *recording = recorder->recording;
    hal_plugin_kernel *handle = NULL;
    if (kernel) {
        if (atomic_load_explicit(&kernel->batch_serial, memory_order_relaxed) != recorder->serial) {
            HAL_TRY(hal_kernel_note_use(kernel, recorder));
        }
        handle = atomic_load_explicit(&kernel->handle, memory_order_acquire);
        if (!handle) {
            HAL_TRY(hal_kernel_cache_note_pending(kernel, recording, &handle));
        }
    }
    const uint32_t bindings =
        (uint32_t)(entry->binding - recording->bindings) - recording->binding_count;
    const uint32_t ranges =
        (uint32_t)(entry->range - recorder->hazards.ranges) - recorder->hazards.end;
    hal_command *command = &recording->commands[recording->command_count++];
    command->kind = kind;
    command->flags = hal_hazards_note(&recorder->hazards, ranges) ? HAL_COMMAND_BARRIER : 0;
    command->flags |= flags;
    command->binding_count = (uint16_t)bindings;
    command->scalar_bytes = (uint16_t)scalar_bytes;
    command->binding_first = recording->binding_count;
    command->scalar_first = recording->scalar_bytes;
    for (uint32_t i = 0; i < 3; i++) {
        command->grid[i] = grid[i];
    }
    command->reserved = 0;
    command->kernel = handle;
    command->reserved_words[0] = 0;
    recording->binding_count += bindings;
    if (scalar_bytes > 0) {
        const uint32_t block = (scalar_bytes + 7) & ~7u;
        uint8_t *at = recording->scalars + recording->scalar_bytes;
        memset(at + block - 8, 0, 8);
        memcpy(at, scalars, scalar_bytes);
        recording->scalar_bytes += block;
    }
    return HAL_OK;
}

#endif
