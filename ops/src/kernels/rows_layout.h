/* How a reduction of rows is divided among groups and slices. */
#ifndef OPS_SRC_KERNELS_ROWS_LAYOUT_H
#define OPS_SRC_KERNELS_ROWS_LAYOUT_H

#include "fold.h"

#include <stdbool.h>

/* The group and the slices of the axis that a reduction of `x` takes. They decide the order of
 * additions, and depend on shape, strides and the device's limits alone, so that fusing does not
 * change a result. What a kernel computes itself has the strides that it would have in memory. */
typedef struct ops_row_layout {
    ops_reduce_layout group;
    uint32_t slices;       /* above 1: partial results of that many slices are folded */
    uint32_t slice_length; /* elements */
} ops_row_layout;

/* `steps`: elements that a work-item's loops may take, see loop_limit.h; more of them make slices.
 * Errors: UNSUPPORTED for an axis that is too long for that. */
hal_status ops_row_layout_choose(const ops_context *context, const char *function,
                                 const ops_tensor *x, uint32_t axis, hal_type type, int64_t steps,
                                 ops_row_layout *layout);

/* The same for what is folded in one kernel: partial results. */
void ops_row_layout_whole(const ops_context *context, const ops_tensor *x, uint32_t axis,
                          hal_type type, ops_row_layout *layout);

/* Changes the layout of a program that reads `x` several times, and that is not to have the bits of
 * other reductions, so that a group keeps more of it. */
void ops_row_layout_keep(const ops_context *context, const ops_tensor *x, uint32_t axis,
                         hal_type type, ops_row_layout *layout);

/* Whether a kernel keeps `words` words of 32 bits for each element of a row in registers. */
bool ops_row_layout_keeps(const ops_context *context, const ops_row_layout *layout, int64_t length,
                          uint32_t words);

#endif
