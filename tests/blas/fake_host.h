/* What fake_host.c exports apart from a BLAS: the arguments of calls of gemm. */
#ifndef TESTS_BLAS_FAKE_HOST_H
#define TESTS_BLAS_FAKE_HOST_H

#include <stdint.h>

#define FAKE_CALLS 16

typedef struct fake_record {
    int layout; /* of the C interface; 0: the Fortran interface */
    char transa, transb;
    const void *at_m; /* where m was; null in the C interface */
    int64_t m, n, k, lda, ldb, ldc;
    double alpha, beta;
    const double *a, *b;
    double *c;
} fake_record;

/* fake_record fake_calls[FAKE_CALLS]; int fake_count; */

#endif
