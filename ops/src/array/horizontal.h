/* Horizontal fusion: elementwise plans of equal form over arrays of different shapes, such as an
 * optimizer's step over the parameters of a model, become few kernels (kernels/segments.h). Their
 * results share buffers, which live as long as one of the arrays in them. */
#ifndef OPS_SRC_ARRAY_HORIZONTAL_H
#define OPS_SRC_ARRAY_HORIZONTAL_H

#include "placement.h"

/* Plans of one form from which they are joined. */
#define OPS_HORIZONTAL_LEAST 8u

/* Computes those of the arrays that can be joined, and before them what they are computed of. The
 * others stay deferred. An update of all elements becomes its value, whatever its operand is.
 * Errors: those of kernels and dispatches. */
hal_status ops_horizontal_execute(ops_array *const *roots, uint32_t count,
                                  const ops_compute *compute);

/* Copies an array that shares a buffer into one that nothing else is in. */
hal_status ops_node_unshare_buffer(ops_array *array);

/* The same for all arrays of a context. */
hal_status ops_arrays_unshare_buffers(ops_arrays *arrays);

#endif
