/* Arguments of calls: values of scalars, and which calls need no product. */
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
