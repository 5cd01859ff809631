/* Products of quantised weights as arrays: by ops_array_dequantise and by expressions, which become
 * one kernel that reads the packed values, and those that do not. */
#include "ops_fixture.h"

#include "ops_arrays.h"

enum { N = 36, K = 128, BLOCK = 32, M = 3, BLOCKS = K / BLOCK };

static float x_host[M * K], scale_host[N * K], zero_host[N * K];
static int8_t byte_host[N * K];

static void fill(void)
{
    for (int i = 0; i < M * K; i++) {
        x_host[i] = (float)between(-1, 1);
    }
    for (int i = 0; i < N * K; i++) {
        scale_host[i] = (float)between(0.5, 2);
        zero_host[i] = (float)(next_random() % 9);
        byte_host[i] = (int8_t)(next_random() % 256 - 128);
    }
}

static ops_array *array_of(hal_type type, int64_t a, int64_t b, int64_t c, const void *elements)
{
    const int64_t shape[3] = {a, b, c};
    return ops_array_from_host(test_context, type, c ? 3 : 2, shape, elements);
}

static ops_array *make_x(void)
{
    return array_of(HAL_TYPE_F32, M, K, 0, x_host);
}

/* Reads y, [M, N], and compares it with the product of weights in double. */
static void expect(ops_array *y, double (*weight)(int n, int k))
{
    float got[M * N];
    assert_non_null(y);
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < M * N; i++) {
        double sum = 0, size = 0;
        for (int k = 0; k < K; k++) {
            const double term = (double)x_host[i / N * K + k] * weight(i % N, k);
            sum += term;
            size += fabs(term);
        }
        if (!(fabs((double)got[i] - sum) <= (K + 8) * 0x1p-24 * size)) {
            fail_msg("element %d is %g instead of %g", i, (double)got[i], sum);
        }
    }
}

/* Computes and compares, by so many kernels. */
static void expect_kernels(ops_array *y, double (*weight)(int n, int k), uint64_t kernels)
{
    const uint64_t before = statistics_of(test_context).kernels;
    expect(y, weight);
    assert_int_equal(statistics_of(test_context).kernels - before, kernels);
}

static double nibble_of(int n, int k)
{
    const int nibble = (uint8_t)byte_host[(n * K + k) / 2] >> 4 * (k % 2) & 15;
    return (nibble - 8) * (double)scale_host[n * BLOCKS + k / BLOCK];
}

static double byte_of_column(int n, int k)
{
    return byte_host[n * K + k] * (double)scale_host[n];
}

static double byte_less_zero(int n, int k)
{
    return (byte_host[n * K + k] - (double)zero_host[n]) * (double)scale_host[n];
}

static double byte_less_three(int n, int k)
{
    return (byte_host[n * K + k] - 3.0) * (double)scale_host[n];
}

static double byte_of_block(int n, int k)
{
    return byte_host[n * K + k] * (double)scale_host[n * BLOCKS + k / BLOCK];
}

static double byte_by_rows(int n, int k)
{
    return byte_host[k * N + n] * (double)scale_host[n];
}

static ops_array *nibbles(void)
{
    return ops_array_dequantise(HAL_TYPE_F32, OPS_QUANTISED_U4,
                                array_of(HAL_TYPE_U8, N, K / 2, 0, byte_host),
                                array_of(HAL_TYPE_F32, N, BLOCKS, 0, scale_host), NULL, 8);
}

static ops_array *product(ops_array *w)
{
    return ops_array_matmul(make_x(), w, HAL_GEMM_STRICT);
}

static ops_array *turned(ops_array *w)
{
    return ops_array_transpose(w, 0, 1);
}

/* The bytes of [n, k] in floats. */
static ops_array *bytes(void)
{
    return ops_array_cast(HAL_TYPE_F32, array_of(HAL_TYPE_I8, N, K, 0, byte_host));
}

static ops_array *column_scales(void)
{
    return array_of(HAL_TYPE_F32, N, 1, 0, scale_host);
}

static void products_are_one_kernel(void **state)
{
    fill();
    for (int i = 0; i < 2; i++) { /* recorded, and replayed */
        ok(ops_scope_begin(test_context));
        expect_kernels(product(turned(nibbles())), nibble_of, 1);
        expect_kernels(product(turned(ops_mul(bytes(), column_scales()))), byte_of_column, 1);
        expect_kernels(product(turned(ops_mul(column_scales(), bytes()))), byte_of_column, 1);
        expect_kernels(
            product(turned(ops_mul(ops_sub(bytes(), array_of(HAL_TYPE_F32, N, 1, 0, zero_host)),
                                   column_scales()))),
            byte_less_zero, 1);
        ops_array *less = ops_sub(bytes(), ops_array_scalar(test_context, HAL_TYPE_F32, 3));
        expect_kernels(product(turned(ops_mul(less, column_scales()))), byte_less_three, 1);
        ops_array *by_rows =
            ops_mul(ops_array_cast(HAL_TYPE_F32, array_of(HAL_TYPE_I8, K, N, 0, byte_host)),
                    array_of(HAL_TYPE_F32, 1, N, 0, scale_host));
        expect_kernels(product(by_rows), byte_by_rows, 1);
        ok(ops_scope_end(test_context));
    }
}

