/* The routes of products with a short side, see gemm_skinny.h. */
#include "gemm/skinny.h"

#include "gemm/job.h"

#include <string.h>

/* Elements `at` to at + count - 1 of the long side of one product. */
struct skinny_task {
    const struct cpu_gemm_plan *plan;
    const struct cpu_gemm_args *args;
    int64_t batch, at, count;
    char *sums;
    int slot;
};

void cpu_gemm_skinny_pack(const struct cpu_gemm_plan *p, const struct cpu_gemm_args *args,
                          int64_t batch, char *to)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t stride = cpu_gemm_round_up(d->k, 16);
    const int64_t rows = p->swap ? d->n : d->m, ld = p->swap ? d->ldb : d->lda;
    const enum cpu_gemm_type type = p->swap ? d->type_b : d->type_a;
    const bool k_contiguous = p->swap ? d->transpose_b : !d->transpose_a;
    const char *from =
        p->swap ? (const char *)args->b + batch * d->stride_b * cpu_gemm_type_bytes(type)
                : (const char *)args->a + batch * d->stride_a * cpu_gemm_type_bytes(type);

    if (k_contiguous) {
        p->kernels->copy(to, stride, from, ld, type, rows, d->k);
    } else {
        p->kernels->transpose(to, stride, from, ld, type, rows, d->k);
    }
}

/* Whether the sums are what C becomes. */
static bool sums_are_c(const struct cpu_gemm_plan *p, double alpha, double beta)
{
    return alpha == 1 && beta == 0 && !p->desc.epilogue && p->desc.type_c == cpu_gemm_sums_type(p);
}

static char *c_of(const struct skinny_task *t)
{
    const struct cpu_gemm_desc *d = &t->plan->desc;
    const int64_t from = t->plan->swap ? t->at * d->ldc : t->at;
    return (char *)t->args->c + (t->batch * d->stride_c + from) * cpu_gemm_type_bytes(d->type_c);
}

/* Transposes sums to the layout of C; applies alpha, beta, the epilogue and C's type. */
static void sums_finish(const struct skinny_task *t, double alpha)
{
    const struct cpu_gemm_plan *p = t->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const enum cpu_gemm_type native = cpu_gemm_sums_type(p);
    int64_t rows = p->swap ? t->count : d->m, cols = p->swap ? d->n : t->count;
    char *sums = t->sums, *other = sums + rows * cols * p->size, *c = c_of(t);
    double beta = t->args->beta;

    if (p->swap && cols > 1 && sums_are_c(p, alpha, beta)) {
        p->kernels->transpose(c, d->ldc, sums, t->count, native, rows, cols);
        return;
    }
    if (p->swap && cols > 1) {
        p->kernels->transpose(other, cols, sums, t->count, native, rows, cols);
        char *turned = other;
        other = sums;
        sums = turned;
    }
    if (d->epilogue) {
        if (beta != 0) {
            p->kernels->copy(other, cols, c, d->ldc, d->type_c, rows, cols);
        }
        p->kernels->store(other, cols, native, sums, cols, rows, cols, alpha, beta);
        d->epilogue(t->args->user, &(struct cpu_gemm_tile){.data = other,
                                                           .row = p->swap ? t->at : 0,
                                                           .col = p->swap ? 0 : t->at,
                                                           .batch = t->batch,
                                                           .ld = cols,
                                                           .rows = (int)rows,
                                                           .cols = (int)cols,
                                                           .thread = t->slot});
        sums = other;
        alpha = 1;
        beta = 0;
    }
    if (d->ldc == cols) {
        cols *= rows;
        rows = 1;
    }
    p->store_c(c, d->ldc, d->type_c, sums, cols, rows, cols, alpha, beta);
}

