/* Products of groups of rows have the bits of a product for each group: of every instruction set,
 * type and layout, on one to three threads, with tasks of few rows and columns, and nothing outside
 * of the groups, of the workspace and of the matrices is touched, whatever the offsets are. */
#include "cpu/gemm/groups.h"
#include "cpu_gemm_problem.h"

enum { MOST_GROUPS = 9, MARGIN = 64 };

/* A problem whose m is the rows of all groups. */
struct grouped {
    struct problem p;
    int64_t groups;
    int64_t at[MOST_GROUPS + 1];
    bool is_wide;
};

/* Groups of none, one, a few and many rows; rows may be left before and after them. */
static struct grouped random_groups(int isa, int64_t largest, int i)
{
    struct grouped g = {.p = typed_problem(isa, largest, i), .is_wide = i & 1};
    int64_t row = pick(0, 2) == 0 ? pick(0, 3) : 0;
    g.groups = pick(1, MOST_GROUPS);
    for (int64_t j = 0; j < g.groups; j++) {
        const int64_t kind = pick(0, 3);
        g.at[j] = row;
        row += kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? pick(2, 40) : pick(40, 150);
    }
    g.at[g.groups] = row;
    g.p.desc.m = row + (pick(0, 2) == 0 ? pick(1, 3) : 0) + (row == 0);
    g.p.desc.batch = 1;
    g.p.share_b = g.p.share_a = false;
    return g;
}

/* Matrices as of a problem, with a B for each group. */
static void groups_make(struct grouped *g)
{
    struct problem *p = &g->p;
    struct cpu_gemm_desc *d = &p->desc;
    problem_make(p);
    munmap(p->b.pages, p->b.mapped);
    d->batch = g->groups;
    p->b = matrix(p, d->type_b, d->transpose_b ? d->n : d->k, d->transpose_b ? d->k : d->n, &d->ldb,
                  &d->stride_b);
    d->batch = 1;
}

static struct cpu_gemm_args args_of(const struct grouped *g, void *workspace, void *user)
{
    const struct problem *p = &g->p;
    return (struct cpu_gemm_args){.a = p->a.data,
                                  .b = p->b.data,
                                  .c = p->c.data,
                                  .alpha = p->alpha,
                                  .beta = p->beta,
                                  .user = user,
                                  .workspace = workspace};
}

static char *workspace_make(size_t bytes, size_t *room)
{
    *room = (bytes + 63) / 64 * 64 + MARGIN;
    char *made = aligned_alloc(64, *room);
    assert_non_null(made);
    memset(made, 0xff, *room);
    return made;
}

/* Each group by a product of its own, into p.before. */
static void products_run(const struct grouped *g)
{
    const struct cpu_gemm_desc *all = &g->p.desc;
    for (int64_t j = 0; j < g->groups; j++) {
        const int64_t row = g->at[j];
        struct cpu_gemm_desc d = *all;
        struct cpu_gemm_plan plan;
        size_t room;
        d.m = g->at[j + 1] - row;
        if (d.m <= 0) {
            continue;
        }
        assert_null(cpu_gemm_plan_make(&plan, &d));
        char *work = workspace_make((size_t)cpu_gemm_workspace_size(&plan, 1), &room);
        struct cpu_gemm_args args = args_of(g, work, NULL);
        args.a = g->p.a.data + (d.transpose_a ? row : row * d.lda) * type_size[d.type_a];
        args.b = g->p.b.data + j * d.stride_b * type_size[d.type_b];
        args.c = g->p.before.data + row * d.ldc * type_size[d.type_c];
        cpu_gemm_run(&plan, &args);
        free(work);
    }
}

static void offsets_put(const struct grouped *g, char *to)
{
    for (int64_t j = 0; j <= g->groups; j++) {
        const int32_t narrow = (int32_t)g->at[j];
        if (g->is_wide) {
            memcpy(to + j * 8, &g->at[j], 8);
        } else {
            memcpy(to + j * 4, &narrow, 4);
        }
    }
}

/* Tasks of a few strips and panels, so that groups have several. */
static void tasks_cut(struct cpu_gemm_groups *groups)
{
    const int64_t rows = groups->task_m, cols = groups->task_n;
    groups->task_m = CPU_GEMM_SKINNY + pick(0, 40);
    groups->task_n = 64;
    groups->task_m = groups->task_m < rows ? groups->task_m : rows;
    groups->task_n = groups->task_n < cols ? groups->task_n : cols;
}

