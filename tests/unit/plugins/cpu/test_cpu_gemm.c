/* The cpu plugin's matrix product against a plain product: every instruction set here, all
 * transposes and types, one to three threads, and blocks made small so that every loop turns. */
#include "cpu/gemm/pair_kernels.h"
#include "cpu_gemm_problem.h"

struct seen {
    const struct problem *p;
    int *count;
    struct cpu_gemm_shape shapes[CPU_GEMM_SHAPES];
    int shape_count;
};

TEST(test_odd_sizes)
{
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 4 * 25); i++) {
            struct problem p = typed_problem(isa, 70, i);
            if (i & 1) {
                p.desc.m = i / 2 % 70 + 1;
            } else {
                p.desc.n = i / 2 % 70 + 1;
            }
            problem_try(&p, i % 5 == 0 ? pool_of_two : NULL);
        }
    }
}

/* Several slabs of k, several outer blocks, groups of a batch. */
TEST(test_blocks)
{
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 4 * 3); i++) {
            struct problem p = typed_problem(isa, 100, i);
            p.desc.k = pick(400, 1100);
            p.small_blocks = i % 3 != 0;
            problem_try(&p, i % 2 ? pool_of_two : NULL);
        }
    }
}

/* Large C is stored past the caches where its rows are aligned, also next to a masked end. */
TEST(test_streaming)
{
    int streamed = 0;
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds(30); i++) {
            struct problem p = random_problem((enum cpu_gemm_isa)isa, 90);
            memcpy(&p.desc.type_a, type_sets[i % 2], sizeof type_sets[0]);
            p.desc.n = pick(1, 12) * 16;
            p.beta = i % 5 == 0 ? 1 : 0;
            problem_make(&p);
            struct cpu_gemm_plan plan = plan_of(&p);
            plan.is_single = false;
            plan.streams = plan.route == CPU_GEMM_TILES && plan.slabs == 1 &&
                           p.desc.ldc * plan.size % 64 == 0 &&
                           p.desc.stride_c * plan.size % 64 == 0;
            streamed += plan.streams && (uintptr_t)p.c.data % 64 == 0;
            run_plan(&plan, &p, i % 2 ? pool_of_two : NULL, NULL);
            problem_check(&p);
            problem_free(&p);
        }
    }
    assert_true(streamed > 0);
}

TEST(test_skinny)
{
    int routes[CPU_GEMM_ROUTES] = {0}, in_tiles = 0;
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 8 * 4); i++) {
            struct problem p = typed_problem(isa, 70, i);
            int64_t shorter = i < TYPE_SETS * 8 ? 1 : pick(1, CPU_GEMM_SKINNY);
            const bool deep = i % 7 == 0;
            int64_t longer = deep ? pick(128, 200) : pick(16, 700);
            p.desc.m = i / TYPE_SETS & 4 ? shorter : longer;
            p.desc.n = i / TYPE_SETS & 4 ? longer : shorter;
            p.desc.k = deep ? pick(4000, 5000) : pick(1, 300);
            if (i == TYPE_SETS * 4 && isa % 2 != 0) { /* more than the caches hold */
                p.desc.m = 3;
                p.desc.n = 2100;
                p.desc.k = 4100;
                p.desc.batch = 1;
            }
            problem_make(&p);
            struct cpu_gemm_plan plan = plan_of(&p);
            if (i % 3 == 0) { /* as where A is larger than the caches */
                plan.in_tiles = plan.writes_row = false;
            }
            routes[plan.route]++;
            in_tiles += plan.in_tiles;
            run_plan(&plan, &p, i % 2 ? pool_of_two : NULL, NULL);
            problem_check(&p);
            problem_free(&p);
        }
    }
    assert_true(routes[CPU_GEMM_DOT] > 0 && routes[CPU_GEMM_AXPY] > in_tiles && in_tiles > 0);
}

