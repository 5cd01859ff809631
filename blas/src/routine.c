/* The table of the routines' properties. */
#include "routine.h"

#define ROUTINE_INFO(letter, name, kind, scalar) \
    {#letter #name, kind, BLAS_TYPE_##letter, BLAS_OPERANDS_##letter},
const blas_routine_info blas_routines[BLAS_ROUTINE_COUNT] = {BLAS_EACH_ROUTINE(ROUTINE_INFO)};