/* Tiles whose columns are the long side's. */
static void multiply_tiles(const struct skinny_task *t, const struct cpu_gemm_skinny *w)
{
    const struct cpu_gemm_plan *p = t->plan;
    const bool in_c = p->writes_row && !p->desc.epilogue;
    const int64_t strips =
        w->rows <= p->kernels->mr ? 1 : cpu_gemm_ceil_div(w->rows, p->kernels->mr);
    const int64_t rows = strips == 1 ? w->rows : cpu_gemm_ceil_div(w->rows, strips);
    struct cpu_gemm_strip strip = {
        /* in full, as in gemm/single.c */
        .k = p->desc.k,
        .cols = w->cols,
        .rows = 0,
        .a = NULL,
        .a_row = w->y_row,
        .a_col = w->y_col,
        .b = w->x,
        .b_row = w->ldx,
        .b_panel = p->kernels->nr,
        .c = NULL,
        .ldc = w->cols,
        .alpha = t->args->alpha,
        .beta = in_c ? t->args->beta : 0,
        .in_chains = p->in_chains,
        .streams = false,
        .ahead = {{NULL, 0}, {NULL, 0}},
    };
    for (int64_t row = 0; row < w->rows; row += rows) {
        strip.rows = (int)cpu_gemm_least(rows, w->rows - row);
        strip.a = (const char *)w->y + row * w->y_row * p->size;
        strip.c = in_c ? c_of(t) : t->sums + row * w->cols * p->size;
        p->kernels->strip(&strip);
    }
    if (!in_c) {
        sums_finish(t, 1);
    }
}

/* Sums along k, of DOT in pieces of Y that stay in the second cache while the rows of X are read.
 * They are in C at once where that has their layout. */
static void multiply_lines(const struct skinny_task *t, struct cpu_gemm_skinny *w)
{
    const struct cpu_gemm_plan *p = t->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const bool dot = p->route == CPU_GEMM_DOT;
    const char *y = w->y, *x = w->x;
    const bool in_c =
        sums_are_c(p, t->args->alpha, t->args->beta) && (!p->swap || (w->rows == 1 && d->ldc == 1));
    w->out = in_c ? c_of(t) : t->sums;
    w->ldo = in_c && w->rows > 1 ? d->ldc : w->cols;
    for (int64_t row = 0; row < w->rows; row++) {
        memset((char *)w->out + row * w->ldo * p->size, 0, (size_t)(w->cols * p->size));
    }
    for (int64_t k = 0; k < d->k; k += w->k) {
        w->k = dot ? cpu_gemm_least(4096, d->k - k) : d->k;
        w->y = y + k * w->y_col * p->size;
        w->x = x + k * cpu_gemm_type_bytes(w->type);
        if (dot) {
            p->kernels->dot(w);
        } else {
            p->kernels->axpy(w);
        }
    }
    if (!in_c) {
        sums_finish(t, t->args->alpha);
    }
}

void cpu_gemm_skinny_multiply(const struct cpu_gemm_plan *p, const struct cpu_gemm_args *args,
                              int64_t batch, int64_t at, int64_t count, const char *packed,
                              char *sums, int slot)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const struct skinny_task task = {.plan = p,
                                     .args = args,
                                     .batch = batch,
                                     .at = at,
                                     .count = count,
                                     .sums = sums,
                                     .slot = slot};
    const enum cpu_gemm_type type = p->swap ? d->type_a : d->type_b;
    const int64_t x_stride = p->swap ? d->stride_a : d->stride_b;
    const int64_t y_stride = p->swap ? d->stride_b : d->stride_a;
    const int64_t ldx = p->swap ? d->lda : d->ldb, ldy = p->swap ? d->ldb : d->lda;
    const bool y_along = p->swap ? d->transpose_b : !d->transpose_a;
    const int64_t from = batch * x_stride + (p->route == CPU_GEMM_DOT ? at * ldx : at);
    struct cpu_gemm_skinny w = {
        .k = d->k,
        .rows = (int)(p->swap ? d->n : d->m),
        .cols = count,
        .type = type,
        .x = (const char *)(p->swap ? args->a : args->b) + from * cpu_gemm_type_bytes(type),
        .ldx = ldx,
        .y = (const char *)(p->swap ? args->b : args->a) + batch * y_stride * p->size,
        .y_row = y_along ? ldy : 1,
        .y_col = y_along ? 1 : ldy,
        .out = sums,
        .ldo = count,
    };
    if (p->pack_a) {
        w.y = packed;
        w.y_row = cpu_gemm_round_up(d->k, 16);
        w.y_col = 1;
    }
    if (p->in_tiles) {
        multiply_tiles(&task, &w);
    } else {
        multiply_lines(&task, &w);
    }
}
