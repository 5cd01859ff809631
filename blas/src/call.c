/* Arguments of calls: values of scalars and the checks of the reference implementation. */
#include "call.h"

#include "half.h"

blas_kind blas_call_kind(const blas_call *call)
{
    return blas_routines[call->routine].kind;
}

blas_type blas_call_type(const blas_call *call)
{
    return blas_routines[call->routine].type;
}

blas_type blas_call_operands(const blas_call *call)
{
    return blas_routines[call->routine].operands;
}

bool blas_call_is_strided(const blas_call *call)
{
    return call->routine >= BLAS_ROUTINE_sgemm_batch_strided &&
           call->routine <= BLAS_ROUTINE_zgemm_batch_strided;
}

blas_call blas_call_product(const blas_call *call, int64_t index)
{
    const blas_type type = blas_call_type(call);
    const int64_t bytes = (int64_t)blas_type_bytes(type);
    blas_call made = *call;
    made.routine = (blas_routine)(BLAS_ROUTINE_sgemm + type);
    made.a = (const char *)call->a + index * call->stride_a * bytes;
    made.b = (const char *)call->b + index * call->stride_b * bytes;
    made.c = (char *)call->c + index * call->stride_c * bytes;
    made.batch = 1;
    return made;
}

static blas_number number_at(const void *value, blas_type type, bool is_complex)
{
    const bool is_double = blas_type_real_bytes(type) == sizeof(double);
    const float *single = value;
    const double *wide = value;
    if (type == BLAS_TYPE_h) {
        return (blas_number){blas_f16_load(*(const uint16_t *)value), 0};
    }
    return (blas_number){is_double ? wide[0] : (double)single[0], !is_complex ? 0
                                                                  : is_double ? wide[1]
                                                                              : (double)single[1]};
}

blas_number blas_call_alpha(const blas_call *call)
{
    const blas_type type = blas_call_type(call);
    return number_at(call->alpha, type,
                     blas_type_is_complex(type) && blas_call_kind(call) != BLAS_HERK);
}

blas_number blas_call_beta(const blas_call *call)
{
    const blas_type type = blas_call_type(call);
    const blas_kind kind = blas_call_kind(call);
    if (!call->beta) {
        return (blas_number){0, 0};
    }
    return number_at(call->beta, type,
                     blas_type_is_complex(type) && kind != BLAS_HERK && kind != BLAS_HER2K);
}

static bool is_one_of(char letter, const char *letters)
{
    for (; *letters; letters++) {
        if (letter == *letters) {
            return true;
        }
    }
    return false;
}

static bool is_short(int64_t leading, int64_t rows)
{
    return leading < (rows > 1 ? rows : 1);
}

static int check_gemm(const blas_call *c)
{
    return !is_one_of(c->transa, "NTC")                       ? 1
           : !is_one_of(c->transb, "NTC")                     ? 2
           : c->m < 0                                         ? 3
           : c->n < 0                                         ? 4
           : c->k < 0                                         ? 5
           : is_short(c->lda, c->transa == 'N' ? c->m : c->k) ? 8
           : is_short(c->ldb, c->transb == 'N' ? c->k : c->n) ? 10
           : is_short(c->ldc, c->m)                           ? 13
                                                              : 0;
}

/* The arguments of gemm, with strides between them; results do not overlap. */
static int check_strided(const blas_call *c)
{
    const int position = check_gemm(c);
    return position > 0      ? position + (position > 8) + (position > 10)
           : c->stride_a < 0 ? 9
           : c->stride_b < 0 ? 12
           : c->batch > 1 && c->m > 0 && c->n > 0 && c->stride_c < (c->n - 1) * c->ldc + c->m
               ? 16
               : (c->batch < 0 ? 17 : 0);
}

