/* Levels of Strassen's algorithm within the cpu plugin's matrix product. */
#include "cpu_gemm_problem.h"

/* Levels of Strassen's algorithm: whole numbers are exact, and all numbers have the same bits with
 * any number of threads. */
static void levels_try(enum cpu_gemm_isa isa, int i)
{
    struct problem p = random_problem(isa, i % 4 == 0 ? 9 : i % 4 == 1 ? 500 : 150);
    memcpy(&p.desc.type_a, type_sets[i % 2], sizeof type_sets[0]);
    p.desc.transpose_a = i & 2;
    p.desc.transpose_b = i & 4;
    p.desc.levels = 1 + i / 8 % 2;
    p.desc.batch = 1;
    p.desc.k = i % 5 == 0 ? pick(600, 1300) : p.desc.k;
    p.small_blocks = i % 3 != 0;
    p.integers = i % 7 != 0;
    p.alpha = (double)pick(-2, 2);
    p.beta = (double)pick(-1, 2);
    problem_make(&p);
    const struct cpu_gemm_plan plan = plan_of(&p);
    assert_int_equal(plan.route, CPU_GEMM_LEVELS);
    run_plan(&plan, &p, NULL, NULL);
    if (p.integers) {
        problem_check(&p);
    }
    char *first = malloc(p.c.size);
    assert_non_null(first);
    memcpy(first, p.c.data, p.c.size);
    memcpy(p.c.data, p.before.data, p.c.size);
    run_plan(&plan, &p, i % 2 ? pool_of_two : pool_of_three, NULL);
    assert_memory_equal(first, p.c.data, p.c.size);
    free(first);
    problem_free(&p);
}

TEST(test_levels)
{
    for (int isa = CPU_GEMM_ISA_BASE; isa <= CPU_GEMM_ISA_AVX512; isa = next_isa(isa)) {
        for (int i = 0; i < rounds(48); i++) {
            levels_try((enum cpu_gemm_isa)isa, i);
        }
    }
}

TEST(test_levels_declined)
{
    for (int i = 0; i < 5; i++) {
        struct cpu_gemm_plan plan;
        struct cpu_gemm_desc d = {
            .m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8, .batch = 1, .levels = 2};
        assert_null(cpu_gemm_plan_make(&plan, &d));
        d.levels = i == 0 ? 3 : i == 1 ? -1 : 1;
        d.batch = i == 2 ? 2 : 1;
        d.stride_c = 64;
        d.type_a = d.type_b = i >= 3 ? CPU_GEMM_BF16 : CPU_GEMM_F32;
        d.type_c = i == 4 ? CPU_GEMM_BF16 : CPU_GEMM_F32;
        assert_non_null(cpu_gemm_plan_make(&plan, &d));
    }
}

UNIT_MAIN(pools_make, pools_free)
