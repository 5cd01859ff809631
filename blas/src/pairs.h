/* Complex matrices on the device: tensors in pairs, {rows, 2 columns}, from which it makes other
 * forms. Of real types they are {rows, columns}. Used by factorisations. */
#ifndef BLAS_SRC_PAIRS_H
#define BLAS_SRC_PAIRS_H

#include "lane.h"
#include "routine.h"

/* The pairs as an axis: {rows, columns, 2}. Of real types as it is. */
ops_tensor blas_pairs_view(blas_type type, const ops_tensor *pairs);

/* The expanded form, {2 rows, 2 columns}: a right factor; its transpose is that of the conjugate
 * transpose. Of real types the tensor itself.
 * Ownership: the caller's, until ops_tensor_release. Threads: the lane's.
 * Errors: OUT_OF_MEMORY, those of kernels. */
hal_status blas_pairs_expand(blas_lane *lane, blas_type type, const ops_tensor *pairs,
                             HAL_OUT ops_tensor *expanded);

/* y = the conjugate transpose of x, both in pairs. Threads: the lane's.
 * Errors: those of kernels. */
hal_status blas_pairs_adjoint(blas_lane *lane, blas_type type, const ops_tensor *x,
                              const ops_tensor *y);

#endif
