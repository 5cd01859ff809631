/* Products of groups of rows as arrays: one kernel with bias and activation, offsets that other
 * calls compute or that the host knows, and what is refused. */
#include "ops_fixture.h"

#include "ops_arrays.h"

enum { ROWS = 50, N = 20, K = 24, GROUPS = 4 };

static float x_host[ROWS * K], w_host[GROUPS * K * N], bias_host[N];
static const int32_t sizes[GROUPS] = {7, 0, 30, 13};
static const int64_t offsets_host[GROUPS + 1] = {0, 7, 7, 37, 50};

static void fill(void)
{
    for (int i = 0; i < ROWS * K; i++) {
        x_host[i] = (float)(next_random() % 7) - 3;
    }
    for (int i = 0; i < GROUPS * K * N; i++) {
        w_host[i] = (float)(next_random() % 7) - 3;
    }
    for (int i = 0; i < N; i++) {
        bias_host[i] = (float)(next_random() % 7) - 3;
    }
}

static ops_array *make_x(void)
{
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, (int64_t[]){ROWS, K}, x_host));
}

static ops_array *make_w(void)
{
    return made(
        ops_array_from_host(test_context, HAL_TYPE_F32, 3, (int64_t[]){GROUPS, K, N}, w_host));
}

static ops_array *make_offsets(void)
{
    return made(
        ops_array_from_host(test_context, HAL_TYPE_I64, 1, (int64_t[]){GROUPS + 1}, offsets_host));
}

static ops_array *make_bias(void)
{
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, 1, (int64_t[]){N}, bias_host));
}

/* Small whole numbers: sums are exact. */
static void expect(ops_array *y, bool has_bias)
{
    float got[ROWS * N];
    ok(ops_array_read(made(y), sizeof got, got));
    for (int i = 0; i < ROWS * N; i++) {
        const int row = i / N, column = i % N, group = row < 7 ? 0 : row < 37 ? 2 : 3;
        double sum = has_bias ? (double)bias_host[column] : 0;
        for (int k = 0; k < K; k++) {
            sum += (double)x_host[row * K + k] * (double)w_host[(group * K + k) * N + column];
        }
        sum = has_bias && sum < 0 ? 0 : sum;
        if ((double)got[i] != sum) {
            fail_msg("element %d is %g instead of %g", i, (double)got[i], sum);
        }
    }
}

static ops_array *activated(ops_array *y)
{
    return ops_array_unary(OPS_RELU, ops_add(made(y), make_bias()));
}

static void one_kernel_with_bias_and_activation(void **state)
{
    fill();
    for (int i = 0; i < 3; i++) { /* recorded, and replayed */
        ok(ops_scope_begin(test_context));
        ops_array *y = activated(
            ops_array_matmul_grouped(make_x(), make_w(), make_offsets(), NULL, HAL_GEMM_STRICT));
        const uint64_t before = statistics_of(test_context).kernels;
        expect(y, true);
        assert_int_equal(statistics_of(test_context).kernels - before, 1);
        ok(ops_scope_end(test_context));
    }
}

/* Offsets that the device computes from the sizes of groups. */
static void offsets_are_computed(void **state)
{
    static const int32_t zero = 0;
    fill();
    ok(ops_scope_begin(test_context));
    ops_array *parts[2] = {
        made(ops_array_from_host(test_context, HAL_TYPE_I32, 1, (int64_t[]){1}, &zero)),
        made(ops_array_scan(
            OPS_SCAN_SUM, 0,
            made(ops_array_from_host(test_context, HAL_TYPE_I32, 1, (int64_t[]){GROUPS}, sizes))))};
    ops_array *offsets = made(ops_array_concatenate(0, parts, 2));
    expect(ops_array_matmul_grouped(make_x(), make_w(), offsets, NULL, HAL_GEMM_FAST), false);
    ok(ops_scope_end(test_context));
}

static void the_host_knows_groups(void **state)
{
    fill();
    for (int i = 0; i < 4; i++) {
        ok(ops_scope_begin(test_context));
        ops_array *offsets = i % 2 ? make_offsets() : NULL;
        ops_array *y =
            ops_array_matmul_grouped(make_x(), make_w(), offsets, offsets_host, HAL_GEMM_STRICT);
        expect(i < 2 ? y : activated(y), i >= 2);
        ok(ops_scope_end(test_context));
    }
}

/* Plans are told apart by the host's offsets. */
static void other_offsets_of_the_host(void **state)
{
    float got[2][ROWS * N];
    int64_t other[GROUPS + 1] = {0, 7, 37, 37, 50};
    fill();
    ok(ops_scope_begin(test_context));
    ops_array *x = make_x(), *w = make_w();
    for (int i = 0; i < 2; i++) {
        ops_array *y =
            made(ops_array_matmul_grouped(x, w, NULL, i ? other : offsets_host, HAL_GEMM_STRICT));
        ok(ops_array_read(y, sizeof got[i], got[i]));
    }
    for (int row = 0; row < ROWS; row++) {
        const bool is_same = memcmp(got[0] + row * N, got[1] + row * N, N * sizeof(float)) == 0;
        assert_int_equal(is_same, row < 7 || row >= 37);
    }
    ok(ops_scope_end(test_context));
}

