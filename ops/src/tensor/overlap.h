/* Comparisons of views: whether tensors share memory. Used by the checks of every family. */
#ifndef OPS_SRC_TENSOR_OVERLAP_H
#define OPS_SRC_TENSOR_OVERLAP_H

#include "context.h"

/* Whether two elements of a tensor may share memory: false where each axis, ordered by stride,
 * steps over all that the finer ones span. */
int ops_elements_overlap(const ops_tensor *tensor);

/* Whether both have the same elements at the same places, x broadcast to y's shape. */
int ops_same_view(const ops_tensor *x, const ops_tensor *y);

/* Whether the ranges of memory that two tensors span have bytes in common. */
int ops_spans_meet(const ops_tensor *x, const ops_tensor *y);

/* Whether two tensors have bytes of elements in common. Exact, but for strides of which so few are
 * multiples of each other that the search is cut off: those count as overlapping. */
int ops_overlap(const ops_tensor *x, const ops_tensor *y);

#endif
