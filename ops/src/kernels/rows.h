/* Kernels of row programs: elementwise steps and reductions along one axis that one kernel
 * computes. A group takes a row, or several: it keeps their elements in registers where they fit,
 * and reads them once for each reduction otherwise. Few long rows are cut into slices for several
 * groups. From the bottom up: rows_program.h is what is computed, rows_layout.h who computes what,
 * rows_batch.c, rows_any.c and rows_kernel.c build a kernel, rows.c plans and dispatches it, and
 * rows_sliced.c divides programs of slices into kernels. */
#ifndef OPS_SRC_KERNELS_ROWS_H
#define OPS_SRC_KERNELS_ROWS_H

#include "rows_layout.h"
#include "rows_program.h"

/* A program over a shape. */
typedef struct ops_row_call {
    const char *function, *name; /* for messages; of the kernel */
    const ops_row_program *program;
    uint32_t rank, axis;
    const int64_t *shape;
    const ops_tensor *tensors; /* inputs, outputs; each can be broadcast to the shape. An output
                                * with length 1 at the axis receives a value of the row. */
    const ops_row_layout *layout;
    int64_t mean_length; /* divisor of a mean */
} ops_row_call;

/* Records one kernel, or with slices those of rows_sliced.c: two for each reduction that follows
 * another, and one for outputs of elements. Errors: UNSUPPORTED for too many tensors or steps;
 * those of kernels and dispatches. */
hal_status ops_row_record(ops_context *context, const ops_row_call *call);

/* Records the dispatch of one kernel. With slices, outputs are elements (slice_stride 0) or partial
 * results: slice_stride is the distance from one slice's to the next, in elements. */
hal_status ops_row_kernel_record(ops_context *context, const ops_row_call *call,
                                 int64_t slice_stride);

#endif