/* More offsets than a kernel's key has room for: row i times column i of all. */
static void many_groups(void **state)
{
    enum { MANY = 1000 };
    static float x[MANY], w[MANY], got[MANY];
    static int64_t offsets[MANY + 1];
    for (int i = 0; i < MANY; i++) {
        x[i] = (float)(i % 17);
        w[i] = (float)(i % 13);
        offsets[i + 1] = i + 1;
    }
    ok(ops_scope_begin(test_context));
    ops_array *a =
        made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, (int64_t[]){MANY, 1}, x));
    ops_array *b =
        made(ops_array_from_host(test_context, HAL_TYPE_F32, 3, (int64_t[]){MANY, 1, 1}, w));
    ops_array *y = made(ops_array_matmul_grouped(a, b, NULL, offsets, HAL_GEMM_STRICT));
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < MANY; i++) {
        assert_true(got[i] == x[i] * w[i]);
    }
    ok(ops_scope_end(test_context));
}

/* B that is prepared for products of its class is an operand like any other. */
static void prepared_for_one_group(void **state)
{
    static const int64_t one[2] = {0, ROWS};
    const ops_gemm_prepare_options options = {
        .size = sizeof options, .precision = HAL_GEMM_NORMWISE, .levels = 1};
    float got[ROWS * N], expected[ROWS * N];
    fill();
    ok(ops_scope_begin(test_context));
    ops_array *w =
        made(ops_array_from_host(test_context, HAL_TYPE_F32, 3, (int64_t[]){1, K, N}, w_host));
    ops_array *prepared = made(ops_array_prepare(w, &options));
    ops_array *y = made(ops_array_matmul_grouped(make_x(), prepared, NULL, one, HAL_GEMM_NORMWISE));
    ok(ops_array_read(y, sizeof got, got));
    y = made(ops_array_matmul_grouped(make_x(), w, NULL, one, HAL_GEMM_STRICT));
    ok(ops_array_read(y, sizeof expected, expected));
    assert_memory_equal(got, expected, sizeof got);
    ok(ops_scope_end(test_context));
}

static void integers_have_the_type_of_their_sums(void **state)
{
    static int8_t x[ROWS * K], w[GROUPS * K * N];
    int32_t got[ROWS * N];
    memset(x, -100, sizeof x);
    memset(w, 100, sizeof w);
    ok(ops_scope_begin(test_context));
    ops_array *y = made(ops_array_matmul_grouped(
        made(ops_array_from_host(test_context, HAL_TYPE_I8, 2, (int64_t[]){ROWS, K}, x)),
        made(ops_array_from_host(test_context, HAL_TYPE_I8, 3, (int64_t[]){GROUPS, K, N}, w)),
        make_offsets(), NULL, HAL_GEMM_STRICT));
    assert_int_equal(y->view.type, HAL_TYPE_I32);
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < ROWS * N; i++) {
        assert_int_equal(got[i], -100 * 100 * K);
    }
    ok(ops_scope_end(test_context));
}

static void wrong_arguments_are_refused(void **state)
{
    static const int64_t wrong[GROUPS + 1] = {0, 7, 6, 37, 50};
    ok(ops_scope_begin(test_context));
    ops_array *x = make_x(), *w = make_w(), *at = make_offsets(), *bias = make_bias();
    assert_null(ops_array_matmul_grouped(NULL, w, at, NULL, 0));
    nothing(ops_array_matmul_grouped(x, w, NULL, NULL, 0), "null for both");
    nothing(ops_array_matmul_grouped(x, x, at, NULL, 0), "[groups, k, n]");
    nothing(ops_array_matmul_grouped(x, w, bias, NULL, 0), "offsets: expected i32 or i64");
    nothing(ops_array_matmul_grouped(x, at, at, NULL, 0), "expected one type");
    nothing(ops_array_matmul_grouped(x, w, at, NULL, 9), "precision");
    nothing(ops_array_matmul_grouped(x, w, at, wrong, 0), "host_offsets[2]");
    ops_array *few =
        made(ops_array_from_host(test_context, HAL_TYPE_I64, 1, (int64_t[]){GROUPS}, offsets_host));
    nothing(ops_array_matmul_grouped(x, w, few, NULL, 0), "one more than b has groups");
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kernel_with_bias_and_activation),
        cmocka_unit_test(offsets_are_computed),
        cmocka_unit_test(the_host_knows_groups),
        cmocka_unit_test(other_offsets_of_the_host),
        cmocka_unit_test(many_groups),
        cmocka_unit_test(prepared_for_one_group),
        cmocka_unit_test(integers_have_the_type_of_their_sums),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
