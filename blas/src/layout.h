/* The enumerators of the C interface, and its row-major calls. What entry points need of each call
 * is inline. */
#ifndef BLAS_SRC_LAYOUT_H
#define BLAS_SRC_LAYOUT_H

#include "shape.h"

/* Enumerators of the interface. */
#define BLAS_ROW_MAJOR 101
#define BLAS_COLUMN_MAJOR 102
#define BLAS_NO_TRANSPOSE 111
#define BLAS_UPPER 121
#define BLAS_NON_UNIT 131
#define BLAS_LEFT 141

/* The letter for an enumerator that counts from `first`; '?' for any other value. */
BLAS_INLINE char blas_letter_of(int value, int first, int count, const char *letters)
{
    return value >= first && value < first + count ? letters[value - first] : '?';
}

BLAS_INLINE char blas_transposition(int value)
{
    return blas_letter_of(value, BLAS_NO_TRANSPOSE, 3, "NTC");
}

BLAS_INLINE char blas_triangle(int value)
{
    return blas_letter_of(value, BLAS_UPPER, 2, "UL");
}

BLAS_INLINE char blas_diagonal(int value)
{
    return blas_letter_of(value, BLAS_NON_UNIT, 2, "NU");
}

BLAS_INLINE char blas_side(int value)
{
    return blas_letter_of(value, BLAS_LEFT, 2, "LR");
}

BLAS_INLINE void blas_swap_lengths(int64_t *x, int64_t *y)
{
    const int64_t kept = *x;
    *x = *y;
    *y = kept;
}

BLAS_INLINE void blas_swap_operands(blas_call *call)
{
    const void *a = call->a;
    const char transa = call->transa;
    call->a = call->b;
    call->b = a;
    call->transa = call->transb;
    call->transb = transa;
    blas_swap_lengths(&call->lda, &call->ldb);
    blas_swap_lengths(&call->stride_a, &call->stride_b);
}

/* The transposition of an update's operands when they are transposed. */
BLAS_INLINE char blas_other_transposition(const blas_call *call, blas_kind kind)
{
    if (call->transa != 'N') {
        return 'N';
    }
    return kind == BLAS_HERK || kind == BLAS_HER2K ? 'C' : 'T';
}

/* Letters, lengths and operands of the column-major call for the transposed matrices, of a call of
 * that kind. Its alpha is left to blas_layout_begin. */
BLAS_INLINE void blas_layout_transpose(blas_call *call, blas_kind kind)
{
    call->uplo = call->uplo == 'U' ? 'L' : call->uplo == 'L' ? 'U' : call->uplo;
    call->side = call->side == 'L' ? 'R' : call->side == 'R' ? 'L' : call->side;
    switch (kind) {
    case BLAS_GEMM:
    case BLAS_GEMMT:
        blas_swap_operands(call);
        break;
    case BLAS_SYRK:
    case BLAS_HERK:
    case BLAS_SYR2K:
    case BLAS_HER2K:
        call->transa = blas_other_transposition(call, kind);
        break;
    case BLAS_SYMM:
    case BLAS_HEMM:
    case BLAS_TRMM:
    case BLAS_TRSM:
        break;
    }
    blas_swap_lengths(&call->m, &call->n);
}

/* The position of the first invalid letter in the Fortran interface, from 1; 0: all are valid. It
 * is asked before the matrices are transposed, after which some of them are valid. */
BLAS_INLINE int blas_layout_invalid_letter(const blas_call *call, blas_kind kind, blas_type type)
{
    const int letters = kind == BLAS_TRMM || kind == BLAS_TRSM ? 4 : kind == BLAS_GEMMT ? 3 : 2;
    const int invalid = blas_shape_check(call, kind, type);
    return invalid <= letters ? invalid : 0;
}

/* Makes the column-major call; false: the layout or one of the letters is invalid, which was
 * reported. Threads: any. */
bool blas_layout_begin(int layout, blas_call *call);

#endif
