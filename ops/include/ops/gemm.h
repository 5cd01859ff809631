/* Matrix products through two implementations: a portable IR kernel that runs on every device,
 * and the
 * plugin's own where it has one. */
#ifndef OPS_GEMM_H
#define OPS_GEMM_H

#include <ops/pointwise.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_gemm_impl {
    OPS_GEMM_ANY,      /* the plugin's own, else the portable kernel */
    OPS_GEMM_PORTABLE, /* the portable kernel */
    OPS_GEMM_NATIVE    /* the plugin's own, else UNSUPPORTED */
} ops_gemm_impl;

/* Begin with OPS_GEMM_OPTIONS_DEFAULT, the plain product in strict arithmetic, and change fields. A
 * structure of zeros is the plain product, too; with other fields set, a size of 0 is an error, so
 * that an alpha that was forgotten is not taken for 0. */
typedef struct ops_gemm_options {
    uint32_t size; /* sizeof(ops_gemm_options) */
    /* HAL_GEMM_STRICT: the accumulator's arithmetic, each operation rounded once. _ACCURATE: the
     * same bound, perhaps by matrix units: F32 in three products of parts, so that an infinity, or
     * a number that rounds to one, gives NaN. _FAST: whatever the units do; F32 may be rounded
     * to 11 bits first. */
    uint32_t precision;
    ops_gemm_impl impl;
    double alpha, beta;
    /* The epilogue's inputs are 0: alpha A B + beta C in the accumulator's type, 1: row, 2: column,
     * 3: batch (U32), 4 and up: at most 12 further inputs, broadcast to C's shape. Its one output
     * goes to C. Without further inputs it may end after the last input that it needs; with them it
     * declares inputs 0 to 3, used or not. */
    const ops_expression *epilogue;
    const ops_tensor *inputs;
    uint32_t input_count;
} ops_gemm_options;

#define OPS_GEMM_OPTIONS_DEFAULT                                                         \
    {                                                                                    \
        sizeof(ops_gemm_options), HAL_GEMM_STRICT, OPS_GEMM_ANY, 1.0, 0.0, NULL, NULL, 0 \
    }

/* C = epilogue(alpha A B + beta C). A is m x k, B is k x n, C is m x n; rank 3 adds a batch in
 * front, over which A and B may broadcast (rank 2, or a length of 1). Any strides are taken of
 * which one of the last two is 1: transposed views and leading dimensions cost nothing; others are
 * copied first. The types are floats: F32 and F64 accumulate in themselves, narrower ones in F32; A
 * and B have one type, C has the same or F32. C is not read when beta is 0. C
 * overlaps neither A nor B. Where k or alpha is 0, C = epilogue(beta C) in every bit, whatever
 * alpha is, and A and B are not read; ops computes that itself for every implementation. Without
 * `options`: the plain product.
 * Error bound of strict arithmetic, in every element: |c' - c| <= K u / (1 - K u) (|alpha| |A||B| +
 * |beta| |C|) + v |c| + (1 + |alpha|) K e + f, with K = k + 2; u and e are the accumulator's unit
 * roundoff and least positive number, v and f those of C's type. On a device without
 * HAL_EXACT_DENORMALS, e and f are the least positive normal numbers. The bound holds where nothing
 * overflows.
 * The order of additions depends on shapes, strides and the device alone. A product with few
 * elements of C and a long k may be computed in parts of k by one kernel, and added by another; the
 * parts lie in memory that the call makes, and where there is none, one kernel does all, in its own
 * order.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT with the shapes and types, UNSUPPORTED, what kernels and dispatches
 * meet. */
HAL_API hal_status ops_gemm(ops_context *context, const ops_gemm_options *options,
                            const ops_tensor *a, const ops_tensor *b, const ops_tensor *c);

#ifdef __cplusplus
}
#endif
#endif
