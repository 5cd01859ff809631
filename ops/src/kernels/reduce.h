/* Reductions of what a prologue computes: the part of ops_reduce that the array layer uses. */
#ifndef OPS_SRC_KERNELS_REDUCE_H
#define OPS_SRC_KERNELS_REDUCE_H

#include <ops/reduce.h>

/* As ops_reduce. `made` is the prologue's output as it would be in memory: its strides decide the
 * order of additions. Null: it is row-major. */
hal_status ops_reduce_as(ops_context *context, ops_reduction reduction, int32_t axis,
                         const ops_tensor *x, const ops_reduce_options *options,
                         const ops_tensor *y, const ops_tensor *made);

#endif
