/* Matrix products of the cpu plugin's plans as tests see them: operands with guard pages after the
 * matrices and NaN between their rows, runs, and the comparison with a plain product in double, or
 * long double for f64. */
#ifndef TESTS_UNIT_PLUGINS_CPU_CPU_GEMM_PROBLEM_H
#define TESTS_UNIT_PLUGINS_CPU_CPU_GEMM_PROBLEM_H

#include "cpu/gemm/gemm.h"
#include "cpu/gemm/levels.h"
#include "cpu_sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

/* Storage that ends where an unreadable page begins. */
struct guarded {
    char *pages, *data;
    size_t size, mapped;
};

struct problem {
    struct cpu_gemm_desc desc;
    double alpha, beta;
    bool integers, small_blocks;
    bool share_a, share_b; /* one matrix for the whole batch */
    struct guarded a, b, c, before;
};

static const int64_t type_size[] = {4, 8, 2, 2, 1, 1, 4};
static const enum cpu_gemm_type type_sets[][3] = {
    {CPU_GEMM_F32, CPU_GEMM_F32, CPU_GEMM_F32},  {CPU_GEMM_F64, CPU_GEMM_F64, CPU_GEMM_F64},
    {CPU_GEMM_F16, CPU_GEMM_F16, CPU_GEMM_F16},  {CPU_GEMM_BF16, CPU_GEMM_BF16, CPU_GEMM_BF16},
    {CPU_GEMM_F16, CPU_GEMM_BF16, CPU_GEMM_F32}, {CPU_GEMM_F32, CPU_GEMM_F16, CPU_GEMM_BF16},
};
enum { TYPE_SETS = sizeof type_sets / sizeof *type_sets, BF16_SET = 3 };

static cpu_thread_pool *pool_of_two, *pool_of_three;
static uint64_t random_state = 1;

/* The thread sanitizer and emulators are slow, and look for something else than sizes. */
static inline int rounds(int count)
{
#if defined(THREAD_SANITIZER) || defined(HAL_TEST_EMULATED)
    return count / 4;
#elif defined(__SANITIZE_ADDRESS__)
    return count / 2;
#else
    return count;
#endif
}

static inline uint64_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static inline int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

static inline struct problem random_problem(enum cpu_gemm_isa isa, int64_t most)
{
    static const double scales[] = {0, 1, 0.7, -1.5};
    struct problem p = {.alpha = scales[pick(0, 3)], .beta = scales[pick(0, 3)]};
    p.desc.isa = isa;
    p.desc.m = pick(1, most);
    p.desc.n = pick(1, most);
    p.desc.k = pick(0, most);
    p.desc.batch = pick(0, 3) == 0 ? pick(2, 5) : 1;
    p.share_a = pick(0, 3) == 0;
    p.share_b = pick(0, 3) == 0;
    return p;
}

static inline struct guarded guard(int64_t elements, enum cpu_gemm_type type)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)(elements * type_size[type]);
    struct guarded g = {.size = size, .mapped = (size + page - 1) / page * page + page};
    g.pages = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.pages != MAP_FAILED);
    assert_int_equal(mprotect(g.pages + g.mapped - page, page, PROT_NONE), 0);
    g.data = g.pages + g.mapped - page - size;
    memset(g.pages, 0xff, g.mapped - page);
    return g;
}

/* The values used here are exact in f16; bf16 keeps their first bits. */
static inline void value_set(void *data, enum cpu_gemm_type type, int64_t i, double value)
{
    if (type == CPU_GEMM_F64) {
        ((double *)data)[i] = value;
        return;
    }
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    if (type == CPU_GEMM_F32) {
        ((float *)data)[i] = narrow;
    } else if (type == CPU_GEMM_BF16) {
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    } else if (isnan(value) || isinf(value)) {
        ((uint16_t *)data)[i] = isnan(value) ? 0x7e00 : (uint16_t)((bits >> 16 & 0x8000) | 0x7c00);
    } else if (value == 0) {
        ((uint16_t *)data)[i] = 0;
    } else {
        int exponent;
        double fraction = frexp(fabs(value), &exponent); /* exponent > -13 */
        int biased = exponent + 14, bitsof = (int)(fraction * 2048);
        uint16_t half = biased > 0 ? (uint16_t)(biased << 10 | (bitsof & 1023))
                                   : (uint16_t)(bitsof >> (1 - biased));
        ((uint16_t *)data)[i] = (uint16_t)(half | (value < 0 ? 0x8000 : 0));
    }
}

