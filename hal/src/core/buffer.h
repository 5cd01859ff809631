/* A buffer: a reference-counted owner of a block of device memory. */
#ifndef HAL_SRC_CORE_BUFFER_H
#define HAL_SRC_CORE_BUFFER_H

#include "pool.h"
#include "recorder.h"

#include <hal/buffer.h>
#include <stdatomic.h>
#include <stdbool.h>

#define HAL_LABEL_BYTES 48

struct hal_buffer {
    _Atomic uint32_t references;
    uint32_t kind; /* HAL_MEMORY_* */
    hal_device *device;
    _Atomic(hal_memory *) memory; /* may be replaced before the first use */
    uint64_t bytes;
    _Atomic int mapped;
    _Atomic bool is_external; /* others may access the memory: imported or exported */
    char label[HAL_LABEL_BYTES];
};

/* Fills in the description of a new buffer, whose reference is the caller's. */
void hal_buffer_init(hal_buffer *buffer, hal_device *device, hal_memory *memory, uint64_t bytes);

/* Internal references: hal_buffer_retain and hal_buffer_release without the hooks, which count the
 * program's references. Threads: any. */
hal_buffer *hal_buffer_ref(hal_buffer *buffer);
void hal_buffer_unref(hal_buffer *buffer);

/* Records that the batch in recording uses the buffer, and makes the batch wait for the work of
 * earlier owners of the memory. Threads: the queue's. Errors: OUT_OF_MEMORY. */
hal_status hal_buffer_note_use(hal_buffer *buffer, hal_recorder *recorder);

/* Returns the buffer's memory with its use by the batch recorded. Errors: OUT_OF_MEMORY. */
static inline hal_status hal_buffer_use(hal_buffer *buffer, hal_recorder *recorder,
                                        hal_memory **memory)
{
    *memory = atomic_load_explicit(&buffer->memory, memory_order_acquire);
    if (atomic_load_explicit(&(*memory)->batch_serial, memory_order_relaxed) == recorder->serial) {
        return HAL_OK;
    }
    const hal_status status = hal_buffer_note_use(buffer, recorder);
    *memory = atomic_load_explicit(&buffer->memory, memory_order_acquire);
    return status;
}

/* Returns the buffer's memory, which stays the same from now on and which no work of earlier owners
 * uses. Threads: any. Errors: those of an allocation. */
hal_status hal_buffer_pin(hal_buffer *buffer, hal_memory **memory);

/* Fails for a command or call that would write imported memory that is read only. */
hal_status hal_buffer_refuse_write(const hal_buffer *buffer);

/* Checks an access of a command to guarded memory. Errors: INVALID_ARGUMENT. */
hal_status hal_buffer_check_access(const hal_buffer *buffer, uint64_t offset, uint64_t length,
                                   uint32_t access);

/* The host view if the host may touch the buffer now: its kind is mapped, and no recorded or
 * submitted work uses it. Else null, without a message. */
void *hal_buffer_idle_pointer(hal_buffer *buffer);

/* The host view of a mapped kind, for a caller that knows that no work writes the buffer. Errors:
 * those of the plugin's mapping. */
hal_status hal_buffer_view(hal_buffer *buffer, void **pointer);

/* The host wrote, or will read, a range of the view: see hal_memory_flush. */
hal_status hal_buffer_flush(hal_buffer *buffer, uint64_t offset, uint64_t bytes);
hal_status hal_buffer_invalidate(hal_buffer *buffer, uint64_t offset, uint64_t bytes);

/* Whether the host can map the buffer's memory. */
bool hal_buffer_is_mapped_kind(const hal_buffer *buffer);

#endif
