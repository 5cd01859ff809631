/* Matrix products of the class HAL_GEMM_NORMWISE: Strassen's algorithm, for programs that ask for a
 * bound of the result's norm instead of its elements.
 *
 * ops_gemm of that class may multiply F32 and F64 matrices of one batch by L = 1 or 2 levels of the
 * algorithm, where a cost model of shape and device expects a gain. options.levels, at most
 * HAL_GEMM_MAX_LEVELS, asks for a number of levels even where they take longer; where the product
 * cannot have that many, it has none. Other classes ignore it.
 *
 * With |X| the largest element,
 *     |C' - C| <= (12^L (q^2 + 5 q) - 5 k) u |alpha| |A| |B| + lower terms,   q = k / 2^L
 * (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 23.2.2):
 * about 3^L times the bound of the norm of an ordinary product. Small elements of C next to large
 * ones may have no correct digit, and an infinity or NaN spreads over the whole result.
 *
 * It takes temporary memory of at most 1.75^L times the bytes of A, B and C, and once those of C,
 * or options.max_workspace where that is less; without that memory the product is an ordinary one.
 * If allocating the copies for the remaining rows and columns fails, ops_gemm returns
 * OUT_OF_MEMORY, and the part of C that the levels compute may have been written. The epilogue
 * must not use inputs 1 to 3, and the device binds 4 tensors more than it has further inputs; else
 * the product is an ordinary one. A plugin's kernel may have the levels inside, as the cpu's has:
 * then any epilogue is allowed, and the temporary memory is what ops_gemm_describe says, at most
 * max_workspace; the cpu's kernel takes less than 260 MiB in F32 and 520 in F64 for the sums, and
 * 8 MiB for each thread.
 *
 * Products that follow one another, each the A of the next, can pass sums of blocks instead of the
 * matrix, with options.levels of at least 1. options.c_sums receives the sums of C after the
 * epilogue, from the kernel that combines the products; c may be null where beta is 0, and is not
 * written then. options.a_sums, such sums of an earlier product, take the place of a, which is null
 * then. Matrices have rank 2, the lengths of A's or C's rows and columns are multiples of 2^levels,
 * and the levels are kernels of their own. A network of n such layers with prepared weights is
 * 2 n + 1 kernels: the sums of the first A, and for each layer a product and a combination, which
 * also makes the sums for the next one. Arrays do this by themselves (ops_array_matmul). */
#ifndef OPS_NORMWISE_H
#define OPS_NORMWISE_H

#include <ops/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The levels, as kernels of their own, that ops_gemm with these options would multiply m x k by
 * k x n matrices of a type with: options.levels, or what the cost model chooses. 0: an ordinary
 * product, or another class than HAL_GEMM_NORMWISE. Levels inside a kernel of the device's plugin
 * do not count.
 * Threads: the queue's. Errors: INVALID_ARGUMENT. */
HAL_API hal_status ops_gemm_choose_levels(ops_context *context, const ops_gemm_options *options,
                                          hal_type type, int64_t m, int64_t n, int64_t k,
                                          HAL_OUT uint32_t *levels);

/* A tensor [7^levels, rows / 2^levels, columns / 2^levels] for options.c_sums of a product with a
 * rows x columns matrix C, and options.a_sums of the next one.
 * Ownership: `sums` holds its buffer's only reference. Threads: any.
 * Errors: INVALID_ARGUMENT where a length is no multiple of 2^levels, OUT_OF_MEMORY. */
HAL_API hal_status ops_gemm_sums_create(ops_context *context, hal_type type, uint32_t levels,
                                        int64_t rows, int64_t columns, HAL_OUT ops_tensor *sums);

#ifdef __cplusplus
}
#endif
#endif
