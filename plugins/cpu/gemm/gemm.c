/* Runs plans of the matrix product. Called by the plugin's gemm kernel when its command runs.
 *
 * A run is a row of phases - pack a slab of A and B, multiply it, and so on - each cut in tasks.
 * All threads take tasks, phase by phase, and a task waits until every task of the phases before
 * its own is done. A thread leaves a phase when all of its tasks are taken, so a task waits only
 * for tasks that are already running: the threads need not run at the same time, and one thread
 * alone never waits. Each element of C is summed in the same order whatever the number of
 * threads. */
#include "gemm/gemm.h"

#include "gemm/levels.h"
#include "gemm/pair_kernels.h"
#include "gemm/pairs.h"
#include "gemm/single.h"
#include "gemm/skinny.h"

#include <string.h>

/* Work of a task that is worth another one, in multiply-adds: a few microseconds. Reading an
 * element from the second cache takes as long as LOAD_WORK of them. */
enum { TASK_WORK = 1 << 17, LOAD_WORK = 8 };

static int64_t task_work(int64_t m, int64_t n, int64_t k)
{
    const int64_t operations = m * n * k, loads = LOAD_WORK * (m + n) * k;
    return operations > loads ? operations : loads;
}

static bool plan_is_skinny(const struct cpu_gemm_plan *p)
{
    return p->route == CPU_GEMM_DOT || p->route == CPU_GEMM_AXPY;
}

/* Two tasks for each thread. Without a phase that packs B, each row of tasks packs it again. */
static void prepare_pairs(struct cpu_gemm_job *job, int threads)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t side = CPU_PAIRS_SIDE;
    while (cpu_gemm_ceil_div(p->outer_m, job->task_m) * cpu_gemm_ceil_div(p->outer_n, job->task_n) *
                   p->group <
               2 * threads &&
           (job->task_m > side || job->task_n > side)) {
        const bool rows = job->task_n <= side || (p->pack_b && job->task_m > job->task_n);
        int64_t *length = rows ? &job->task_m : &job->task_n;
        *length = cpu_gemm_round_up(*length / 2, side);
    }
}

/* Multiples of which the tasks of tiles are. */
static int64_t task_rows(const struct cpu_gemm_plan *p)
{
    return p->route == CPU_GEMM_LEVELS ? CPU_GEMM_LEVELS_TASK_M : p->strip;
}
static int64_t task_columns(const struct cpu_gemm_plan *p)
{
    return p->route == CPU_GEMM_LEVELS ? CPU_GEMM_LEVELS_TASK_N : p->kernels->nr;
}

/* Counts the phases and cuts C into tasks: as many as keep all threads busy to the end. */
static void prepare(struct cpu_gemm_job *job, int threads)
{
    const struct cpu_gemm_plan *p = job->plan;
    bool tiles = !plan_is_skinny(p);

    cpu_gemm_layout_of(p, threads, &job->layout);
    job->products = p->desc.levels > 1 ? cpu_gemm_level_products(p->desc.levels - 1) : 1;
    job->groups = cpu_gemm_ceil_div(p->desc.batch, p->group);
    job->outers_m = tiles ? cpu_gemm_ceil_div(p->desc.m, p->outer_m) : 1;
    job->outers_n = tiles ? cpu_gemm_ceil_div(p->desc.n, p->outer_n) : 1;
    job->slabs = p->outer_k < p->desc.k ? cpu_gemm_ceil_div(p->desc.k, p->outer_k) : 1;
    job->steps = p->pack_a || p->pack_b ? 2 : 1;
    job->phases =
        job->products * job->groups * job->outers_m * job->outers_n * job->slabs * job->steps;
    job->task_m = p->task_m;
    job->task_n = p->task_n;
    job->chunk = p->chunk;
    if (threads == 1) {
        return;
    }
    if (!tiles) {
        int64_t cols = p->swap ? p->desc.m : p->desc.n;
        int64_t fair = cpu_gemm_ceil_div(cols * p->group, 4 * threads);
        /* Rows of a piece of X are contiguous: fewer vectors do not amortise a row. */
        int64_t fewest = (p->route == CPU_GEMM_AXPY ? 4 : 1) * p->kernels->lanes;
        job->chunk = cpu_gemm_least(p->chunk, cpu_gemm_round_up(fair, fewest));
        return;
    }
    if (p->route == CPU_GEMM_PAIRS) {
        prepare_pairs(job, threads);
        return;
    }
    int64_t parts_m = cpu_gemm_ceil_div(p->outer_m, p->task_m);
    int64_t parts_n = cpu_gemm_ceil_div(p->outer_n, p->task_n);
    while (parts_m * parts_n * p->group < 4 * threads) {
        const int64_t m = cpu_gemm_ceil_div(p->outer_m, parts_m);
        const int64_t n = cpu_gemm_ceil_div(p->outer_n, parts_n);
        const bool has_rows = m > task_rows(p), has_columns = n > task_columns(p);
        if (task_work(m, n, p->outer_k) <= TASK_WORK || !(has_rows || has_columns)) {
            break;
        }
        if (has_rows && (m > n || !has_columns)) {
            parts_m *= 2;
        } else {
            parts_n *= 2;
        }
    }
    job->task_m = cpu_gemm_round_up(cpu_gemm_ceil_div(p->outer_m, parts_m), task_rows(p));
    job->task_n = cpu_gemm_round_up(cpu_gemm_ceil_div(p->outer_n, parts_n), task_columns(p));
}

