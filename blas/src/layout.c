/* The C interface's calls in the Fortran interface's form, see layout.h. */
#include "layout.h"

#include "report.h"

/* Enumerators of the interface. */
#define ROW_MAJOR 101
#define COLUMN_MAJOR 102
#define NO_TRANSPOSE 111
#define UPPER 121
#define NON_UNIT 131
#define LEFT 141

/* The letter for an enumerator that counts from `first`; '?' for any other value. */
static char letter_of(int value, int first, const char *letters)
{
    for (int i = 0; letters[i]; i++) {
        if (value == first + i) {
            return letters[i];
        }
    }
    return '?';
}

char blas_transposition(int value)
{
    return letter_of(value, NO_TRANSPOSE, "NTC");
}

char blas_triangle(int value)
{
    return letter_of(value, UPPER, "UL");
}

char blas_diagonal(int value)
{
    return letter_of(value, NON_UNIT, "NU");
}

char blas_side(int value)
{
    return letter_of(value, LEFT, "LR");
}

static void swap_lengths(int64_t *x, int64_t *y)
{
    const int64_t kept = *x;
    *x = *y;
    *y = kept;
}

static void swap_operands(blas_call *call)
{
    const void *a = call->a;
    const char transa = call->transa;
    call->a = call->b;
    call->b = a;
    call->transa = call->transb;
    call->transb = transa;
    swap_lengths(&call->lda, &call->ldb);
    swap_lengths(&call->stride_a, &call->stride_b);
}

/* The transposition of an update's operands when they are transposed. */
static char other_transposition(const blas_call *call)
{
    const blas_kind kind = blas_call_kind(call);
    if (call->transa != 'N') {
        return 'N';
    }
    return kind == BLAS_HERK || kind == BLAS_HER2K ? 'C' : 'T';
}

/* An alpha of her2k, which the transposed call conjugates. */
static void conjugate_alpha(blas_call *call)
{
    const blas_number alpha = blas_call_alpha(call);
    if (blas_type_real_bytes(blas_call_type(call)) == sizeof(double)) {
        call->scalar[0] = alpha.re;
        call->scalar[1] = -alpha.im;
    } else {
        float *single = (float *)call->scalar;
        single[0] = (float)alpha.re;
        single[1] = -(float)alpha.im;
    }
    call->alpha = call->scalar;
}

/* Makes the column-major call for the transposed matrices. */
static void transpose_call(blas_call *call)
{
    call->is_row_major = true;
    call->uplo = call->uplo == 'U' ? 'L' : call->uplo == 'L' ? 'U' : call->uplo;
    call->side = call->side == 'L' ? 'R' : call->side == 'R' ? 'L' : call->side;
    switch (blas_call_kind(call)) {
    case BLAS_GEMM:
    case BLAS_GEMMT:
        swap_operands(call);
        break;
    case BLAS_HER2K:
        conjugate_alpha(call); /* fall through */
    case BLAS_SYRK:
    case BLAS_HERK:
    case BLAS_SYR2K:
        call->transa = other_transposition(call);
        break;
    case BLAS_SYMM:
    case BLAS_HEMM:
    case BLAS_TRMM:
    case BLAS_TRSM:
        break;
    }
    swap_lengths(&call->m, &call->n);
}

/* How many letters an argument list begins with. */
static int letter_count(blas_kind kind)
{
    return kind == BLAS_TRMM || kind == BLAS_TRSM ? 4 : kind == BLAS_GEMMT ? 3 : 2;
}

bool blas_layout_begin(int layout, blas_call *call)
{
    if (layout != ROW_MAJOR && layout != COLUMN_MAJOR) {
        blas_report_cblas(call, 1);
        return false;
    }
    const int invalid = blas_call_check(call);
    if (invalid > 0 && invalid <= letter_count(blas_call_kind(call))) {
        blas_report_cblas(call, invalid + 1);
        return false;
    }
    if (layout == ROW_MAJOR) {
        transpose_call(call);
    }
    return true;
}
