/* A step of a collective: the rank publishes data on the board and receives data of others. It is
 * the gate of the batch that uses what was received. Used by collective.c. */
#ifndef HAL_SRC_GROUP_STEP_H
#define HAL_SRC_GROUP_STEP_H

#include "group.h"

#include "core/pool.h"

#define HAL_STEP_ALL UINT32_MAX        /* sources: every other rank */
#define HAL_STEP_NONE (UINT32_MAX - 1) /* sources: no rank */

/* Segments of data, one for each rank: segment q has min(bytes, total - q * stride) bytes at
 * host + q * stride, and is at q * slot_stride + slot_offset in a slot. */
typedef struct hal_segments {
    uint8_t *host;
    const hal_memory *memory; /* whose view `host` is, from `offset` on */
    uint64_t offset;
    uint32_t count; /* of segments; 0: nothing */
    uint64_t stride, bytes, total;
    uint64_t slot_stride, slot_offset;
    int skip_own; /* the segment of the rank's own number is not moved */
} hal_segments;

/* The bytes of segment q. */
static inline uint64_t hal_segment_bytes(const hal_segments *segments, uint32_t q)
{
    const uint64_t begin = q * segments->stride;
    const uint64_t left = segments->total > begin ? segments->total - begin : 0;
    return left < segments->bytes ? left : segments->bytes;
}

typedef struct hal_step_description {
    hal_board_call call;
    hal_segments out; /* in the rank's own slot */
    hal_segments in;  /* segment q comes from slot q, all from the same offset; a single source
                        * has segment 0 */
    uint32_t sources; /* a rank, HAL_STEP_ALL or HAL_STEP_NONE */
    uint64_t since;   /* first value of the queue whose rejection fails the step */
} hal_step_description;

/* Flushes the queue, whose batch ends with the commands that produce `out`, and puts a gate before
 * the next batch. Threads: the queue's. Errors: those of the flush, OUT_OF_MEMORY. */
hal_status hal_step_record(hal_group *group, hal_queue *queue,
                           const hal_step_description *description);

#endif
