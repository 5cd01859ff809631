/* B of a matrix product, prepared ahead. */
#ifndef OPS_SRC_GEMM_PREPARE_H
#define OPS_SRC_GEMM_PREPARE_H

#include "product.h"

/* As ops_gemm_prepare, with the caller's name for messages. */
hal_status ops_prepared_create(ops_context *context, const char *function,
                               const ops_gemm_prepare_options *options, const ops_tensor *b,
                               ops_gemm_prepared **prepared);

#endif
