/* Matrix products through two implementations: a portable IR kernel that runs on every device, and
 * the plugin's own where it has one. */
#ifndef OPS_GEMM_H
#define OPS_GEMM_H

#include <ops/pointwise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A B that was made ready ahead for many products, see ops_gemm_prepare. */
typedef struct ops_gemm_prepared ops_gemm_prepared;

typedef enum ops_gemm_impl {
    OPS_GEMM_ANY,      /* the plugin's own, else the portable kernel */
    OPS_GEMM_PORTABLE, /* the portable kernel */
    OPS_GEMM_NATIVE    /* the plugin's own, else UNSUPPORTED */
} ops_gemm_impl;

/* Start from OPS_GEMM_OPTIONS_DEFAULT, the plain product in strict arithmetic, and change fields. A
 * zero-initialised structure is the plain product as well. With other fields set, a size of 0 is an
 * error, so that a forgotten alpha is not taken for 0. */
typedef struct ops_gemm_options {
    uint32_t size; /* sizeof(ops_gemm_options) */
    /* HAL_GEMM_STRICT: the accumulator's arithmetic, each operation rounded once. _ACCURATE: the
     * same bound, perhaps by matrix units: F32 as three products of parts, so that an infinity, or
     * a number that rounds to one, gives NaN. _FAST: the arithmetic of the units, which may round
     * one F32 operand to 11 bits and truncate the other, and drop bits of sums of F8_E4M3, at most
     * 2^-5 |A||B| in all. _NORMWISE: a bound of the result's norm, not of its elements (see
     * normwise.h); as _ACCURATE where that is not slower. _EXACT, of F64 alone: the bound of
     * _STRICT by integer arithmetic, with the same bits on every device and also on those without
     * F64; see ops_gemm. */
    uint32_t precision;
    ops_gemm_impl impl;
    double alpha, beta;
    /* The epilogue's inputs are 0: alpha A B + beta C in the accumulator's type, 1: row, 2: column,
     * 3: batch (U32), 4 and up: at most 12 further inputs, broadcast to C's shape. Its one output
     * is stored to C. Without further inputs it may end after the last input that it needs; with
     * them it declares inputs 0 to 3, used or not, since plugins number them so. */
    const ops_expression *epilogue;
    const ops_tensor *inputs;
    uint32_t input_count;
    uint32_t levels; /* of recursion for _NORMWISE, see normwise.h; 0: those that gain */
    /* Bytes of temporary memory that levels of _NORMWISE, or copies of A and B for a native kernel,
     * or its workspace may take; with less than one level needs, the product is an ordinary one,
     * and with less than the others need, the portable kernel computes it. 0: no limit. Of _EXACT:
     * bytes that a block of C may take, of which the smallest, of at most 32 x 32 elements, is used
     * in any case; 0: an eighth of the device's memory, at most 4 GiB. */
    uint64_t max_workspace;
    const ops_gemm_prepared *prepared; /* is used as B, whose argument is null then; null: none */
    const ops_tensor *a_sums; /* of _NORMWISE: in the place of a, see normwise.h; null: none */
    const ops_tensor *c_sums; /* of _NORMWISE: receives those of C; null: none */
    /* With OPS_GEMM_PORTABLE: the kernel, as ops_gemm_get_config names it, instead of the choice;
     * UNSUPPORTED where the device has no such kernel for the product. Null: the choice. */
    const char *config;
} ops_gemm_options;

#define OPS_GEMM_OPTIONS_DEFAULT                                                                \
    {                                                                                           \
        sizeof(ops_gemm_options), HAL_GEMM_STRICT, OPS_GEMM_ANY, 1.0, 0.0, NULL, NULL, 0, 0, 0, \
            NULL, NULL, NULL, NULL                                                              \
    }

/* C = epilogue(alpha A B + beta C). A is m x k, B is k x n, C is m x n; rank 3 adds a leading batch
 * axis, over which A and B may broadcast (rank 2, or a length of 1). Operands with a stride of 1 in
 * one of the last two axes are used in place: transposed views and leading dimensions cost nothing;
 * others are copied first. A native kernel may take only lines that start at multiples of 16 bytes:
 * operands with other lines are copied for it, where that is faster than the portable kernel.
 * Without memory for the copies, or for the workspace of a native kernel, the portable kernel
 * computes the product, in its own order. A and B have one type of floats or integers: types of 32
 * and 64 bits accumulate in themselves, narrower floats in F32, narrower integers in I32 or U32. C
 * has their type, or F32 of floats, or of integers the accumulator's, or with an epilogue any. Sums
 * of integers wrap, as does what C is too narrow for; alpha and beta are integers then, and the
 * precision plays no part. C is not read when beta is 0. C overlaps neither A nor B. Where k or
 * alpha is 0, C = epilogue(beta C) exactly, whatever alpha is, and A and B are not read. Null
 * `options`: the plain product.
 * Error bound of strict arithmetic of floats, in every element: |c' - c| <= K u / (1 - K u)
 * (|alpha| |A||B| + |beta| |C|) + v |c| + (1 + |alpha|) K e + f, with K = k + 2; u and e are the
 * accumulator's unit roundoff and least positive number, v and f those of C's type. On a device
 * without HAL_EXACT_DENORMALS, e and f are the least positive normal numbers. The bound holds where
 * nothing overflows.
 * The order of additions depends on shapes, strides and the device, and on whether a kernel of the
 * plugin takes the epilogue and C's type, as ops_gemm_describe says; where a device has no 16-bit
 * storage, of F16 and BF16 also on whether A and B begin at multiples of 4 bytes. A product with
 * few elements of C and a long k may use split-K: one kernel computes partial sums over parts of k,
 * another adds them. Without memory for the partial sums one kernel computes the product, in its
 * own order.
 * The class HAL_GEMM_EXACT computes F64 by products of bytes and other integers (docs/exact.md).
 * The bits of C depend on the numbers, k, alpha and beta alone: not on the device, strides, m, n,
 * the batch, memory or options.impl. The bound of strict arithmetic holds, with v = u and subnormal
 * numbers on every device. Sums are rounded once for each 16384 steps of k. A result of 0 is +0, a
 * NaN is positive and quiet. Numbers beyond the range are infinite, as are then sums that another
 * order might keep finite. Elements whose terms are small compared with the largest numbers of
 * their row and column are computed one by one, which takes about 150 integer operations for each
 * step of k. C has F64, and there is no epilogue and no config.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT with the shapes and types, UNSUPPORTED, OUT_OF_MEMORY, those of kernels
 * and dispatches; C may then be written in part. */