/* Rows and matrices with NaN between them; the last row ends at the guard page. */
static inline struct guarded matrix(struct problem *p, enum cpu_gemm_type type, int64_t rows,
                                    int64_t cols, int64_t *ld, int64_t *stride)
{
    int64_t pad = pick(0, 2) == 0 ? pick(1, 9) : 0;
    *ld = cols + pad;
    *stride = rows * *ld + pick(0, 3);
    int64_t all = (p->desc.batch - 1) * *stride;
    struct guarded g = guard(rows > 0 ? all + (rows - 1) * *ld + cols : 0, type);
    for (int64_t b = 0; b < p->desc.batch; b++) {
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < cols; c++) {
                value_set(g.data, type, b * *stride + r * *ld + c,
                          p->integers ? (double)pick(-1, 2) : (double)pick(-4096, 4096) / 4096);
            }
        }
    }
    return g;
}

static inline void problem_make(struct problem *p)
{
    struct cpu_gemm_desc *d = &p->desc;
    int64_t m = d->m, n = d->n, k = d->k;
    p->a =
        matrix(p, d->type_a, d->transpose_a ? k : m, d->transpose_a ? m : k, &d->lda, &d->stride_a);
    p->b =
        matrix(p, d->type_b, d->transpose_b ? n : k, d->transpose_b ? k : n, &d->ldb, &d->stride_b);
    if (p->share_b) {
        d->stride_b = 0;
    }
    p->c = matrix(p, d->type_c, m, n, &d->ldc, &d->stride_c);
    if (p->beta == 0) {
        memset(p->c.data, 0xff, p->c.size);
    }
    p->before = guard((int64_t)p->c.size / type_size[d->type_c], d->type_c);
    memcpy(p->before.data, p->c.data, p->c.size);
}

/* Blocks of a few tiles where the problem asks for them, so that all loops run at small sizes. */
static inline struct cpu_gemm_plan plan_of(const struct problem *p)
{
    struct cpu_gemm_plan plan;
    assert_null(cpu_gemm_plan_make(&plan, &p->desc));
    if (p->small_blocks && plan.route == CPU_GEMM_TILES) {
        int64_t nr = plan.kernels->nr;
        plan.outer_m = plan.strip * 3 < plan.outer_m ? plan.strip * 3 : plan.outer_m;
        plan.outer_n = nr * 2 < plan.outer_n ? nr * 2 : plan.outer_n;
        plan.task_m = plan.strip * 2;
        plan.task_n = nr;
        plan.pack_a |= random_state >> 40 & 1;
        plan.pack_b |= random_state >> 41 & 1;
        plan.group = pick(1, plan.desc.batch);
        plan.is_single = false;
    }
    if (p->small_blocks && plan.route == CPU_GEMM_PAIRS) {
        plan.pack_b = random_state >> 40 & 1;
        plan.task_m = plan.task_n = 32;
        plan.outer_n = 64 < p->desc.n ? 64 : p->desc.n;
        plan.group = pick(1, plan.desc.batch);
    }
    if (p->small_blocks && plan.route == CPU_GEMM_LEVELS) {
        plan.task_m = 2 * CPU_GEMM_LEVELS_TASK_M;
        plan.task_n = CPU_GEMM_LEVELS_TASK_N;
        plan.outer_m = 2 * plan.task_m < plan.outer_m ? 2 * plan.task_m : plan.outer_m;
        plan.outer_n = plan.task_n < plan.outer_n ? plan.task_n : plan.outer_n;
        plan.outer_k = plan.slabs > 1 ? plan.kc : plan.outer_k;
    }
    plan.max_threads = 8;
    return plan;
}

