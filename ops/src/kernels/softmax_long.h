/* Softmax in several kernels, for rows too long for the loops of one. Used by softmax.c. */
#ifndef OPS_SRC_KERNELS_SOFTMAX_LONG_H
#define OPS_SRC_KERNELS_SOFTMAX_LONG_H

#include "tensor/context.h"

/* Softmax of checked tensors along `axis`, or its logarithm: maximum, sum and result are a kernel
 * each, or two. Errors: those of ops_reduce and ops_pointwise. */
hal_status ops_softmax_long(ops_context *context, uint32_t axis, const ops_tensor *x,
                            const ops_tensor *y, int logarithm);

#endif
