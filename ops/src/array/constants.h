/* One-element buffers of constants that were used lately, so that a scalar operand in a loop is
 * filled once. */
#ifndef OPS_SRC_ARRAY_CONSTANTS_H
#define OPS_SRC_ARRAY_CONSTANTS_H

#include "tensor/context.h"

#include <stdbool.h>

#define OPS_CONSTANT_BITS 8
#define OPS_CONSTANT_ENTRIES (1u << OPS_CONSTANT_BITS)

/* Short sequences of numbers that are kept, and their longest length. */
#define OPS_CONSTANT_SEQUENCES 16u
#define OPS_CONSTANT_SEQUENCE_MAX 4096

typedef struct ops_constants {
    struct {
        ops_tensor tensor; /* null buffer: free */
        double start, step;
        uint64_t batch; /* of the queue, that computes it */
    } sequences[OPS_CONSTANT_SEQUENCES];
    uint32_t next_sequence; /* that is replaced */
    struct {
        hal_buffer *buffer; /* null: free */
        hal_type type;
        double value, rounded;       /* to the type */
        uint64_t batch;              /* of the queue, that fills it */
    } entries[OPS_CONSTANT_ENTRIES]; /* direct-mapped */
} ops_constants;

/* Finds or fills a buffer with one element, which is *value rounded to the type: *value receives
 * it, *batch the batch that fills the buffer. The caller gets a reference. `keep` is 0 while a
 * graph is recorded, because only launches of the graph fill such a buffer. */
hal_status ops_constants_get(ops_constants *constants, ops_context *context, hal_type type,
                             double *value, bool keep, hal_buffer **buffer, uint64_t *batch);

/* Finds or computes start, start + step, ... of a length up to OPS_CONSTANT_SEQUENCE_MAX, such as
 * the numbers of classes that a loss compares in each step. The caller gets a reference to the
 * buffer. */
hal_status ops_constants_get_sequence(ops_constants *constants, ops_context *context, hal_type type,
                                      int64_t count, double start, double step, ops_tensor *tensor,
                                      uint64_t *batch);

/* Forgets all: after a failure, the batch that filled them may have been dropped. */
void ops_constants_clear(ops_constants *constants);

#endif