static inline void run_plan(const struct cpu_gemm_plan *plan, struct problem *p,
                            cpu_thread_pool *pool, void *user)
{
    int threads = !pool ? 1 : (int)cpu_thread_pool_size(pool);
    size_t size = (size_t)cpu_gemm_workspace_size(plan, threads);
    size_t room = (size + 63) / 64 * 64;
    char *work = aligned_alloc(64, room + 64);

    assert_non_null(work);
    memset(work, 0xff, room + 64); /* NaN in every type */
    cpu_gemm_run(plan, &(struct cpu_gemm_args){.a = p->a.data,
                                               .b = p->b.data,
                                               .c = p->c.data,
                                               .alpha = p->alpha,
                                               .beta = p->beta,
                                               .user = user,
                                               .workspace = work,
                                               .pool = pool,
                                               .threads = (uint32_t)threads});
    for (size_t i = size; i < room + 64; i++) {
        assert_int_equal((unsigned char)work[i], 0xff);
    }
    free(work);
}

static inline double value_at(const void *data, enum cpu_gemm_type type, int64_t i)
{
    if (type == CPU_GEMM_F32) {
        return ((const float *)data)[i];
    }
    if (type == CPU_GEMM_F64) {
        return ((const double *)data)[i];
    }
    uint16_t half = ((const uint16_t *)data)[i];
    if (type == CPU_GEMM_BF16) {
        uint32_t bits = (uint32_t)half << 16;
        float value;
        memcpy(&value, &bits, 4);
        return value;
    }
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
        value = fraction ? (double)NAN : (double)INFINITY;
    }
    return half & 0x8000 ? -value : value;
}

/* op(A) of one matrix with its rows along k, or op(B) with its columns along k. */
static inline void unfold(double *to, const struct guarded *g, enum cpu_gemm_type type,
                          int64_t first, int64_t rows, int64_t k, int64_t row_step, int64_t k_step)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++) {
            to[r * k + i] = value_at(g->data, type, first + r * row_step + i * k_step);
        }
    }
}

/* One element: the bound of the sum, of alpha and beta, and of C's type. */
static inline void element_check(const struct problem *p, const double *a, const double *b,
                                 int64_t at)
{
    static const double unit[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8};
    static const double tiny[] = {0x1p-149, 0x1p-1074, 0x1p-25, 0x1p-133};
    const struct cpu_gemm_desc *d = &p->desc;
    const bool is_f64 = d->type_a == CPU_GEMM_F64;
    double u = is_f64 ? 0x1p-53 : 0x1p-24, size = 0;
    long double want = p->alpha * cpu_sum_of_products(a, b, d->k, is_f64, &size);

    size *= fabs(p->alpha);
    if (p->beta != 0) {
        double old = p->beta * value_at(p->before.data, d->type_c, at);
        want += old;
        size += fabs(old);
    }
    double got = value_at(p->c.data, d->type_c, at);
    double steps = (double)(d->k + 4), gamma = steps * u / (1 - steps * u);
    long double bound = gamma * size + unit[d->type_c] * fabsl(want) + tiny[d->type_c];
    bool right;
    if (isnan(want)) {
        right = isnan(got);
    } else if (isinf(want) || p->integers) {
        right = (long double)got == want;
    } else {
        right = fabsl(got - want) <= bound;
    }
    if (!right) {
        fail_msg("isa %d m %d n %d k %d at %d: %g, not %Lg; bound %Lg", d->isa, (int)d->m,
                 (int)d->n, (int)d->k, (int)at, got, want, bound);
    }
}

