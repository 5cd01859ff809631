/* Matrix products whose weights are quantised: packed numbers of 4 or 8 bits, and a scale for each
 * column, block of a column, or all of them. */
#ifndef OPS_QUANTISED_H
#define OPS_QUANTISED_H

#include <ops/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of weights. Those of 4 bits are pairs in bytes: the first of two neighbours along k has
 * the low bits. E4M3 and E5M2 are the OCP's 8-bit floats, E2M1 is the 4-bit one of MXFP4. */
typedef enum ops_quantised_format {
    OPS_QUANTISED_I8 = 1, /* two's complement, in elements of I8 */
    OPS_QUANTISED_U8,     /* as the others in elements of U8 */
    OPS_QUANTISED_I4,     /* two's complement */
    OPS_QUANTISED_U4,
    OPS_QUANTISED_E4M3, /* in elements of F8_E4M3 or U8 */
    OPS_QUANTISED_E5M2,
    OPS_QUANTISED_E2M1
} ops_quantised_format;

/* B of a product, k x n: element (i, j) is (values[i, j] - zeros[i / block, j]) scales[i / block,
 * j], where block is k / the rows of `scales`. Start from OPS_QUANTISED_DEFAULT.
 * Tensors have rank 2, or 3 with a leading batch axis, and any strides: weights that are stored by
 * columns, n x k, are viewed transposed. A length of 1 broadcasts: scales of [1, n] are those of
 * columns, of [1, 1] that of the tensor. */
typedef struct ops_quantised {
    uint32_t size; /* sizeof(ops_quantised) */
    ops_quantised_format format;
    ops_tensor values; /* [k, n]; of 4 bits [k / 2, n], of an even k */
    ops_tensor scales; /* F32, F16, BF16, or U8: 2^(x - 127), those of microscaling formats, where
                        * 255 is NaN */
    const ops_tensor *zeros; /* of the shape of `scales`; F32, F16, BF16, I8 or U8; null: none */
    double zero;             /* is subtracted of all values, such as 8 of U4; for integers a whole
                              * number of at most 2^15 in size, for floats 0 */
} ops_quantised;

#define OPS_QUANTISED_DEFAULT                                      \
    {                                                              \
        sizeof(ops_quantised), OPS_QUANTISED_I8, {0}, {0}, NULL, 0 \
    }

/* C = epilogue(alpha A B + beta C) of a quantised B, as ops_gemm. A and C are F32, F16 or BF16; the
 * options have neither a prepared B nor levels nor sums, and NORMWISE is as ACCURATE.
 * With few rows of A one kernel reads the packed numbers and decodes them in registers: no other
 * form of B is in memory. It does so where blocks are powers of two of at least 8, or one block has
 * all of k, and rows or columns of `values` are contiguous; on processors only with
 * OPS_GEMM_PORTABLE. For other products B is written to temporary memory once, in the type of A,
 * at once or some columns at a time, and multiplied as by ops_gemm; ops_gemm_quantised_describe
 * tells which.
 * Error bound: that of ops_gemm, with |B| (1 + w) in the place of |B| and w |alpha| |A| |B| more,
 * where w is the unit roundoff of A's type plus 3 u: weights are computed in F32, and rounded to
 * the type of A or not at all.
 * Threads: the queue's. Errors: as ops_gemm; INVALID_ARGUMENT for other types, shapes or fields. */
HAL_API hal_status ops_gemm_quantised(ops_context *context, const ops_gemm_options *options,
                                      const ops_tensor *a, const ops_quantised *b,
                                      HAL_OUT const ops_tensor *c);

/* Writes to `text`, of `bytes` bytes, one line about how ops_gemm_quantised with these arguments
 * computes: whether it reads B in its packed form, and with which tile. 512 bytes suffice.
 * Threads: the queue's. Errors: as ops_gemm_quantised; INVALID_ARGUMENT without text. */
HAL_API hal_status ops_gemm_quantised_describe(ops_context *context,
                                               const ops_gemm_options *options, const ops_tensor *a,
                                               const ops_quantised *b, const ops_tensor *c,
                                               uint64_t bytes, HAL_OUT char *text);

/* Writes B to y, [k, n] of F32, F16 or BF16 with the batch axis of `values`: what the others
 * multiply. Values are computed in F32 and rounded once.
 * Threads: the queue's. Errors: as ops_gemm_quantised. */
HAL_API hal_status ops_dequantise(ops_context *context, const ops_quantised *b,
                                  HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
