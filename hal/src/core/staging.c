/* Staging memory, see staging.h. */
#include "staging.h"

#include "buffer.h"
#include "flush.h"

#include "base/status.h"

#include <stdlib.h>

/* Writes start at multiples of MIN_ALIGNMENT bytes or of the device's binding alignment. */
enum { CHUNKS = 4, MIN_ALIGNMENT = 256 };
#define CHUNK_BYTES HAL_STAGING_MAX

/* Bytes of a write that waits for a chunk rather than allocate memory. */
#define SMALL (UINT64_C(32) << 10)

typedef struct staging_chunk {
    hal_buffer *buffer; /* null until it is needed */
    char *pointer;
    uint64_t last; /* value of the last batch that reads it */
} staging_chunk;

struct hal_staging {
    staging_chunk chunks[CHUNKS];
    uint32_t count; /* of usable chunks; fewer than CHUNKS after memory was short */
    uint32_t current;
    uint64_t used;  /* bytes of the current chunk */
    uint64_t asked; /* value of the batch that was recorded when the next chunk was last busy */
};

/* Returns 0 without memory; the message is not used. */
static bool chunk_create(hal_queue *queue, staging_chunk *chunk)
{
    hal_buffer *made = NULL;
    if (hal_buffer_create(queue->timeline.device, HAL_MEMORY_UPLOAD, CHUNK_BYTES, &made) !=
        HAL_OK) {
        return false;
    }
    hal_buffer_set_label(made, "staging");
    void *pointer = hal_buffer_idle_pointer(made);
    if (!pointer) {
        hal_buffer_release(made);
        return false;
    }
    *chunk = (staging_chunk){.buffer = made, .pointer = pointer};
    return true;
}

/* Creates the current chunk, or waits until the device has read its contents. Without memory for
 * the chunk the ring ends before it. */
static hal_status chunk_prepare(hal_queue *queue, struct hal_staging *staging)
{
    staging_chunk *chunk = &staging->chunks[staging->current];
    if (!chunk->buffer && !chunk_create(queue, chunk)) {
        staging->count = staging->current;
        staging->current = 0;
        chunk = staging->chunks;
    }
    if (staging->count == 0 || chunk->last == 0) {
        return HAL_OK;
    }
    hal_point point = {queue, chunk->last};
    hal_status status = HAL_OK;
    if (chunk->last == hal_timeline_next_value(&queue->timeline)) {
        status = hal_flush_untimed(queue, &point);
    }
    return status == HAL_OK ? hal_point_wait(point, HAL_WAIT_FOREVER) : status;
}

/* Goes on to the next chunk. The device reads the full one while the host fills others. With
 * `unless_busy`, a chunk that the device still has to read is left alone; it is asked for that once
 * a batch. */
static hal_status chunk_next(hal_queue *queue, struct hal_staging *staging, bool unless_busy,
                             bool *busy)
{
    const uint64_t recorded = hal_timeline_next_value(&queue->timeline);
    const uint32_t next = (staging->current + 1) % staging->count;
    const staging_chunk *chunk = &staging->chunks[next];
    if (staging->chunks[staging->current].last == recorded) {
        HAL_TRY(hal_flush_untimed(queue, NULL));
    }
    if (unless_busy && chunk->last > 0) {
        *busy = staging->asked == recorded ||
                !hal_timeline_has_reached(&queue->timeline, chunk->last, true);
        staging->asked = *busy ? recorded : 0;
        if (*busy) {
            return HAL_OK;
        }
    }
    staging->current = next;
    staging->used = 0;
    return HAL_OK;
}

static uint64_t write_alignment(const hal_queue *queue)
{
    const uint64_t alignment = queue->timeline.device->info.binding_alignment;
    return alignment > MIN_ALIGNMENT ? alignment : MIN_ALIGNMENT;
}

hal_status hal_staging_take(hal_queue *queue, uint64_t bytes, hal_range *range, void **pointer)
{
    struct hal_staging *staging = queue->staging;
    const uint64_t alignment = write_alignment(queue);
    *pointer = NULL;
    if (!staging) {
        staging = queue->staging = calloc(1, sizeof *staging);
        if (!staging) {
            return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for staging of a queue");
        }
        staging->count = CHUNKS;
    }
    /* A full batch is flushed first: the chunk keeps the value of the batch with the command. */
    hal_status status = hal_flush_if_full(queue);
    if (status != HAL_OK || staging->count == 0) {
        return status;
    }
    if (staging->used > 0 &&
        hal_timeline_has_reached(&queue->timeline, staging->chunks[staging->current].last, false)) {
        staging->used = 0;
    }
    if (bytes > CHUNK_BYTES - staging->used) {
        bool busy = false;
        status = chunk_next(queue, staging, bytes > SMALL, &busy);
        if (status != HAL_OK || busy) {
            return status;
        }
    }
    status = staging->used == 0 ? chunk_prepare(queue, staging) : HAL_OK;
    if (status != HAL_OK || staging->count == 0) {
        return status;
    }
    staging_chunk *chunk = &staging->chunks[staging->current];
    *range = (hal_range){chunk->buffer, staging->used, bytes};
    *pointer = chunk->pointer + staging->used;
    staging->used += (bytes + alignment - 1) / alignment * alignment;
    staging->used = staging->used < CHUNK_BYTES ? staging->used : CHUNK_BYTES;
    chunk->last = hal_timeline_next_value(&queue->timeline);
    return HAL_OK;
}

void hal_staging_end(hal_queue *queue)
{
    struct hal_staging *staging = queue->staging;
    for (uint32_t i = 0; staging && i < CHUNKS && staging->chunks[i].buffer; i++) {
        hal_buffer_release(staging->chunks[i].buffer);
    }
    free(staging);
    queue->staging = NULL;
}
