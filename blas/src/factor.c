/* The frame of all factorisations, see factor.h. */
#include "factor.h"

#include "estimate.h"
#include "reflectors.h"
#include "triangles.h"

#include <stdlib.h>

/* Memory for panels and what is written at the end; the device's for exchanges of rows. */
static hal_status memory_create(blas_factor_run *f)
{
    const blas_factoring *c = f->call;
    const size_t step = (size_t)blas_factoring_panel(c), m = (size_t)c->m;
    f->panel = malloc(m * step * f->element);
    f->pivots = c->kind == BLAS_GETRF ? malloc(m * sizeof *f->pivots) : NULL;
    f->order = c->kind == BLAS_GETRF ? malloc(m * sizeof *f->order) : NULL;
    const bool has_memory = f->panel && (c->kind != BLAS_GETRF || (f->pivots && f->order));
    if (!has_memory) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    return c->kind == BLAS_GETRF ? blas_operand_create(f->lane, c->type, 1, c->m, c->n, &f->scratch)
                                 : HAL_OK;
}

static void memory_free(blas_factor_run *f)
{
    ops_tensor_release(&f->a);
    ops_tensor_release(&f->scratch);
    blas_factor_forget(f->panel, (size_t)(f->call->m * blas_factoring_panel(f->call)) * f->element);
    free(f->pivots);
    free(f->order);
}

hal_status blas_factor_compute(blas_lane *lane, const blas_factoring *call, int64_t *info)
{
    const blas_matrix stored = {.data = call->a,
                                .count = 1,
                                .type = call->type,
                                .rows = call->m,
                                .columns = call->n,
                                .leading = call->lda};
    blas_factor_run f = {.lane = lane,
                         .call = call,
                         .element = blas_type_bytes(call->type),
                         .parts = blas_type_parts(call->type)};
    *info = 0;
    hal_status status = memory_create(&f);
    if (status == HAL_OK && call->kind != BLAS_ORGQR) {
        status = blas_operand_load(lane, &stored, (blas_number){1, 0}, BLAS_PAIRS, false, &f.a);
    }
    if (status == HAL_OK) {
        status = blas_lapack_has_reflectors(call->kind) ? blas_reflectors_run(&f)
                 : call->kind == BLAS_GETRF             ? blas_triangles_lu(&f, info)
                                                        : blas_triangles_cholesky(&f);
    }
    memory_free(&f);
    return status;
}
