/* The route of products on units that add pairs or fours of products, see gemm/pairs.h and
 * pair_kernels.h. A task packs the rows of A that it needs strip by strip, and its columns
 * of B unless a phase before has packed all of B.
 *
 * A unit treats denormal numbers as zero. Packing notes the least exponent of each panel: if the
 * least bit of the least product is at least the least normal number, no sum can be denormal, and
 * the unit has the bits of IEEE arithmetic. Else the task continues with the emulation, which adds
 * in the same order. So the result is that of IEEE arithmetic in one order for all numbers. */
#include "gemm/pairs.h"

#include "threads/caches.h"
#include "gemm/pair_kernels.h"

#include <stddef.h>

/* One block of C in one matrix. */
struct pairs_task {
    const struct cpu_gemm_job *job;
    int64_t matrix, batch; /* number in the group, in the batch */
    int64_t row, rows;     /* in C */
    int64_t col, cols;     /* in C */
    int64_t panel;         /* first of B, in the packed block */
    char *b, *a, *sums, *lines;
    uint16_t exponents[CPU_GEMM_PAIRS_MAX_COLS / CPU_PAIRS_SIDE]; /* of the task's panels of B */
    bool emulates;
    int slot;
};

/* An element of an operand. */
static const void *element_of(const void *matrix, int64_t index, enum cpu_gemm_type type)
{
    return (const char *)matrix + index * cpu_gemm_type_bytes(type);
}

/* The least bit of a product of numbers with biased exponents x and y is 2^(x + y - 268). */
static bool exponents_fit(uint32_t x, uint32_t y)
{
    return x > 0 && y > 0 && x + y >= 268 - 126;
}

static struct cpu_pairs_source source_of_a(const struct pairs_task *task, int64_t row, int rows,
                                           int64_t k0, int64_t k)
{
    const struct cpu_gemm_desc *d = &task->job->plan->desc;
    const int64_t at = d->transpose_a ? k0 * d->lda + row : row * d->lda + k0;
    return (struct cpu_pairs_source){
        element_of(task->job->args->a, task->batch * d->stride_a + at, d->type_a), d->lda, rows, k,
        !d->transpose_a};
}

static struct cpu_pairs_source source_of_b(const struct cpu_gemm_job *job, int64_t batch,
                                           int64_t col, int64_t cols, int64_t k0, int64_t k)
{
    const struct cpu_gemm_desc *d = &job->plan->desc;
    const int64_t at = d->transpose_b ? col * d->ldb + k0 : k0 * d->ldb + col;
    return (struct cpu_pairs_source){element_of(job->args->b, batch * d->stride_b + at, d->type_b),
                                     d->ldb, (int)cpu_gemm_least(cols, CPU_PAIRS_SIDE), k,
                                     d->transpose_b};
}

static inline int64_t blocks_of(const struct cpu_gemm_plan *plan, int64_t k)
{
    return cpu_gemm_ceil_div(k, plan->pairs->depth);
}

/* Exponents of packed B, one for each slab of each panel: after the panels. */
static uint16_t *packed_exponents(const struct cpu_gemm_job *job, int64_t matrix, int64_t panel)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t panels = cpu_gemm_ceil_div(p->outer_n, CPU_PAIRS_SIDE);
    char *item = (char *)job->args->workspace + job->layout.b + matrix * job->layout.item_b;
    return (uint16_t *)(item + panels * blocks_of(p, p->desc.k) * CPU_PAIRS_BLOCK_BYTES) +
           panel * p->slabs;
}

static char *packed_panel(const struct cpu_gemm_job *job, int64_t matrix, int64_t panel)
{
    return (char *)job->args->workspace + job->layout.b + matrix * job->layout.item_b +
           panel * blocks_of(job->plan, job->plan->desc.k) * CPU_PAIRS_BLOCK_BYTES;
}

void cpu_gemm_pairs_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                         int64_t unit)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t matrix = unit / s->panels, panel = unit % s->panels;
    const int64_t col = panel * CPU_PAIRS_SIDE;
    uint16_t *exponents = packed_exponents(job, matrix, panel);
    char *to = packed_panel(job, matrix, panel);
    for (int64_t k0 = 0; k0 < p->desc.k; k0 += p->kc) {
        const int64_t k = cpu_gemm_least(p->kc, p->desc.k - k0);
        const struct cpu_pairs_source from =
            source_of_b(job, s->batch + matrix, s->n0 + col, s->n - col, k0, k);
        *exponents++ = (uint16_t)p->pairs->pack_b(to, &from);
        to += blocks_of(p, k) * CPU_PAIRS_BLOCK_BYTES;
    }
}

