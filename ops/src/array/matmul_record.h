/* Records the matrix product of a fusion plan by ops_gemm. */
#ifndef OPS_SRC_ARRAY_MATMUL_RECORD_H
#define OPS_SRC_ARRAY_MATMUL_RECORD_H

#include "fusion_plan.h"
#include "quantised_match.h"

/* Inputs of an epilogue of ops_gemm before the plan's own: row, column and batch. */
#define OPS_MATMUL_POSITION_INPUTS 3u

/* Records a plan whose anchor is a product; what it stores is written to `buffers`. */
hal_status ops_matmul_record(const ops_fusion_plan *plan, const ops_expression *epilogue,
                             hal_buffer *const *buffers);

/* The quantised weights of a plan whose anchor has a form of them: values are its input number
 * `first`, then come scales, and zeros if there are any, whose view is kept in *zeros. */
hal_status ops_matmul_weights(const ops_fusion_plan *plan, uint32_t first, ops_tensor *zeros,
                              ops_quantised *weights);

#endif