/* Shapes that took up to 20 times as long in tiles, and two that have too few k. */
TEST(test_routes)
{
    static const struct {
        struct cpu_gemm_desc desc;
        enum cpu_gemm_route route;
    } cases[] = {
        {{.m = 4000, .n = 1, .k = 16, .transpose_a = true, .lda = 4000, .ldb = 1, .ldc = 1},
         CPU_GEMM_AXPY},
        {{.m = 1000, .n = 1, .k = 57, .lda = 57, .ldb = 1, .ldc = 1}, CPU_GEMM_DOT},
        {{.m = 2, .n = 4, .k = 900, .transpose_b = true, .lda = 900, .ldb = 900, .ldc = 4},
         CPU_GEMM_DOT},
        {{.m = 900, .n = 1, .k = 1, .transpose_a = true, .lda = 900, .ldb = 1, .ldc = 1},
         CPU_GEMM_AXPY},
        {{.m = 900, .n = 1, .k = 1, .transpose_b = true, .lda = 1, .ldb = 1, .ldc = 1},
         CPU_GEMM_AXPY},
        {{.m = 100, .n = 2, .k = 40, .transpose_a = true, .lda = 100, .ldb = 2, .ldc = 2},
         CPU_GEMM_AXPY},
        {{.m = 100, .n = 20, .k = 2, .transpose_a = true, .lda = 100, .ldb = 20, .ldc = 20},
         CPU_GEMM_TILES},
        {{.m = 40, .n = 2, .k = 20, .lda = 20, .ldb = 2, .ldc = 2}, CPU_GEMM_TILES},
    };
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct cpu_gemm_desc d = cases[i].desc;
            struct cpu_gemm_plan plan;
            d.isa = isa;
            d.batch = 1;
            assert_null(cpu_gemm_plan_make(&plan, &d));
            assert_int_equal(plan.route, cases[i].route);
        }
    }
}

/* A transposed B beyond the second cache is not copied for some more rows than one in it. */
TEST(test_far_matrices_are_read_in_place)
{
    struct cpu_gemm_desc d = {.m = 12,
                              .n = 4096,
                              .k = 4096,
                              .transpose_b = true,
                              .lda = 4096,
                              .ldb = 4096,
                              .ldc = 4096,
                              .batch = 1};
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        struct cpu_gemm_plan plan;
        d.isa = isa;
        assert_null(cpu_gemm_plan_make(&plan, &d));
        assert_int_equal(plan.route, CPU_GEMM_DOT);
    }
}

#if defined(__x86_64__)
/* bf16 numbers of both signs with biased exponents low to high - 1; every eighth is 0. */
static void exponents_fill(struct guarded *g, int low, int high)
{
    for (size_t i = 0; i < g->size / 2; i++) {
        const uint16_t bits = (uint16_t)(pick(low, high - 1) << 7 | pick(0, 127));
        ((uint16_t *)g->data)[i] = pick(0, 7) == 0 ? 0 : (uint16_t)(bits | pick(0, 1) << 15);
    }
}

/* |c' - c| in steps of the accumulator, with products and sums that may be denormal. */
static void tiny_check(const struct problem *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    for (int64_t i = 0; i < d->m * d->n; i++) {
        const int64_t row = i / d->n, col = i % d->n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < d->k; k++) {
            const double a = value_at(p->a.data, CPU_GEMM_BF16, row * d->lda + k);
            const double term = a * value_at(p->b.data, CPU_GEMM_BF16, k * d->ldb + col);
            sum += term;
            size += fabs(term);
        }
        const double steps = (double)d->k + 4, got = ((float *)p->c.data)[row * d->ldc + col];
        assert_true(fabs(got - sum) <= steps * (0x1p-24 * size + 0x1p-149));
    }
}

/* The units flush denormal numbers, products do not: operands around the limit give the bits of
 * the emulation and keep the bound. */
