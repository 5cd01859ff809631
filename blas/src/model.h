/* How long calls take on the device and by the host's BLAS, from times that were measured once. */
#ifndef BLAS_SRC_MODEL_H
#define BLAS_SRC_MODEL_H

#include "call.h"
#include "lapack.h"

/* Estimated nanoseconds of a valid call with a product; 0: not known, since there is no device or
 * no host's BLAS. The first call of a process reads the measured times from the cache folder, or
 * measures them, which takes up to a second, and writes them there.
 * Threads: any; others wait for the first. */
typedef struct blas_times {
    double device, host;
} blas_times;
blas_times blas_model_times(const blas_call *call);

/* The same for a factorisation: the host is assumed to take as long as for products of as many
 * operations. */
blas_times blas_model_factoring_times(const blas_factoring *call);

#endif
