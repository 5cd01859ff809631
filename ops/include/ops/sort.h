/* Order along an axis: sorted values and where they were. */
#ifndef OPS_SORT_H
#define OPS_SORT_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The elements of x along `axis` in ascending order, or descending if `descending` is set, and
 * their indices in x (I32 or I64); either output may be null, but not both. The order is stable
 * both ways: equal elements keep the order of x. NaN counts as greatest, whatever its sign, and
 * -0 equals 0; elements keep their bits. Outputs have x's shape, or fewer elements at the axis,
 * which are the first ones of the order: the k greatest in descending order. x is of any type; an
 * axis has at most 2^31 - 1 elements. The values may be x.
 *
 * The result depends on x alone, so it is the same on every device. Takes temporary memory of 16
 * bytes for each element of x, 24 for types of 64 bits, and for long axes on GPUs 1 more.
 * Source: blocks by K. E. Batcher, "Sorting networks and their applications", 1968, on processors
 * by digits of 8 bits, D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2.5; merges by
 * S. Odeh et al., "Merge path: parallel merging made simple", 2012; long axes on GPUs by digits,
 * N. Satish et al., "Designing efficient sorting algorithms for manycore GPUs", 2009.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, UNSUPPORTED for a longer axis and
 * for a type of 8 or 16 bits that the device has no unsigned type for, OUT_OF_MEMORY, those of
 * kernels and dispatches. */
HAL_API hal_status ops_sort(ops_context *context, int32_t axis, int descending, const ops_tensor *x,
                            HAL_OUT const ops_tensor *values, HAL_OUT const ops_tensor *indices);

#ifdef __cplusplus
}
#endif
#endif
