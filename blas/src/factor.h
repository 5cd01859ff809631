/* Factorisations on the device by panels: the host's LAPACK factors a panel of columns, products on
 * the device update the rest. */
#ifndef BLAS_SRC_FACTOR_H
#define BLAS_SRC_FACTOR_H

#include "lane.h"
#include "lapack.h"

/* Computes a valid call with elements. A, pivots and tau are written when all of the result is on
 * the host, so that after an error they are as before.
 * Of potrf the other triangle stays as it is. As stable as LAPACK's: the same panels, and
 * products of class accurate. Threads: the lane's. Errors: OUT_OF_MEMORY; UNSUPPORTED where a
 * matrix is not positive definite, a triangle's inverse is not finite, or the device lacks the
 * type; those of queues and kernels. */
hal_status blas_factor_compute(blas_lane *lane, const blas_factoring *call, int64_t *info);

#endif
