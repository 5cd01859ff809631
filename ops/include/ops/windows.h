/* Windows of tensors: copies whose elements follow affine coordinates, with a value outside, and
 * sums of the windows of each channel with weights. Outputs must not overlap inputs. */
#ifndef OPS_WINDOWS_H
#define OPS_WINDOWS_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the elements of y are in x: element (i0, i1, ...) has the coordinate origin[a] + the sum of
 * i_d step[d] over the axes d of y with axis[d] = a, for each axis a of x. An axis of x without one
 * of y has its origin alone. */
typedef struct ops_unfold_places {
    uint32_t size; /* sizeof(ops_unfold_places) */
    uint32_t axis[OPS_MAX_RANK];
    int64_t step[OPS_MAX_RANK];
    int64_t origin[OPS_MAX_RANK];
} ops_unfold_places;

/* y = the elements of x at their places, and `outside`, a tensor of one element, where a coordinate
 * is not in x. One type; elements keep their bits. Padding, windows of a padded tensor, and every
 * n-th element side by side are such copies, of one kernel.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, or for coordinates of more than
 * 62 bits; those of dispatches. */
HAL_API hal_status ops_unfold(ops_context *context, const ops_unfold_places *places,
                              const ops_tensor *x, const ops_tensor *outside,
                              HAL_OUT const ops_tensor *y);

#define OPS_MAX_SPATIAL 3u

/* The windows that ops_depthwise sums, one number for each spatial axis; a window has at most
 * OPS_DEPTHWISE_ELEMENTS elements. */
#define OPS_DEPTHWISE_ELEMENTS 64u
typedef struct ops_depthwise_options {
    uint32_t size;       /* sizeof(ops_depthwise_options) */
    uint32_t rank;       /* spatial axes, 1 to 3 */
    uint32_t activation; /* an ops_unary_function of the result; 0: none */
    uint32_t reserved;
    int64_t stride[OPS_MAX_SPATIAL];   /* between windows, at least 1 */
    int64_t dilation[OPS_MAX_SPATIAL]; /* between elements of a window, at least 1 */
    int64_t before[OPS_MAX_SPATIAL];   /* zeros before each axis; what y reads after it is 0 too */
} ops_depthwise_options;

/* y[n, c m + o, p...] = activation(bias[c m + o] + the sum over k of x[n, c, p stride + k dilation
 * - before] w[c m + o, k...]): the convolution of one channel per group. x is [N, C, lengths], w
 * [C m, window], the bias [C m] or null, y [N, C m, places]; any strides.
 * Elements are added in the order of the window by fused multiply-adds, in F32 for narrow floats,
 * and rounded once. Reads x and w once for each element of a window.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of dispatches. */
HAL_API hal_status ops_depthwise(ops_context *context, const ops_depthwise_options *options,
                                 const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                                 HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
