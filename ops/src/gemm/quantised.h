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

#endif
