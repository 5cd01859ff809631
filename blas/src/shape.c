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
