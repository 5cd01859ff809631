/* B of a matrix product, prepared ahead. */
#ifndef OPS_SRC_GEMM_PREPARE_H
#define OPS_SRC_GEMM_PREPARE_H

#include "product.h"

/* As ops_gemm_prepare, with the caller's name for messages. The caller releases prepared->b. */
hal_status ops_prepared_make(ops_context *context, const char *function,
                             const ops_gemm_prepare_options *options, const ops_tensor *b,
                             ops_gemm_prepared *prepared);

/* The prepared B of a tensor that ops_prepared_make made with these levels. */
ops_gemm_prepared ops_prepared_of(const ops_tensor *b, uint32_t levels);

#endif
