/* Arrays: values that look eager and are computed late.
 *
 * An array is immutable and reference-counted. A call that makes one checks shapes and types, notes
 * what is to be computed and returns at once; kernels are recorded when somebody needs the values.
 * By then chains whose intermediates nobody holds any more have become one kernel with no memory
 * behind them, and what nobody can read any more is never run. docs/batching.md says when.
 *
 *     ops_scope_begin(context);
 *     ops_array *h = ops_tanh(ops_add(ops_matmul(x, w), b));
 *     ops_array_keep(h);                       // carried out of the scope: the caller's now
 *     ops_scope_end(context);                  // releases the product and the sum
 *     ops_array_read(h, numbers, sizeof numbers);
 *     ops_array_release(h);
 *
 * Ownership: each call that makes an array gives one reference. It belongs to the innermost open
 * scope of the context, which releases it at its end, or, without a scope, to the caller. Arrays
 * end with their context, and graphs must not be launched after it.
 *
 * Errors: a call that fails gives null, and hal_status_message() says why, with the shapes. A null
 * operand gives null and leaves the message alone, so that of a nested expression the first failure
 * is told.
 *
 * Threads: arrays, scopes and the context belong to one thread at a time, that of the queue.
 *
 * The elements of two arrays are combined when they have one type; shapes are broadcast from the
 * last axis on, as lengths of 1 and missing axes stretch. Results have the same bits whether they
 * were fused or not, except that the sign of a NaN may differ. */
#ifndef OPS_ARRAY_H
#define OPS_ARRAY_H

#include <ops/random.h>
#include <ops/reduce.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ops_array ops_array;

/* ---- Lifetime ---- */

/* Opens a scope, to which the arrays made from now on belong; closes the innermost one and releases
 * what still belongs to it. Scopes nest.
 * Threads: the queue's. Errors: OUT_OF_MEMORY; INVALID_STATE for an end without a begin. */
HAL_API hal_status ops_scope_begin(ops_context *context);
HAL_API hal_status ops_scope_end(ops_context *context);

/* Takes an array out of its scope: the caller has to release it. Returns it; null gives null.
 * Ownership: the scope's reference becomes the caller's; an array that is not in a scope stays as
 * it is. Threads: the queue's. Errors: none. */
HAL_API ops_array *ops_array_keep(ops_array *array);

/* One more reference. Returns the array; null gives null.
 * Ownership: the caller's reference. Threads: the queue's. Errors: none. */
HAL_API ops_array *ops_array_retain(ops_array *array);

/* Gives a reference back: the caller's, or, when there is none, that of the scope, before its end.
 * Null is allowed.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_array_release(ops_array *array);

/* ---- Looking ---- */

/* Context, type, rank, length of an axis, and number of elements.
 * Ownership: the context is not retained for the caller. Threads: the queue's.
 * Errors: none; null gives null, HAL_TYPE_NONE, 0 or, for an axis that is none, -1. */
HAL_API ops_context *ops_array_get_context(const ops_array *array);
HAL_API hal_type ops_array_get_type(const ops_array *array);
HAL_API uint32_t ops_array_get_rank(const ops_array *array);
HAL_API int64_t ops_array_get_length(const ops_array *array, uint32_t axis);
HAL_API int64_t ops_array_get_element_count(const ops_array *array);

/* Records what computes the arrays, together where that takes fewer kernels; hands it to the
 * device. Null arrays are errors. An array that was computed before costs nothing.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, what kernels and dispatches meet; what was not
 * recorded stays to be computed. Of a batch that the device did not take (hal_queue_flush), here
 * and in every call that records, the arrays computed in it have no defined values. */
HAL_API hal_status ops_array_evaluate(ops_array *const *arrays, uint32_t count);

/* Computes an array, waits, and copies its elements to the host in row-major order. `bytes` is the
 * size of the host's memory and must be that of the elements. A small array that is computed by
 * this call lies where the host reads it; used again, it costs one copy (docs/batching.md).
 * Threads: the queue's. Errors: INVALID_ARGUMENT, as ops_array_evaluate, DEVICE_LOST. */
HAL_API hal_status ops_array_read(ops_array *array, void *elements, uint64_t bytes);

/* Computes an array and describes its memory, for the functions that take tensors.
 * Ownership: the tensor is a view that holds no reference; keep the array while it is used, and do
 * not write to it. Threads: the queue's. Errors: as ops_array_evaluate. */
HAL_API hal_status ops_array_get_tensor(ops_array *array, ops_tensor *tensor);

/* ---- Making ---- */

/* An array of `elements` in row-major order, which may be freed after the call. An array of the
 * memory of a tensor, which must not be written to as long as the array lives.
 * Ownership: the scope's or the caller's; the array of a tensor holds a reference to its buffer.
 * Threads: the queue's. Errors: null, as ops_tensor_from_host. */
HAL_API ops_array *ops_array_from_host(ops_context *context, hal_type type, uint32_t rank,
                                       const int64_t *shape, const void *elements);