static int check_gemmt(const blas_call *c)
{
    return !is_one_of(c->uplo, "UL")                          ? 1
           : !is_one_of(c->transa, "NTC")                     ? 2
           : !is_one_of(c->transb, "NTC")                     ? 3
           : c->n < 0                                         ? 4
           : c->k < 0                                         ? 5
           : is_short(c->lda, c->transa == 'N' ? c->n : c->k) ? 8
           : is_short(c->ldb, c->transb == 'N' ? c->k : c->n) ? 10
           : is_short(c->ldc, c->n)                           ? 13
                                                              : 0;
}

static int check_symm(const blas_call *c)
{
    return !is_one_of(c->side, "LR")                        ? 1
           : !is_one_of(c->uplo, "UL")                      ? 2
           : c->m < 0                                       ? 3
           : c->n < 0                                       ? 4
           : is_short(c->lda, c->side == 'L' ? c->m : c->n) ? 7
           : is_short(c->ldb, c->m)                         ? 9
           : is_short(c->ldc, c->m)                         ? 12
                                                            : 0;
}

/* The transpositions of an update: the Hermitian ones conjugate, the complex symmetric ones not. */
static int check_update(const blas_call *c, bool has_b)
{
    const blas_kind kind = blas_call_kind(c);
    const bool is_hermitian = kind == BLAS_HERK || kind == BLAS_HER2K;
    const char *letters = is_hermitian                              ? "NC"
                          : blas_type_is_complex(blas_call_type(c)) ? "NT"
                                                                    : "NTC";
    const int64_t rows = c->transa == 'N' ? c->n : c->k;
    return !is_one_of(c->uplo, "UL")         ? 1
           : !is_one_of(c->transa, letters)  ? 2
           : c->n < 0                        ? 3
           : c->k < 0                        ? 4
           : is_short(c->lda, rows)          ? 7
           : has_b && is_short(c->ldb, rows) ? 9
           : is_short(c->ldc, c->n) && has_b ? 12
           : is_short(c->ldc, c->n)          ? 10
                                             : 0;
}

static int check_trmm(const blas_call *c)
{
    return !is_one_of(c->side, "LR")                        ? 1
           : !is_one_of(c->uplo, "UL")                      ? 2
           : !is_one_of(c->transa, "NTC")                   ? 3
           : !is_one_of(c->diag, "UN")                      ? 4
           : c->m < 0                                       ? 5
           : c->n < 0                                       ? 6
           : is_short(c->lda, c->side == 'L' ? c->m : c->n) ? 9
           : is_short(c->ldc, c->m)                         ? 11
                                                            : 0;
}

int blas_call_check(const blas_call *call)
{
    switch (blas_call_kind(call)) {
    case BLAS_GEMM:
        return blas_call_is_strided(call) ? check_strided(call) : check_gemm(call);
    case BLAS_GEMMT:
        return check_gemmt(call);
    case BLAS_SYMM:
    case BLAS_HEMM:
        return check_symm(call);
    case BLAS_SYRK:
    case BLAS_HERK:
        return check_update(call, false);
    case BLAS_SYR2K:
    case BLAS_HER2K:
        return check_update(call, true);
    case BLAS_TRMM:
    case BLAS_TRSM:
        return check_trmm(call);
    }
    return 0;
}

static bool has_k(blas_kind kind)
{
    return kind != BLAS_SYMM && kind != BLAS_HEMM && kind != BLAS_TRMM && kind != BLAS_TRSM;
}

bool blas_call_is_scaling(const blas_call *call)
{
    const blas_number alpha = blas_call_alpha(call);
    return (alpha.re == 0 && alpha.im == 0) || (has_k(blas_call_kind(call)) && call->k == 0);
}

bool blas_call_is_empty(const blas_call *call)
{
    const blas_number beta = blas_call_beta(call);
    return call->batch == 0 || call->m == 0 || call->n == 0 ||
           (call->beta && beta.re == 1 && beta.im == 0 && blas_call_is_scaling(call));
}

double blas_call_operations(const blas_call *call)
{
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    const double each = blas_type_is_complex(blas_call_type(call)) ? 8 : 2;
    const double inner = call->side == 'L' ? m : n;
    switch (blas_call_kind(call)) {
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
