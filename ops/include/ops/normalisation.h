/* Normalisations of arrays with their gradients: layer, RMS, group, instance and batch norm.
 *
 * Each subtracts a mean and multiplies with 1 / sqrt(variance + epsilon), in F32 for narrow floats,
 * rounded once. Variances are means of squared differences from the mean, which do not cancel.
 * Elementwise work before and after is fused; where the elements of a mean are one axis, mean,
 * variance and result are one kernel (docs/operators.md). Weights and biases, where not null, have
 * x's type. */
#ifndef OPS_NORMALISATION_H
#define OPS_NORMALISATION_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a normalisation gives besides its result, for its gradient: in F32 for narrow floats, else
 * in x's type. Null in a place that is not wanted. */
typedef struct ops_normalised {
    ops_array **mean;
    ops_array **scale; /* 1 / sqrt(variance + epsilon) */
} ops_normalised;

/* Layer norm of x along its last `axis_count` axes, times weight plus bias, which have the shape of
 * these axes. Mean and scale have the shape of the axes before. Instance norm is group norm with
 * one channel per group.
 * Ownership: result, mean and scale are the scope's or the caller's. Threads: the queue's. Errors:
 * null, INVALID_ARGUMENT with the shapes, as ops_array_reduce; then *mean and *scale are null. */
HAL_API ops_array *ops_array_layer_norm(ops_array *x, uint32_t axis_count, ops_array *weight,
                                        ops_array *bias, double epsilon, ops_normalised more);

/* x / sqrt(mean of x^2 + epsilon) along the last axes, times weight.
 * Ownership, Threads, Errors: as ops_array_layer_norm; more.mean is null. */
HAL_API ops_array *ops_array_rms_norm(ops_array *x, uint32_t axis_count, ops_array *weight,
                                      double epsilon, ops_normalised more);

/* Group norm of x [N, C, ...], whose channels are `groups` neighbouring parts; weight and bias are
 * [C], mean and scale [N, groups].
 * Ownership, Threads, Errors: as ops_array_layer_norm. */
HAL_API ops_array *ops_array_group_norm(ops_array *x, int64_t groups, ops_array *weight,
                                        ops_array *bias, double epsilon, ops_normalised more);

/* Batch norm of x [N, C, ...] with mean and variance of each channel of the batch, which `more`
 * returns as mean and scale, [C]. The variance is 1 / scale^2 - epsilon; unbiased it is that times
 * n / (n - 1). With a given mean and variance, [C], as after training.
 * Ownership, Threads, Errors: as ops_array_layer_norm. */
HAL_API ops_array *ops_array_batch_norm(ops_array *x, ops_array *weight, ops_array *bias,
                                        double epsilon, ops_normalised more);
HAL_API ops_array *ops_array_batch_norm_given(ops_array *x, ops_array *mean, ops_array *variance,
                                              ops_array *weight, ops_array *bias, double epsilon);

/* Gradients by x, weight and bias, in their places; null where not wanted. */
typedef struct ops_norm_gradients {
    ops_array **x, **weight, **bias;
} ops_norm_gradients;

/* The gradients of a normalisation from dy, that of its result, its operand and what it returned in
 * ops_normalised. A null `mean` is that of RMS norm. Weight may be null: then it was. The gradient
 * by x is computed as scale (g - mean(g) - x' mean(g x')) with g = dy weight and x' the normalised
 * x; those by weight and bias are sums, in x's type.
 * Ownership: the gradients are the scope's or the caller's. Threads: the queue's. Errors: as
 * ops_array_layer_norm; the gradients are null then. */
HAL_API hal_status ops_array_layer_norm_gradients(ops_array *dy, ops_array *x, uint32_t axis_count,
                                                  ops_array *mean, ops_array *scale,
                                                  ops_array *weight, ops_norm_gradients gradients);
HAL_API hal_status ops_array_group_norm_gradients(ops_array *dy, ops_array *x, int64_t groups,
                                                  ops_array *mean, ops_array *scale,
                                                  ops_array *weight, ops_norm_gradients gradients);
HAL_API hal_status ops_array_batch_norm_gradients(ops_array *dy, ops_array *x, ops_array *mean,
                                                  ops_array *scale, ops_array *weight,
                                                  ops_norm_gradients gradients);

#ifdef __cplusplus
}
#endif
#endif
