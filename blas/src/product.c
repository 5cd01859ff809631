/* Every routine but trsm: products of operands by panels, see product.h. C^T = op(B)^T op(A)^T in
 * row-major tensors, since BLAS matrices are column-major. */
#include "product.h"

#include "estimate.h"
#include "operand.h"
#include "solve.h"

/* What a product multiplies: left (n x k) right (k x m) = result (n x m), counted in elements. */
typedef struct product {
    blas_lane *lane;
    ops_tensor left, right, result;
    int64_t m, n, k;
    int64_t parts; /* reals of an element: lengths of m and k are that many times as long */
    double alpha, beta;
    bool is_in_place; /* the result is the host's C */
} product;

/* result[columns j of C, rows i of C] from the given part of k. */
static hal_status product_panel(const product *p, int64_t j, int64_t columns, int64_t i,
                                int64_t rows, int64_t first, int64_t depth)
{
    const int64_t f = p->parts;
    const ops_tensor left = blas_operand_part(&p->left, j, columns, f * first, f * depth);
    const ops_tensor right = blas_operand_part(&p->right, f * first, f * depth, f * i, f * rows);
    const ops_tensor result = blas_operand_part(&p->result, j, columns, f * i, f * rows);
    return blas_operand_multiply(p->lane, p->alpha, &left, &right, p->beta, &result);
}

static int64_t shorter(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* One triangle of C: panels of columns, from the diagonal to the edge. */
static hal_status product_triangle(const product *p, char triangle)
{
    const int64_t panel = blas_panel(p->n);
    for (int64_t j = 0; j < p->n; j += panel) {
        const int64_t columns = shorter(panel, p->n - j);
        const int64_t first = triangle == 'L' ? j : 0;
        const int64_t last = triangle == 'L' ? p->m : j + columns;
        HAL_TRY(product_panel(p, j, columns, first, last - first, 0, p->k));
    }
    return HAL_OK;
}

/* A triangular op(A): panels of it, each with the part of k that is not 0. */
static hal_status product_with_triangle(const product *p, bool is_left_side, bool is_lower)
{
    const int64_t order = is_left_side ? p->m : p->n;
    const int64_t panel = blas_panel(order);
    for (int64_t at = 0; at < order; at += panel) {
        const int64_t count = shorter(panel, order - at);
        const bool needs_earlier = is_lower == is_left_side;
        const int64_t first = needs_earlier ? 0 : at;
        const int64_t depth = (needs_earlier ? at + count : order) - first;
        HAL_TRY(is_left_side ? product_panel(p, 0, p->n, at, count, first, depth)
                             : product_panel(p, at, count, 0, p->m, first, depth));
    }
    return HAL_OK;
}

/* Loads the operands of one of the call's products and records it. */
static hal_status product_record(product *p, const blas_call *call, int which)
{
    const blas_factors factors = blas_factors_of(call, which);
    const blas_number one = {1, 0};
    const bool is_folded = factors.alpha.im != 0; /* into op(A) */
    p->alpha = is_folded ? 1 : factors.alpha.re;
    p->k = factors.x.columns;
    HAL_TRY(blas_operand_load(p->lane, &factors.y, one, BLAS_PAIRS, true, &p->left));
    hal_status status = blas_operand_load(p->lane, &factors.x, is_folded ? factors.alpha : one,
                                          BLAS_EXPANDED, true, &p->right);
    if (status == HAL_OK) {
        const char triangle = blas_result_triangle(call);
        const bool is_left_side = call->side == 'L';
        const blas_matrix *a = is_left_side ? &factors.x : &factors.y;
        status = triangle != 0 ? product_triangle(p, triangle)
                 : blas_call_kind(call) == BLAS_TRMM
                     ? product_with_triangle(p, is_left_side, blas_matrix_is_lower(a))
                     : product_panel(p, 0, p->n, 0, p->m, 0, p->k);
        ops_tensor_release(&p->right);
    }
    ops_tensor_release(&p->left);
    return status;
}

/* C, scaled by a beta that is not real; not read where beta is 0. */
static hal_status result_create(product *p, const blas_call *call)
{
    const blas_number beta = blas_call_beta(call), one = {1, 0};
    const blas_type type = blas_call_type(call);
    const blas_matrix c = {.count = call->batch,
                           .stride = call->stride_c,
                           .data = call->c,
                           .type = type,
                           .rows = call->m,
                           .columns = call->n,
                           .leading = call->ldc};
    const bool is_real = beta.im == 0;
    p->beta = is_real ? beta.re : 1;
    p->is_in_place = is_real && blas_result_triangle(call) == 0 &&
                     blas_call_kind(call) != BLAS_TRMM &&
                     blas_operand_import(p->lane, &c, HAL_ACCESS_READ_WRITE, &p->result) == HAL_OK;
    if (p->is_in_place) {
        return HAL_OK;
    }
    if (is_real && beta.re == 0) {
        return blas_operand_create(p->lane, type, call->batch, call->m, call->n, &p->result);
    }
    return blas_operand_load(p->lane, &c, is_real ? one : beta, BLAS_PAIRS, false, &p->result);
}

hal_status blas_product_compute(blas_lane *lane, const blas_call *call)
{
    if (blas_call_kind(call) == BLAS_TRSM) {
        return blas_solve_compute(lane, call);
    }
    product p = {.lane = lane, .m = call->m, .n = call->n};
    p.parts = blas_type_parts(blas_call_type(call));
    HAL_TRY(result_create(&p, call));
    hal_status status = HAL_OK;
    for (int which = 0; status == HAL_OK && which < blas_factors_count(call); which++) {
        status = product_record(&p, call, which);
        p.beta = 1;
    }
    if (status == HAL_OK) {
        status =
            p.is_in_place ? blas_lane_wait(lane) : blas_operand_store(lane, &p.result, call, false);
    }
    ops_tensor_release(&p.result);
    return status;
}