static void stage_of(const struct cpu_gemm_job *job, int64_t phase, struct cpu_gemm_stage *s)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;

    s->pack = job->steps == 2 && phase % 2 == 0;
    phase /= job->steps;
    int64_t slab = phase % job->slabs;
    phase /= job->slabs;
    int64_t outer_m = phase % job->outers_m;
    phase /= job->outers_m;
    int64_t outer_n = phase % job->outers_n;
    phase /= job->outers_n;
    s->product = (int)(phase / job->groups);
    s->batch = phase % job->groups * p->group;
    s->matrices = cpu_gemm_least(p->group, d->batch - s->batch);
    if (plan_is_skinny(p)) {
        int64_t cols = p->swap ? d->m : d->n;
        s->units = s->matrices * (s->pack ? 1 : cpu_gemm_ceil_div(cols, job->chunk));
        s->chunk = 1;
        s->tasks = s->units;
        return;
    }
    s->first = slab == 0;
    s->last = slab == job->slabs - 1;
    s->m0 = outer_m * p->outer_m;
    s->m = cpu_gemm_least(p->outer_m, d->m - s->m0);
    s->n0 = outer_n * p->outer_n;
    s->n = cpu_gemm_least(p->outer_n, d->n - s->n0);
    s->k0 = slab * p->outer_k;
    s->k = cpu_gemm_least(p->outer_k, d->k - s->k0);
    int64_t small; /* a unit's work in elements moved or multiplied */
    if (s->pack) {
        s->strips = p->pack_a ? cpu_gemm_ceil_div(s->m, p->strip) : 0;
        s->panels = p->pack_b ? cpu_gemm_ceil_div(s->n, p->kernels->nr) : 0;
        s->units = (d->stride_a == 0 ? 1 : s->matrices) * s->strips +
                   (d->stride_b == 0 ? 1 : s->matrices) * s->panels;
        if (p->route == CPU_GEMM_LEVELS) {
            const int64_t strips =
                cpu_gemm_ceil_div(s->strips, d->transpose_a ? CPU_GEMM_LEVELS_PANELS : 1);
            s->panels = cpu_gemm_ceil_div(s->panels, CPU_GEMM_LEVELS_PANELS);
            s->units = (strips + s->panels) * cpu_gemm_levels_slabs(p, s);
        }
        small = p->kernels->nr * s->k;
        s->chunk = cpu_gemm_clamp(16384 / (small + 1), 1, s->units);
    } else {
        s->units = s->matrices * cpu_gemm_ceil_div(s->m, job->task_m) *
                   cpu_gemm_ceil_div(s->n, job->task_n);
        small =
            task_work(cpu_gemm_least(job->task_m, s->m), cpu_gemm_least(job->task_n, s->n), s->k);
        s->chunk = cpu_gemm_clamp(TASK_WORK / (small + 1), 1, s->units);
    }
    s->tasks = cpu_gemm_ceil_div(s->units, s->chunk);
}

