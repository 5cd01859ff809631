/* Segments: one expression over many tensors of different lengths, by few kernels. Each group of
 * work-items computes a tile of one segment, or folds a whole one, which it finds in a table.
 * Inputs and outputs of different segments that are in one buffer take one binding. Further buffers
 * take bindings of their own, among which a group chooses; small ones are copied into one buffer
 * first.
 *
 * Method: horizontal fusion, as the foreach kernels of PyTorch, without addresses in memory. */
#ifndef OPS_SRC_KERNELS_SEGMENTS_H
#define OPS_SRC_KERNELS_SEGMENTS_H

#include "tensor/context.h"
#include "tensor/expression.h"

#include <ops/reduce.h>

#define OPS_SEGMENT_VIEWS (OPS_MAX_INPUTS + OPS_MAX_OUTPUTS)

/* The elements of a segment in one of its tensors: contiguous from `offset` on, in elements. */
typedef struct ops_segment_view {
    hal_buffer *buffer;
    int64_t offset;
} ops_segment_view;

typedef struct ops_segment {
    int64_t elements;                          /* at least 1 */
    ops_segment_view views[OPS_SEGMENT_VIEWS]; /* inputs, then outputs */
} ops_segment;

typedef struct ops_segments {
    const char *name;     /* of the kernel */
    const uint64_t *form; /* two words that tell expressions apart */
    uint32_t input_count, output_count;
    uint32_t scalars; /* a bit for each input that has one element for all of a segment */
    hal_type types[OPS_SEGMENT_VIEWS]; /* of the elements in memory */
    /* Whether the only output has one element for each segment, its values folded: those of
     * work-item i of a group, which are in the vectors i, i + group, ... of the segment, in order,
     * then the work-items by halves. */
    bool folds;
    ops_reduction fold; /* SUM, PRODUCT, MAX or MIN */
    const ops_segment *segments;
    uint32_t count;
    /* Makes the expression for a new kernel. Ownership: the caller's. */
    hal_status (*make)(const void *user, ops_expression **expression);
    const void *user;
} ops_segments;

/* Tables of calls that may be repeated, as buffers of the device. Starts as {0}. */
#define OPS_SEGMENT_TABLES 32u
typedef struct ops_segment_tables {
    struct {
        uint64_t hash[2];
        hal_buffer *buffer;        /* null: free */
    } entries[OPS_SEGMENT_TABLES]; /* direct-mapped */
} ops_segment_tables;

/* Forgets all: after a failure, the batch that wrote them may have been dropped. */
void ops_segment_tables_clear(ops_segment_tables *tables);

/* The largest buffer that a segment may be in, in bytes. */
uint64_t ops_segments_largest_buffer(const ops_context *context);

/* Records a kernel of the first segments, as many as its bindings allow. Outputs overlap neither
 * each other nor inputs, and are in few buffers that have no other use. *taken: how many; 0 where
 * a kernel would compute none, or fewer than two that are not folded, and then nothing was
 * recorded. An output may be the elements of an input of its segment, if that input and others in
 * the same buffer are in it in all segments.
 * Errors: those of buffers, kernels and dispatches. */
hal_status ops_segments_record(ops_context *context, const ops_segments *call,
                               ops_segment_tables *tables, uint32_t *taken);

#endif