static void denormals_try(int i, enum cpu_gemm_isa isa, const struct cpu_pairs_kernels *emulated)
{
    static const int exponents[][4] = {
        {0, 3, 120, 134}, {1, 80, 60, 120}, {50, 70, 60, 80}, {70, 90, 72, 90}, {100, 130, 90, 130},
    };
    const int *range = exponents[i % 5];
    struct problem p = random_problem(isa, 80);
    p.desc.type_a = p.desc.type_b = CPU_GEMM_BF16;
    p.desc.m += 12;
    p.desc.n += 12;
    p.desc.k = i % 2 == 0 ? pick(500, 1200) : p.desc.k + 200;
    p.desc.batch = 1;
    p.alpha = 1;
    p.beta = 0;
    problem_make(&p);
    exponents_fill(&p.a, range[0], range[1]);
    exponents_fill(&p.b, range[2], range[3]);
    struct cpu_gemm_plan plan = plan_of(&p);
    assert_int_equal(plan.route, CPU_GEMM_PAIRS);
    run_plan(&plan, &p, NULL, NULL);
    tiny_check(&p);
    char *first = malloc(p.c.size);
    assert_non_null(first);
    memcpy(first, p.c.data, p.c.size);
    memcpy(p.c.data, p.before.data, p.c.size);
    plan.pairs = emulated;
    run_plan(&plan, &p, pool_of_two, NULL);
    assert_memory_equal(first, p.c.data, p.c.size);
    free(first);
    problem_free(&p);
}

TEST(test_pairs_denormals)
{
    if (!cpu_gemm_isa_supported(CPU_GEMM_ISA_AMX)) {
        skip();
    }
    for (int i = 0; i < rounds(20); i++) {
        denormals_try(i, CPU_GEMM_ISA_AMX, &cpu_pairs_amx_emulated);
        denormals_try(i, CPU_GEMM_ISA_AVX512_BF16, &cpu_pairs_bf16_emulated);
    }
}

/* A unit adds in the order that its emulation has: equal bits, panel by panel, in the rows and
 * columns of the product. */
static void order_try(const struct cpu_pairs_kernels *unit, bool first, int rows, int cols)
{
    static _Alignas(64) uint16_t a[4 * 1024], b[4 * 1024];
    static _Alignas(64) float sums[2][4][16][16]; /* 2 x 2 tiles */
    exponents_fill(&(struct guarded){.data = (char *)a, .size = sizeof a}, 100, 140);
    exponents_fill(&(struct guarded){.data = (char *)b, .size = sizeof b}, 100, 140);
    struct cpu_pairs_product p = {.sums = sums[0][0][0],
                                  .a = a,
                                  .b = b,
                                  .k = 4 * 32,
                                  .first = first,
                                  .rows = rows,
                                  .cols = cols};
    for (int e = 0; e < 1024; e++) {
        (&sums[0][0][0][0])[e] = (float)pick(-4096, 4096);
    }
    memcpy(sums[1], sums[0], sizeof sums[0]);
    unit->begin();
    unit->multiply(&p);
    unit->end();
    p.sums = sums[1][0][0];
    unit->emulate(&p);
    for (int row = 0; row < rows; row++) {
        for (int tile = 0; tile < cols; tile += 16) {
            const int number = row / 16 * 2 + tile / 16,
                      count = cols - tile < 16 ? cols - tile : 16;
            assert_memory_equal(sums[0][number][row % 16], sums[1][number][row % 16],
                                (size_t)count * sizeof(float));
        }
    }
}

TEST(test_pairs_order)
{
    const struct cpu_pairs_kernels *units[] = {cpu_pairs_amx(), cpu_pairs_bf16()};
    int tried = 0;
    for (int i = 0; i < rounds(800); i++) {
        if (units[i % 2]) {
            order_try(units[i % 2], i & 2, (int)pick(1, 32), (int)pick(1, 32));
            tried++;
        }
    }
    if (tried == 0) {
        skip();
    }
}
#endif

