/* Eigenvalues of complex matrices, for linalg.c. */
#ifndef PYTHON_SRC_LINALG_EIG_H
#define PYTHON_SRC_LINALG_EIG_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* Eigenvalues, and unit eigenvectors in the columns of vectors [n, n], of the row-major a [n, n],
 * which is destroyed. `scratch`: n n + n numbers. False if the iteration does not converge, which
 * takes NaN or infinities. */
bool linalg_eig_factor(double complex *a, int64_t n, double complex *values,
                       double complex *vectors, double complex *scratch);

#endif
