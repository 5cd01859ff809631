/* Calls of the Fortran interface of any BLAS. */
#ifndef BLAS_SRC_INVOKE_H
#define BLAS_SRC_INVOKE_H

#include "call.h"

#include <string.h>

/* A function of any type, as dlsym found it; cast it to its type. */
typedef void blas_function(void);

static inline blas_function *blas_function_at(void *symbol)
{
    blas_function *function;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Calls a routine with integers of 32 or, if is_wide, 64 bits; false: a length is too large for
 * them, and nothing was called. Threads: any. */
bool blas_invoke(blas_function *function, const blas_call *call, bool is_wide);

#endif
