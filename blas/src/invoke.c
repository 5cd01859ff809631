/* Passes the fields of a call as a routine's arguments, see invoke.h. */
#include "invoke.h"

/* The lengths of a call in one size of integers. */
typedef struct lengths {
    union {
        int32_t narrow[10];
        int64_t wide[10];
    };
    const void *m, *n, *k, *lda, *ldb, *ldc, *stride_a, *stride_b, *stride_c, *batch;
} lengths;

static bool lengths_init(lengths *made, const blas_call *call, bool is_wide)
{
    const int64_t values[10] = {call->m,        call->n,    call->k,        call->lda,
                                call->ldb,      call->ldc,  call->stride_a, call->stride_b,
                                call->stride_c, call->batch};
    const void *pointers[10];
    for (int i = 0; i < 10; i++) {
        if (is_wide) {
            made->wide[i] = values[i];
            pointers[i] = &made->wide[i];
        } else if (values[i] > INT32_MAX) {
            return false;
        } else {
            made->narrow[i] = (int32_t)values[i];
            pointers[i] = &made->narrow[i];
        }
    }
    made->m = pointers[0];
    made->n = pointers[1];
    made->k = pointers[2];
    made->lda = pointers[3];
    made->ldb = pointers[4];
    made->ldc = pointers[5];
    made->stride_a = pointers[6];
    made->stride_b = pointers[7];
    made->stride_c = pointers[8];
    made->batch = pointers[9];
    return true;
}

static void invoke_product(blas_function *function, const blas_call *c, const lengths *l)
{
    if (blas_call_is_strided(c)) {
        ((blas_strided_function *)function)(&c->transa, &c->transb, l->m, l->n, l->k, c->alpha,
                                            c->a, l->lda, l->stride_a, c->b, l->ldb, l->stride_b,
                                            c->beta, c->c, l->ldc, l->stride_c, l->batch, 1, 1);
    } else {
        ((blas_gemm_function *)function)(&c->transa, &c->transb, l->m, l->n, l->k, c->alpha, c->a,
                                         l->lda, c->b, l->ldb, c->beta, c->c, l->ldc, 1, 1);
    }
}

static void invoke(blas_function *function, const blas_call *c, const lengths *l)
{
    switch (blas_call_kind(c)) {
    case BLAS_GEMM:
        invoke_product(function, c, l);
        break;
    case BLAS_GEMMT:
        ((blas_gemmt_function *)function)(&c->uplo, &c->transa, &c->transb, l->n, l->k, c->alpha,
                                          c->a, l->lda, c->b, l->ldb, c->beta, c->c, l->ldc, 1, 1,
                                          1);
        break;
    case BLAS_SYMM:
    case BLAS_HEMM:
        ((blas_symm_function *)function)(&c->side, &c->uplo, l->m, l->n, c->alpha, c->a, l->lda,
                                         c->b, l->ldb, c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_SYRK:
    case BLAS_HERK:
        ((blas_syrk_function *)function)(&c->uplo, &c->transa, l->n, l->k, c->alpha, c->a, l->lda,
                                         c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_SYR2K:
    case BLAS_HER2K:
        ((blas_symm_function *)function)(&c->uplo, &c->transa, l->n, l->k, c->alpha, c->a, l->lda,
                                         c->b, l->ldb, c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_TRMM:
    case BLAS_TRSM:
        ((blas_trmm_function *)function)(&c->side, &c->uplo, &c->transa, &c->diag, l->m, l->n,
                                         c->alpha, c->a, l->lda, c->c, l->ldc, 1, 1, 1, 1);
        break;
    }
}

bool blas_invoke(blas_function *function, const blas_call *call, bool is_wide)
{
    lengths made;
    if (!lengths_init(&made, call, is_wide)) {
        return false;
    }
    invoke(function, call, &made);
    return true;
}

bool blas_invoke_products(blas_function *function, const blas_call *call, bool is_wide)
{
    const int64_t bytes = (int64_t)blas_type_bytes(blas_call_type(call));
    const char *a = call->a, *b = call->b;
    char *c = call->c;
    lengths l;
    if (!lengths_init(&l, call, is_wide)) {
        return false;
    }
    for (int64_t i = 0; i < call->batch; i++) {
        ((blas_gemm_function *)function)(&call->transa, &call->transb, l.m, l.n, l.k, call->alpha,
                                         a + i * call->stride_a * bytes, l.lda,
                                         b + i * call->stride_b * bytes, l.ldb, call->beta,
                                         c + i * call->stride_c * bytes, l.ldc, 1, 1);
    }
    return true;
}
