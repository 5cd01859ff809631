/* The host's BLAS: the library that the program would use without this one. */
#ifndef BLAS_SRC_HOST_H
#define BLAS_SRC_HOST_H

#include "invoke.h"

/* Computes a valid call by the host's BLAS; false where that lacks the routine, or takes no lengths
 * as large. Threads: any. */
bool blas_host_compute(const blas_call *call);

/* Whether the host has the call's routine; of a batch, that of its products suffices. */
bool blas_host_has(const blas_call *call);

/* A symbol of the host's BLAS; null: it has none, or there is no host. */
void *blas_host_symbol(const char *name);

/* A symbol of a library, or with RTLD_NEXT of the next one in the loading order, that is not this
 * library's; null: there is none. Threads: any. */
void *blas_host_symbol_in(void *library, const char *name);

/* Whether its names without a suffix, of both interfaces, take 64-bit integers. */
bool blas_host_is_wide(void);

/* The file of the host's BLAS; "" for none. */
const char *blas_host_path(void);

#endif
