/* Every routine by its definition, see plain.h. */
#include "plain.h"

#include "matrix.h"

static blas_number add(blas_number x, blas_number y)
{
    return (blas_number){x.re + y.re, x.im + y.im};
}

static blas_number divide(blas_number x, blas_number y)
{
    if (y.im == 0) {
        return (blas_number){x.re / y.re, x.im / y.re};
    }
    /* Smith's algorithm (R. Smith, Algorithm 116, CACM 1962), which avoids overflow. */
    const double a = y.re < 0 ? -y.re : y.re, b = y.im < 0 ? -y.im : y.im;
    const double ratio = a >= b ? y.im / y.re : y.re / y.im;
    const double scale = a >= b ? y.re + y.im * ratio : y.re * ratio + y.im;
    return a >= b ? (blas_number){(x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale}
                  : (blas_number){(x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale};
}

static bool is_written(char triangle, int64_t row, int64_t column)
{
    return triangle == 0 || row == column || (row < column) == (triangle == 'U');
}

static bool is_hermitian_update(const blas_call *call)
{
    return blas_call_kind(call) == BLAS_HERK || blas_call_kind(call) == BLAS_HER2K;
}

/* beta C; the diagonal of a Hermitian C is real. */
static blas_number scaled(const blas_call *call, blas_number beta, int64_t row, int64_t column)
{
    if (beta.re == 0 && beta.im == 0) {
        return (blas_number){0, 0};
    }
    blas_number value = blas_number_load(call->c, blas_call_type(call), row + column * call->ldc);
    if (row == column && is_hermitian_update(call)) {
        value.im = 0;
    }
    return blas_number_multiply(beta, value);
}

void blas_plain_scale(const blas_call *call)
{
    const blas_number beta = blas_call_beta(call);
    const char triangle = blas_result_triangle(call);
    for (int64_t j = 0; j < call->n; j++) {
        for (int64_t i = 0; i < call->m; i++) {
            if (is_written(triangle, i, j)) {
                blas_number_store(call->c, blas_call_type(call), i + j * call->ldc,
                                  scaled(call, beta, i, j));
            }
        }
    }
}

/* Element (row, column) of x y, over the p from first to last. */
static blas_number inner(const blas_factors *factors, int64_t row, int64_t column, int64_t first,
                         int64_t last)
{
    blas_number sum = {0, 0};
    for (int64_t p = first; p < last; p++) {
        sum = add(sum, blas_number_multiply(blas_matrix_get(&factors->x, row, p),
                                            blas_matrix_get(&factors->y, p, column)));
    }
    return sum;
}

static void compute_product(const blas_call *call)
{
    const blas_number beta = blas_call_beta(call);
    const char triangle = blas_result_triangle(call);
    const int count = blas_factors_count(call);
    for (int64_t j = 0; j < call->n; j++) {
        for (int64_t i = 0; i < call->m; i++) {
            if (!is_written(triangle, i, j)) {
                continue;
            }
            blas_number value = scaled(call, beta, i, j);
            for (int which = 0; which < count; which++) {
                const blas_factors factors = blas_factors_of(call, which);
                const blas_number sum = inner(&factors, i, j, 0, factors.x.columns);
                value = add(value, blas_number_multiply(factors.alpha, sum));
            }
            value.im = i == j && is_hermitian_update(call) ? 0 : value.im;
            blas_number_store(call->c, blas_call_type(call), i + j * call->ldc, value);
        }
    }
}

/* B op(A) and op(A) B in place: an element is replaced when no other needs it any more. */
static void compute_triangular_product(const blas_call *call, const blas_factors *factors)
{
    const bool is_left = call->side == 'L';
    const blas_matrix *a = is_left ? &factors->x : &factors->y;
    const int64_t order = a->rows, others = is_left ? call->n : call->m;
    /* The elements of a line that one depends on come before it (or after it). */
    const bool needs_earlier = blas_matrix_is_lower(a) == is_left;
    for (int64_t line = 0; line < others; line++) {
        for (int64_t step = 0; step < order; step++) {
            const int64_t at = needs_earlier ? order - 1 - step : step;
            const int64_t row = is_left ? at : line, column = is_left ? line : at;
            const blas_number sum =
                inner(factors, row, column, needs_earlier ? 0 : at, needs_earlier ? at + 1 : order);
            blas_number_store(call->c, blas_call_type(call), row + column * call->ldc,
                              blas_number_multiply(factors->alpha, sum));
        }
    }
}

/* Substitution: the elements that one depends on are solved before it. */
static void compute_solution(const blas_call *call, const blas_factors *factors)
{
    const bool is_left = call->side == 'L';
    const blas_matrix *a = is_left ? &factors->x : &factors->y;
    const int64_t order = a->rows, others = is_left ? call->n : call->m;
    const bool needs_earlier = blas_matrix_is_lower(a) == is_left;
    const blas_type type = blas_call_type(call);
    for (int64_t line = 0; line < others; line++) {
        for (int64_t step = 0; step < order; step++) {
            const int64_t at = needs_earlier ? step : order - 1 - step;
            const int64_t row = is_left ? at : line, column = is_left ? line : at;
            const int64_t index = row + column * call->ldc;
            const blas_number known =
                inner(factors, row, column, needs_earlier ? 0 : at + 1, needs_earlier ? at : order);
            const blas_number wanted =
                blas_number_multiply(factors->alpha, blas_number_load(call->c, type, index));
            blas_number value = add(wanted, (blas_number){-known.re, -known.im});
            value = call->diag == 'U' ? value : divide(value, blas_matrix_get(a, at, at));
            blas_number_store(call->c, type, index, value);
        }
    }
}

void blas_plain_compute(const blas_call *call)
{
    const blas_kind kind = blas_call_kind(call);
    if (call->batch > 1) {
        for (int64_t i = 0; i < call->batch; i++) {
            const blas_call one = blas_call_product(call, i);
            blas_plain_compute(&one);
        }
    } else if (blas_call_is_scaling(call)) {
        blas_plain_scale(call);
    } else if (kind == BLAS_TRMM || kind == BLAS_TRSM) {
        const blas_factors factors = blas_factors_of(call, 0);
        if (kind == BLAS_TRMM) {
            compute_triangular_product(call, &factors);
        } else {
            compute_solution(call, &factors);
        }
    } else {
        compute_product(call);
    }
}
