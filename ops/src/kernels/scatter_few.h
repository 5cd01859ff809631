/* Scattering few updates: each element of y looks for those that are for it. */
#ifndef OPS_SRC_KERNELS_SCATTER_FEW_H
#define OPS_SRC_KERNELS_SCATTER_FEW_H

#include "scatter_atomic.h"

/* Whether the updates along the axis are so few that all elements of y look at all of them. */
bool ops_scatter_is_few(const ops_context *context, const ops_scatter_call *call);

/* Computes such a call by one kernel, in the order of the updates. */
hal_status ops_scatter_by_few(ops_context *context, const ops_scatter_call *call);

/* x combined with an update, of kinds but ASSIGN. */
hal_ir_value ops_scatter_combine(hal_ir_builder *b, ops_scatter_kind kind, hal_ir_value x,
                                 hal_ir_value update);

#endif
