/* Products that are one task of one thread, see gemm_single.h. */
#include "gemm/single.h"

#include "gemm/job.h"
#include "gemm/skinny.h"

#include <stddef.h>

static void run_skinny(const struct cpu_gemm_plan *p, const struct cpu_gemm_args *args)
{
    char *work = args->workspace;
    if (p->pack_a) {
        cpu_gemm_skinny_pack(p, args, 0, work);
    }
    cpu_gemm_skinny_multiply(p, args, 0, 0, p->swap ? p->desc.m : p->desc.n, work,
                             work + p->single.sums, 0);
}

/* Copies A and B where the plan packs them. */
static void operands_pack(const struct cpu_gemm_plan *p, const struct cpu_gemm_args *args)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const struct cpu_gemm_single *layout = &p->single;
    char *work = args->workspace, *b = work + layout->b;
    if (p->pack_a) {
        p->kernels->copy(work, layout->lda, args->a, d->lda, d->type_a,
                         d->transpose_a ? d->k : d->m, d->transpose_a ? d->m : d->k);
    }
    if (p->pack_b && d->transpose_b) {
        p->kernels->transpose(b, layout->ldb, args->b, d->ldb, d->type_b, d->k, d->n);
    } else if (p->pack_b) {
        p->kernels->copy(b, layout->ldb, args->b, d->ldb, d->type_b, d->k, d->n);
    }
}

void cpu_gemm_single_run(const struct cpu_gemm_plan *p, const struct cpu_gemm_args *args)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const struct cpu_gemm_single *layout = &p->single;
    if (p->route != CPU_GEMM_TILES) {
        run_skinny(p, args);
        return;
    }
    if (p->pack_a || p->pack_b) {
        operands_pack(p, args);
    }
    const bool in_c = d->type_c == cpu_gemm_sums_type(p);
    char *work = args->workspace, *c = args->c;
    struct cpu_gemm_strip strip = {
        /* in full: zeroing the rest takes as long as a small product */
        .k = d->k,
        .cols = d->n,
        .rows = 0,
        .a = p->pack_a ? work : args->a,
        .a_row = d->transpose_a ? 1 : layout->lda,
        .a_col = d->transpose_a ? layout->lda : 1,
        .b = p->pack_b ? work + layout->b : args->b,
        .b_row = layout->ldb,
        .b_panel = p->kernels->nr,
        .c = c,
        .ldc = layout->ldc,
        .alpha = args->alpha,
        .beta = args->beta,
        .in_chains = p->in_chains,
        .streams = false,
        .ahead = {{NULL, 0}, {NULL, 0}},
    };
    for (int64_t row = 0; row < d->m; row += p->strip) {
        strip.rows = (int)cpu_gemm_least(p->strip, d->m - row);
        strip.c = in_c ? c : work + layout->sums;
        if (!in_c && args->beta != 0) {
            p->kernels->copy(strip.c, strip.ldc, c, d->ldc, d->type_c, strip.rows, d->n);
        }
        p->kernels->strip(&strip);
        if (d->epilogue) {
            d->epilogue(args->user, &(struct cpu_gemm_tile){.data = strip.c,
                                                            .row = row,
                                                            .ld = strip.ldc,
                                                            .rows = strip.rows,
                                                            .cols = (int)d->n});
        }
        if (!in_c) {
            p->store_c(c, d->ldc, d->type_c, strip.c, strip.ldc, strip.rows, d->n, 1, 0);
        }
        strip.a = (const char *)strip.a + strip.rows * strip.a_row * p->size;
        c += strip.rows * d->ldc * cpu_gemm_type_bytes(d->type_c);
    }
}
