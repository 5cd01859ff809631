/* Matrices as a routine means them: transposed, conjugated, or given by one triangle. */
#ifndef BLAS_SRC_MATRIX_H
#define BLAS_SRC_MATRIX_H

#include "call.h"

typedef enum blas_structure {
    BLAS_GENERAL,
    BLAS_SYMMETRIC,
    BLAS_HERMITIAN, /* imaginary parts of the diagonal are 0, whatever is stored */
    BLAS_TRIANGULAR /* 0 outside the stored triangle */
} blas_structure;

/* rows and columns are those of the matrix that is meant, op(A); the other fields tell what is
 * stored, column-major. */
typedef struct blas_matrix {
    const void *data;
    blas_type type;
    blas_structure structure;
    int64_t rows, columns, leading;
    int64_t count, stride; /* of general matrices one after the other: how many, elements apart */
    bool is_transposed, is_conjugated;
    bool is_upper; /* the stored triangle */
    bool is_unit;  /* the diagonal is 1 and not stored */
} blas_matrix;

/* How the elements of a complex matrix become real ones; real matrices have one form. */
typedef enum blas_form {
    BLAS_PAIRS,   /* (re, im): a left factor, or a result */
    BLAS_EXPANDED /* 2 x 2 matrices: a right factor */
} blas_form;

/* A product that a call asks for: x is m x k, y is k x n. Of TRSM, x or y is the triangle. */
typedef struct blas_factors {
    blas_matrix x, y;
    blas_number alpha;
} blas_factors;

/* The number of products that a call adds, 1 or 2, and one of them. */
int blas_factors_count(const blas_call *call);
blas_factors blas_factors_of(const blas_call *call, int which);

/* Which part of C a call writes: 'U', 'L', or 0 for all of it. */
char blas_result_triangle(const blas_call *call);

/* The transposed matrix. */
blas_matrix blas_matrix_transpose(const blas_matrix *matrix);

/* The square of `count` rows and columns on the diagonal from `first` on. */
blas_matrix blas_matrix_diagonal_block(const blas_matrix *matrix, int64_t first, int64_t count);

/* Whether op(A) has its elements below the diagonal. */
bool blas_matrix_is_lower(const blas_matrix *matrix);

/* One element, and the address of one in memory of that type. */
blas_number blas_matrix_get(const blas_matrix *matrix, int64_t row, int64_t column);
blas_number blas_number_load(const void *data, blas_type type, int64_t index);
void blas_number_store(void *data, blas_type type, int64_t index, blas_number value);
blas_number blas_number_multiply(blas_number x, blas_number y);

/* Writes matrices times `scale` to memory, column after column without gaps. With is_expanded, of
 * a complex type, each element becomes the 2 x 2 real matrix of the multiplication by it: a column
 * is two columns of twice the rows, (re, im, re, im, ...) and (-im, re, -im, re, ...). */
void blas_matrix_pack(const blas_matrix *matrix, blas_number scale, bool is_expanded, void *target);

#endif