static void blocks_are_one_kernel(void **state)
{
    const int64_t shape[2] = {N, K};
    fill();
    ok(ops_scope_begin(test_context));
    ops_array *in_blocks =
        ops_mul(ops_array_cast(HAL_TYPE_F32, array_of(HAL_TYPE_I8, N, BLOCKS, BLOCK, byte_host)),
                array_of(HAL_TYPE_F32, N, BLOCKS, 1, scale_host));
    expect_kernels(product(turned(ops_array_reshape(in_blocks, 2, shape))), byte_of_block, 1);
    ok(ops_scope_end(test_context));
}

static double nibble_relu(int n, int k)
{
    return nibble_of(n, k);
}

/* Bias and activation are in the kernel as well. */
static void epilogues_join(void **state)
{
    float got[M * N], plain[M * N];
    fill();
    ok(ops_scope_begin(test_context));
    ops_array *bias = array_of(HAL_TYPE_F32, 1, N, 0, scale_host);
    ops_array *y = ops_relu(ops_add(product(turned(nibbles())), bias));
    const uint64_t before = statistics_of(test_context).kernels;
    ok(ops_array_read(y, sizeof got, got));
    assert_int_equal(statistics_of(test_context).kernels - before, 1);
    ops_array *whole = product(turned(nibbles()));
    expect(whole, nibble_relu);
    ok(ops_array_read(whole, sizeof plain, plain));
    for (int i = 0; i < M * N; i++) {
        const float sum = plain[i] + scale_host[i % N];
        assert_true(fabsf(got[i] - (sum > 0 ? sum : 0)) <= 1e-5f * (1 + fabsf(sum)));
    }
    ok(ops_scope_end(test_context));
}

/* Weights that something else reads are stored, and other expressions are computed as they are. */
static void others_are_stored(void **state)
{
    float weights[N * K];
    fill();
    ok(ops_scope_begin(test_context));
    ops_array *held = ops_array_keep(nibbles());
    expect_kernels(product(turned(held)), nibble_of, 2);
    ok(ops_array_read(held, sizeof weights, weights));
    for (int i = 0; i < N * K; i++) {
        assert_true((double)weights[i] == (double)(float)nibble_of(i / K, i % K));
    }
    ops_array_release(held);
    /* Scales that change along k in no blocks; weights without a cast. */
    ops_array *all = ops_mul(bytes(), array_of(HAL_TYPE_F32, N, K, 0, scale_host));
    ops_array *y = product(turned(all));
    float got[M * N];
    ok(ops_array_read(y, sizeof got, got));
    ops_array *floats = array_of(HAL_TYPE_F32, N, K, 0, zero_host);
    ok(ops_array_read(product(turned(ops_mul(floats, column_scales()))), sizeof got, got));
    for (int i = 0; i < M * N; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
            sum += (double)x_host[i / N * K + k] * (double)zero_host[i % N * K + k] *
                   (double)scale_host[i % N];
        }
        assert_true(fabs((double)got[i] - sum) < 1e-2);
    }
    ok(ops_scope_end(test_context));
}

static void wrong_arguments_are_refused(void **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *q = array_of(HAL_TYPE_U8, N, K / 2, 0, byte_host);
    ops_array *s = array_of(HAL_TYPE_F32, N, BLOCKS, 0, scale_host);
    const struct {
        ops_array *values, *scales;
        hal_type type;
        int format;
        double zero;
        const char *words;
    } cases[] = {{q, s, HAL_TYPE_F32, 0, 0, "format: expected"},
                 {q, s, HAL_TYPE_F32, 99, 0, "format: expected"},
                 {q, s, HAL_TYPE_I32, OPS_QUANTISED_U4, 0, "type: expected f32"},
                 {q, s, HAL_TYPE_F32, OPS_QUANTISED_I8, 0, "values: expected i8"},
                 {q, q, HAL_TYPE_F32, OPS_QUANTISED_U4, 0.5, "zero: expected a whole number"},
                 {q, s, HAL_TYPE_F32, OPS_QUANTISED_E5M2, 1, "at most 0"},
                 {q, make_x(), HAL_TYPE_F32, OPS_QUANTISED_U4, 0, "expected [n, k / 2]"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(ops_array_dequantise(cases[i].type, (ops_quantised_format)cases[i].format,
                                         cases[i].values, cases[i].scales, NULL, cases[i].zero));
        if (!strstr(hal_status_message(), cases[i].words)) {
            fail_msg("'%s' lacks '%s'", hal_status_message(), cases[i].words);
        }
    }
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_one_kernel),
        cmocka_unit_test(blocks_are_one_kernel),
        cmocka_unit_test(epilogues_join),
        cmocka_unit_test(others_are_stored),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
