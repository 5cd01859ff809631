/* Matrix products without a product: with k = 0 or alpha = 0, C = epilogue(beta C) in every bit,
 * whatever alpha is and whatever A and B hold. */
#include "ops_gemm_fixture.h"

static void expect_bits(const box *b, const double *want)
{
    const uint64_t size = hal_type_size(b->t.type);
    char *bytes = malloc((size_t)((uint64_t)b->count * size));
    ok(hal_queue_read(test_queue, b->t.buffer, 0, (uint64_t)b->count * size, bytes));
    for (int64_t i = 0; i < b->count; i++) {
        const double got = decode(b->t.type, bytes + (uint64_t)i * size);
        if (!(isnan(got) && isnan(want[i])) &&
            (got != want[i] || !signbit(got) != !signbit(want[i]))) {
            free(bytes);
            fail_msg("element %lld: %.17g, wanted %.17g", (long long)i, got, want[i]);
        }
    }
    free(bytes);
}

/* Zeros of both signs, infinities and NaN in C. */
static void fill_c(box *c)
{
    const double corners[] = {0.0, -0.0, 1, -3, (double)INFINITY, -(double)INFINITY, (double)NAN};
    for (int64_t i = 0; i < c->count; i++) {
        c->host[i] = corners[i % 7];
    }
    box_upload(c);
}

static void fill_nan(box *b)
{
    for (int64_t i = 0; i < b->count; i++) {
        b->host[i] = (double)NAN;
    }
    box_upload(b);
}

static void try_scale(hal_type type, int layout, int64_t k, double alpha, double beta,
                      ops_gemm_impl impl)
{
    product p = make(type, type, layout == PADDED ? 3 : 1, 17, 20, k, PLAIN, TURNED, layout);
    p.options.alpha = alpha;
    p.options.beta = beta;
    p.options.impl = impl;
    fill_nan(&p.a);
    fill_nan(&p.b);
    fill_c(&p.c);
    ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
    double *want = box_want(&p.c);
    const int64_t shape[3] = {p.batch, p.m, p.n};
    const uint32_t rank = p.c.t.rank;
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++) {
        const int64_t place = place_of(&p.c.t, rank, shape + 3 - rank, i);
        want[place] = beta == 0 ? 0.0 : beta * p.c.host[place];
    }
    expect_bits(&p.c, want);
    free(want);
    release(&p);
}

static void empty_sum(void **state)
{
    const double alphas[] = {1, 0, -2, (double)INFINITY, (double)NAN};
    const ops_gemm_impl impls[] = {OPS_GEMM_ANY, OPS_GEMM_PORTABLE, OPS_GEMM_NATIVE};
    for (int i = 0; i < 5 * 3 * 3 * LAYOUTS; i++) {
        const double beta = (double)(i / 15 % 3);
        try_scale(i % 2 ? HAL_TYPE_F32 : HAL_TYPE_F16, i / 45, 0, alphas[i % 5], beta,
                  impls[i / 5 % 3]);
    }
}

static void zero_alpha(void **state)
{
    const ops_gemm_impl impls[] = {OPS_GEMM_ANY, OPS_GEMM_PORTABLE, OPS_GEMM_NATIVE};
    for (int i = 0; i < 4 * 3 * LAYOUTS; i++) {
        try_scale(i % 2 ? HAL_TYPE_F32 : HAL_TYPE_F64, i / 12, 40, i % 4 < 2 ? 0.0 : -0.0,
                  (double)(i % 4) - 1, impls[i / 4 % 3]);
    }
}

/* The epilogue still runs, with its indices and inputs. */
static void epilogue_of_scaled(void **state)
{
    for (int i = 0; i < 8; i++) {
        try_epilogue((problem){.batch = i % 2 ? 3 : 1,
                               .m = 29,
                               .n = 43,
                               .k = i & 4 ? 0 : 17,
                               .layout_c = i / 2 % 2,
                               .alpha = -0.0,
                               .beta = 2},
                     PLAIN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(empty_sum), cmocka_unit_test(zero_alpha),
                                       cmocka_unit_test(epilogue_of_scaled)};
    return RUN_ON_ALL(tests);
}