TEST(test_threads_agree)
{
    for (int i = 0; i < rounds(200); i++) {
        struct problem p = random_problem(any_isa(i), 200);
        memcpy(&p.desc.type_a, type_sets[i % TYPE_SETS], sizeof type_sets[0]);
        p.desc.k = pick(1, 900);
        if (i % 4 == 0) {
            p.desc.m = pick(1, 16);
        }
        if (i % 8 == 1) { /* chains of sums, in tasks of some columns */
            p.desc.m = pick(1, 4);
            p.desc.n = pick(17, 112);
        }
        p.small_blocks = i % 3 == 0;
        problem_make(&p);
        struct cpu_gemm_plan plan = plan_of(&p);
        plan.max_threads = 8;
        run_plan(&plan, &p, NULL, NULL);
        char *first = malloc(p.c.size);
        assert_non_null(first);
        memcpy(first, p.c.data, p.c.size);
        cpu_thread_pool *pools[] = {pool_of_two, pool_of_three};
        for (int t = 0; t < 2; t++) {
            memcpy(p.c.data, p.before.data, p.c.size);
            run_plan(&plan, &p, pools[t], NULL);
            assert_memory_equal(first, p.c.data, p.c.size);
        }
        free(first);
        problem_free(&p);
    }
}

/* Small products run without phases, with the same bits: every route, with and without copies. */
TEST(test_single)
{
    int singles[CPU_GEMM_ROUTES] = {0}, copied = 0, swapped = 0, chained = 0;
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int i = 0; i < rounds_of(isa, TYPE_SETS * 4 * 12); i++) {
            struct problem p = typed_problem(isa, 40, i);
            p.desc.batch = 1;
            p.desc.k = pick(0, 40);
            problem_make(&p);
            struct cpu_gemm_plan plan = plan_of(&p);
            singles[plan.route] += plan.is_single;
            copied += plan.is_single && plan.pack_a && plan.pack_b;
            chained += plan.in_chains;
            swapped += plan.is_single && plan.swap && plan.route != CPU_GEMM_TILES;
            run_plan(&plan, &p, NULL, NULL);
            problem_check(&p);
            char *first = malloc(p.c.size);
            assert_non_null(first);
            memcpy(first, p.c.data, p.c.size);
            memcpy(p.c.data, p.before.data, p.c.size);
            plan.is_single = false;
            run_plan(&plan, &p, NULL, NULL);
            assert_memory_equal(first, p.c.data, p.c.size);
            free(first);
            problem_free(&p);
        }
    }
    assert_true(singles[CPU_GEMM_TILES] > 0 && singles[CPU_GEMM_DOT] > 0 && copied > 0);
    assert_true(singles[CPU_GEMM_AXPY] > 0 && swapped > 0 && chained > 0);
}

/* Infinities and NaN appear in exactly the elements in which a plain loop gives them. */
TEST(test_not_finite)
{
    for (int i = 0; i < rounds(200); i++) {
        struct problem p = random_problem(any_isa(i), 60);
        memcpy(&p.desc.type_a, type_sets[i % TYPE_SETS], sizeof type_sets[0]);
        p.desc.transpose_a = i & 1;
        p.desc.transpose_b = i & 2;
        p.desc.batch = 1;
        p.desc.k = pick(1, 60);
        if (i % 3 == 0) {
            p.desc.n = 200;
            p.desc.k = 64;
            p.desc.m = pick(1, 8);
        }
        problem_make(&p);
        int64_t row = pick(0, (p.desc.transpose_a ? p.desc.k : p.desc.m) - 1);
        int64_t col = pick(0, (p.desc.transpose_a ? p.desc.m : p.desc.k) - 1);
        value_set(p.a.data, p.desc.type_a, row * p.desc.lda + col, i & 4 ? INFINITY : NAN);
        struct cpu_gemm_plan plan = plan_of(&p);
        run_plan(&plan, &p, NULL, NULL);
        problem_check(&p);
        problem_free(&p);
    }
}

