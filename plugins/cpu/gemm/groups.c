/* Products of groups of rows, see groups.h. The grid has rows / task_m + groups tiles of rows, of
 * which tile offset / task_m + g is the first of group g: the first tiles ascend and leave room for
 * all of a group, since floor((o + m) / t) + 1 >= floor(o / t) + ceil(m / t). A task finds its
 * group by bisection, so that a run needs no list of tasks. */
#include "gemm/groups.h"

#include "gemm/gemm.h"
#include "gemm/job.h"
#include "gemm/pair_kernels.h"

#include <string.h>

/* Rows of a task: many, so that packing columns of B takes a small part of the time, unless threads
 * would be idle. Tasks for each thread. */
enum { MOST_ROWS = 1024, LEAST_ROWS = 128, LEAST_COLS = 64, TASKS = 4 };

/* Bytes of packed columns of B in a task of the route PAIRS. */
enum { PAIRS_BYTES = 1 << 20 };

/* Sums of a task of a skinny route, in elements: a chunk times its rows, at most. */
enum { SKINNY_SUMS = 8192 };

struct groups_run {
    const struct cpu_gemm_groups *groups;
    const struct cpu_gemm_args *args;
    const void *offsets;
    int64_t across, tasks;
    cpu_parts parts;
};

/* What a thread computes, and the plans of its last task. */
struct groups_worker {
    const struct groups_run *run;
    struct cpu_gemm_plan whole, part; /* of a group; of a task */
    int64_t group, row, col;          /* of the task */
    int thread;
};

/* ---- Plans ---- */

static int64_t bytes_of_tiles(const struct cpu_gemm_groups *g)
{
    const struct cpu_gemm_plan *p = &g->plan;
    const struct cpu_gemm_desc *d = &g->desc;
    const enum cpu_gemm_type native = cpu_gemm_sums_type(p);
    const int64_t mr = p->kernels->mr, nr = p->kernels->nr, size = p->size;
    const int64_t rows = cpu_gemm_least(g->task_m, d->m) + mr;
    const int64_t cols = cpu_gemm_round_up(cpu_gemm_least(g->task_n, d->n), nr);
    const int64_t stride = cpu_gemm_round_up(p->kc, 16) + 16;
    const bool packs_a = d->type_a != native || d->transpose_a || d->k == 1;
    const int64_t a = packs_a ? cpu_gemm_round_up(rows * stride * size, 64) : 0;
    const int64_t b = cpu_gemm_round_up(cols * p->kc * size, 64);
    const int64_t sums = d->type_c == native ? 0 : (p->slabs > 1 ? rows : mr) * cols * size;
    return a + b + cpu_gemm_round_up(sums, 64);
}

static int64_t bytes_of_lines(const struct cpu_gemm_groups *g)
{
    const struct cpu_gemm_plan *p = &g->plan;
    const struct cpu_gemm_desc *d = &g->desc;
    const enum cpu_gemm_type native = cpu_gemm_sums_type(p);
    const int64_t shorter = cpu_gemm_least(cpu_gemm_least(d->m, d->n), CPU_GEMM_SKINNY);
    const bool packs = d->type_a != native || d->type_b != native || d->transpose_a ||
                       (d->n <= CPU_GEMM_SKINNY && !d->transpose_b);
    const int64_t lines = packs ? cpu_gemm_round_up(d->k, 16) * shorter * p->size : 0;
    return cpu_gemm_round_up(lines, 64) + 2 * SKINNY_SUMS * p->size;
}

