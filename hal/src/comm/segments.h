/* Data of a step in the host's memory, in parts for the ranks. */
#ifndef HAL_SRC_COMM_SEGMENTS_H
#define HAL_SRC_COMM_SEGMENTS_H

#include "core/pool.h"

#include <stdbool.h>
#include <stdint.h>

#define HAL_STEP_ALL UINT32_MAX        /* sources or targets: every other rank */
#define HAL_STEP_NONE (UINT32_MAX - 1) /* no rank */

/* Whether `ranks` (a rank, HAL_STEP_ALL or HAL_STEP_NONE) has q, another rank than the caller. */
static inline bool hal_step_has(uint32_t ranks, uint32_t q)
{
    return ranks == HAL_STEP_ALL || ranks == q;
}

/* Segments of data, one for each rank: segment q has min(bytes, total - q * stride) bytes at
 * host + q * stride, and is at q * slot_stride + slot_offset in a slot. */
typedef struct hal_segments {
    uint8_t *host;
    struct hal_buffer *buffer; /* of the program, whose view `host` is; null: staging memory */
    hal_memory *memory;        /* whose view `host` is, from `offset` on */
    uint64_t offset;
    uint32_t count; /* of segments; 0: nothing */
    uint64_t stride, bytes, total;
    uint64_t slot_stride, slot_offset;
    bool skip_own; /* the segment of the rank's own number is not moved */
} hal_segments;

/* The bytes of segment q. */
static inline uint64_t hal_segment_bytes(const hal_segments *segments, uint32_t q)
{
    const uint64_t begin = q * segments->stride;
    const uint64_t left = segments->total > begin ? segments->total - begin : 0;
    return left < segments->bytes ? left : segments->bytes;
}

#endif