static char *task_block(const struct pairs_task *task, int64_t i, int64_t block)
{
    return task->b +
           (i * blocks_of(task->job->plan, task->job->plan->kc) + block) * CPU_PAIRS_BLOCK_BYTES;
}

/* Packs the task's columns of one slab. Where B is beyond the caches and its rows are contiguous,
 * some are read through all panels before the next: no processor prefetches a line of each row. */
static void task_pack(struct pairs_task *task, int64_t k0, int64_t k)
{
    const struct cpu_gemm_job *job = task->job;
    const struct cpu_gemm_desc *d = &job->plan->desc;
    const int64_t size = cpu_gemm_type_bytes(d->type_b), depth = job->plan->pairs->depth;
    const bool is_far = !d->transpose_b && size * d->n * d->k > cpu_streaming_bytes() / 2;
    const int64_t step = is_far ? depth : k;
    for (int64_t at = 0; at < k; at += step) {
        for (int64_t col = 0, i = 0; col < task->cols; col += CPU_PAIRS_SIDE, i++) {
            const struct cpu_pairs_source from =
                source_of_b(job, task->batch, task->col + col, task->cols - col, k0 + at,
                            cpu_gemm_least(step, k - at));
            for (int64_t row = 0; is_far && row < depth; row++) {
                __builtin_prefetch((const char *)from.data + (depth + row) * from.ld * size);
            }
            const uint32_t least = job->plan->pairs->pack_b(task_block(task, i, at / depth), &from);
            if (at == 0 || least < task->exponents[i]) {
                task->exponents[i] = (uint16_t)least;
            }
        }
    }
}

/* Packs the task's columns of one slab, or finds what a phase before has packed. */
static void task_begin_slab(struct pairs_task *task, int64_t slab)
{
    const struct cpu_gemm_plan *p = task->job->plan;
    const int64_t k0 = slab * p->kc, k = cpu_gemm_least(p->kc, p->desc.k - k0);
    if (!p->pack_b) {
        task_pack(task, k0, k);
        return;
    }
    for (int64_t at = 0, i = 0; at < task->cols; at += CPU_PAIRS_SIDE, i++) {
        task->exponents[i] = packed_exponents(task->job, task->matrix, task->panel + i)[slab];
    }
}

static const char *task_panel(const struct pairs_task *task, int64_t slab, int64_t i)
{
    const struct cpu_gemm_plan *p = task->job->plan;
    return p->pack_b ? packed_panel(task->job, task->matrix, task->panel + i) +
                           slab * blocks_of(p, p->kc) * CPU_PAIRS_BLOCK_BYTES
                     : task->b + i * blocks_of(p, p->kc) * CPU_PAIRS_BLOCK_BYTES;
}

static char *task_sums(const struct pairs_task *task, int64_t strip, int64_t i)
{
    const int64_t across = cpu_gemm_ceil_div(task->cols, CPU_PAIRS_SIDE);
    return task->sums + (strip * across + i) * CPU_PAIRS_SUM_BYTES;
}

/* Rows `at` to at + rows - 1 of the task, at most one panel, times its columns; one slab. */
static void strip_multiply(struct pairs_task *task, int64_t slab, int64_t at, int rows)
{
    const struct cpu_gemm_plan *p = task->job->plan;
    const int64_t k0 = slab * p->kc, k = cpu_gemm_least(p->kc, p->desc.k - k0);
    const struct cpu_pairs_source from = source_of_a(task, task->row + at, rows, k0, k);
    const uint32_t exponent = p->pairs->pack_a(task->a, &from);
    for (int64_t col = 0, i = 0; col < task->cols; col += CPU_PAIRS_SIDE, i++) {
        const struct cpu_pairs_product product = {
            .sums = task_sums(task, at / CPU_PAIRS_SIDE, i),
            .a = task->a,
            .b = task_panel(task, slab, i),
            .k = k,
            .first = slab == 0,
            .rows = rows,
            .cols = (int)cpu_gemm_least(CPU_PAIRS_SIDE, task->cols - col),
        };
        task->emulates |= !exponents_fit(exponent, task->exponents[i]);
        (task->emulates ? p->pairs->emulate : p->pairs->multiply)(&product);
    }
}

