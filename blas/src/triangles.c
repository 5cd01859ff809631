/* LU and Cholesky, see triangles.h. */
#include "triangles.h"

#include "estimate.h"
#include "pairs.h"
#include "solve.h"

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* ---- LU ---- */

/* Permutes the rows from `row` on of some columns by `order`, the index of each new row. */
static hal_status rows_exchange(const blas_factor_run *f, const ops_tensor *order, int64_t row,
                                int64_t column, int64_t columns)
{
    if (columns == 0) {
        return HAL_OK;
    }
    const int64_t rows = f->call->m - row;
    const ops_tensor from = blas_factor_part(f, row, rows, column, columns);
    const ops_tensor to = blas_operand_part(&f->scratch, 0, columns, 0, f->parts * rows);
    const ops_tensor part = blas_pairs_view(f->call->type, &from);
    const ops_tensor moved = blas_pairs_view(f->call->type, &to);
    HAL_TRY(ops_gather(f->lane->context, 1, &part, order, &moved));
    return ops_copy(f->lane->context, &moved, &part);
}

/* The row exchanges of a panel as a permutation. Returns whether a row moves. */
static bool order_of(const int64_t *pivots, int64_t count, int64_t rows, int32_t *order)
{
    bool has_any = false;
    for (int64_t i = 0; i < rows; i++) {
        order[i] = (int32_t)i;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t other = pivots[i] - 1;
        const int32_t kept = order[i];
        has_any = has_any || other != i;
        order[i] = order[other];
        order[other] = kept;
    }
    return has_any;
}

static hal_status panel_exchange(const blas_factor_run *f, int64_t j, int64_t width)
{
    const int64_t rows = f->call->m - j;
    if (!order_of(f->pivots + j, width, rows, f->order)) {
        return HAL_OK;
    }
    ops_tensor order;
    HAL_TRY(ops_tensor_from_host(f->lane->context, HAL_TYPE_I32, 1, &rows, f->order, &order));
    hal_status status = rows_exchange(f, &order, j, 0, j);
    if (status == HAL_OK) {
        status = rows_exchange(f, &order, j, j + width, f->call->n - j - width);
    }
    ops_tensor_release(&order);
    return status;
}

/* The factors of a panel give rows of U and update what is right of it and below. */
static hal_status panel_update(const blas_factor_run *f, int64_t j, int64_t width)
{
    const blas_factoring *c = f->call;
    const int64_t next = j + width, rows = c->m - next, columns = c->n - next;
    if (columns == 0) {
        return HAL_OK;
    }
    const blas_matrix lower = {.data = f->panel,
                               .type = c->type,
                               .structure = BLAS_TRIANGULAR,
                               .rows = width,
                               .columns = width,
                               .leading = c->m - j,
                               .count = 1,
                               .is_unit = true};
    ops_tensor u = blas_factor_part(f, j, width, next, columns);
    HAL_TRY(blas_solve_in_place(f->lane, &lower, &u));
    if (rows == 0) {
        return HAL_OK;
    }
    const ops_tensor l = blas_factor_part(f, next, rows, j, width);
    const ops_tensor rest = blas_factor_part(f, next, rows, next, columns);
    ops_tensor right;
    HAL_TRY(blas_pairs_expand(f->lane, c->type, &l, &right));
    const hal_status status = blas_operand_multiply(f->lane, -1, &u, &right, 1, &rest);
    ops_tensor_release(&right);
    return status;
}

/* Whether each row is exchanged with itself or one below: of NaN some BLAS find no greatest
 * element. */
static bool are_pivots(const int64_t *pivots, int64_t count, int64_t rows)
{
    bool are_pivots = true;
    for (int64_t i = 0; i < count; i++) {
        are_pivots = are_pivots && pivots[i] > i && pivots[i] <= rows;
    }
    return are_pivots;
}

static hal_status lu_compute(blas_factor_run *f, int64_t *info)
{
    const blas_factoring *c = f->call;
    const int64_t count = smaller(c->m, c->n), step = blas_factoring_panel(c);
    for (int64_t j = 0; j < count; j += step) {
        const int64_t width = smaller(step, count - j), rows = c->m - j;
        HAL_TRY(blas_factor_read(f, j, rows, j, width, f->panel));
        const int64_t singular = blas_lapack_getrf(c, rows, width, f->panel, rows, f->pivots + j);
        if (singular < 0 || !are_pivots(f->pivots + j, width, rows)) {
            return HAL_ERROR_UNSUPPORTED;
        }
        *info = *info == 0 && singular > 0 ? j + singular : *info;
        HAL_TRY(blas_factor_write(f, j, rows, j, width, f->panel));
        HAL_TRY(panel_exchange(f, j, width));
        HAL_TRY(panel_update(f, j, width));
        for (int64_t i = j; i < j + width; i++) {
            f->pivots[i] += j;
        }
    }
    return HAL_OK;
}

