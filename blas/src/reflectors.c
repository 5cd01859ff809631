/* Blocks of Householder reflectors, see reflectors.h. */
#include "reflectors.h"

#include "estimate.h"

#include <stdlib.h>
#include <string.h>

/* A block of reflectors: the host's V and T, column-major, and their tensors. */
typedef struct block {
    int64_t first, width, rows; /* the first reflector, how many, rows of V */
    ops_tensor v, t; /* {width, rows} and {width, width}: transposed, as A is, expanded */
} block;

/* Memory of the host for all blocks. */
typedef struct reflectors {
    blas_factor_run *f;
    char *v, *t, *tau, *work;
    int64_t work_length;
    ops_tensor products, turned; /* {columns, width} of the device, in pairs */
} reflectors;

/* V of reflectors below the diagonal of `from`, with leading dimension `leading`: its ones and
 * zeros are written out. */
static void v_fill(const reflectors *r, const block *b, const char *from, int64_t leading)
{
    const size_t element = r->f->element;
    for (int64_t i = 0; i < b->width; i++) {
        char *column = r->v + (size_t)(i * b->rows) * element;
        memset(column, 0, (size_t)i * element);
        blas_number_store(column, r->f->call->type, i, (blas_number){1, 0});
        memcpy(column + (size_t)(i + 1) * element, from + (size_t)(i * leading + i + 1) * element,
               (size_t)(b->rows - i - 1) * element);
    }
}

/* A general matrix of the host without gaps, expanded. */
static hal_status expanded_load(const reflectors *r, const void *data, int64_t rows,
                                int64_t columns, ops_tensor *tensor)
{
    const blas_matrix matrix = {.data = data,
                                .count = 1,
                                .type = r->f->call->type,
                                .rows = rows,
                                .columns = columns,
                                .leading = rows};
    return blas_operand_load(r->f->lane, &matrix, (blas_number){1, 0}, BLAS_EXPANDED, false,
                             tensor);
}

/* Writes V and T to the device. */
static hal_status block_upload(const reflectors *r, block *b)
{
    const size_t element = r->f->element;
    memset(r->t, 0, (size_t)(b->width * b->width) * element);
    blas_lapack_larft(r->f->call, b->rows, b->width, r->v, b->rows,
                      r->tau + (size_t)b->first * element, r->t, b->width);
    HAL_TRY(expanded_load(r, r->v, b->rows, b->width, &b->v));
    return expanded_load(r, r->t, b->width, b->width, &b->t);
}

/* I - V T V^H, or its conjugate transpose, times columns from `column` on. In tensors, whose rows
 * are columns: X = A^T conj(V), Y = X T^T or X conj(T), A^T -= Y V^T. */
static hal_status block_apply(const reflectors *r, const block *b, int64_t column,
                              bool is_transposed)
{
    const blas_factor_run *f = r->f;
    const int64_t columns = f->call->n - column;
    if (columns == 0) {
        return HAL_OK;
    }
    const ops_tensor part = blas_factor_part(f, b->first, b->rows, column, columns);
    const ops_tensor x = blas_operand_part(&r->products, 0, columns, 0, f->parts * b->width);
    const ops_tensor y = blas_operand_part(&r->turned, 0, columns, 0, f->parts * b->width);
    ops_tensor v_adjoint, t = b->t;
    HAL_TRY(ops_tensor_transpose(&b->v, 0, 1, &v_adjoint));
    if (is_transposed) {
        HAL_TRY(ops_tensor_transpose(&b->t, 0, 1, &t));
    }
    HAL_TRY(blas_operand_multiply(f->lane, 1, &part, &v_adjoint, 0, &x));
    HAL_TRY(blas_operand_multiply(f->lane, 1, &x, &t, 0, &y));
    return blas_operand_multiply(f->lane, -1, &y, &b->v, 1, &part);
}

static void block_free(block *b)
{
    ops_tensor_release(&b->v);
    ops_tensor_release(&b->t);
}

static hal_status factor_block(const reflectors *r, block *b)
{
    const blas_factor_run *f = r->f;
    HAL_TRY(blas_factor_read(f, b->first, b->rows, b->first, b->width, f->panel));
    if (blas_lapack_geqrf(f->call, b->rows, b->width, f->panel, b->rows,
                          r->tau + (size_t)b->first * f->element, r->work, r->work_length) != 0) {
        return HAL_ERROR_UNSUPPORTED;
    }
    HAL_TRY(blas_factor_write(f, b->first, b->rows, b->first, b->width, f->panel));
    if (b->first + b->width == f->call->n) {
        return HAL_OK;
    }
    v_fill(r, b, f->panel, b->rows);
    HAL_TRY(block_upload(r, b));
    return block_apply(r, b, b->first + b->width, true);
}

