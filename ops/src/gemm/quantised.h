/* Quantised weights that were checked, and their copy as floats. */
#ifndef OPS_SRC_GEMM_QUANTISED_H
#define OPS_SRC_GEMM_QUANTISED_H

#include "task.h"

#include <ops/quantised.h>

/* Checked weights: matrices of [batch,] k x n, and of blocks of k. */
typedef struct ops_quantised_weights {
    const ops_quantised *given;
    uint32_t bits;
    int64_t k, n, batch; /* batch: 1 of rank 2 */
    int64_t block;       /* steps of k with one scale */
    ops_tensor values;   /* as bytes */
} ops_quantised_weights;

/* Checks weights, which `function` names `argument`. */
hal_status ops_quantised_check(const ops_context *context, const char *function,
                               const char *argument, const ops_quantised *q,
                               ops_quantised_weights *w);

/* ops_dequantise of checked weights to a tensor of their shape. */
hal_status ops_quantised_write(ops_context *context, const ops_quantised_weights *w,
                               const ops_tensor *y);

/* The same to two tensors of k / 2 rows, of the elements in the low and in the high bits of the
 * bytes; to parts[0] alone where a byte has one element. */
hal_status ops_quantised_write_parts(ops_context *context, const ops_quantised_weights *w,
                                     const ops_tensor parts[2]);

/* A product of checked arguments by copies of the weights as floats, in the type of A. */
typedef struct ops_quantised_copied {
    const ops_gemm_options *options;
    const ops_tensor *a, *c;
    const ops_quantised_weights *weights;
} ops_quantised_copied;

/* Columns of the weights that are written and multiplied at a time: n, or less where their copy is
 * to stay in a processor's caches. */
int64_t ops_quantised_copied_columns(const ops_context *context, const ops_quantised_copied *call);

hal_status ops_quantised_copied_run(ops_context *context, const ops_quantised_copied *call);

/* B as the product sees it, without memory: by columns or rows as the values are. */
ops_tensor ops_quantised_layout(const ops_quantised_weights *w, hal_type type);

#endif
