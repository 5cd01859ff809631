/* Comparisons of views: whether tensors share memory. */
#ifndef OPS_SRC_TENSOR_OVERLAP_H
#define OPS_SRC_TENSOR_OVERLAP_H

#include "context.h"

#include <stdbool.h>

/* Whether two elements of a tensor may share memory: false where each axis, ordered by stride,
 * steps over all that the finer ones span. */
bool ops_elements_overlap(const ops_tensor *tensor);

/* Whether both have the same elements at the same places, x broadcast to y's shape. */
bool ops_same_view(const ops_tensor *x, const ops_tensor *y);

/* The range of a tensor's elements; empty for one without elements. */
hal_range ops_tensor_range(const ops_tensor *tensor);

/* Whether the ranges of memory that two tensors span have bytes in common. */
bool ops_spans_meet(const ops_tensor *x, const ops_tensor *y);

/* Whether two tensors have bytes of elements in common. Exact, but for strides of which so few are
 * multiples of each other that the search is cut off: those count as overlapping. */
bool ops_overlap(const ops_tensor *x, const ops_tensor *y);

#endif
