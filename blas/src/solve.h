/* trsm on the device. */
#ifndef BLAS_SRC_SOLVE_H
#define BLAS_SRC_SOLVE_H

#include "lane.h"
#include "matrix.h"

/* As blas_product_compute, for op(A) X = alpha B and X op(A) = alpha B. Products update what is not
 * solved yet, by recursion over halves of A; blocks on the diagonal are solved by their inverses,
 * which the host computes, with one step of iterative refinement (N. Higham, Accuracy and Stability
 * of Numerical Algorithms, chapters 12 and 14), so that the residual is that of substitution where
 * a block's condition number is below the reciprocal of the precision.
 * Errors: also UNSUPPORTED where an inverse is not finite. */
hal_status blas_solve_compute(blas_lane *lane, const blas_call *call);

/* Solves X R = X in place for the rows of a tensor in pairs, by the same way: R is the triangle's
 * transpose, X A^T = B. The triangle is of the host.
 * Threads, Errors: as above. */
hal_status blas_solve_in_place(blas_lane *lane, const blas_matrix *triangle,
                               const ops_tensor *unknowns);

#endif