/* Tasks of up to as many rows as are packed again for each task, or of more. */
static int64_t bytes_of_pairs(const struct cpu_gemm_groups *g)
{
    const int64_t rows = cpu_gemm_least(g->task_m, g->desc.m);
    const int64_t cols = cpu_gemm_least(g->task_n, g->desc.n);
    int64_t most = 0;
    for (int i = 0; i < 2; i++) {
        struct cpu_gemm_plan whole = g->plan, part;
        struct cpu_gemm_layout layout;
        cpu_gemm_plan_take_pairs(&whole);
        cpu_gemm_plan_part(&part, &whole, i == 0 ? rows : cpu_gemm_least(rows, whole.task_m), cols);
        const int64_t bytes = cpu_gemm_layout_of(&part, 1, &layout);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void choose_tasks(struct cpu_gemm_groups *g, int threads)
{
    const struct cpu_gemm_plan *p = &g->plan;
    const struct cpu_gemm_desc *d = &g->desc;
    g->task_m = MOST_ROWS;
    if (p->pairs) {
        const int64_t column = d->k * cpu_gemm_type_bytes(d->type_b) + 1;
        g->task_n = cpu_gemm_clamp(PAIRS_BYTES / column, LEAST_COLS, CPU_GEMM_PAIRS_MAX_COLS);
        g->task_n = g->task_n / LEAST_COLS * LEAST_COLS;
    } else {
        g->task_n = cpu_gemm_round_up(cpu_gemm_plan_side(p), LEAST_COLS);
    }
    while (cpu_gemm_ceil_div(d->m, g->task_m) * cpu_gemm_ceil_div(d->n, g->task_n) <
           (int64_t)TASKS * threads) {
        if (g->task_m > LEAST_ROWS && threads > 1) {
            g->task_m /= 2;
        } else if (g->task_n > LEAST_COLS && threads > 1) {
            g->task_n = cpu_gemm_round_up(g->task_n / 2, LEAST_COLS);
        } else {
            break;
        }
    }
}

/* Each group that has rows reads a B, up to as many as there are rows: the plan counts one. */
static void expect_groups(struct cpu_gemm_groups *g)
{
    const int64_t read = cpu_gemm_least(g->desc.batch, g->desc.m);
    cpu_gemm_plan_expect(&g->plan, (double)read);
}

const char *cpu_gemm_groups_make(struct cpu_gemm_groups *groups, const struct cpu_gemm_desc *desc,
                                 bool has_wide_offsets, int threads)
{
    struct cpu_gemm_desc one = *desc;
    int64_t all;
    one.batch = 1;
    one.stride_a = one.stride_c = 0;
    *groups = (struct cpu_gemm_groups){.has_wide_offsets = has_wide_offsets};
    if (desc->batch < 1 || desc->levels > 0) {
        return "gemm: groups: expected at least one, and no levels";
    }
    if (__builtin_mul_overflow(desc->batch, desc->stride_b, &all) || all > INT64_C(1) << 59) {
        return "gemm: stride_b: expected at most 2^59 elements in B";
    }
    const char *wrong = cpu_gemm_plan_make(&groups->plan, &one);
    if (wrong) {
        return wrong;
    }
    groups->desc = one;
    groups->desc.batch = desc->batch;
    expect_groups(groups);
    choose_tasks(groups, threads);
    const bool is_integer = cpu_gemm_is_integer(desc->type_a);
    const int64_t tiles = is_integer ? 0 : bytes_of_tiles(groups);
    const int64_t lines = is_integer ? 0 : bytes_of_lines(groups);
    const int64_t pairs = groups->plan.pairs && desc->k > 0 ? bytes_of_pairs(groups) : 0;
    const int64_t most = tiles > lines ? tiles : lines;
    groups->slot = cpu_gemm_round_up(pairs > most ? pairs : most, 64);
    return NULL;
}

static int threads_of(const struct cpu_gemm_groups *groups, int threads)
{
    return (int)cpu_gemm_clamp(threads, 1, groups->plan.max_threads);
}

int64_t cpu_gemm_groups_workspace_size(const struct cpu_gemm_groups *groups, int threads)
{
    return groups->slot * threads_of(groups, threads);
}

/* ---- Runs ---- */

/* An offset, at most the rows: no task leaves the matrices, whatever is in memory. */
static int64_t offset_of(const struct groups_run *run, int64_t group)
{
    const int64_t rows = run->groups->desc.m;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (run->groups->has_wide_offsets) {
        memcpy(&wide, (const char *)run->offsets + group * 8, sizeof wide);
    } else {
        memcpy(&narrow, (const char *)run->offsets + group * 4, sizeof narrow);
        wide = narrow;
    }
    return wide < (uint64_t)rows ? (int64_t)wide : rows;
}

static int64_t first_tile(const struct groups_run *run, int64_t group)
{
    return offset_of(run, group) / run->groups->task_m + group;
}

/* The last group whose first tile is `tile` or before it; 0 if there is none. */
static int64_t group_find(const struct groups_run *run, int64_t tile)
{
    int64_t low = 0, high = run->groups->desc.batch;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (first_tile(run, middle) <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The tile of a part as one of C. */
static void part_epilogue(void *user, const struct cpu_gemm_tile *tile)
{
    const struct groups_worker *w = user;
    struct cpu_gemm_tile moved = *tile;
    moved.row += w->row;
    moved.col += w->col;
    moved.batch = w->group;
    moved.thread = w->thread;
    w->run->groups->desc.epilogue(w->run->args->user, &moved);
}

/* Plans `rows` and `cols` of a group of `all` rows, unless the last task was the same. */
static void worker_plan(struct groups_worker *w, int64_t all, int64_t rows, int64_t cols)
{
    const struct cpu_gemm_groups *g = w->run->groups;
    const bool is_new = w->whole.m != all;
    if (is_new) {
        cpu_gemm_plan_set_rows(&w->whole, &g->desc, all);
    }
    if (is_new || w->part.m != rows || w->part.n != cols) {
        cpu_gemm_plan_part(&w->part, &w->whole, rows, cols);
        w->part.desc.epilogue = g->desc.epilogue ? part_epilogue : NULL;
    }
}

static const void *element_of(const void *matrix, int64_t index, enum cpu_gemm_type type)
{
    return (const char *)matrix + index * cpu_gemm_type_bytes(type);
}

static void task_run(struct groups_worker *w, int64_t task)
{
    const struct groups_run *run = w->run;
    const struct cpu_gemm_groups *g = run->groups;
    const struct cpu_gemm_desc *d = &g->desc;
    const int64_t tile = task / run->across, group = group_find(run, tile);
    const int64_t begin = offset_of(run, group), end = offset_of(run, group + 1);
    const int64_t first = begin / g->task_m + group;
    const int64_t row = begin + (tile - first) * g->task_m, col = task % run->across * g->task_n;
    if (tile < first || row >= end) {
        return;
    }
    worker_plan(w, end - begin, cpu_gemm_least(g->task_m, end - row),
                cpu_gemm_least(g->task_n, d->n - col));
    const int64_t in_b = group * d->stride_b + (d->transpose_b ? col * d->ldb : col);
    struct cpu_gemm_args args = *run->args;
    args.a = element_of(args.a, d->transpose_a ? row : row * d->lda, d->type_a);
    args.b = element_of(args.b, in_b, d->type_b);
    args.c = (char *)args.c + (row * d->ldc + col) * cpu_gemm_type_bytes(d->type_c);
    args.workspace = (char *)args.workspace + w->thread * g->slot;
    args.user = w;
    args.pool = NULL;
    w->group = group;
    w->row = row;
    w->col = col;
    cpu_gemm_run(&w->part, &args);
}

static struct groups_worker worker_of(const struct groups_run *run, uint32_t thread)
{
    struct groups_worker w = {.run = run, .thread = (int)thread};
    w.whole = run->groups->plan;
    w.whole.m = 0; /* of no group */
    return w;
}

static void run_shared(void *context, uint32_t thread)
{
    struct groups_run *run = context;
    struct groups_worker w = worker_of(run, thread);
    uint64_t first, count;
    while (cpu_parts_take(&run->parts, thread, 0, (uint64_t)run->tasks, 1, &first, &count)) {
        task_run(&w, (int64_t)first);
    }
}

void cpu_gemm_groups_run(const struct cpu_gemm_groups *groups, const struct cpu_gemm_args *args,
                         const void *offsets)
{
    const struct cpu_gemm_desc *d = &groups->desc;
    struct groups_run run = {.groups = groups, .args = args, .offsets = offsets};
    run.across = cpu_gemm_ceil_div(d->n, groups->task_n);
    run.tasks = (d->m / groups->task_m + d->batch) * run.across;
    const uint32_t most = (uint32_t)threads_of(groups, args->pool ? (int)args->threads : 1);
    if (most == 1) {
        struct groups_worker w = worker_of(&run, 0);
        for (int64_t task = 0; task < run.tasks; task++) {
            task_run(&w, task);
        }
        return;
    }
    cpu_parts_init(&run.parts, most);
    cpu_thread_pool_run(args->pool, most, run_shared, &run);
}
