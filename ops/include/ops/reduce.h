/* Reductions along one axis, with pointwise work before and after.
 *
 * The order of the additions depends on shape, strides and the device's limits alone, never on
 * timing: the same inputs give the same bits. The output of a prologue counts as row-major. There
 * are no float atomics. */
#ifndef OPS_REDUCE_H
#define OPS_REDUCE_H

#include <ops/pointwise.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_reduction {
    OPS_REDUCE_SUM,
    OPS_REDUCE_MEAN,   /* floats */
    OPS_REDUCE_MAX,    /* NaN if any is NaN */
    OPS_REDUCE_MIN,    /* NaN if any is NaN */
    OPS_REDUCE_ARGMAX, /* index of the first maximum; NaN counts as greatest; I32 or I64 */
    OPS_REDUCE_PRODUCT,
    OPS_REDUCE_ARGMIN, /* index of the first minimum; NaN counts as least; I32 or I64 */
    OPS_REDUCTION_COUNT
} ops_reduction;

/* Pointwise work around a reduction. Start from OPS_REDUCE_OPTIONS_DEFAULT, which has none, and
 * change fields; a zero-initialised structure has none either. */
typedef struct ops_reduce_options {
    uint32_t size;                  /* sizeof(ops_reduce_options) */
    const ops_expression *prologue; /* inputs: x and further inputs, all broadcast to x's shape */
    const ops_tensor *prologue_inputs; /* further inputs */
    uint32_t prologue_input_count;
    const ops_expression *epilogue; /* inputs: the result and further ones, in the output's shape */
    const ops_tensor *epilogue_inputs;
    uint32_t epilogue_input_count;
} ops_reduce_options;

#define OPS_REDUCE_OPTIONS_DEFAULT                               \
    {                                                            \
        sizeof(ops_reduce_options), NULL, NULL, 0, NULL, NULL, 0 \
    }

/* y = reduction of x along `axis`. y has x's rank with length 1 at the axis, or one rank less.
 * The values that are reduced, x or the prologue's output, are not BOOL. Sums and products of
 * narrow floats are accumulated in F32, of small integers in I32 or U32; y's type may differ from
 * the result's in storage only (F16 and F32, I8 and I32). An axis has at most 2^31 - 1 elements;
 * one of length 0 gives 0 for SUM, 1 for PRODUCT, and is refused for the others. `options` may be
 * null.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, UNSUPPORTED, those of kernels and
 * dispatches. */
HAL_API hal_status ops_reduce(ops_context *context, ops_reduction reduction, int32_t axis,
                              const ops_tensor *x, const ops_reduce_options *options,
                              HAL_OUT const ops_tensor *y);

/* y = exp(x - max x) / sum of exp(x - max x) along `axis`, of floats, and its logarithm; both
 * without overflow. y has x's shape, a float type of the same arithmetic, and may be x.
 * Error bounds, with n the length of the axis, d = |x - max x|, the arithmetic type's unit roundoff
 * u and that of y's type v: |y' - y| <= ((n + 10 + d) u + v) y + f for softmax, with f the least
 * positive normal number of y's type, and (n + 8 + 2 d) u + v |y| for its logarithm.
 * Threads: the queue's.
 * Errors: as ops_reduce. */
HAL_API hal_status ops_softmax(ops_context *context, int32_t axis, const ops_tensor *x,
                               HAL_OUT const ops_tensor *y);
HAL_API hal_status ops_log_softmax(ops_context *context, int32_t axis, const ops_tensor *x,
                                   HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
