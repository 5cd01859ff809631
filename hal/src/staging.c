/* Staging memory, see staging.h. Called by transfer.c and queue.c. */
#include "staging.h"

#include "buffer.h"
#include "device.h"
#include "status.h"

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
    uint32_t current;
    uint64_t used; /* bytes of the current chunk */
};

static hal_status free_chunk(hal_queue *queue, chunk *at);
static hal_status make_chunk(hal_queue *queue, chunk *at);

hal_status hal_staging_take(hal_queue *queue, uint64_t bytes, hal_range *range, void **pointer)
{
    struct hal_staging *staging = queue->staging;
    const uint64_t alignment = queue->device->info.binding_alignment;
    const uint64_t place = alignment > PLACE ? alignment : PLACE;
    if (!staging && !(staging = queue->staging = calloc(1, sizeof *staging))) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the staging of a queue");
    }
    /* A full batch goes first, so that the command is in the batch whose value the chunk keeps. */
    hal_status status = hal_queue_make_room(queue);
    if (status != HAL_OK) {
        return status;
    }
    chunk *at = &staging->chunks[staging->current];
    if (staging->used > 0 && hal_queue_has_reached(queue, at->last, 0)) {
        staging->used = 0;
    }
    if (bytes > CHUNK_BYTES - staging->used) {
        staging->current = (staging->current + 1) % CHUNKS;
        staging->used = 0;
        at = &staging->chunks[staging->current];
    }
    status = staging->used == 0 ? free_chunk(queue, at) : HAL_OK;
    if (status != HAL_OK) {
        return status;
    }
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

/* Makes a chunk, or waits until the device has read what was written to it before. */
static hal_status free_chunk(hal_queue *queue, chunk *at)
{
    hal_point point = {queue, at->last};
    hal_status status = HAL_OK;
    if (!at->buffer) {
        return make_chunk(queue, at);
    }
    if (at->last == hal_queue_next_value(queue)) {
        status = hal_queue_flush(queue, &point);
    }
    return status == HAL_OK ? hal_point_wait(point, HAL_WAIT_FOREVER) : status;
}

static hal_status make_chunk(hal_queue *queue, chunk *at)
{
    hal_buffer *made = NULL;
    void *pointer = NULL;
    hal_status status = hal_buffer_create(queue->device, HAL_MEMORY_UPLOAD, CHUNK_BYTES, &made);
    if (status == HAL_OK) {
        hal_buffer_set_label(made, "staging");
        pointer = hal_buffer_idle_pointer(made);
        status = pointer ? HAL_OK
                         : hal_fail(HAL_ERROR_OUT_OF_MEMORY, "mapping the staging of a queue: %s",
                                    hal_status_message());
    }
    if (status != HAL_OK) {
        hal_buffer_release(made);
        return status;
    }
    *at = (chunk){.buffer = made, .pointer = pointer};
    return HAL_OK;
}
