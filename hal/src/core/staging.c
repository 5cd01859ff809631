/* Staging memory, see staging.h. Called by transfer.c and queue.c. */
#include "staging.h"

#include "buffer.h"
#include "device.h"
#include "base/status.h"

#include <stdlib.h>

/* Writes begin at multiples of PLACE, or of what bindings of the device need. */
enum { CHUNKS = 4, PLACE = 256 };
#define CHUNK_BYTES (UINT64_C(256) << 10)

typedef struct chunk {
    hal_buffer *buffer; /* null until it is needed */
    char *pointer;
    uint64_t last; /* value of the last batch that reads it */
} chunk;

struct hal_staging {
    chunk chunks[CHUNKS];
    uint32_t count; /* of chunks; fewer once memory was short */
    uint32_t current;
    uint64_t used; /* bytes of the current chunk */
};

/* 0 when it cannot be had: who needs memory says why. */
static int make_chunk(hal_queue *queue, chunk *at)
{
    hal_buffer *made = NULL;
    if (hal_buffer_create(queue->device, HAL_MEMORY_UPLOAD, CHUNK_BYTES, &made) != HAL_OK) {
        return 0;
    }
    hal_buffer_set_label(made, "staging");
    void *pointer = hal_buffer_idle_pointer(made);
    if (!pointer) {
        hal_buffer_release(made);
        return 0;
    }
    *at = (chunk){.buffer = made, .pointer = pointer};
    return 1;
}

/* Makes the current chunk, or waits until the device has read what was written to it before. The
 * ring ends before one that cannot be had, and goes on at its first. */
static hal_status free_chunk(hal_queue *queue, struct hal_staging *staging)
{
    chunk *at = &staging->chunks[staging->current];
    if (!at->buffer && !make_chunk(queue, at)) {
        staging->count = staging->current;
        staging->current = 0;
        at = staging->chunks;
    }
    if (staging->count == 0 || at->last == 0) {
        return HAL_OK;
    }
    hal_point point = {queue, at->last};
    hal_status status = HAL_OK;
    if (at->last == hal_queue_next_value(queue)) {
        status = hal_queue_flush(queue, &point);
    }
    return status == HAL_OK ? hal_point_wait(point, HAL_WAIT_FOREVER) : status;
}

hal_status hal_staging_take(hal_queue *queue, uint64_t bytes, hal_range *range, void **pointer)
{
    struct hal_staging *staging = queue->staging;
    const uint64_t alignment = queue->device->info.binding_alignment;
    const uint64_t place = alignment > PLACE ? alignment : PLACE;
    *pointer = NULL;
    if (!staging) {
        staging = queue->staging = calloc(1, sizeof *staging);
        if (!staging) {
            return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the staging of a queue");
        }
        staging->count = CHUNKS;
    }
    /* A full batch goes first, so that the command is in the batch whose value the chunk keeps. */
    hal_status status = hal_queue_make_room(queue);
    if (status != HAL_OK || staging->count == 0) {
        return status;
    }
    if (staging->used > 0 &&
        hal_queue_has_reached(queue, staging->chunks[staging->current].last, 0)) {
        staging->used = 0;
    }
    if (bytes > CHUNK_BYTES - staging->used) {
        staging->current = (staging->current + 1) % staging->count;
        staging->used = 0;
    }
    status = staging->used == 0 ? free_chunk(queue, staging) : HAL_OK;
    if (status != HAL_OK || staging->count == 0) {
        return status;
    }
    chunk *at = &staging->chunks[staging->current];
    *range = (hal_range){at->buffer, staging->used, bytes};
    *pointer = at->pointer + staging->used;
    staging->used += (bytes + place - 1) / place * place;
    staging->used = staging->used < CHUNK_BYTES ? staging->used : CHUNK_BYTES;
    at->last = hal_queue_next_value(queue);
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
