/* Matrix products of the class EXACT: the moduli, blocks of C, the bits, and what is refused. The
 * bits of hard numbers are tested by hal-conformance (gemm_exact.c). */
#include "gemm/exact/exact.h"
#include "gemm/exact/moduli.h"
#include "ops_gemm_fixture.h"

#include <ops/array.h>

static uint32_t remainder_of(const uint16_t *digits, uint32_t divisor)
{
    uint32_t rest = 0;
    for (uint32_t i = OPS_EXACT_DIGITS; i-- > 0;) {
        rest = (rest << 16 | digits[i]) % divisor;
    }
    return rest;
}

/* The quotients recombine residues: each is 0 modulo all moduli but its own, where the inverse
 * makes it 1. */
TEST(the_moduli_recombine_residues)
{
    ops_exact_moduli moduli;
    ops_exact_moduli_init(&moduli);
    for (uint32_t i = 0; i < OPS_EXACT_MODULI; i++) {
        const ops_exact_modulus *m = &moduli.of[i];
        assert_int_equal(remainder_of(moduli.product, m->p), 0);
        for (uint32_t j = 0; j < OPS_EXACT_MODULI; j++) {
            const uint32_t p = moduli.of[j].p;
            const uint32_t one = remainder_of(m->quotient, p) * m->inverse % p;
            assert_int_equal(one, i == j);
        }
    }
    /* A quarter of P is more than 2^123, which sums of whole numbers reach. */
    assert_true(moduli.product[OPS_EXACT_DIGITS - 1] >= 1 << 13);
}

static product make_exact(problem q)
{
    q.type = HAL_TYPE_F64;
    product p = problem_make(&q);
    p.options.precision = HAL_GEMM_EXACT;
    return p;
}

static void try_exact(problem q)
{
    product p = make_exact(q);
    try_product(&p, !q.is_rounded, NULL, NULL);
    release(&p);
}

TEST(every_layout_is_read_and_written)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        for (int64_t k = 7; k < 60; k += 40) {
            try_exact((problem){.m = 18, .n = 21, .k = k, .layout_a = layout, .beta = 0.5});
            try_exact((problem){.m = 18, .n = 21, .k = k, .layout_b = layout, .alpha = -3});
            try_exact((problem){.m = 18, .n = 21, .k = k, .layout_c = layout, .beta = 1});
        }
    }
}

TEST(all_lengths_around_the_smallest)
{
    for (int64_t k = 0; k < 36; k++) {
        try_exact((problem){.m = 1 + k % 3, .n = 1 + k % 5, .k = k, .beta = k % 2 ? 2.0 : 0.0});
        try_exact((problem){.m = 3, .n = 2, .k = k, .batch = 3, .is_rounded = 1});
    }
}

/* Sums of the parts of k are added. */
TEST(a_long_k_has_parts)
{
    try_exact((problem){.m = 2, .n = 3, .k = 16384 + 3, .alpha = 2, .beta = 1});
    try_exact((problem){.m = 3, .n = 2, .k = 2 * 16384 + 40, .is_rounded = 1});
}

static double *result_of(product *p)
{
    const uint64_t bytes = (uint64_t)(p->batch * p->m * p->n) * sizeof(double);
    double *result = malloc(bytes);
    ok(ops_gemm(test_context, &p->options, &p->a.t, &p->b.t, &p->c.t));
    ok(ops_tensor_read(test_context, &p->c.t, bytes, result));
    return result;
}

/* With little memory C is computed in blocks, with the same bits. */
TEST(blocks_change_no_bits)
{
    char line[512];
    product p = make_exact((problem){.m = 100, .n = 75, .k = 90, .batch = 3, .is_rounded = 1});
    double *whole = result_of(&p);
    p.options.max_workspace = 1;
    double *blocks = result_of(&p);
    ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof line, line));
    assert_non_null(strstr(line, "exact, products of bytes for 32 x 32 elements at a time"));
    assert_memory_equal(whole, blocks, (size_t)(p.batch * p.m * p.n) * sizeof *whole);
    p.options.max_workspace = 1 << 20;
    ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof line, line));
    assert_non_null(strstr(line, "for 100 x 75 elements"));
    free(whole);
    free(blocks);
    release(&p);
}