/* A strip of A, its rows along k or across as A is stored, or a panel of B, always along n. */
static void pack_unit(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s, int64_t unit)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const struct cpu_gemm_kernels *kernels = p->kernels;
    char *work = job->args->workspace;
    int64_t of_a = (d->stride_a == 0 ? 1 : s->matrices) * s->strips;

    if (unit < of_a) {
        int64_t matrix = unit / s->strips, piece = unit % s->strips, batch = s->batch + matrix;
        int64_t rows = cpu_gemm_least(p->strip, s->m - piece * p->strip),
                row = s->m0 + piece * p->strip;
        int64_t stride = cpu_gemm_a_stride(p);
        char *to = work + matrix * job->layout.item_a + piece * p->strip * stride * p->size;
        int64_t from = d->transpose_a ? s->k0 * d->lda + row : row * d->lda + s->k0;
        const char *a = (const char *)job->args->a +
                        (batch * d->stride_a + from) * cpu_gemm_type_bytes(d->type_a);
        if (d->transpose_a) {
            kernels->copy(to, p->strip, a, d->lda, d->type_a, s->k, rows);
        } else {
            kernels->copy(to, stride, a, d->lda, d->type_a, rows, s->k);
        }
        return;
    }
    int64_t matrix = (unit - of_a) / s->panels, batch = s->batch + matrix;
    int64_t at = (unit - of_a) % s->panels * kernels->nr,
            cols = cpu_gemm_least(kernels->nr, s->n - at);
    int64_t col = s->n0 + at;
    char *to = work + job->layout.b + matrix * job->layout.item_b + at * p->kc * p->size;
    int64_t from = d->transpose_b ? col * d->ldb + s->k0 : s->k0 * d->ldb + col;
    const char *b =
        (const char *)job->args->b + (batch * d->stride_b + from) * cpu_gemm_type_bytes(d->type_b);
    if (d->transpose_b) {
        kernels->transpose(to, kernels->nr, b, d->ldb, d->type_b, s->k, cols);
    } else {
        kernels->copy(to, kernels->nr, b, d->ldb, d->type_b, s->k, cols);
    }
}

/* One block of C, strip by strip, over one slab. The sums gather in C itself, or in scratch where
 * C's type is too narrow for them. */
