/* Checks and counts of any routine's calls, see shape.h. */
#include "shape.h"

int blas_call_check(const blas_call *call)
{
    return blas_shape_check(call, blas_call_kind(call), blas_call_type(call));
}

double blas_call_operations(const blas_call *call)
{
    return blas_shape_operations(call, blas_call_kind(call), blas_call_type(call));
}

int64_t blas_call_least_length(const blas_call *call)
{
    const int64_t least = call->m < call->n ? call->m : call->n;
    return call->k > 0 && call->k < least ? call->k : least; /* routines without k have 0 */
}
