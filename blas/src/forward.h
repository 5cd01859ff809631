/* Small calls go from an entry point to the host's function, with the program's own arguments. */
#ifndef BLAS_SRC_FORWARD_H
#define BLAS_SRC_FORWARD_H

#include "decide.h"
#include "invoke.h"
#include "layout.h"
#include "resident.h"
#include "summary.h"

#include <stdatomic.h>

/* A host's BLAS takes a call of fewer operations for less time than any device needs to start one,
 * and the device is not even opened for it. OpenBLAS has small-matrix kernels for real products
 * below this number, which the model's larger products do not show. */
#define BLAS_HOST_OPERATIONS 2e6

/* Whether no more is wanted of small calls than results: no summary, no operands that stay on the
 * device, no small calls on it. Threads: any. */
static inline bool blas_forward_is_on(void)
{
    return blas_decide_policy() != BLAS_ALWAYS && !blas_summary_is_wanted() &&
           !blas_resident_is_on();
}

/* The host's functions of an interface. Null before blas_run has looked for them,
 * where the host lacks one, and where small calls are not forwarded. */
typedef enum blas_interface {
    BLAS_FORTRAN_32,
    BLAS_FORTRAN_64,
    BLAS_CBLAS_32,
    BLAS_CBLAS_64,
    BLAS_INTERFACE_COUNT
} blas_interface;
extern _Atomic(blas_function *) blas_forwards[BLAS_INTERFACE_COUNT][BLAS_ROUTINE_COUNT];

BLAS_INLINE blas_function *blas_forward_at(const blas_call *call)
{
    return atomic_load_explicit(&blas_forwards[2 * call->is_cblas + call->is_64][call->routine],
                                memory_order_acquire);
}

/* The function for a column-major call of which only letters, lengths and strides are set, with
 * the constants of its routine; null: it takes blas_run. Threads: any. */
BLAS_INLINE blas_function *blas_forward_find(const blas_call *call, blas_kind kind, blas_type type)
{
    return blas_shape_operations(call, kind, type) < BLAS_HOST_OPERATIONS &&
                   blas_shape_check(call, kind, type) == 0
               ? blas_forward_at(call)
               : NULL;
}

/* The same for a call of the C interface with this layout. */
BLAS_INLINE blas_function *blas_forward_find_layout(int layout, blas_call call, blas_kind kind,
                                                    blas_type type)
{
    if (layout == BLAS_ROW_MAJOR) {
        const int invalid = blas_layout_invalid_letter(&call, kind, type);
        blas_layout_transpose(&call, kind);
        return invalid == 0 ? blas_forward_find(&call, kind, type) : NULL;
    }
    return layout == BLAS_COLUMN_MAJOR ? blas_forward_find(&call, kind, type) : NULL;
}

#endif
