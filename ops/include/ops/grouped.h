/* Matrix products whose rows are in groups with a B each (mixtures of experts), by one call. */
#ifndef OPS_GROUPED_H
#define OPS_GROUPED_H

#include <ops/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C = epilogue(alpha A B_g + beta C), where group g of G has the rows offsets[g] to
 * offsets[g + 1] - 1 of A and C. a is [rows, k], b [G, k, n] and c [rows, n], of the types that
 * ops_gemm takes; strides are any, but rows of A are copied where they are not contiguous, and B
 * where neither its rows nor its columns are, or where a processor reads rows. Groups may be empty.
 * Rows before offsets[0] and from offsets[G] on have no group: they are neither read nor written.
 *
 * `offsets` has G + 1 elements of I32 or I64 in the device's memory, which ascend and are at most
 * `rows`. The call does not read them: one kernel does, the plugin's where it has one
 * (HAL_FEATURE_GROUPED_PRODUCTS), so that they may come from earlier commands, and change between
 * the launches of a graph. Other numbers than ascending ones of 0 to `rows` give wrong rows of C;
 * no memory outside of A, B and C is read or written.
 * `host_offsets` are the same numbers in the host's memory, G + 1 of them. Either may be null. With
 * host_offsets alone, or on processors without a kernel of the plugin, there is one product by
 * ops_gemm for each group that has rows; unless the epilogue reads row or batch and there are
 * `offsets`. The ways may differ in the order of additions.
 *
 * Options are those of ops_gemm, without a prepared B, levels and sums; NORMWISE is as ACCURATE,
 * OPS_GEMM_NATIVE needs a kernel of the plugin or host_offsets, and config is one of a product of
 * rows / G rows. For the epilogue the row is that of C, the batch is the group, and further inputs
 * are broadcast to [G, rows, n], of which a row takes those of its group: [n] is one bias for all,
 * [G, 1, n] one for each group.
 * Error bound: that of ops_gemm. The same bits in each run. Null `options`: the plain product.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT with the shapes and types, for host_offsets that do not ascend from at
 * least 0 to at most `rows`, and where both are null; UNSUPPORTED for more than 2^20 groups, for a
 * k beyond the device's limit of loops, and for epilogues and OPS_GEMM_NATIVE as above; those of
 * ops_gemm. C may then be written in part. */
HAL_API hal_status ops_gemm_grouped(ops_context *context, const ops_gemm_options *options,
                                    const ops_tensor *a, const ops_tensor *b,
                                    const ops_tensor *offsets, const int64_t *host_offsets,
                                    HAL_OUT const ops_tensor *c);

/* Writes to `text`, of `bytes` bytes, of which 512 suffice, one line about how ops_gemm_grouped
 * with these arguments computes: by one kernel, the plugin's or of which tile, or by a product for
 * each group. Threads: the queue's. Errors: as ops_gemm_grouped; INVALID_ARGUMENT without text. */
HAL_API hal_status ops_gemm_grouped_describe(ops_context *context, const ops_gemm_options *options,
                                             const ops_tensor *a, const ops_tensor *b,
                                             const ops_tensor *offsets, const int64_t *host_offsets,
                                             const ops_tensor *c, uint64_t bytes,
                                             HAL_OUT char *text);

#ifdef __cplusplus
}
#endif
#endif
