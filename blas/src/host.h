/* The host's BLAS: the library that the program would use without this one. */
#ifndef BLAS_SRC_HOST_H
#define BLAS_SRC_HOST_H

#include "invoke.h"

/* Computes a valid call by the host's BLAS; false where that lacks the routine, or takes no lengths
 * as large. Threads: any. */
bool blas_host_compute(const blas_call *call);

/* Whether the host has a routine of its own. */
bool blas_host_has(blas_routine routine);

/* A symbol of the host's BLAS; null: it has none, or there is no host. */
void *blas_host_symbol(const char *name);

/* The file of the host's BLAS; "" for none. */
const char *blas_host_path(void);

#endif
