/* Calls by plain loops: where there is neither a device nor a host's BLAS, and for results that
 * need no product. */
#ifndef BLAS_SRC_PLAIN_H
#define BLAS_SRC_PLAIN_H

#include "call.h"

/* Computes a valid call, in double precision. Needs no memory. Threads: any. */
void blas_plain_compute(const blas_call *call);

/* C = beta C, or 0, in the part that the call writes. */
void blas_plain_scale(const blas_call *call);

#endif