TEST(what_the_class_lacks_is_refused)
{
    char text[512];
    product p = make_exact((problem){.m = 20, .n = 20, .k = 20});
    ops_expression *e = make_epilogue();
    p.options.epilogue = e;
    assert_int_equal(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(hal_status_message(), "options.epilogue: expected null"));
    p.options.epilogue = NULL;
    p.options.impl = OPS_GEMM_PORTABLE;
    assert_int_equal(
        ops_gemm_get_config(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, 1, sizeof text, text),
        HAL_ERROR_UNSUPPORTED);
    p.options.config = "any";
    assert_int_equal(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t),
                     HAL_ERROR_UNSUPPORTED);
    ops_expression_destroy(e);
    release(&p);
    p = make_exact((problem){.m = 20, .n = 20, .k = 16, .impl = OPS_GEMM_NATIVE});
    assert_int_equal(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t),
                     HAL_ERROR_UNSUPPORTED);
    release(&p);
    p = problem_make(&(problem){.m = 20, .n = 20, .k = 20});
    p.options.precision = HAL_GEMM_EXACT;
    assert_int_equal(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(hal_status_message(), "expected f64 with HAL_GEMM_EXACT, got f32"));
    release(&p);
}

/* A prepared B is a copy. */
TEST(a_prepared_b_is_taken)
{
    product p = make_exact((problem){.m = 20, .n = 30, .k = 40, .layout_b = EVERY_OTHER});
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    ops_gemm_prepared *prepared;
    options.precision = HAL_GEMM_EXACT;
    ok(ops_gemm_prepare(test_context, &options, &p.b.t, &prepared));
    p.options.prepared = prepared;
    try_product(&p, 1, NULL, NULL);
    ops_gemm_prepared_destroy(prepared);
    release(&p);
}

/* Integers are exact in each class. */
TEST(integers_are_multiplied_as_in_other_classes)
{
    product p = problem_make(&(problem){.type = HAL_TYPE_I32, .m = 20, .n = 20, .k = 20});
    p.options.precision = HAL_GEMM_EXACT;
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

/* Of arrays the elementwise work that follows is computed apart. */
TEST(arrays_have_the_class)
{
    enum { LENGTH = 24 };
    const int64_t shape[2] = {LENGTH, LENGTH};
    double elements[LENGTH * LENGTH], got[LENGTH * LENGTH];
    for (int i = 0; i < LENGTH * LENGTH; i++) {
        elements[i] = i % 7 - 3;
    }
    ops_array *x = ops_array_from_host(test_context, HAL_TYPE_F64, 2, shape, elements);
    ops_array *square = ops_array_matmul(x, x, HAL_GEMM_EXACT);
    ops_array *sum = ops_add(square, x);
    ok(ops_array_read(sum, sizeof got, got));
    for (int i = 0; i < LENGTH * LENGTH; i++) {
        double want = elements[i];
        for (int k = 0; k < LENGTH; k++) {
            want += elements[i / LENGTH * LENGTH + k] * elements[k * LENGTH + i % LENGTH];
        }
        assert_true(got[i] == want);
    }
    ops_array *narrow = ops_array_cast(HAL_TYPE_F32, x);
    assert_null(ops_array_matmul(narrow, narrow, HAL_GEMM_EXACT));
    assert_non_null(strstr(hal_status_message(), "of f64, _EXACT, got 4 of f32"));
    ops_array_release(x);
    ops_array_release(square);
    ops_array_release(sum);
    ops_array_release(narrow);
}

/* A plan of arrays, with parts of k that share temporary memory, is replayed for other numbers. */
TEST(plans_of_arrays_are_replayed)
{
    enum { K = 16384 + 20, ROUNDS = 3 };
    const int64_t a_shape[2] = {2, K}, b_shape[2] = {K, 2};
    double *elements = malloc(2 * K * sizeof *elements);
    for (int round = 0; round < ROUNDS; round++) {
        double got[4], want[4] = {0};
        for (int i = 0; i < 2 * K; i++) {
            elements[i] = (i * (round + 1) + round) % 9 - 4;
        }
        for (int i = 0; i < 4 * K; i++) {
            const int k = i / 4, row = i / 2 % 2, column = i % 2;
            want[2 * row + column] += elements[row * K + k] * elements[2 * k + column];
        }
        ops_array *a = ops_array_from_host(test_context, HAL_TYPE_F64, 2, a_shape, elements);
        ops_array *b = ops_array_from_host(test_context, HAL_TYPE_F64, 2, b_shape, elements);
        ops_array *c = ops_array_matmul(a, b, HAL_GEMM_EXACT);
        ok(ops_array_read(c, sizeof got, got));
        assert_memory_equal(got, want, sizeof want);
        ops_array_release(a);
        ops_array_release(b);
        ops_array_release(c);
    }
    free(elements);
}

UNIT_MAIN(open_context, close_context)
