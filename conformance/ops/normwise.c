/* normwise.c: matrix products of the class NORMWISE that are large enough for levels of Strassen's
 * algorithm on most devices; some elements of each are compared with double precision. */
#include <math.h>
#include <string.h>

#include "case/cases.h"
#include "ops/fixture.h"

enum { CHECKS = 300 };

typedef struct large_product {
    hal_type type;
    int m, n, k;
    bool is_scaled;   /* a quarter of A is 2^12 times larger */
    bool is_prepared; /* B is prepared and then overwritten */
} large_product;

/* The matrix in memory of the host, and on the device. */
typedef struct large_matrix {
    void *elements;
    ops_tensor tensor;
} large_matrix;

static large_matrix large_matrix_create(case_run *run, hal_type type, int rows, int columns,
                                        bool is_scaled, random_state *random)
{
    const size_t count = (size_t)rows * (size_t)columns;
    const int64_t shape[2] = {rows, columns};
    large_matrix made = {.elements = case_allocate(run, count, hal_type_size(type))};
    random_fill(random, type, -1.0, 1.0, made.elements, count);
    for (size_t i = 0; is_scaled && i < count; i++) {
        if (i / (size_t)columns < (size_t)rows / 2 && i % (size_t)columns < (size_t)columns / 2) {
            number_put(type, made.elements, i, 4096 * number_get(type, made.elements, i));
        }
    }
    made.tensor = case_tensor(run, type, 2, shape);
    case_ok(run,
            ops_tensor_write(run->ops, &made.tensor, made.elements, count * hal_type_size(type)),
            "a matrix on the device");
    return made;
}

static double largest_element(hal_type type, const void *elements, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(number_get(type, elements, i)));
    }
    return largest;
}

/* The bound of ops_gemm for two levels, which holds for fewer. */
static void run_large_product(case_run *run, const void *parameters)
{
    const large_product *p = parameters;
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    random_state random = {run->seed};
    large_matrix a = large_matrix_create(run, p->type, p->m, p->k, p->is_scaled, &random);
    large_matrix b = large_matrix_create(run, p->type, p->k, p->n, false, &random);
    const int64_t shape[2] = {p->m, p->n};
    const ops_tensor c = case_tensor(run, p->type, 2, shape);
    void *result = case_allocate(run, m * n, hal_type_size(p->type));
    ops_gemm_prepared *prepared = NULL;
    if (p->is_prepared) {
        case_ok(run, ops_gemm_prepare(run->ops, NULL, &b.tensor, &prepared), "ops_gemm_prepare");
        case_ok(run, ops_fill(run->ops, 1e30, &b.tensor), "ops_fill");
    }
    const ops_gemm_options options = {
        .size = sizeof options, .alpha = 1.0, .precision = HAL_GEMM_NORMWISE, .prepared = prepared};
    const hal_status status =
        ops_gemm(run->ops, &options, &a.tensor, prepared ? NULL : &b.tensor, &c);
    ops_gemm_prepared_destroy(prepared);
    case_ok(run, status, "ops_gemm");
    case_ok(run, ops_tensor_read(run->ops, &c, m * n * hal_type_size(p->type), result), "C");
    const double last = (double)k / 4, growth = 144 * (last * last + 5 * last);
    const double bound = growth * number_roundoff(p->type) *
                         largest_element(p->type, a.elements, m * k) *
                         largest_element(p->type, b.elements, k * n);
    for (int i = 0; i < CHECKS; i++) { /* corners first: where edges are peeled */
        const size_t row = i < 4 ? (size_t)(i / 2) * (m - 1) : random_below(&random, m);
        const size_t column = i < 4 ? (size_t)(i % 2) * (n - 1) : random_below(&random, n);
        long double sum = 0;
        for (size_t j = 0; j < k; j++) {
            sum += (long double)number_get(p->type, a.elements, row * k + j) *
                   (long double)number_get(p->type, b.elements, j * n + column);
        }
        const double got = number_get(p->type, result, row * n + column);
        case_check(run, fabs(got - (double)sum) <= bound,
                   "C[%zu][%zu] is %.9g instead of %.9Lg, beyond the bound of %g", row, column, got,
                   sum, bound);
    }
}

void cases_ops_normwise(case_list *list)
{
    static const large_product products[] = {{HAL_TYPE_F32, 4096, 4096, 4096, false, false},
                                             {HAL_TYPE_F32, 4096, 4096, 4096, true, false},
                                             {HAL_TYPE_F32, 4101, 4098, 4103, false, true},
                                             {HAL_TYPE_F64, 4096, 4096, 4096, false, false},
                                             {HAL_TYPE_F32, 67, 259, 131, false, true}};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const large_product *p = &products[i];
        case_add(list, run_large_product, p, sizeof *p,
                 "normwise(type=%s,m=%d,n=%d,k=%d,scaled=%d,prepared=%d,seed=%llu)",
                 hal_type_name(p->type), p->m, p->n, p->k, p->is_scaled, p->is_prepared,
                 (unsigned long long)list->seed);
    }
}
