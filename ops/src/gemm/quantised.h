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

/* Products by matrix units, of emit_quantised_units.c: whether they compute one of checked weights
 * by A in that class of precision, apart from where its operands are in memory. */
bool ops_quantised_units_serve(const ops_context *context, uint32_t precision, hal_type a,
                               int64_t rows, const ops_quantised_weights *w);

/* Sets the accesses and tiles of a described task, whose B is bound as bytes; false, and the task
 * is as it was, where its operands are not aligned, the device has too little shared memory, or
 * the kernel without matrix units is faster. */
bool ops_quantised_units_complete(const ops_context *context, const ops_quantised_weights *w,
                                  ops_gemm_task *task);

/* B as the product sees it, without memory: by columns or rows as the values are. */
ops_tensor ops_quantised_layout(const ops_quantised_weights *w, hal_type type);

#endif
