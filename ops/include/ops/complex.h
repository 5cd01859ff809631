/* Complex arrays: arrays of F32 or F64 whose last axis has length 2, the real part and then the
 * imaginary part. So their elements are in memory those of C's float complex and double complex.
 *
 * Calls that move elements (views, gathers, concatenation, ops_array_where with a condition that
 * has a last axis of length 1, casts between F32 and F64) take them as any array; these calls
 * compute with them. `x`, `y` and results are complex unless a contract says otherwise; the
 * shapes that it names leave the last axis out. The functions are composed of real elementwise
 * operations, which are deferred and fused as all: chains of them become one kernel.
 *
 * Special values (infinities, NaN, zeros and their signs) of functions of one number are those of
 * C's Annex G, so results continue on branch cuts by the sign of zero. Products and quotients are
 * the textbook's, as NumPy's: one of infinities may be NaN in both parts. docs/operators.md has the
 * bounds of errors.
 *
 * Sources: W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's
 * sign bit" (1987); ISO C, Annex G. */
#ifndef OPS_COMPLEX_H
#define OPS_COMPLEX_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of one complex number; of the first two the result is real. */
typedef enum ops_complex_unary_function {
    OPS_COMPLEX_ABS,   /* sqrt(re re + im im), without overflow between */
    OPS_COMPLEX_ANGLE, /* -pi to pi */
    OPS_COMPLEX_CONJ,
    OPS_COMPLEX_SIGN, /* z / |z|; 0 of 0 */
    OPS_COMPLEX_SQRT,
    OPS_COMPLEX_EXP,
    OPS_COMPLEX_EXPM1, /* exp(z) - 1, exact near 0 */
    OPS_COMPLEX_LOG,
    OPS_COMPLEX_LOG2,
    OPS_COMPLEX_LOG10,
    OPS_COMPLEX_LOG1P, /* log(1 + z), exact near 0 */
    OPS_COMPLEX_SIN,
    OPS_COMPLEX_COS,
    OPS_COMPLEX_TAN,
    OPS_COMPLEX_SINH,
    OPS_COMPLEX_COSH,
    OPS_COMPLEX_TANH,
    OPS_COMPLEX_ASIN,
    OPS_COMPLEX_ACOS,
    OPS_COMPLEX_ATAN,
    OPS_COMPLEX_ASINH,
    OPS_COMPLEX_ACOSH,
    OPS_COMPLEX_ATANH,
    OPS_COMPLEX_UNARY_COUNT
} ops_complex_unary_function;

/* Functions of two complex numbers; of the last two the result is of type BOOL, without the axis of
 * length 2. */
typedef enum ops_complex_binary_function {
    OPS_COMPLEX_ADD,
    OPS_COMPLEX_SUB,
    OPS_COMPLEX_MUL,
    OPS_COMPLEX_DIV, /* without overflow between; by an infinity 0 */
    OPS_COMPLEX_POW, /* exp(y log(x)); x^0 = 1, and 0^y = 0 where re(y) > 0 */
    OPS_COMPLEX_EQ,
    OPS_COMPLEX_NE,
    OPS_COMPLEX_BINARY_COUNT
} ops_complex_binary_function;

/* The complex array of real and imaginary parts, real arrays of one type that are broadcast; a null
 * `im` is 0.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT with
 * the types and shapes, UNSUPPORTED, OUT_OF_MEMORY. */
HAL_API ops_array *ops_complex_join(ops_array *re, ops_array *im);

/* The real and the imaginary part of x, real arrays: views.
 * Ownership, Threads, Errors: as ops_complex_join. */
HAL_API ops_array *ops_complex_real(ops_array *x);
HAL_API ops_array *ops_complex_imag(ops_array *x);

/* f(x); f(x, y), broadcast as real operands are, but for the last axis.
 * Ownership, Threads, Errors: as ops_complex_join. */
HAL_API ops_array *ops_complex_unary(ops_complex_unary_function function, ops_array *x);
HAL_API ops_array *ops_complex_binary(ops_complex_binary_function function, ops_array *x,
                                      ops_array *y);

/* Whether either part is NaN (IS_NAN), either is infinite (IS_INFINITE), or both are finite
 * (IS_FINITE): of type BOOL, without the axis of length 2.
 * Ownership, Threads: as ops_complex_join. Errors: as that; INVALID_ARGUMENT for other functions.
 */
HAL_API ops_array *ops_complex_test(ops_unary_function test, ops_array *x);

/* The sum, mean or product of x along an axis (SUM, MEAN, PRODUCT), as ops_array_reduce; and the
 * sum or product of every beginning of an axis, as ops_array_scan. Sums are those of the parts.
 * Products of n numbers are log2(n) elementwise kernels of halves that are multiplied.
 * Ownership, Threads: as ops_complex_join. Errors: as that; INVALID_ARGUMENT for other reductions.
 */
HAL_API ops_array *ops_complex_reduce(ops_reduction reduction, int32_t axis, int keep_axis,
                                      ops_array *x);
HAL_API ops_array *ops_complex_scan(ops_scan_kind kind, int32_t axis, ops_array *x);

/* The matrix product of a [m, k] and b [k, n], each with an optional batch axis in front, as
 * ops_array_matmul: one real product of [m, 2 k] and [2 k, 2 n], that is 4 real products. It takes
 * memory for twice the elements of b.
 * Ownership, Threads: as ops_complex_join. Errors: as ops_array_matmul. */
HAL_API ops_array *ops_complex_matmul(ops_array *a, ops_array *b, uint32_t precision);

/* The name of a function, such as "exp"; null for an invalid number.
 * Ownership: a constant string. Threads: any. Errors: none. */
HAL_API const char *ops_complex_unary_name(ops_complex_unary_function function);
HAL_API const char *ops_complex_binary_name(ops_complex_binary_function function);

#ifdef __cplusplus
}
#endif
#endif
