/* A factorisation on the device in progress, for factor.c, triangles.c and reflectors.c. */
#ifndef BLAS_SRC_FACTOR_RUN_H
#define BLAS_SRC_FACTOR_RUN_H

#include "lapack.h"
#include "operand.h"

typedef struct blas_factor_run {
    blas_lane *lane;
    const blas_factoring *call;
    size_t element; /* bytes */
    int64_t parts;  /* reals of an element */
    ops_tensor a;   /* its rows are columns of A, in pairs */
    ops_tensor scratch;
    char *panel;     /* of the host, column-major without gaps */
    int64_t *pivots; /* of getrf */
    int32_t *order;
} blas_factor_run;

/* Rows and columns of A, as a view. */
ops_tensor blas_factor_part(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                            int64_t columns);

/* Rows and columns of A from the device to memory without gaps, and back. Errors: those of
 * ops_tensor_read and ops_tensor_write. */
hal_status blas_factor_read(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                            int64_t columns, void *target);
hal_status blas_factor_write(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                             int64_t columns, const void *source);

/* All of the device's matrix to the call's A, of potrf one triangle, when all of it has been
 * read: after an error A is as it was. Errors: OUT_OF_MEMORY, those of ops_tensor_read. */
hal_status blas_factor_store(const blas_factor_run *f);

/* Frees memory that the host's LAPACK was given, of which none may stay on the device: others
 * get its address. */
void blas_factor_forget(void *memory, size_t bytes);

/* The address of an element of the call's A. */
char *blas_factor_at(const blas_factor_run *f, int64_t row, int64_t column);

#endif