/* Every element, and every byte of C that belongs to none. */
static inline void problem_check(const struct problem *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    size_t bytes = (size_t)type_size[d->type_c];
    char *seen = calloc(p->c.size / bytes, 1);
    double *a = malloc((size_t)(d->m * d->k + 1) * sizeof *a);
    double *b = malloc((size_t)(d->n * d->k + 1) * sizeof *b);

    assert_true(seen && a && b != NULL);
    for (int64_t batch = 0; batch < d->batch; batch++) {
        unfold(a, &p->a, d->type_a, batch * d->stride_a, d->m, d->k, d->transpose_a ? 1 : d->lda,
               d->transpose_a ? d->lda : 1);
        unfold(b, &p->b, d->type_b, batch * d->stride_b, d->n, d->k, d->transpose_b ? d->ldb : 1,
               d->transpose_b ? 1 : d->ldb);
        for (int64_t i = 0; i < d->m; i++) {
            for (int64_t j = 0; j < d->n; j++) {
                int64_t at = batch * d->stride_c + i * d->ldc + j;
                element_check(p, a + i * d->k, b + j * d->k, at);
                seen[at] = 1;
            }
        }
    }
    for (size_t e = 0; e < p->c.size / bytes; e++) {
        if (!seen[e]) {
            assert_memory_equal(p->c.data + e * bytes, p->before.data + e * bytes, bytes);
        }
    }
    for (char *q = p->c.pages; q < p->c.data; q++) {
        assert_int_equal((unsigned char)*q, 0xff);
    }
    free(seen);
    free(a);
    free(b);
}

static inline void problem_free(struct problem *p)
{
    struct guarded *all[] = {&p->a, &p->b, &p->c, &p->before};
    for (int i = 0; i < 4; i++) {
        munmap(all[i]->pages, all[i]->mapped);
    }
}

/* Number i of a sequence with all types and transpositions. */
static inline struct problem typed_problem(int isa, int64_t largest, int i)
{
    struct problem p = random_problem((enum cpu_gemm_isa)isa, largest);
    const int types = isa > CPU_GEMM_ISA_AVX512 ? BF16_SET : i % TYPE_SETS;
    memcpy(&p.desc.type_a, type_sets[types], sizeof type_sets[0]);
    p.desc.transpose_a = i / TYPE_SETS & 1;
    p.desc.transpose_b = i / TYPE_SETS & 2;
    return p;
}

static inline void problem_try(struct problem *p, cpu_thread_pool *pool)
{
    problem_make(p);
    const struct cpu_gemm_plan plan = plan_of(p);
    run_plan(&plan, p, pool, NULL);
    problem_check(p);
    problem_free(p);
}

/* The next instruction set of the machine after `isa`. */
static inline int next_isa(int isa)
{
    do {
        isa++;
    } while (isa < CPU_GEMM_ISA_COUNT && !cpu_gemm_isa_supported((enum cpu_gemm_isa)isa));
    return isa;
}

/* With units for bf16 only its products are others than without. */
static inline int rounds_of(int isa, int count)
{
    return rounds(isa > CPU_GEMM_ISA_AVX512 ? count / 3 : count);
}

/* AUTO, and now and then those that may be emulated. */
static inline enum cpu_gemm_isa any_isa(int i)
{
    static const enum cpu_gemm_isa sets[] = {CPU_GEMM_ISA_AUTO, CPU_GEMM_ISA_AMX, CPU_GEMM_ISA_AUTO,
                                             CPU_GEMM_ISA_AVX512_BF16};
    return cpu_gemm_isa_supported(sets[i % 4]) ? sets[i % 4] : CPU_GEMM_ISA_AUTO;
}

static inline int pools_make(void **state)
{
    pool_of_two = cpu_thread_pool_create(2);
    pool_of_three = cpu_thread_pool_create(3);
    return !pool_of_two || !pool_of_three;
}

static inline int pools_free(void **state)
{
    cpu_thread_pool_destroy(pool_of_two);
    cpu_thread_pool_destroy(pool_of_three);
    return 0;
}

#endif
