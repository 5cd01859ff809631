/* Products of 8-bit integers have every bit of plain loops: of any layout, of batches, with factors
 * and sums that wrap, on one thread and two, and with an epilogue that makes floats. Operands end
 * where an unreadable page begins. Skipped on processors without a unit for them. */
#include "cpu_gemm_problem.h"

struct bytes_problem {
    struct cpu_gemm_desc desc;
    int64_t alpha, beta;
    struct guarded a, b, c;
    uint32_t *before;
};

static struct guarded random_matrices(int64_t rows, int64_t cols, int64_t ld, int64_t stride,
                                      int64_t batch, enum cpu_gemm_type type)
{
    const int64_t count = (batch - 1) * stride + (rows - 1) * ld + cols;
    struct guarded g = guard(count, type);
    for (size_t i = 0; i < g.size; i++) {
        g.data[i] = (char)random_bits();
    }
    return g;
}

static void bytes_make(struct bytes_problem *p)
{
    struct cpu_gemm_desc *d = &p->desc;
    const int64_t a_rows = d->transpose_a ? d->k : d->m, a_cols = d->transpose_a ? d->m : d->k;
    const int64_t b_rows = d->transpose_b ? d->n : d->k, b_cols = d->transpose_b ? d->k : d->n;
    d->lda = a_cols + pick(0, 3);
    d->ldb = b_cols + pick(0, 3);
    d->ldc = d->n + pick(0, 3);
    d->stride_a = pick(0, 3) == 0 ? 0 : a_rows * d->lda;
    d->stride_b = pick(0, 3) == 0 ? 0 : b_rows * d->ldb;
    d->stride_c = d->m * d->ldc;
    p->a = random_matrices(a_rows, a_cols, d->lda, d->stride_a, d->batch, d->type_a);
    p->b = random_matrices(b_rows, b_cols, d->ldb, d->stride_b, d->batch, d->type_b);
    p->c = random_matrices(d->m, d->n, d->ldc, d->stride_c, d->batch, CPU_GEMM_I32);
    p->before = malloc(p->c.size);
    assert_non_null(p->before);
    memcpy(p->before, p->c.data, p->c.size);
}

static void bytes_free(struct bytes_problem *p)
{
    munmap(p->a.pages, p->a.mapped);
    munmap(p->b.pages, p->b.mapped);
    munmap(p->c.pages, p->c.mapped);
    free(p->before);
}

static uint32_t byte_at(const struct guarded *g, enum cpu_gemm_type type, int64_t i)
{
    return type == CPU_GEMM_I8 ? (uint32_t)(int8_t)g->data[i] : (uint8_t)g->data[i];
}

/* alpha A B + beta C of one element, modulo 2^32. */
static uint32_t expected_at(const struct bytes_problem *p, int64_t matrix, int64_t row, int64_t col)
{
    const struct cpu_gemm_desc *d = &p->desc;
    uint32_t sum = 0;
    for (int64_t k = 0; k < d->k; k++) {
        const int64_t a = d->transpose_a ? k * d->lda + row : row * d->lda + k;
        const int64_t b = d->transpose_b ? col * d->ldb + k : k * d->ldb + col;
        sum += byte_at(&p->a, d->type_a, matrix * d->stride_a + a) *
               byte_at(&p->b, d->type_b, matrix * d->stride_b + b);
    }
    const uint32_t old = p->before[matrix * d->stride_c + row * d->ldc + col];
    return (uint32_t)p->alpha * sum + (uint32_t)p->beta * old;
}

static void bytes_run(const struct cpu_gemm_plan *plan, const struct bytes_problem *p, int threads,
                      void *user)
{
    const size_t bytes = (size_t)cpu_gemm_workspace_size(plan, threads);
    void *workspace = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes);
    cpu_gemm_run(plan, &(struct cpu_gemm_args){.a = p->a.data,
                                               .b = p->b.data,
                                               .c = p->c.data,
                                               .alpha = (double)p->alpha,
                                               .beta = (double)p->beta,
                                               .user = user,
                                               .workspace = workspace,
                                               .pool = threads > 1 ? pool_of_two : NULL,
                                               .threads = (uint32_t)threads});
    free(workspace);
}

/* What is between the rows of C stays. */
static void bytes_check(const struct bytes_problem *p, bool are_floats)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const uint32_t *c = (const uint32_t *)p->c.data;
    for (int64_t i = 0; i < (int64_t)(p->c.size / 4); i++) {
        const int64_t matrix = i / d->stride_c, row = i % d->stride_c / d->ldc;
        const int64_t col = i % d->stride_c % d->ldc;
        uint32_t expected = p->before[i];
        if (col < d->n) {
            expected = expected_at(p, matrix, row, col);
            const float value = (float)(int32_t)expected * 0.5F;
            memcpy(&expected, are_floats ? (const void *)&value : &expected, 4);
        }
        if (c[i] != expected) {
            fail_msg("%lld x %lld x %lld: element %lld, %lld is %x instead of %x", (long long)d->m,
                     (long long)d->n, (long long)d->k, (long long)row, (long long)col, c[i],
                     expected);
        }
    }
}