static void pivots_store(const blas_factor_run *f)
{
    const blas_factoring *c = f->call;
    for (int64_t i = 0; i < smaller(c->m, c->n); i++) {
        if (c->is_64) {
            ((int64_t *)c->pivots)[i] = f->pivots[i];
        } else {
            ((int32_t *)c->pivots)[i] = (int32_t)f->pivots[i];
        }
    }
}

/* ---- Cholesky ---- */

/* The square from `next` on minus the edge times its conjugate transpose: panels of columns, of
 * one triangle. Rows of `edge` are columns of U, or conjugated rows of L. */
static hal_status square_update(const blas_factor_run *f, int64_t next, const ops_tensor *edge)
{
    const blas_factoring *c = f->call;
    const bool is_upper = c->uplo == 'U';
    const int64_t rest = c->n - next, step = blas_factoring_panel(c), depth = edge->shape[1];
    ops_tensor expanded, adjoint;
    HAL_TRY(blas_pairs_expand(f->lane, c->type, edge, &expanded));
    hal_status status = ops_tensor_transpose(&expanded, 0, 1, &adjoint);
    for (int64_t at = 0; at < rest && status == HAL_OK; at += step) {
        const int64_t columns = smaller(step, rest - at);
        const int64_t first = is_upper ? 0 : at, last = is_upper ? at + columns : rest;
        const ops_tensor left = blas_operand_part(edge, at, columns, 0, depth);
        const ops_tensor right =
            blas_operand_part(&adjoint, 0, depth, f->parts * first, f->parts * (last - first));
        const ops_tensor result =
            blas_factor_part(f, next + first, last - first, next + at, columns);
        status = blas_operand_multiply(f->lane, -1, &left, &right, 1, &result);
    }
    ops_tensor_release(&expanded);
    return status;
}

/* The edge of U is solved in its place. */
static hal_status upper_update(const blas_factor_run *f, const blas_matrix *triangle, int64_t j,
                               int64_t next)
{
    const ops_tensor edge = blas_factor_part(f, j, next - j, next, f->call->n - next);
    HAL_TRY(blas_solve_in_place(f->lane, triangle, &edge));
    return square_update(f, next, &edge);
}

/* The edge of L is solved as its conjugate transpose. */
static hal_status lower_update(const blas_factor_run *f, const blas_matrix *triangle, int64_t j,
                               int64_t next)
{
    const blas_type type = f->call->type;
    const int64_t rest = f->call->n - next;
    const ops_tensor below = blas_factor_part(f, next, rest, j, next - j);
    ops_tensor edge;
    HAL_TRY(blas_operand_create(f->lane, type, 1, next - j, rest, &edge));
    hal_status status = blas_pairs_adjoint(f->lane, type, &below, &edge);
    if (status == HAL_OK) {
        status = blas_solve_in_place(f->lane, triangle, &edge);
    }
    if (status == HAL_OK) {
        status = blas_pairs_adjoint(f->lane, type, &edge, &below);
    }
    if (status == HAL_OK) {
        status = square_update(f, next, &edge);
    }
    ops_tensor_release(&edge);
    return status;
}

/* The rest of a lower triangle's columns from `j` on, or of an upper one's rows. */
static hal_status cholesky_update(const blas_factor_run *f, int64_t j, int64_t width)
{
    const blas_type type = f->call->type;
    const bool is_upper = f->call->uplo == 'U';
    const int64_t next = j + width;
    if (next == f->call->n) {
        return HAL_OK;
    }
    const blas_matrix triangle = {.data = f->panel,
                                  .type = type,
                                  .structure = BLAS_TRIANGULAR,
                                  .rows = width,
                                  .columns = width,
                                  .leading = width,
                                  .count = 1,
                                  .is_upper = is_upper,
                                  .is_transposed = is_upper,
                                  .is_conjugated = is_upper && blas_type_is_complex(type)};
    return (is_upper ? upper_update : lower_update)(f, &triangle, j, next);
}

static hal_status cholesky_compute(blas_factor_run *f)
{
    const blas_factoring *c = f->call;
    const int64_t step = blas_factoring_panel(c);
    for (int64_t j = 0; j < c->n; j += step) {
        const int64_t width = smaller(step, c->n - j);
        HAL_TRY(blas_factor_read(f, j, width, j, width, f->panel));
        if (blas_lapack_potrf(c, width, f->panel, width) != 0) {
            return HAL_ERROR_UNSUPPORTED;
        }
        HAL_TRY(blas_factor_write(f, j, width, j, width, f->panel));
        HAL_TRY(cholesky_update(f, j, width));
    }
    return HAL_OK;
}

hal_status blas_triangles_lu(blas_factor_run *f, int64_t *info)
{
    HAL_TRY(lu_compute(f, info));
    HAL_TRY(blas_factor_store(f));
    pivots_store(f);
    return HAL_OK;
}

hal_status blas_triangles_cholesky(blas_factor_run *f)
{
    HAL_TRY(cholesky_compute(f));
    return blas_factor_store(f);
}
