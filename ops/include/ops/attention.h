/* Attention: softmax(q k^T scale + mask) v with memory that grows with the lengths, not with their
 * product. */
#ifndef OPS_ATTENTION_H
#define OPS_ATTENTION_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_attention_form_choice {
    OPS_ATTENTION_ANY,    /* the form that the library's model has take the least time */
    OPS_ATTENTION_KERNEL, /* one kernel that keeps scores on the chip, else UNSUPPORTED */
    OPS_ATTENTION_BLOCKS  /* products that store the scores of some rows, softmax, products */
} ops_attention_form_choice;

/* Start from OPS_ATTENTION_OPTIONS_DEFAULT and change fields. */
typedef struct ops_attention_options {
    uint32_t size;          /* sizeof(ops_attention_options) */
    uint32_t precision;     /* of the products, as in ops_gemm_options */
    double scale;           /* 0: 1 / sqrt(d) */
    int causal;             /* row i has the columns up to i + n - m: the last row has all */
    uint32_t form;          /* ops_attention_form_choice */
    const ops_tensor *mask; /* floats that are added to the scores, or BOOL, false where a column is
                             * left out; broadcast to [..., m, n]. Null: none */
    uint64_t max_workspace; /* bytes of scores that are kept at a time, if 32 rows of one matrix
                             * take no more; 0: as many as suit the device */
} ops_attention_options;

#define OPS_ATTENTION_OPTIONS_DEFAULT                        \
    {                                                        \
        sizeof(ops_attention_options), 0, 0.0, 0, 0, NULL, 0 \
    }

/* y = softmax(q k^T scale + mask) v, along the columns: q is [..., m, d], k [..., n, d], v
 * [..., n, e], y [..., m, e], with up to two leading axes, those of q; k, v and mask are broadcast
 * over them, as the heads of a group share keys and values. All have one float type; a mask of
 * floats is F64 for F64, else one of the other types. Scores are F32 (F64 for F64); weights are
 * rounded to the type of v before they are multiplied by it.
 *
 * One kernel computes the result (online softmax: T. Dao and others, "FlashAttention", 2022), or
 * scores are stored for some rows at a time, by products with scale and mask, a softmax, and
 * products with v. Both skip most of the columns that causal rows leave out.
 * A row without any column gives NaN, as softmax does. A column that is left out but computed has
 * the weight 0, which an infinity or NaN in v turns into NaN.
 *
 * The difference to the exact result is at most that of the three steps: of ops_gemm with k = d,
 * scaled by |scale|, in each score; ops_softmax of n numbers; ops_gemm with k = n
 * (docs/attention.md). The order of additions, and so the bits, depend on the shapes, the form and
 * max_workspace, and differ from those of the three calls on whole matrices. Matrix units multiply
 * f16 and bf16 in the classes other than HAL_GEMM_STRICT. Null `options`: the defaults.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT with the shapes and types, OUT_OF_MEMORY, those of ops_gemm and
 * ops_softmax; y may then be written in part. */
HAL_API hal_status ops_attention(ops_context *context, const ops_attention_options *options,
                                 const ops_tensor *q, const ops_tensor *k, const ops_tensor *v,
                                 HAL_OUT const ops_tensor *y);

/* The gradients of a loss by q, k and v, `inputs`, from that by y, dy, where y is the result of
 * ops_attention with these options. gradients: dq, dk and dv, of the inputs' types and shapes, with
 * contiguous rows; those of shared keys and values are summed over the matrices that share them.
 * Scores are computed again: by one kernel for queries and one for keys (two for heads above 128),
 * with two numbers for each row as memory, or by blocks of rows, whose scores and weights are
 * stored for some rows at a time, and perhaps sums of dk and dv. options.form selects one, the
 * library otherwise: blocks on processors, and where no kernel computes the call. The same bits in
 * each run. A mask has no gradient.
 * With w the weights, g = dy v^T and s = w (g - sum(dy y)): dv = w^T dy, dq = scale s k,
 * dk = scale s^T q; w and s are rounded to the type of v before they are multiplied. In every
 * element the difference is at most that of these products by ops_gemm, of weights that differ by
 * (2.02 t + (2 n + 14 + 2 r) u) w as in docs/attention.md.
 * Threads: the queue's. Errors: as ops_attention; UNSUPPORTED with OPS_ATTENTION_KERNEL for heads
 * above 256, a scale that is not positive, and devices without room for tiles, or processors
 * without subgroups. */
HAL_API hal_status ops_attention_gradients(ops_context *context,
                                           const ops_attention_options *options,
                                           const ops_tensor *const inputs[3], const ops_tensor *y,
                                           const ops_tensor *dy,
                                           const ops_tensor *const gradients[3]);

#ifdef __cplusplus
}
#endif
#endif