/* Stores the sums of a strip at `to`, which is C, or lines for the epilogue, scaled and rounded. */
static void strip_store(const struct pairs_task *task, int64_t at, int rows, void *to, int64_t ld,
                        enum cpu_gemm_type type, double beta)
{
    const struct cpu_gemm_job *job = task->job;
    cpu_gemm_store *store = job->plan->desc.epilogue ? job->plan->store_sums : job->plan->store_c;
    for (int64_t col = 0; col < task->cols; col += CPU_PAIRS_TILE) {
        const char *sums = task_sums(task, at / CPU_PAIRS_SIDE, col / CPU_PAIRS_SIDE) +
                           col % CPU_PAIRS_SIDE * CPU_PAIRS_LINE_BYTES;
        const int64_t cols = cpu_gemm_least(CPU_PAIRS_TILE, task->cols - col);
        for (int row = 0; row < rows; row += CPU_PAIRS_TILE) {
            store((char *)to + (row * ld + col) * cpu_gemm_type_bytes(type), ld, type,
                  sums + row * 2 * CPU_PAIRS_LINE_BYTES, CPU_PAIRS_TILE,
                  cpu_gemm_least(CPU_PAIRS_TILE, rows - row), cols, job->args->alpha, beta);
        }
    }
}

/* C's rows, as sums. */
static void lines_load(const struct pairs_task *task, const void *c, int rows)
{
    const struct cpu_gemm_plan *p = task->job->plan;
    if (p->desc.type_c == CPU_GEMM_I32) {
        p->store_sums(task->lines, task->cols, CPU_GEMM_I32, c, p->desc.ldc, rows, task->cols, 1,
                      0);
    } else {
        p->kernels->copy(task->lines, task->cols, c, p->desc.ldc, p->desc.type_c, rows, task->cols);
    }
}

static void strip_finish(const struct pairs_task *task, int64_t at, int rows)
{
    const struct cpu_gemm_job *job = task->job;
    const struct cpu_gemm_desc *d = &job->plan->desc;
    const int64_t row = task->row + at;
    const double beta = job->args->beta;
    char *c = (char *)job->args->c + (task->batch * d->stride_c + row * d->ldc + task->col) *
                                         cpu_gemm_type_bytes(d->type_c);
    if (!d->epilogue) {
        strip_store(task, at, rows, c, d->ldc, d->type_c, beta);
        return;
    }
    if (beta != 0) {
        lines_load(task, c, rows);
    }
    strip_store(task, at, rows, task->lines, task->cols, cpu_gemm_sums_type(job->plan), beta);
    d->epilogue(job->args->user, &(struct cpu_gemm_tile){.data = task->lines,
                                                         .row = row,
                                                         .col = task->col,
                                                         .batch = task->batch,
                                                         .ld = task->cols,
                                                         .rows = rows,
                                                         .cols = (int)task->cols,
                                                         .thread = task->slot});
    job->plan->store_c(c, d->ldc, d->type_c, task->lines, task->cols, rows, task->cols, 1, 0);
}

static struct pairs_task task_of(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                                 int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t down = cpu_gemm_ceil_div(s->m, job->task_m);
    const int64_t across = cpu_gemm_ceil_div(s->n, job->task_n);
    const int64_t matrix = unit / (down * across);
    const int64_t m = unit / across % down * job->task_m, n = unit % across * job->task_n;
    const struct cpu_gemm_pairs_slot parts = cpu_gemm_pairs_slot_of(p);
    char *work = (char *)job->args->workspace + job->layout.scratch + slot * job->layout.slot;
    return (struct pairs_task){.job = job,
                               .matrix = p->desc.stride_b == 0 ? 0 : matrix,
                               .batch = s->batch + matrix,
                               .row = s->m0 + m,
                               .rows = cpu_gemm_least(job->task_m, s->m - m),
                               .col = s->n0 + n,
                               .cols = cpu_gemm_least(job->task_n, s->n - n),
                               .panel = n / CPU_PAIRS_SIDE,
                               .b = work,
                               .a = work + parts.a,
                               .sums = work + parts.sums,
                               .lines = work + parts.lines,
                               .slot = slot};
}

void cpu_gemm_pairs_multiply(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                             int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    struct pairs_task task = task_of(job, s, unit, slot);
    p->pairs->begin();
    for (int64_t slab = 0; slab < p->slabs; slab++) {
        task_begin_slab(&task, slab);
        for (int64_t at = 0; at < task.rows; at += CPU_PAIRS_SIDE) {
            const int rows = (int)cpu_gemm_least(CPU_PAIRS_SIDE, task.rows - at);
            strip_multiply(&task, slab, at, rows);
            if (slab == p->slabs - 1) {
                strip_finish(&task, at, rows);
            }
        }
    }
    p->pairs->end();
}
