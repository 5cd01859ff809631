/* QR by blocks of Householder reflectors. */
#ifndef BLAS_SRC_REFLECTORS_H
#define BLAS_SRC_REFLECTORS_H

#include "factor_run.h"

/* geqrf or orgqr, by reflectors I - V T V^T (R. Schreiber, C. Van Loan, A storage-efficient WY
 * representation for products of Householder transformations, 1989). Threads: the lane's.
 * Errors: as blas_factor_compute. */
hal_status blas_reflectors_run(blas_factor_run *f);

#endif