static struct bytes_problem random_bytes(int i)
{
    static const int64_t factors[] = {1, 1, -3, 0, 1000003};
    struct bytes_problem p = {.alpha = factors[pick(0, 4)], .beta = factors[pick(1, 4)]};
    p.desc = (struct cpu_gemm_desc){.type_a = i % 2 == 0 ? CPU_GEMM_I8 : CPU_GEMM_U8,
                                    .type_c = CPU_GEMM_I32,
                                    .transpose_a = i & 2,
                                    .transpose_b = i & 4,
                                    .m = i % 7 == 0 ? pick(257, 300) : pick(4, 80),
                                    .n = i % 11 == 0 ? pick(513, 600) : pick(4, 80),
                                    .k = i % 5 == 0 ? pick(1000, 1200) : pick(256, 400),
                                    .batch = i % 3 == 0 ? pick(2, 4) : 1};
    p.desc.type_b = p.desc.type_a;
    return p;
}

static void need_unit(void)
{
    if (!cpu_gemm_isa_has_bytes(CPU_GEMM_ISA_AVX512)) {
        skip();
    }
}

TEST(test_bytes)
{
    need_unit();
    for (int i = 0; i < rounds(120); i++) {
        struct bytes_problem p = random_bytes(i);
        struct cpu_gemm_plan plan;
        bytes_make(&p);
        assert_null(cpu_gemm_plan_make(&plan, &p.desc));
        bytes_run(&plan, &p, 1 + i / 2 % 2, NULL);
        bytes_check(&p, false);
        bytes_free(&p);
    }
}

/* Any k, whose last words have fewer than four elements, and few rows. */
TEST(test_bytes_edges)
{
    need_unit();
    for (int64_t k = 1; k <= 130; k++) {
        struct bytes_problem p = random_bytes((int)k);
        struct cpu_gemm_plan plan;
        p.desc.transpose_b = true;
        p.desc.k = k;
        p.desc.m = 1 + k % 34;
        p.desc.n = 1 + (512 + k % 29) / p.desc.m;
        p.desc.batch = 1;
        bytes_make(&p);
        assert_null(cpu_gemm_plan_make(&plan, &p.desc));
        bytes_run(&plan, &p, 1, NULL);
        bytes_check(&p, false);
        bytes_free(&p);
    }
}

static void halve(void *user, const struct cpu_gemm_tile *tile)
{
    (void)user;
    for (int r = 0; r < tile->rows; r++) {
        for (int c = 0; c < tile->cols; c++) {
            char *at = (char *)tile->data + (r * tile->ld + c) * 4;
            int32_t sum;
            memcpy(&sum, at, sizeof sum);
            const float value = (float)sum * 0.5F;
            memcpy(at, &value, sizeof value);
        }
    }
}

TEST(test_bytes_become_floats)
{
    need_unit();
    for (int i = 0; i < rounds(40); i++) {
        struct bytes_problem p = random_bytes(i);
        struct cpu_gemm_plan plan;
        p.beta = 0;
        p.desc.type_c = CPU_GEMM_F32;
        p.desc.epilogue = halve;
        bytes_make(&p);
        assert_null(cpu_gemm_plan_make(&plan, &p.desc));
        bytes_run(&plan, &p, 1 + i / 2 % 2, NULL);
        bytes_check(&p, true);
        bytes_free(&p);
    }
}

TEST(test_bytes_that_are_declined)
{
    const enum cpu_gemm_type types[][3] = {
        {CPU_GEMM_I8, CPU_GEMM_U8, CPU_GEMM_I32},   {CPU_GEMM_I8, CPU_GEMM_I8, CPU_GEMM_I8},
        {CPU_GEMM_I8, CPU_GEMM_I8, CPU_GEMM_F32},   {CPU_GEMM_I8, CPU_GEMM_F32, CPU_GEMM_I32},
        {CPU_GEMM_F32, CPU_GEMM_F32, CPU_GEMM_I32}, {CPU_GEMM_I32, CPU_GEMM_I32, CPU_GEMM_I32}};
    struct cpu_gemm_plan plan;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct cpu_gemm_desc d = {.type_a = types[i][0],
                                        .type_b = types[i][1],
                                        .type_c = types[i][2],
                                        .m = 64,
                                        .n = 64,
                                        .k = 64,
                                        .lda = 64,
                                        .ldb = 64,
                                        .ldc = 64,
                                        .batch = 1};
        assert_non_null(cpu_gemm_plan_make(&plan, &d));
    }
}

UNIT_MAIN(pools_make, pools_free)
