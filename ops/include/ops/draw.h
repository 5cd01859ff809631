/* Random draws as arrays: from distributions with parameters, categories, permutations. Equal keys
 * give equal draws on every device that computes the same uniform numbers and logarithms. */
#ifndef OPS_DRAW_H
#define OPS_DRAW_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True (BOOL) with the probability of each element of p, F32 or F64: where a uniform number of 24
 * or 53 bits is less than it. Elements that are NaN give false. Dropout is x times this over p: the
 * same key draws the same mask again for its gradient.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT, as
 * ops_array_uniform. */
HAL_API ops_array *ops_array_bernoulli(ops_random_key key, ops_array *p);

/* Exponentially distributed floats, -log(1 - u) / rate with a uniform u; the rate is above 0.
 * Ownership, Threads, Errors: as ops_array_bernoulli. */
HAL_API ops_array *ops_array_exponential(ops_context *context, hal_type type, uint32_t rank,
                                         const int64_t *shape, ops_random_key key, double rate);

/* `count` categories (I32) for each line of weights (F32 or F64, rank 1 or 2, at least 0, not all
 * 0) along the last axis, each with a probability in proportion to its weight; with `replace` any
 * number of times, else at most once, and then count is at most the number of weights; of weights 0
 * come last. By the greatest of log(weight) plus Gumbel numbers; with `replace` these take count
 * times the memory of the weights.
 * Source: T. Vieira, "Gumbel-max trick and weighted reservoir sampling", 2014.
 * Ownership, Threads, Errors: as ops_array_bernoulli. */
HAL_API ops_array *ops_array_multinomial(ops_random_key key, int64_t count, int replace,
                                         ops_array *weights);

/* The integers 0 to n - 1 (I32, rank 1) in random order, as ops_random_permutation.
 * Ownership, Threads, Errors: as ops_array_bernoulli. */
HAL_API ops_array *ops_array_permutation(ops_context *context, ops_random_key key, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