/* Adds a number that depends on the element's place, and counts its visits. */
static void add_place(void *user, const struct cpu_gemm_tile *tile)
{
    struct seen *seen = user;
    const struct cpu_gemm_desc *d = &seen->p->desc;
    bool known = false;
    assert_true(tile->rows <= 1024 && tile->cols <= 1024 && tile->thread < 2);
    for (int i = 0; i < seen->shape_count; i++) {
        known |= seen->shapes[i].rows == tile->rows && seen->shapes[i].cols == tile->cols;
    }
    assert_true(known);
    for (int r = 0; r < tile->rows; r++) {
        for (int c = 0; c < tile->cols; c++) {
            int64_t row = tile->row + r, col = tile->col + c;
            double add = (double)row - 2 * (double)col + 3 * (double)tile->batch;
            if (d->type_c == CPU_GEMM_F64) {
                ((double *)tile->data)[r * tile->ld + c] += add;
            } else {
                ((float *)tile->data)[r * tile->ld + c] += (float)add;
            }
            seen->count[(tile->batch * d->m + row) * d->n + col]++;
        }
    }
}

TEST(test_epilogue)
{
    for (int i = 0; i < rounds(240); i++) {
        struct problem p = random_problem(any_isa(i / 2), 90);
        memcpy(&p.desc.type_a, type_sets[i % 5 == 3 ? 3 : i % 2], sizeof type_sets[0]);
        p.desc.type_c = i % 4 == 2 ? CPU_GEMM_F16 : p.desc.type_c;
        p.desc.transpose_a = i & 8;
        p.desc.transpose_b = i & 16;
        p.desc.m = i % 3 == 0 ? pick(1, 16) : p.desc.m;
        p.desc.n = i % 3 == 1 ? pick(1, 16) : p.desc.n;
        p.desc.k = i % 5 == 0 ? pick(600, 900) : pick(0, 60);
        p.small_blocks = i & 32;
        if (i % 6 == 5 && p.desc.type_c == p.desc.type_a && p.desc.type_c != CPU_GEMM_BF16) {
            p.desc.levels = 1 + i / 6 % 2;
            p.desc.batch = 1;
            p.desc.m += i % 4 == 1 ? 400 : 0;
            p.desc.n += i % 4 == 3 ? 900 : 0;
        }
        p.integers = true;
        p.alpha = 1;
        p.beta = i % 2;
        problem_make(&p);
        struct cpu_gemm_plan plan = plan_of(&p);
        run_plan(&plan, &p, NULL, NULL);
        char *plain = malloc(p.c.size);
        int *count = calloc((size_t)(p.desc.batch * p.desc.m * p.desc.n), sizeof *count);
        assert_non_null(plain);
        assert_non_null(count);
        memcpy(plain, p.c.data, p.c.size);
        memcpy(p.c.data, p.before.data, p.c.size);
        plan.desc.epilogue = add_place;
        struct seen seen = {.p = &p, .count = count};
        int threads = i & 1 ? 2 : 1;
        seen.shape_count = cpu_gemm_tile_shapes(&plan, threads, seen.shapes);
        run_plan(&plan, &p, threads == 2 ? pool_of_two : NULL, &seen);
        for (int64_t e = 0; e < p.desc.batch * p.desc.m * p.desc.n; e++) {
            int64_t b = e / p.desc.n / p.desc.m, r = e / p.desc.n % p.desc.m, c = e % p.desc.n;
            int64_t at = b * p.desc.stride_c + r * p.desc.ldc + c;
            double add = (double)r - 2 * (double)c + 3 * (double)b;
            assert_int_equal(count[e], 1);
            assert_true(value_at(p.c.data, p.desc.type_c, at) ==
                        value_at(plain, p.desc.type_c, at) + add);
        }
        free(plain);
        free(count);
        problem_free(&p);
    }
}