static void groups_run(const struct grouped *g, cpu_gemm_epilogue_fn *epilogue, bool is_cut,
                       cpu_thread_pool *pool, void *user)
{
    const int threads = pool ? (int)cpu_thread_pool_size(pool) : 1;
    struct cpu_gemm_desc d = g->p.desc;
    struct cpu_gemm_groups groups;
    char offsets[(MOST_GROUPS + 1) * 8];
    size_t room;
    d.batch = g->groups;
    d.epilogue = epilogue;
    assert_null(cpu_gemm_groups_make(&groups, &d, g->is_wide, threads));
    groups.plan.max_threads = 8;
    const size_t bytes = (size_t)cpu_gemm_groups_workspace_size(&groups, threads);
    if (is_cut) {
        tasks_cut(&groups);
    }
    char *work = workspace_make(bytes, &room);
    struct cpu_gemm_args args = args_of(g, work, user);
    args.pool = pool;
    args.threads = (uint32_t)threads;
    offsets_put(g, offsets);
    cpu_gemm_groups_run(&groups, &args, offsets);
    for (size_t i = bytes; i < room; i++) {
        assert_int_equal((unsigned char)work[i], 0xff);
    }
    free(work);
}

static void groups_try(struct grouped *g, bool is_cut, cpu_thread_pool *pool)
{
    groups_make(g);
    products_run(g);
    groups_run(g, NULL, is_cut, pool, NULL);
    if (memcmp(g->p.c.data, g->p.before.data, g->p.c.size) != 0) {
        const struct cpu_gemm_desc *d = &g->p.desc;
        size_t at = 0;
        while (g->p.c.data[at] == g->p.before.data[at]) {
            at++;
        }
        at /= (size_t)type_size[d->type_c];
        fail_msg("isa %d, %lld groups of %lld x %lld x %lld, at row %lld, column %lld", d->isa,
                 (long long)g->groups, (long long)d->m, (long long)d->n, (long long)d->k,
                 (long long)at / (long long)d->ldc, (long long)at % (long long)d->ldc);
    }
    problem_free(&g->p);
}

static cpu_thread_pool *pool_of(int i)
{
    return i % 3 == 0 ? NULL : i % 3 == 1 ? pool_of_two : pool_of_three;
}

TEST(test_groups_have_the_bits_of_products)
{
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 4 * 6); i++) {
            struct grouped g = random_groups(isa, 200, i);
            groups_try(&g, i % 2, pool_of(i));
        }
    }
}

/* Several slabs of k, more columns than a task has, and one column. */
TEST(test_groups_of_long_products)
{
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 4 * 2); i++) {
            struct grouped g = random_groups(isa, 60, i);
            g.p.desc.k = pick(300, 1100);
            g.p.desc.n = i % 5 == 0 ? 1 : pick(60, 700);
            groups_try(&g, i % 3, pool_of(i));
        }
    }
}

static struct guarded random_bytes(int64_t count, enum cpu_gemm_type type)
{
    struct guarded g = guard(count, type);
    for (size_t i = 0; i < g.size; i++) {
        g.data[i] = (char)random_bits();
    }
    return g;
}

static void bytes_make(struct grouped *g, enum cpu_gemm_type type)
{
    struct cpu_gemm_desc *d = &g->p.desc;
    g->p.alpha = 1;
    g->p.beta = 0;
    d->type_a = d->type_b = type;
    d->type_c = CPU_GEMM_I32;
    d->k += 512; /* enough for a plan of all rows */
    d->m += 2;
    d->lda = (d->transpose_a ? d->m : d->k) + pick(0, 3);
    d->ldb = (d->transpose_b ? d->k : d->n) + pick(0, 3);
    d->ldc = d->n + pick(0, 3);
    d->stride_b = (d->transpose_b ? d->n : d->k) * d->ldb;
    g->p.a = random_bytes((d->transpose_a ? d->k : d->m) * d->lda, type);
    g->p.b = random_bytes(g->groups * d->stride_b, type);
    g->p.c = guard(d->m * d->ldc, CPU_GEMM_I32);
    g->p.before = guard(1, CPU_GEMM_I32);
}

static uint32_t byte_of(const struct guarded *g, enum cpu_gemm_type type, int64_t i)
{
    return type == CPU_GEMM_I8 ? (uint32_t)(int8_t)g->data[i] : (uint8_t)g->data[i];
}

/* An element modulo 2^32; all bits where its row has no group. */
static uint32_t bytes_expected(const struct grouped *g, int64_t row, int64_t col)
{
    const struct cpu_gemm_desc *d = &g->p.desc;
    int64_t group = 0;
    while (group < g->groups && row >= g->at[group + 1]) {
        group++;
    }
    if (group == g->groups || row < g->at[0]) {
        return UINT32_MAX;
    }
    uint32_t sum = 0;
    for (int64_t k = 0; k < d->k; k++) {
        const int64_t a = d->transpose_a ? k * d->lda + row : row * d->lda + k;
        const int64_t b = d->transpose_b ? col * d->ldb + k : k * d->ldb + col;
        sum +=
            byte_of(&g->p.a, d->type_a, a) * byte_of(&g->p.b, d->type_b, group * d->stride_b + b);
    }
    return sum;
}