HAL_API hal_status ops_gemm(ops_context *context, const ops_gemm_options *options,
                            const ops_tensor *a, const ops_tensor *b, HAL_OUT const ops_tensor *c);

/* Writes to `text`, of `bytes` bytes, one line about the product that ops_gemm with these arguments
 * would record: the class of precision, the levels of Strassen's algorithm with their temporary
 * memory, the implementation and why, and of the portable one the tile and split-K. HAL_LOG=debug
 * has the same line for each product that is recorded, but not again for those that the array layer
 * replays from its plans. A longer line is cut; 512 bytes suffice. Records nothing, and compiles no
 * portable kernel. The line depends on shapes, types, strides, options and the device alone;
 * split-K and levels may be replaced where memory is short.
 * Threads: the queue's. Errors: as ops_gemm; INVALID_ARGUMENT without text. */
HAL_API hal_status ops_gemm_describe(ops_context *context, const ops_gemm_options *options,
                                     const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                                     uint64_t bytes, HAL_OUT char *text);

/* Writes to `config`, of `bytes` bytes, of which 96 suffice, the name of the portable kernel (tiles
 * and parts of k) with the rank-th least estimated time for a product, from 1, the choice, on:
 * options.config of ops_gemm takes it. Names are those of this version of the library.
 * Threads: the queue's. Errors: as ops_gemm_describe; UNSUPPORTED where there are fewer. */
HAL_API hal_status ops_gemm_get_config(ops_context *context, const ops_gemm_options *options,
                                       const ops_tensor *a, const ops_tensor *b,
                                       const ops_tensor *c, uint32_t rank, uint64_t bytes,
                                       HAL_OUT char *config);

/* Start from OPS_GEMM_PREPARE_OPTIONS_DEFAULT and change fields. */
typedef struct ops_gemm_prepare_options {
    uint32_t size;      /* sizeof(ops_gemm_prepare_options) */
    uint32_t precision; /* of the products, as in ops_gemm_options */
    int64_t rows;       /* of the matrices A that follow, about; 0: not known; levels then take
                         * them for as many as B has */
    uint64_t max_bytes; /* that the object may take; at least a copy of B. 0: no limit */
    uint32_t levels; /* of _NORMWISE, as in ops_gemm_options: the sums are those of that many, or of
                         * fewer where max_bytes or the lengths allow no more */
} ops_gemm_prepare_options;

#define OPS_GEMM_PREPARE_OPTIONS_DEFAULT                             \
    {                                                                \
        sizeof(ops_gemm_prepare_options), HAL_GEMM_NORMWISE, 0, 0, 0 \
    }

/* Copies B, k x n with or without a leading batch axis, of a float type, to the layout that the
 * device multiplies without further copies (on GPUs with lines that start at multiples of 16
 * bytes), and, where levels of Strassen's algorithm are chosen for products of that precision and
 * number of rows, adds the sums of its blocks: 1.75 times the bytes of B for one level, 3.1 times
 * for two. With fewer than 64 rows announced a transposed B stays so; a processor's portable kernel
 * copies it again for each A of 64 rows or more. The object is used as options.prepared of
 * ops_gemm, for products of any number of rows, type of C, precision and epilogue; sums are used
 * where they are faster, and where the precision is HAL_GEMM_NORMWISE. An array is prepared by
 * ops_array_prepare. Null `options`: the defaults.
 * Later writes to B change nothing: the object holds what B was in the order of the queue.
 * Ownership: the caller's, until ops_gemm_prepared_destroy; B may be released after the call.
 * Threads: the queue's; afterwards any that use the queue. Other queues of the device wait as for
 * any memory that a queue has written (hal_queue_wait_point).
 * Errors: INVALID_ARGUMENT with the shape, INVALID_STATE while a graph is in recording on the
 * queue, OUT_OF_MEMORY, those of kernels and dispatches. */
HAL_API hal_status ops_gemm_prepare(ops_context *context, const ops_gemm_prepare_options *options,
                                    const ops_tensor *b, HAL_OUT ops_gemm_prepared **prepared);

/* Frees a prepared B; products that were recorded with it still run. Null is allowed.
 * Threads: any, when no call uses it. Errors: none. */
HAL_API void ops_gemm_prepared_destroy(ops_gemm_prepared *prepared);

/* The bytes of device memory that a prepared B takes; the levels whose sums it holds, 0: none.
 * Threads: any. Errors: none; null gives 0. */
HAL_API uint64_t ops_gemm_prepared_get_bytes(const ops_gemm_prepared *prepared);
HAL_API uint32_t ops_gemm_prepared_get_levels(const ops_gemm_prepared *prepared);

#ifdef __cplusplus
}
#endif
#endif
