/* One-element buffers of constants that were used lately, so that a scalar operand in a loop is
 * filled once. */
#ifndef OPS_SRC_ARRAY_CONSTANTS_H
#define OPS_SRC_ARRAY_CONSTANTS_H

#include "tensor/context.h"

#include <stdbool.h>

#define OPS_CONSTANT_BITS 8
#define OPS_CONSTANT_ENTRIES (1u << OPS_CONSTANT_BITS)

typedef struct ops_constants {
    struct {
        hal_buffer *buffer; /* null: free */
        hal_type type;
        double value;
    } entries[OPS_CONSTANT_ENTRIES]; /* direct-mapped */
} ops_constants;

/* Finds or fills a buffer with one element; the caller gets a reference. `keep` is 0 while a graph
 * is recorded, because only launches of the graph fill such a buffer. */
hal_status ops_constants_get(ops_constants *constants, ops_context *context, hal_type type,
                             double value, bool keep, hal_buffer **buffer);

/* Forgets all: after a failure, the batch that filled them may have been dropped. */
void ops_constants_clear(ops_constants *constants);

#endif
