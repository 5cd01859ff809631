/* Convolutions of arrays, in one to three dimensions, with their gradients.
 *
 * They are matrix products: of the weights and the windows of the input, which are copied to a
 * matrix or, where that takes less time, read where they are (docs/operators.md). So bounds and
 * precision are those of ops_array_matmul, and bias and activation are part of the product's
 * kernel. With one channel per group, each work-item sums the
 * window of its result instead (ops_depthwise); on processors also with few channels or results, of
 * any precision, where that takes less time. Windows of 1 element, 1 apart, without padding are
 * not copied. */
#ifndef OPS_CONVOLUTION_H
#define OPS_CONVOLUTION_H

#include <ops/array.h>
#include <ops/windows.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that the copied windows of one product take, unless those of one line along the
 * first spatial axis of one image (of a gradient: those of one image) take more. Longer ones are
 * cut into several products. */
#define OPS_CONVOLUTION_BYTES (UINT64_C(64) << 20)

/* How convolutions and their gradients are computed; those with one channel per group have one
 * way. */
typedef enum ops_convolution_way {
    OPS_CONVOLUTION_AUTO,     /* the one that takes less time, by bytes and operations */
    OPS_CONVOLUTION_COPIED,   /* windows are copied to a matrix */
    OPS_CONVOLUTION_IMPLICIT, /* the product's kernel reads the windows in x, where it can */
    OPS_CONVOLUTION_DIRECT    /* work-items sum windows of x, without a product, where they can;
                               * gradients by weights have no such way */
} ops_convolution_way;

/* Sets the way for calls from now on; at first that of the variable HAL_CONVOLUTION ("auto",
 * "copied", "implicit" or "direct"), else AUTO. Results of two ways differ by rounding.
 * Threads: the queue's. Errors: none; other values count as AUTO. */
HAL_API void ops_context_set_convolution(ops_context *context, ops_convolution_way way);

/* Zeros are the defaults, so that a zero-initialised structure with its size is a convolution with
 * steps of 1, without padding, in strict arithmetic. One number for each spatial axis. */
typedef struct ops_convolution_options {
    uint32_t size;                     /* sizeof(ops_convolution_options) */
    uint32_t channels_last;            /* of x and the result; the weights stay as they are */
    uint32_t precision;                /* a hal_gemm_precision */
    uint32_t activation;               /* an ops_unary_function of the result; 0: none */
    int64_t groups;                    /* of channels, which do not mix; 0: 1 */
    int64_t stride[OPS_MAX_SPATIAL];   /* between windows; 0: 1 */
    int64_t dilation[OPS_MAX_SPATIAL]; /* between elements of a window; 0: 1 */
    int64_t before[OPS_MAX_SPATIAL];   /* zeros added at the start of each axis */
    int64_t after[OPS_MAX_SPATIAL];    /* zeros added at the end of each axis */
} ops_convolution_options;

/* y[n, o, p...] = activation(bias[o] + the sum over c and k of w[o, c, k...] xp[n, g C + c, p
 * stride + k dilation...]), where xp is x with its padding, and g the group of o. x is [N, groups
 * C, lengths], w [O, C, window], the bias [O] or null, y [N, O, places]; with channels_last x is
 * [N, lengths, groups C] and y [N, places, O]. Correlation, as in PyTorch: the window is not
 * turned.
 *
 * Each element is a sum of C times the window's elements, with the bound of ops_gemm; of one
 * channel per group in F32 for narrow floats, rounded once. Temporary memory: x with its padding,
 * if it has any, and OPS_CONVOLUTION_BYTES. Null `options`: the defaults.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT with
 * the shapes; as ops_array_matmul. */
HAL_API ops_array *ops_array_convolution(const ops_convolution_options *options, ops_array *x,
                                         ops_array *w, ops_array *bias);

/* The transposed convolution, which is the gradient of a convolution by its input: x is [N, groups
 * C, places], w [groups C, O, window], y [N, groups O, lengths]. Element x[n, c, p] adds w[c, o, k]
 * times it to y[n, o, p stride + k dilation - before]. `lengths` are the spatial ones of y; null:
 * (places - 1) stride + (window - 1) dilation + 1 - before - after. With the options of a
 * convolution, x its result's gradient, w its weights and `lengths` those of its input, y is the
 * gradient of its input. Computed as a convolution for each phase of the steps, or of x with zeros
 * between its elements, with temporary memory as of that and the results of a phase; on processors
 * also, in pieces of images, as a product of x with each element of the window: the products of a
 * piece, at most OPS_CONVOLUTION_BYTES, are copied among zeros, and added.
 * Ownership, Threads, Errors: as ops_array_convolution. */
HAL_API ops_array *ops_array_convolution_transposed(const ops_convolution_options *options,
                                                    ops_array *x, ops_array *w, ops_array *bias,
                                                    const int64_t *lengths);

/* The gradient of a convolution by its weights, [O, C, window], from x and the gradient dy of its
 * result; `window` has the lengths of the window. Each element is a sum over all images and places.
 * Where the windows are cut into several products, these are in F32 for narrow floats, and added.
 * The gradient by the bias is the sum of dy along all axes but the channels'.
 * Ownership, Threads, Errors: as ops_array_convolution. */
HAL_API ops_array *ops_array_convolution_weights(const ops_convolution_options *options,
                                                 ops_array *x, ops_array *dy,
                                                 const int64_t *window);

#ifdef __cplusplus
}
#endif
#endif