HAL_API ops_array *ops_array_from_tensor(ops_context *context, const ops_tensor *tensor);

/* An array whose elements all have one value, rounded to the type; it takes no memory but that of
 * one element. A number is one of rank 0, which goes with every shape.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as
 * ops_tensor_create. */
HAL_API ops_array *ops_array_full(ops_context *context, hal_type type, uint32_t rank,
                                  const int64_t *shape, double value);
HAL_API ops_array *ops_array_scalar(ops_context *context, hal_type type, double value);

/* Random floats, as ops_random_uniform and ops_random_normal make them.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as those. */
HAL_API ops_array *ops_array_uniform(ops_context *context, hal_type type, uint32_t rank,
                                     const int64_t *shape, ops_random_key key, double low,
                                     double high);
HAL_API ops_array *ops_array_normal(ops_context *context, hal_type type, uint32_t rank,
                                    const int64_t *shape, ops_random_key key, double mean,
                                    double deviation);

/* ---- Views: no elements are copied ---- */

/* As the functions of tensors with these names. A reshape of an array that is not contiguous makes
 * a copy.
 * Ownership: the scope's or the caller's; a view keeps the memory that it looks at. Threads: the
 * queue's. Errors: null, INVALID_ARGUMENT with the shapes in the message. */
HAL_API ops_array *ops_array_slice(ops_array *x, uint32_t axis, int64_t start, int64_t count,
                                   int64_t step);
HAL_API ops_array *ops_array_permute(ops_array *x, const uint32_t *axes);
HAL_API ops_array *ops_array_transpose(ops_array *x, uint32_t axis1, uint32_t axis2);
HAL_API ops_array *ops_array_reshape(ops_array *x, uint32_t rank, const int64_t *shape);
HAL_API ops_array *ops_array_broadcast(ops_array *x, uint32_t rank, const int64_t *shape);

/* ---- Operations ---- */

/* f(x); f(x, y); condition ? x : y; x in another type, as ops_cast.
 * Ownership: the scope's or the caller's. Threads: the queue's.
 * Errors: null, INVALID_ARGUMENT with the shapes and types, UNSUPPORTED, OUT_OF_MEMORY. A call
 * records kernels of what came before when that has grown enough, and then meets what they meet. */
HAL_API ops_array *ops_array_unary(ops_unary_function function, ops_array *x);
HAL_API ops_array *ops_array_binary(ops_binary_function function, ops_array *x, ops_array *y);
HAL_API ops_array *ops_array_where(ops_array *condition, ops_array *x, ops_array *y);
HAL_API ops_array *ops_array_cast(hal_type type, ops_array *x);

/* The reduction of x along an axis, which then has length 1 when `keep_axis` is set and is gone
 * otherwise; as ops_reduce. ARGMAX gives I32. Softmax and its logarithm along an axis.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_reduce(ops_reduction reduction, uint32_t axis, int keep_axis,
                                    ops_array *x);
HAL_API ops_array *ops_array_softmax(uint32_t axis, ops_array *x);
HAL_API ops_array *ops_array_log_softmax(uint32_t axis, ops_array *x);

/* The matrix product of a [m, k] and b [k, n], of one float type, with a batch in front of either,
 * both or none, as ops_gemm. `precision` is HAL_GEMM_STRICT, _ACCURATE or _FAST.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_matmul(ops_array *a, ops_array *b, uint32_t precision);

/* ---- How it goes ---- */

/* Turns fusion off (0) or on: without it every call records its own kernel at once.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_context_set_fusion(ops_context *context, int fusion);

/* What the arrays of a context did so far. */
typedef struct ops_array_statistics {
    uint64_t recorded;   /* operations that calls noted; views and constants are none */
    uint64_t evaluated;  /* operations in recorded kernels; computed twice, one counts twice */
    uint64_t dropped;    /* operations that were never computed, since nobody could read them */
    uint64_t kernels;    /* times that kernels were recorded for them */
    uint64_t compiled;   /* of which a new one had to be made or loaded first */
    uint64_t arrays;     /* that live now */
    uint64_t deferred;   /* of which are to be computed */
} ops_array_statistics;

/* Writes what the context's arrays did so far to *statistics.
 * Threads: the queue's. Errors: none; null is ignored. */
HAL_API void ops_context_get_statistics(const ops_context *context,
                                        ops_array_statistics *statistics);

/* ---- Short names for the operations that are used most: as ops_array_unary, _binary ---- */

