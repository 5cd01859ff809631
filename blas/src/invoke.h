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

/* The types of functions: pointers of every argument, then the lengths of character arguments.
 * symm and syr2k have the same. */
typedef void blas_gemm_function(const char *, const char *, const void *, const void *,
                                const void *, const void *, const void *, const void *,
                                const void *, const void *, const void *, void *, const void *,
                                size_t, size_t);
typedef void blas_strided_function(const char *, const char *, const void *, const void *,
                                   const void *, const void *, const void *, const void *,
                                   const void *, const void *, const void *, const void *,
                                   const void *, void *, const void *, const void *, const void *,
                                   size_t, size_t);
typedef void blas_gemmt_function(const char *, const char *, const char *, const void *,
                                 const void *, const void *, const void *, const void *,
                                 const void *, const void *, const void *, void *, const void *,
                                 size_t, size_t, size_t);
typedef void blas_symm_function(const char *, const char *, const void *, const void *,
                                const void *, const void *, const void *, const void *,
                                const void *, const void *, void *, const void *, size_t, size_t);
typedef void blas_syrk_function(const char *, const char *, const void *, const void *,
                                const void *, const void *, const void *, const void *, void *,
                                const void *, size_t, size_t);
typedef void blas_trmm_function(const char *, const char *, const char *, const char *,
                                const void *, const void *, const void *, const void *,
                                const void *, void *, const void *, size_t, size_t, size_t, size_t);

/* Calls a routine with integers of 32 or, if is_wide, 64 bits; false: a length is too large for
 * them, and nothing was called. Threads: any. */
bool blas_invoke(blas_function *function, const blas_call *call, bool is_wide);

/* The same for the products of a batch, one after the other, by the function of gemm. */
bool blas_invoke_products(blas_function *function, const blas_call *call, bool is_wide);

#endif
