/* Scattering by atomic operations on integers, whose result does not depend on their order. */
#ifndef OPS_SRC_KERNELS_SCATTER_ATOMIC_H
#define OPS_SRC_KERNELS_SCATTER_ATOMIC_H

#include "tensor/context.h"

#include <ops/index.h>

/* A checked call with updates. */
typedef struct ops_scatter_call {
    ops_scatter_kind kind;
    ops_scatter_order order;
    uint32_t axis;
    ops_tensor indices, updates;
    bool in_place; /* x is y; else y is x with updates */
    ops_tensor x, y;
} ops_scatter_call;

/* Whether y has more than four elements for each update, so that most have no update. */
bool ops_scatter_is_sparse(const ops_scatter_call *call);

/* Whether the call is computed by atomic operations: where the order or the kind and type allow it,
 * and the device has them and they take less time. */
bool ops_scatter_is_atomic(const ops_context *context, const ops_scatter_call *call);

/* Computes such a call. *done is false where there is no memory for it. */
hal_status ops_scatter_by_atomics(ops_context *context, const ops_scatter_call *call, bool *done);

/* y = x, of which elements are updated: ops_scatter after ops_copy, with fewer passes. */
hal_status ops_scatter_of(ops_context *context, uint32_t function, int32_t axis,
                          const ops_tensor *x, const ops_tensor *indices, const ops_tensor *updates,
                          const ops_tensor *y);

/* A kind with the order of calls from now on, as one number below 256. */
static inline uint32_t ops_scatter_function(const ops_context *context, ops_scatter_kind kind)
{
    return (uint32_t)kind + context->scatter * OPS_SCATTER_KIND_COUNT;
}

#endif
