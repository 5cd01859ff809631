/* Questions of the array layer about products. */
#ifndef OPS_SRC_GEMM_GEMM_H
#define OPS_SRC_GEMM_GEMM_H

#include "tensor/context.h"

#include <ops/gemm.h>

#include <stdbool.h>

/* Whether ops_gemm with these arguments, which are valid, takes a kernel of the plugin. Records
 * nothing. C may have no buffer. Not for HAL_GEMM_NORMWISE. Invalid arguments: false. */
bool ops_gemm_is_native(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                        const ops_tensor *b, const ops_tensor *c);

#endif