TEST(test_groups_of_bytes)
{
    if (!cpu_gemm_isa_has_bytes(CPU_GEMM_ISA_AVX512)) {
        skip();
    }
    for (int i = 0; i < rounds(40); i++) {
        struct grouped g = random_groups(CPU_GEMM_ISA_AUTO, 120, i);
        bytes_make(&g, i % 4 < 2 ? CPU_GEMM_I8 : CPU_GEMM_U8);
        groups_run(&g, NULL, i % 2, pool_of(i), NULL);
        for (int64_t e = 0; e < g.p.desc.m * g.p.desc.n; e++) {
            const int64_t row = e / g.p.desc.n, col = e % g.p.desc.n;
            uint32_t got;
            memcpy(&got, g.p.c.data + (row * g.p.desc.ldc + col) * 4, sizeof got);
            assert_int_equal(got, bytes_expected(&g, row, col));
        }
        problem_free(&g.p);
    }
}

/* Counts the tiles of each element, and checks the group of each. */
struct seen {
    const struct grouped *g;
    int *count;
};

static void tile_see(void *user, const struct cpu_gemm_tile *tile)
{
    const struct seen *seen = user;
    const struct grouped *g = seen->g;
    assert_true(tile->rows >= 1 && tile->cols >= 1 && tile->thread < 3);
    for (int r = 0; r < tile->rows; r++) {
        const int64_t row = tile->row + r;
        assert_true(row >= g->at[tile->batch] && row < g->at[tile->batch + 1]);
        for (int c = 0; c < tile->cols; c++) {
            seen->count[row * g->p.desc.n + tile->col + c]++;
        }
    }
}

TEST(test_epilogues_get_each_element_of_a_group_once)
{
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 4); i++) {
            struct grouped g = random_groups(isa, 200, i);
            const int64_t n = g.p.desc.n;
            groups_make(&g);
            struct seen seen = {&g, calloc((size_t)(g.p.desc.m * n), sizeof(int))};
            assert_non_null(seen.count);
            groups_run(&g, tile_see, i % 2, pool_of(i), &seen);
            for (int64_t e = 0; e < g.p.desc.m * n; e++) {
                const bool has_group = e / n >= g.at[0] && e / n < g.at[g.groups];
                assert_int_equal(seen.count[e], has_group);
            }
            free(seen.count);
            problem_free(&g.p);
        }
    }
}

/* Numbers that are no offsets: the guard pages, NaN between rows and the workspace stay. */
TEST(test_wrong_offsets_stay_inside)
{
    static const int64_t strange[] = {0, -1, 1, 70, 1 << 20, INT32_MIN, INT32_MAX, 33, -7};
    for (int i = 0; i < rounds(60); i++) {
        struct grouped g = random_groups(CPU_GEMM_ISA_AUTO, 90, i);
        groups_make(&g);
        for (int64_t j = 0; j <= g.groups; j++) {
            const int shift = g.is_wide && pick(0, 3) == 0 ? 33 : 0;
            g.at[j] = (int64_t)((uint64_t)strange[pick(0, 8)] << shift);
        }
        groups_run(&g, NULL, i % 2, NULL, NULL);
        const struct cpu_gemm_desc *d = &g.p.desc;
        const size_t size = (size_t)type_size[d->type_c];
        for (int64_t e = 0; e < (int64_t)(g.p.c.size / size); e++) {
            if (e % d->ldc >= d->n) {
                assert_memory_equal(g.p.c.data + (size_t)e * size,
                                    g.p.before.data + (size_t)e * size, size);
            }
        }
        problem_free(&g.p);
    }
}

/* The B of each group that may have rows is read, not one. */
TEST(test_estimates_count_each_matrix)
{
    enum { ROWS = 8, SIDE = 128 };
    const int64_t counts[] = {1, ROWS, 8 * ROWS};
    struct cpu_gemm_groups groups[3];
    for (int i = 0; i < 3; i++) {
        const struct cpu_gemm_desc d = {.m = ROWS,
                                        .n = SIDE,
                                        .k = SIDE,
                                        .lda = SIDE,
                                        .ldb = SIDE,
                                        .ldc = SIDE,
                                        .batch = counts[i],
                                        .stride_b = SIDE * SIDE};
        assert_null(cpu_gemm_groups_make(&groups[i], &d, false, 3));
    }
    const double one = SIDE * SIDE * sizeof(float) / 20.0; /* ns */
    assert_true(groups[0].plan.expected_ns >= one);
    assert_true(groups[1].plan.expected_ns >= ROWS * one);
    assert_true(groups[1].plan.max_threads > 1);
    assert_true(groups[2].plan.expected_ns == groups[1].plan.expected_ns);
}

UNIT_MAIN(pools_make, pools_free)
