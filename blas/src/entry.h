/* What the entry points of both interfaces call. */
#ifndef BLAS_SRC_ENTRY_H
#define BLAS_SRC_ENTRY_H

#include "run.h"

#define BLAS_API __attribute__((visibility("default")))
#define BLAS_CALLER __builtin_return_address(0)

/* A letter of the Fortran interface in capitals. */
static inline char blas_letter(const char *text)
{
    return (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);
}

#endif
