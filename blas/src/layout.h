/* The enumerators of the C interface, and its row-major calls. */
#ifndef BLAS_SRC_LAYOUT_H
#define BLAS_SRC_LAYOUT_H

#include "call.h"

/* The letter for an enumerator; '?' for other values. */
char blas_transposition(int value);
char blas_triangle(int value);
char blas_diagonal(int value);
char blas_side(int value);

/* Makes the column-major call; false: the layout or one of the letters is invalid, which was
 * reported. Threads: any. */
bool blas_layout_begin(int layout, blas_call *call);

#endif