static hal_status factor_all(const reflectors *r)
{
    const blas_factoring *c = r->f->call;
    const int64_t count = c->m < c->n ? c->m : c->n, step = blas_factoring_panel(c);
    for (int64_t j = 0; j < count; j += step) {
        block b = {.first = j, .width = count - j < step ? count - j : step, .rows = c->m - j};
        const hal_status status = factor_block(r, &b);
        block_free(&b);
        HAL_TRY(status);
    }
    HAL_TRY(blas_factor_store(r->f));
    memcpy(c->tau, r->tau, (size_t)count * r->f->element);
    return HAL_OK;
}

/* A block of the call's reflectors times columns from `column` on; with `is_adjoint` its conjugate
 * transpose. */
static hal_status given_block_apply(const reflectors *r, int64_t first, int64_t column,
                                    bool is_adjoint)
{
    const blas_factoring *c = r->f->call;
    const int64_t step = blas_factoring_panel(c);
    block b = {
        .first = first, .width = c->k - first < step ? c->k - first : step, .rows = c->m - first};
    v_fill(r, &b, (const char *)c->v + (size_t)(first * (c->ldv + 1)) * r->f->element, c->ldv);
    hal_status status = block_upload(r, &b);
    if (status == HAL_OK) {
        status = block_apply(r, &b, column, is_adjoint);
    }
    block_free(&b);
    return status;
}

/* The unit matrix. */
static hal_status one_create(blas_factor_run *f)
{
    const blas_factoring *c = f->call;
    HAL_TRY(blas_operand_create(f->lane, c->type, 1, c->m, c->n, &f->a));
    HAL_TRY(ops_fill(f->lane->context, 0, &f->a));
    ops_tensor diagonal = f->a;
    diagonal.rank = 1;
    diagonal.shape[0] = c->n;
    diagonal.stride[0] = f->parts * (c->m + 1);
    return ops_fill(f->lane->context, 1, &diagonal);
}

/* Q of the unit matrix or of A, from the last block to the first; its conjugate transpose from the
 * first to the last. Columns of the unit matrix before a block stay as they are. */
static hal_status multiply_all(const reflectors *r)
{
    blas_factor_run *f = r->f;
    const blas_factoring *c = f->call;
    const bool is_generated = c->kind == BLAS_ORGQR, is_adjoint = !is_generated && c->trans != 'N';
    const int64_t step = blas_factoring_panel(c), count = (c->k + step - 1) / step;
    HAL_TRY(is_generated ? one_create(f) : HAL_OK);
    memcpy(r->tau, c->tau, (size_t)c->k * f->element);
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = (is_adjoint ? i : count - 1 - i) * step;
        HAL_TRY(given_block_apply(r, first, is_generated ? first : 0, is_adjoint));
    }
    return blas_factor_store(f);
}

hal_status blas_reflectors_run(blas_factor_run *f)
{
    const blas_factoring *c = f->call;
    const int64_t step = blas_factoring_panel(c);
    reflectors r = {.f = f, .work_length = 64 * step};
    r.v = malloc((size_t)(c->m * step) * f->element);
    r.t = malloc((size_t)(step * step) * f->element);
    r.tau = malloc((size_t)(c->n > c->k ? c->n : c->k) * f->element);
    r.work = malloc((size_t)r.work_length * f->element);
    hal_status status = r.v && r.t && r.tau && r.work ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    if (status == HAL_OK) {
        status = blas_operand_create(f->lane, c->type, 1, step, c->n, &r.products);
    }
    if (status == HAL_OK) {
        status = blas_operand_create(f->lane, c->type, 1, step, c->n, &r.turned);
    }
    if (status == HAL_OK) {
        status = c->kind == BLAS_GEQRF ? factor_all(&r) : multiply_all(&r);
    }
    ops_tensor_release(&r.products);
    ops_tensor_release(&r.turned);
    blas_factor_forget(r.v, (size_t)(c->m * step) * f->element);
    free(r.t);
    free(r.tau);
    free(r.work);
    return status;
}
