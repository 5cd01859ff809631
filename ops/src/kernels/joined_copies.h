/* Copies of small ranges of several buffers into one buffer, by few kernels: on a GPU a command
 * for each takes the host and the device longer than the bytes do. Concatenation and segments use
 * it. */
#ifndef OPS_SRC_KERNELS_JOINED_COPIES_H
#define OPS_SRC_KERNELS_JOINED_COPIES_H

#include "tensor/context.h"

/* Ranges of one kernel at most. */
#define OPS_JOINED_COPIES 16u

/* Offsets and lengths are in bytes, multiples of 4. */
typedef struct ops_joined_copy {
    hal_buffer *from;
    uint64_t from_offset, to_offset, bytes;
} ops_joined_copy;

/* Copies that are not recorded yet. Starts as {.context = ..., .to = ...}. */
typedef struct ops_joined_copies {
    ops_context *context;
    hal_buffer *to; /* differs from all sources */
    uint32_t count;
    ops_joined_copy copies[OPS_JOINED_COPIES];
} ops_joined_copies;

/* Adds a copy of at least 4 bytes. Ranges of the target do not overlap. Copies that the device
 * makes faster by itself, and those of a full list, are recorded.
 * Errors: those of kernels, copies and dispatches. */
hal_status ops_joined_copies_add(ops_joined_copies *copies, const ops_joined_copy *copy);

/* Records what is left. Errors: the same. */
hal_status ops_joined_copies_end(ops_joined_copies *copies);

#endif