static void tile_unit(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s, int64_t unit,
                      int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const struct cpu_gemm_layout *layout = &job->layout;
    const struct cpu_gemm_args *args = job->args;
    char *work = args->workspace;
    int64_t down = cpu_gemm_ceil_div(s->m, job->task_m);
    int64_t across = cpu_gemm_ceil_div(s->n, job->task_n);
    int64_t matrix = unit / (down * across), batch = s->batch + matrix;
    int64_t m = unit / across % down * job->task_m, n = unit % across * job->task_n;
    int64_t end = cpu_gemm_least(m + job->task_m, s->m), size = p->size;
    bool in_c = layout->slot == 0 && layout->item_c == 0;
    struct cpu_gemm_strip strip = {
        .k = s->k,
        .cols = cpu_gemm_least(job->task_n, s->n - n),
        .alpha = args->alpha,
        .beta = s->first ? args->beta : 1,
        .in_chains = p->in_chains,
    };

    if (p->pack_b) {
        int64_t packed = d->stride_b == 0 ? 0 : matrix;
        strip.b = work + layout->b + packed * layout->item_b + n * p->kc * size;
        strip.b_row = p->kernels->nr;
        strip.b_panel = p->kernels->nr * p->kc;
    } else {
        strip.b = (const char *)args->b + (batch * d->stride_b + s->k0 * d->ldb + s->n0 + n) * size;
        strip.b_row = d->ldb;
        strip.b_panel = p->kernels->nr;
    }
    for (; m < end; m += p->strip) {
        int64_t row = s->m0 + m, col = s->n0 + n, stride = cpu_gemm_a_stride(p);
        strip.rows = (int)cpu_gemm_least(p->strip, end - m);
        if (p->pack_a) {
            int64_t packed = d->stride_a == 0 ? 0 : matrix;
            strip.a = work + packed * layout->item_a + m * stride * size;
            strip.a_row = d->transpose_a ? 1 : stride;
            strip.a_col = d->transpose_a ? p->strip : 1;
        } else {
            int64_t from = d->transpose_a ? s->k0 * d->lda + row : row * d->lda + s->k0;
            strip.a = (const char *)args->a + (batch * d->stride_a + from) * size;
            strip.a_row = d->transpose_a ? 1 : d->lda;
            strip.a_col = d->transpose_a ? d->lda : 1;
        }
        strip.c = work + layout->scratch + slot * layout->slot;
        strip.ldc = strip.cols;
        if (layout->item_c != 0) {
            strip.c =
                work + layout->scratch + matrix * layout->item_c + (m * p->outer_n + n) * size;
            strip.ldc = p->outer_n;
        }
        char *c = (char *)args->c +
                  (batch * d->stride_c + row * d->ldc + col) * cpu_gemm_type_bytes(d->type_c);
        if (in_c) {
            strip.c = c;
            strip.ldc = d->ldc;
            strip.streams = p->streams && args->beta == 0 && (uintptr_t)c % 64 == 0;
        } else if (s->first && args->beta != 0) {
            p->kernels->copy(strip.c, strip.ldc, c, d->ldc, d->type_c, strip.rows, strip.cols);
        }
        p->kernels->strip(&strip);
        if (s->last && d->epilogue) {
            d->epilogue(args->user, &(struct cpu_gemm_tile){.data = strip.c,
                                                            .row = row,
                                                            .col = col,
                                                            .batch = batch,
                                                            .ld = strip.ldc,
                                                            .rows = strip.rows,
                                                            .cols = (int)strip.cols,
                                                            .thread = slot});
        }
        if (s->last && !in_c) {
            p->store_c(c, d->ldc, d->type_c, strip.c, strip.ldc, strip.rows, strip.cols, 1, 0);
        }
    }
}

static char *skinny_packed(const struct cpu_gemm_job *job, int64_t matrix)
{
    return (char *)job->args->workspace + matrix * job->layout.item_a;
}

/* All short rows times a chunk of the long side. */
static void skinny_unit(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                        int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t cols = p->swap ? p->desc.m : p->desc.n;
    const int64_t chunks = cpu_gemm_ceil_div(cols, job->chunk);
    const int64_t matrix = unit / chunks, at = unit % chunks * job->chunk;
    cpu_gemm_skinny_multiply(
        p, job->args, s->batch + matrix, at, cpu_gemm_least(job->chunk, cols - at),
        skinny_packed(job, matrix),
        (char *)job->args->workspace + job->layout.scratch + slot * job->layout.slot, slot);
}

static void run_task(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                     int64_t task, int slot)
{
    int64_t end = cpu_gemm_least((task + 1) * stage->chunk, stage->units);
    bool tiles = job->plan->route == CPU_GEMM_TILES;
    bool pairs = job->plan->route == CPU_GEMM_PAIRS;
    bool levels = job->plan->route == CPU_GEMM_LEVELS;

    for (int64_t unit = task * stage->chunk; unit < end; unit++) {
        if (pairs && stage->pack) {
            cpu_gemm_pairs_pack(job, stage, unit);
        } else if (pairs) {
            cpu_gemm_pairs_multiply(job, stage, unit, slot);
        } else if (levels && stage->pack) {
            cpu_gemm_levels_pack(job, stage, unit, slot);
        } else if (levels) {
            cpu_gemm_levels_multiply(job, stage, unit, slot);
        } else if (tiles && stage->pack) {
            pack_unit(job, stage, unit);
        } else if (tiles) {
            tile_unit(job, stage, unit, slot);
        } else if (stage->pack) {
            cpu_gemm_skinny_pack(job->plan, job->args, stage->batch + unit,
                                 skinny_packed(job, unit));
        } else {
            skinny_unit(job, stage, unit, slot);
        }
    }
}

