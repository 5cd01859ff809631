/* A command on its way into a queue's batch: room is made for it, its bindings are put one by one,
 * its end makes it part of the batch. What was put and not ended is forgotten. Written out here for
 * command.c and queue.c, since programs record a command in some ten nanoseconds. Threads: the
 * queue's. */
#ifndef HAL_SRC_CORE_RECORD_H
#define HAL_SRC_CORE_RECORD_H

#include "buffer.h"
#include "kernel.h"

#include <string.h>

typedef struct hal_entry {
    hal_queue *queue;
    hal_binding *binding;      /* the next one */
    hal_hazard_range *touched; /* the next one */
} hal_entry;

/* Errors: OUT_OF_MEMORY. */
static inline hal_status hal_entry_begin(hal_entry *entry, hal_queue *queue, uint32_t bindings,
                                         uint32_t scalar_bytes)
{
    hal_recording *recording = queue->recording;
    const hal_status status =
        hal_recording_reserve(recording, 1, bindings, (scalar_bytes + 7) & ~7u);
    entry->queue = queue;
    entry->binding = recording->bindings + recording->binding_count;
    entry->touched = hal_hazards_next(&queue->hazards);
    return status;
}

/* The next binding; a null buffer or a length of 0 is one that is not touched.
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
    const hal_status status = hal_buffer_use(buffer, entry->queue, &memory);
    if (status != HAL_OK) {
        return status;
    }
    hal_hazard_range *touched = entry->touched++;
    binding->memory = memory->handle;
    binding->offset = offset;
    binding->length = length;
    binding->access = access;
    binding->reserved = 0;
    touched->memory = memory;
    touched->begin = offset;
    touched->end = offset + length;
    touched->access = access;
    return HAL_OK;
}

/* The command itself; a null kernel for those that need none. Errors: OUT_OF_MEMORY. */
static inline hal_status hal_entry_end(const hal_entry *entry, uint16_t kind, hal_kernel *kernel,
                                       const uint32_t grid[3], uint32_t pattern,
                                       const void *scalars, uint32_t scalar_bytes)
{
    hal_queue *queue = entry->queue;
    hal_recording *recording = queue->recording;
    hal_plugin_kernel *handle = NULL;
    if (kernel) {
        if (atomic_load_explicit(&kernel->stamp, memory_order_relaxed) != queue->serial) {
            const hal_status status = hal_kernel_note_use(kernel, queue);
            if (status != HAL_OK) {
                return status;
            }
        }
        handle = kernel->handle;
    }
    const uint32_t bindings =
        (uint32_t)(entry->binding - recording->bindings) - recording->binding_count;
    const uint32_t touched =
        (uint32_t)(entry->touched - queue->hazards.ranges) - queue->hazards.end;
    hal_command *command = &recording->commands[recording->command_count++];
    command->kind = kind;
    command->flags = hal_hazards_note(&queue->hazards, touched) ? HAL_COMMAND_BARRIER : 0;
    command->binding_count = (uint16_t)bindings;
    command->scalar_bytes = (uint16_t)scalar_bytes;
    command->binding_first = recording->binding_count;
    command->scalar_first = recording->scalar_bytes;
    for (uint32_t i = 0; i < 3; i++) {
        command->grid[i] = grid[i];
    }
    command->pattern = pattern;
    command->kernel = handle;
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
