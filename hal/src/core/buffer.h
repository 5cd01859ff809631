/* A buffer, as the sources that record commands see it. */
#ifndef HAL_SRC_CORE_BUFFER_H
#define HAL_SRC_CORE_BUFFER_H

#include "pool.h"
#include "queue.h"

#include <hal/buffer.h>
#include <stdatomic.h>

#define HAL_LABEL_BYTES 48

struct hal_buffer {
    _Atomic uint32_t references;
    uint32_t kind;
    hal_device *device;
    _Atomic(hal_memory *) memory; /* another one may take its place before the first use */
    uint64_t bytes;
    _Atomic int mapped;
    char label[HAL_LABEL_BYTES];
};

/* References that hal's own objects hold: as hal_buffer_retain and hal_buffer_release, but not the
 * program's. */
hal_buffer *hal_buffer_ref(hal_buffer *buffer);
void hal_buffer_unref(hal_buffer *buffer);

/* Notes that the queue's present batch uses the buffer, whose memory comes after its earlier
 * owners' work. Threads: the queue's. Errors: OUT_OF_MEMORY. */
hal_status hal_buffer_note_use(hal_buffer *buffer, hal_queue *queue);

/* Gives the buffer's memory with its use by the present batch noted. Errors: as above. */
static inline hal_status hal_buffer_use(hal_buffer *buffer, hal_queue *queue, hal_memory **memory)
{
    *memory = atomic_load_explicit(&buffer->memory, memory_order_acquire);
    if (atomic_load_explicit(&(*memory)->stamp, memory_order_relaxed) == queue->serial) {
        return HAL_OK;
    }
    const hal_status status = hal_buffer_note_use(buffer, queue);
    *memory = atomic_load_explicit(&buffer->memory, memory_order_acquire);
    return status;
}

/* The host's view when the host may touch the buffer now: of a mapped kind, and no work that uses
 * it is under way or recorded. Null otherwise, without a message. */
void *hal_buffer_idle_pointer(hal_buffer *buffer);

/* Whether the host can see the buffer's memory at all, to write or to read it. */
int hal_buffer_is_mapped_kind(const hal_buffer *buffer);

#endif
