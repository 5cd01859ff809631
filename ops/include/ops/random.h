/* Random numbers from a counter: element i of a tensor depends on the seed, the stream and i alone,
 * so every device computes the same numbers.
 *
 * Source: Philox 4x32 with 10 rounds, J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel
 * Random Numbers: As Easy as 1, 2, 3", SC 2011. */
#ifndef OPS_RANDOM_H
#define OPS_RANDOM_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Equal keys give equal numbers; different streams of a seed are independent. */
typedef struct ops_random_key {
    uint64_t seed;
    uint64_t stream;
} ops_random_key;

/* y = floats in [low, high), of 24 random bits (53 of F64), rounded to nearest in narrow types; U32
 * and I32 tensors take all 32 bits and ignore low and high. y is contiguous.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, UNSUPPORTED, those of dispatches. */
HAL_API hal_status ops_random_uniform(ops_context *context, ops_random_key key, double low,
                                      double high, HAL_OUT const ops_tensor *y);

/* y = normally distributed floats; y is contiguous.
 * Source: G. E. P. Box, M. E. Muller, "A Note on the Generation of Random Normal Deviates", 1958.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, UNSUPPORTED, those of dispatches. */
HAL_API hal_status ops_random_normal(ops_context *context, ops_random_key key, double mean,
                                     double deviation, HAL_OUT const ops_tensor *y);

/* y = the integers 0 to n - 1 in random order, I32 of rank 1 with n elements, computed on the host
 * from the same random numbers.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, those of dispatches. */
HAL_API hal_status ops_random_permutation(ops_context *context, ops_random_key key,
                                          HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
