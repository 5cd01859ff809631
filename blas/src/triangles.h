/* Factors that are triangles: LU with partial pivoting, and Cholesky. */
#ifndef BLAS_SRC_TRIANGLES_H
#define BLAS_SRC_TRIANGLES_H

#include "factor_run.h"

/* The right-looking algorithms: the host factors a panel, or a square on the diagonal, products
 * update the rest. Threads: the lane's. Errors: as blas_factor_compute. */
hal_status blas_triangles_lu(blas_factor_run *f, int64_t *info);
hal_status blas_triangles_cholesky(blas_factor_run *f);

#endif