/* -x. */
static inline ops_array *ops_neg(ops_array *x)
{
    return ops_array_unary(OPS_NEG, x);
}
/* |x|. */
static inline ops_array *ops_abs(ops_array *x)
{
    return ops_array_unary(OPS_ABS, x);
}
/* x * x. */
static inline ops_array *ops_square(ops_array *x)
{
    return ops_array_unary(OPS_SQUARE, x);
}
/* max(x, 0); NaN passes. */
static inline ops_array *ops_relu(ops_array *x)
{
    return ops_array_unary(OPS_RELU, x);
}
/* The square root. */
static inline ops_array *ops_sqrt(ops_array *x)
{
    return ops_array_unary(OPS_SQRT, x);
}
/* 1 / sqrt(x). */
static inline ops_array *ops_rsqrt(ops_array *x)
{
    return ops_array_unary(OPS_RSQRT, x);
}
/* 1 / x. */
static inline ops_array *ops_reciprocal(ops_array *x)
{
    return ops_array_unary(OPS_RECIPROCAL, x);
}
/* e to the power x. */
static inline ops_array *ops_exp(ops_array *x)
{
    return ops_array_unary(OPS_EXP, x);
}
/* The natural logarithm. */
static inline ops_array *ops_log(ops_array *x)
{
    return ops_array_unary(OPS_LOG, x);
}
/* The sine of radians, as cos and tan. */
static inline ops_array *ops_sin(ops_array *x)
{
    return ops_array_unary(OPS_SIN, x);
}
static inline ops_array *ops_cos(ops_array *x)
{
    return ops_array_unary(OPS_COS, x);
}
static inline ops_array *ops_tan(ops_array *x)
{
    return ops_array_unary(OPS_TAN, x);
}
/* The hyperbolic tangent. */
static inline ops_array *ops_tanh(ops_array *x)
{
    return ops_array_unary(OPS_TANH, x);
}
/* The error function. */
static inline ops_array *ops_erf(ops_array *x)
{
    return ops_array_unary(OPS_ERF, x);
}
/* 1 / (1 + exp(-x)). */
static inline ops_array *ops_sigmoid(ops_array *x)
{
    return ops_array_unary(OPS_SIGMOID, x);
}
/* x * sigmoid(x). */
static inline ops_array *ops_silu(ops_array *x)
{
    return ops_array_unary(OPS_SILU, x);
}
/* x (1 + erf(x / sqrt 2)) / 2. */
static inline ops_array *ops_gelu(ops_array *x)
{
    return ops_array_unary(OPS_GELU, x);
}
/* log(1 + exp(x)). */
static inline ops_array *ops_softplus(ops_array *x)
{
    return ops_array_unary(OPS_SOFTPLUS, x);
}
/* Down to a whole number, up to one, towards zero, to the nearest one. */
static inline ops_array *ops_floor(ops_array *x)
{
    return ops_array_unary(OPS_FLOOR, x);
}
static inline ops_array *ops_ceil(ops_array *x)
{
    return ops_array_unary(OPS_CEIL, x);
}
static inline ops_array *ops_trunc(ops_array *x)
{
    return ops_array_unary(OPS_TRUNC, x);
}
static inline ops_array *ops_round(ops_array *x)
{
    return ops_array_unary(OPS_ROUND, x);
}
/* x + y. */
static inline ops_array *ops_add(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_ADD, x, y);
}
/* x - y. */
static inline ops_array *ops_sub(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_SUB, x, y);
}
/* x * y. */
static inline ops_array *ops_mul(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_MUL, x, y);
}
/* x / y. */
static inline ops_array *ops_div(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_DIV, x, y);
}
/* What x / y leaves, with the sign of x. */
static inline ops_array *ops_rem(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_REM, x, y);
}
/* The lesser one; NaN when either is NaN, as max. */
static inline ops_array *ops_minimum(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_MINIMUM, x, y);
}
static inline ops_array *ops_maximum(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_MAXIMUM, x, y);
}
/* x to the power y. */
static inline ops_array *ops_pow(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_POW, x, y);
}
/* Comparisons give BOOL. */
static inline ops_array *ops_eq(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_EQ, x, y);
}
static inline ops_array *ops_ne(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_NE, x, y);
}
static inline ops_array *ops_lt(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_LT, x, y);
}
static inline ops_array *ops_le(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_LE, x, y);
}
static inline ops_array *ops_gt(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_GT, x, y);
}
static inline ops_array *ops_ge(ops_array *x, ops_array *y)
{
    return ops_array_binary(OPS_GE, x, y);
}
/* The matrix product in strict arithmetic. */
static inline ops_array *ops_matmul(ops_array *a, ops_array *b)
{
    return ops_array_matmul(a, b, HAL_GEMM_STRICT);
}
/* Sum, mean, greatest and least element along an axis, which is gone then. */
static inline ops_array *ops_reduce_sum(ops_array *x, uint32_t axis)
{
    return ops_array_reduce(OPS_REDUCE_SUM, axis, 0, x);
}
static inline ops_array *ops_reduce_mean(ops_array *x, uint32_t axis)
{
    return ops_array_reduce(OPS_REDUCE_MEAN, axis, 0, x);
}
static inline ops_array *ops_reduce_max(ops_array *x, uint32_t axis)
{
    return ops_array_reduce(OPS_REDUCE_MAX, axis, 0, x);
}
static inline ops_array *ops_reduce_min(ops_array *x, uint32_t axis)
{
    return ops_array_reduce(OPS_REDUCE_MIN, axis, 0, x);
}

#ifdef __cplusplus
}
#endif
#endif