/* 1 x 1 products of all 2^16 bit patterns with one, C of the type `type`. */
static void times_one(enum cpu_gemm_isa isa, const void *a, enum cpu_gemm_type type_a, void *c,
                      enum cpu_gemm_type type)
{
    struct cpu_gemm_desc d = {.type_a = type_a,
                              .type_b = CPU_GEMM_F32,
                              .type_c = type,
                              .isa = isa,
                              .m = 1 << 16,
                              .n = 1,
                              .k = 1,
                              .lda = 1,
                              .ldb = 1,
                              .ldc = 1,
                              .batch = 1};
    struct cpu_gemm_plan plan;
    float one = 1;

    assert_null(cpu_gemm_plan_make(&plan, &d));
    void *work = aligned_alloc(64, (size_t)cpu_gemm_workspace_size(&plan, 1) / 64 * 64 + 64);
    assert_non_null(work);
    cpu_gemm_run(&plan,
                 &(struct cpu_gemm_args){.a = a, .b = &one, .c = c, .alpha = 1, .workspace = work});
    free(work);
}

/* Every half times one gives itself back; halfway between two goes to the even one. */
TEST(test_half_rounding)
{
    static uint16_t all[1 << 16], c[1 << 16];
    static float between[1 << 16];
    for (int i = 0; i < 1 << 16; i++) {
        all[i] = (uint16_t)i;
    }
    for (int isa = CPU_GEMM_ISA_BASE; isa < CPU_GEMM_ISA_COUNT; isa = next_isa(isa)) {
        for (int t = 0; t < 2; t++) {
            enum cpu_gemm_type type = t ? CPU_GEMM_BF16 : CPU_GEMM_F16;
            int infinity = t ? 0x7f80 : 0x7c00;
            times_one((enum cpu_gemm_isa)isa, all, type, c, type);
            for (int i = 0; i < 1 << 16; i++) {
                bool nan = (i & 0x7fff) > infinity;
                assert_true(nan ? isnan(value_at(c, type, i)) : c[i] == (i == 0x8000 ? 0 : i));
            }
            for (int i = 0; i < infinity - 1; i++) {
                between[i] = (float)((value_at(all, type, i) + value_at(all, type, i + 1)) / 2);
            }
            between[infinity - 1] = t ? 0x1.ffp127f : 65520; /* halfway to what would be next */
            times_one((enum cpu_gemm_isa)isa, between, CPU_GEMM_F32, c, type);
            for (int i = 0; i < infinity; i++) {
                assert_int_equal(c[i], i + (i & 1));
            }
        }
    }
}

TEST(test_bad_descriptions)
{
    const struct cpu_gemm_desc good = {.m = 4,
                                       .n = 5,
                                       .k = 6,
                                       .lda = 6,
                                       .ldb = 5,
                                       .ldc = 5,
                                       .batch = 2,
                                       .stride_a = 24,
                                       .stride_b = 30,
                                       .stride_c = 20};
    struct cpu_gemm_plan plan;
    struct cpu_gemm_desc d[12];

    for (int i = 0; i < 12; i++) {
        d[i] = good;
    }
    assert_null(cpu_gemm_plan_make(&plan, &good));
    d[0].m = 0;
    d[1].n = -1;
    d[2].k = -1;
    d[3].batch = 0;
    d[4].lda = 5;
    d[5].ldb = 4;
    d[6].ldc = 4;
    d[7].stride_c = 19;
    d[8].type_a = CPU_GEMM_F64;
    d[9].lda = INT64_MAX;
    d[10].isa = CPU_GEMM_ISA_COUNT;
    d[11].stride_b = -1;
    for (int i = 0; i < 12; i++) {
        assert_non_null(cpu_gemm_plan_make(&plan, &d[i]));
    }
}

UNIT_MAIN(pools_make, pools_free)
