/* Statistics of arrays: variance, norms, any and all, logsumexp, cumulative maxima with places,
 * histograms, search in sorted arrays, and selections whose counts reach the host. */
#ifndef OPS_STATISTICS_H
#define OPS_STATISTICS_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Along `axis_count` axes, or all where `axes` is null; each axis has length 1 in the result when
 * `keep_axes` is set, and is removed otherwise. Where the axes are neighbours in the order of x,
 * they are reduced as one. Floats; narrow ones in F32, rounded once.
 *
 * The variance: the sum of squared differences from the mean over n - correction, of n elements;
 * where n is not above the correction, infinity, or NaN for differences of 0. The norm (sum
 * |x|^p)^(1 / p): p = 0 counts elements that are not 0, infinity and -infinity are the largest and
 * the least |x|; without scaling, so that squares may overflow. The logarithm of the sum of exp(x),
 * without overflow; of elements that are all -infinity it is -infinity.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as
 * ops_array_reduce_axes; INVALID_ARGUMENT for no elements. */
HAL_API ops_array *ops_array_variance(const int32_t *axes, uint32_t axis_count, int keep_axes,
                                      double correction, ops_array *x);
HAL_API ops_array *ops_array_norm(const int32_t *axes, uint32_t axis_count, int keep_axes, double p,
                                  ops_array *x);
HAL_API ops_array *ops_array_log_sum_exp(const int32_t *axes, uint32_t axis_count, int keep_axes,
                                         ops_array *x);

/* Whether any, or each, element along the axes differs from 0 (BOOL); of none: false and true. NaN
 * differs from 0.
 * Ownership, Threads, Errors: as ops_array_reduce_axes. */
HAL_API ops_array *ops_array_any(const int32_t *axes, uint32_t axis_count, int keep_axes,
                                 ops_array *x);
HAL_API ops_array *ops_array_all(const int32_t *axes, uint32_t axis_count, int keep_axes,
                                 ops_array *x);

/* The place (I32) on the axis of each maximum (kind MAX) or minimum (MIN) of ops_array_scan: that
 * of the last element that is equal to it, and of the last NaN.
 * Ownership, Threads: as ops_array_variance. Errors: as ops_array_scan; INVALID_ARGUMENT for
 * another kind. */
HAL_API ops_array *ops_array_scan_places(ops_scan_kind kind, int32_t axis, ops_array *x);

/* For each value, how many elements of `sorted` (rank 1, ascending) are less than it, or with
 * `right` not greater: I32 in the shape of the values, which have its type. NaN counts as greatest.
 * Binary search by elementwise kernels, one for each bit of the length.
 * Ownership, Threads: as ops_array_variance. Errors: INVALID_ARGUMENT with the shapes. */
HAL_API ops_array *ops_array_search_sorted(ops_array *sorted, ops_array *values, int right);

/* How often each number from 0 to count - 1 is an element of `x`, I32 or I64 of any shape: I64 of
 * rank 1; with weights of x's shape, the sums of their elements, in their type and in the order of
 * the elements. Other numbers are not counted. The same in every run.
 * Ownership, Threads: as ops_array_variance. Errors: INVALID_ARGUMENT with the shapes. */
HAL_API ops_array *ops_array_bin_count(int64_t count, ops_array *x, ops_array *weights);

/* The coordinates (I64, [n, rank]) of the n elements that differ from 0, in row-major order; the
 * elements of x (rank 1) where the mask (BOOL, of its shape) is true; the different elements of x
 * in ascending order (rank 1). Places in `inverse` (I64, of x's shape) and counts (I64), unless
 * null: of each element among the results, and how often each occurs. NaNs differ from one another.
 * Each waits for the device once, for the count. Not within the recording of a graph.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT with
 * the shapes; as ops_array_read. */
HAL_API ops_array *ops_array_nonzero(ops_array *x);
HAL_API ops_array *ops_array_masked_select(ops_array *x, ops_array *mask);
HAL_API ops_array *ops_array_unique(ops_array *x, ops_array **inverse, ops_array **counts);

#ifdef __cplusplus
}
#endif
#endif