static void run_alone(struct cpu_gemm_job *job)
{
    struct cpu_gemm_stage stage;
    for (int64_t phase = 0; phase < job->phases; phase++) {
        stage_of(job, phase, &stage);
        for (int64_t task = 0; task < stage.tasks; task++) {
            run_task(job, &stage, task, 0);
        }
    }
}

static void wait_for(struct cpu_gemm_job *job, int64_t done)
{
    for (uint32_t turn = 0; atomic_load_explicit(&job->done, memory_order_acquire) < done; turn++) {
        cpu_wait_turn(turn);
    }
}

static void run_shared(void *context, uint32_t slot)
{
    struct cpu_gemm_job *job = context;
    struct cpu_gemm_stage stage;
    int64_t before = 0; /* tasks of earlier phases */

    for (int64_t phase = 0; phase < job->phases; phase++) {
        uint64_t task, count;
        stage_of(job, phase, &stage);
        while (cpu_parts_take(&job->parts, slot, (uint64_t)phase, (uint64_t)stage.tasks, 1, &task,
                              &count)) {
            wait_for(job, before);
            run_task(job, &stage, (int64_t)task, (int)slot);
            atomic_fetch_add_explicit(&job->done, 1, memory_order_release);
        }
        before += stage.tasks;
    }
}

void cpu_gemm_run(const struct cpu_gemm_plan *plan, const struct cpu_gemm_args *args)
{
    struct cpu_gemm_job job;
    int threads = 1;

    if (plan->is_single && !args->pool) {
        cpu_gemm_single_run(plan, args);
        return;
    }

    if (args->pool && plan->max_threads > 1) {
        threads = (int)cpu_gemm_least((int64_t)cpu_thread_pool_size(args->pool), plan->max_threads);
    }
    job.plan = plan;
    job.args = args;
    prepare(&job, threads);
    if (threads == 1) {
        run_alone(&job);
        return;
    }
    cpu_parts_init(&job.parts, args->threads);
    atomic_init(&job.done, 0);
    cpu_thread_pool_run(args->pool, args->threads, run_shared, &job);
}

int cpu_gemm_tile_shapes(const struct cpu_gemm_plan *plan, int threads,
                         struct cpu_gemm_shape shapes[CPU_GEMM_SHAPES])
{
    const struct cpu_gemm_desc *d = &plan->desc;
    struct cpu_gemm_job job = {.plan = plan};
    int64_t rows[CPU_GEMM_LEVELS_LENGTHS], cols[CPU_GEMM_LEVELS_LENGTHS];
    int row_count = 0, col_count = 0, count = 0;

    prepare(&job, (int)cpu_gemm_least(threads, plan->max_threads));
    if (plan_is_skinny(plan)) {
        int64_t *across = plan->swap ? rows : cols, length = plan->swap ? d->m : d->n;
        rows[row_count++] = d->m;
        cols[col_count++] = d->n;
        across[0] = cpu_gemm_least(job.chunk, length);
        across[1] = length % job.chunk;
        *(plan->swap ? &row_count : &col_count) = 2;
    } else if (plan->route == CPU_GEMM_LEVELS) {
        row_count =
            cpu_gemm_levels_lengths(d->levels, plan->m, d->m, plan->outer_m, job.task_m, rows);
        col_count =
            cpu_gemm_levels_lengths(d->levels, plan->n, d->n, plan->outer_n, job.task_n, cols);
    } else {
        /* An outer block ends with a whole strip, except the last one. */
        int64_t blocks_m[2] = {plan->outer_m, d->m % plan->outer_m};
        int64_t blocks_n[2] = {plan->outer_n, d->n % plan->outer_n};
        rows[row_count++] = plan->strip;
        for (int i = 0; i < 2; i++) {
            rows[row_count++] = blocks_m[i] % plan->strip;
            cols[col_count++] = cpu_gemm_least(job.task_n, blocks_n[i]);
            cols[col_count++] = blocks_n[i] % job.task_n;
        }
    }
    for (int i = 0; i < row_count; i++) {
        for (int j = 0; j < col_count; j++) {
            if (rows[i] > 0 && cols[j] > 0) {
                shapes[count++] = (struct cpu_gemm_shape){(int)rows[i], (int)cols[j]};
            }
        }
    }
    return count;
}
