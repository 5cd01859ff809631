/* What follows from a call's letters and lengths: checks of the reference implementation and the
 * number of operations. Inline functions leave entry points only what their routine needs. */
#ifndef BLAS_SRC_SHAPE_H
#define BLAS_SRC_SHAPE_H

#include "call.h"

/* The position of the first invalid argument in the Fortran interface, from 1; 0: all are valid. */
int blas_call_check(const blas_call *call);

/* Real multiplications and additions that the routine takes by its definition. */
double blas_call_operations(const blas_call *call);

/* The smallest length of a call's matrices. */
int64_t blas_call_least_length(const blas_call *call);

/* `third` may be 0. */
BLAS_INLINE bool blas_is_one_of(char letter, char first, char second, char third)
{
    return letter == first || letter == second || (third && letter == third);
}

BLAS_INLINE bool blas_is_short(int64_t leading, int64_t rows)
{
    return leading < (rows > 1 ? rows : 1);
}

BLAS_INLINE int blas_check_gemm(const blas_call *c)
{
    return !blas_is_one_of(c->transa, 'N', 'T', 'C')               ? 1
           : !blas_is_one_of(c->transb, 'N', 'T', 'C')             ? 2
           : c->m < 0                                              ? 3
           : c->n < 0                                              ? 4
           : c->k < 0                                              ? 5
           : blas_is_short(c->lda, c->transa == 'N' ? c->m : c->k) ? 8
           : blas_is_short(c->ldb, c->transb == 'N' ? c->k : c->n) ? 10
           : blas_is_short(c->ldc, c->m)                           ? 13
                                                                   : 0;
}

/* The arguments of gemm, with strides between them; results do not overlap. */
BLAS_INLINE int blas_check_strided(const blas_call *c)
{
    const int position = blas_check_gemm(c);
    return position > 0      ? position + (position > 8) + (position > 10)
           : c->stride_a < 0 ? 9
           : c->stride_b < 0 ? 12
           : c->batch > 1 && c->m > 0 && c->n > 0 && c->stride_c < (c->n - 1) * c->ldc + c->m
               ? 16
               : (c->batch < 0 ? 17 : 0);
}

BLAS_INLINE int blas_check_gemmt(const blas_call *c)
{
    return !blas_is_one_of(c->uplo, 'U', 'L', 0)                   ? 1
           : !blas_is_one_of(c->transa, 'N', 'T', 'C')             ? 2
           : !blas_is_one_of(c->transb, 'N', 'T', 'C')             ? 3
           : c->n < 0                                              ? 4
           : c->k < 0                                              ? 5
           : blas_is_short(c->lda, c->transa == 'N' ? c->n : c->k) ? 8
           : blas_is_short(c->ldb, c->transb == 'N' ? c->k : c->n) ? 10
           : blas_is_short(c->ldc, c->n)                           ? 13
                                                                   : 0;
}

BLAS_INLINE int blas_check_symm(const blas_call *c)
{
    return !blas_is_one_of(c->side, 'L', 'R', 0)                 ? 1
           : !blas_is_one_of(c->uplo, 'U', 'L', 0)               ? 2
           : c->m < 0                                            ? 3
           : c->n < 0                                            ? 4
           : blas_is_short(c->lda, c->side == 'L' ? c->m : c->n) ? 7
           : blas_is_short(c->ldb, c->m)                         ? 9
           : blas_is_short(c->ldc, c->m)                         ? 12
                                                                 : 0;
}

/* The transpositions of an update: the Hermitian ones conjugate, the complex symmetric ones not. */
BLAS_INLINE int blas_check_update(const blas_call *c, blas_kind kind, blas_type type)
{
    const bool is_hermitian = kind == BLAS_HERK || kind == BLAS_HER2K;
    const bool has_b = kind == BLAS_SYR2K || kind == BLAS_HER2K;
    const char second = is_hermitian ? 'C' : 'T';
    const char third = is_hermitian || blas_type_is_complex(type) ? 0 : 'C';
    const int64_t rows = c->transa == 'N' ? c->n : c->k;
    return !blas_is_one_of(c->uplo, 'U', 'L', 0)            ? 1
           : !blas_is_one_of(c->transa, 'N', second, third) ? 2
           : c->n < 0                                       ? 3
           : c->k < 0                                       ? 4
           : blas_is_short(c->lda, rows)                    ? 7
           : has_b && blas_is_short(c->ldb, rows)           ? 9
           : blas_is_short(c->ldc, c->n) && has_b           ? 12
           : blas_is_short(c->ldc, c->n)                    ? 10
                                                            : 0;
}

BLAS_INLINE int blas_check_trmm(const blas_call *c)
{
    return !blas_is_one_of(c->side, 'L', 'R', 0)                 ? 1
           : !blas_is_one_of(c->uplo, 'U', 'L', 0)               ? 2
           : !blas_is_one_of(c->transa, 'N', 'T', 'C')           ? 3
           : !blas_is_one_of(c->diag, 'U', 'N', 0)               ? 4
           : c->m < 0                                            ? 5
           : c->n < 0                                            ? 6
           : blas_is_short(c->lda, c->side == 'L' ? c->m : c->n) ? 9
           : blas_is_short(c->ldc, c->m)                         ? 11
                                                                 : 0;
}

/* blas_call_check of a call whose routine is of that kind and type. */
BLAS_INLINE int blas_shape_check(const blas_call *call, blas_kind kind, blas_type type)
{
    switch (kind) {
    case BLAS_GEMM:
        return blas_call_is_strided(call) ? blas_check_strided(call) : blas_check_gemm(call);
    case BLAS_GEMMT:
        return blas_check_gemmt(call);
    case BLAS_SYMM:
    case BLAS_HEMM:
        return blas_check_symm(call);
    case BLAS_SYRK:
    case BLAS_HERK:
    case BLAS_SYR2K:
    case BLAS_HER2K:
        return blas_check_update(call, kind, type);
    case BLAS_TRMM:
    case BLAS_TRSM:
        return blas_check_trmm(call);
    }
    return 0;
}

/* blas_call_operations of such a call. */
BLAS_INLINE double blas_shape_operations(const blas_call *call, blas_kind kind, blas_type type)
{
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    const double each = blas_type_is_complex(type) ? 8 : 2;
    const double inner = call->side == 'L' ? m : n;
    switch (kind) {
    case BLAS_GEMM:
        return each * m * n * k * (double)call->batch;
    case BLAS_SYMM:
    case BLAS_HEMM:
        return each * m * n * inner;
    case BLAS_GEMMT:
    case BLAS_SYRK:
    case BLAS_HERK:
        return each * n * n * k / 2;
    case BLAS_SYR2K:
    case BLAS_HER2K:
        return each * n * n * k;
    case BLAS_TRMM:
    case BLAS_TRSM:
        return each * m * n * inner / 2;
    }
    return 0;
}

#endif
