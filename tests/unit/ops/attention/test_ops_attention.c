/* Attention: the call of arrays and that of tensors; what is refused; rows without columns. The
 * numbers are tested by conformance (ops/attention). */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <ops/attention.h>

enum { M = 40, N = 50, D = 8, E = 6, HEADS = 4 };

static ops_array *numbers(hal_type type, uint32_t rank, const int64_t *shape, uint64_t seed)
{
    return made(
        ops_array_uniform(test_context, type, rank, shape, (ops_random_key){7, seed}, -1, 1));
}

/* The softmax of the expression has other blocks; both are near the same numbers. */
static void arrays_are_near_the_expression(void **state)
{
    const int64_t q_shape[3] = {HEADS, M, D}, k_shape[3] = {1, N, D}, v_shape[3] = {1, N, E};
    const int64_t mask_shape[2] = {M, N};
    ops_array *q = numbers(HAL_TYPE_F32, 3, q_shape, 1), *k = numbers(HAL_TYPE_F32, 3, k_shape, 2);
    ops_array *v = numbers(HAL_TYPE_F32, 3, v_shape, 3);
    ops_array *mask = numbers(HAL_TYPE_F32, 2, mask_shape, 4);
    float got[HEADS * M * E], want[HEADS * M * E];
    ok(ops_scope_begin(test_context));
    ops_array *scores = ops_matmul(q, ops_array_transpose(k, 1, 2));
    scores = ops_add(ops_array_binary_scalar(OPS_MUL, scores, 1 / sqrt((double)D)), mask);
    ops_array *weights = ops_array_keep(ops_array_softmax(2, scores)); /* else it is the call */
    ok(ops_array_read(made(ops_matmul(weights, v)), sizeof want, want));
    const uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = made(ops_array_attention(q, k, v, mask, 0, HAL_GEMM_STRICT));
    ok(ops_array_read(y, sizeof got, got));
    assert_int_equal(statistics_of(test_context).kernels, before + 1);
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        assert_true(fabsf(got[i] - want[i]) < 1e-6f);
    }
    /* Replayed: the same bits. */
    ops_array *again = made(ops_array_attention(q, k, v, mask, 0, HAL_GEMM_STRICT));
    ok(ops_array_read(again, sizeof want, want));
    assert_memory_equal(got, want, sizeof got);
    ok(ops_scope_end(test_context));
    release_all(q, k, v, mask, weights);
}

/* How the scores of an expression are written. */
typedef enum expression_kind {
    SCALED,      /* softmax(q k^T / 3) v */
    MASKED,      /* softmax(mask + q k^T s) v */
    SELECTED,    /* softmax(where(mask, q k^T s, -inf)) v */
    SCALED_QUERY /* softmax((q s) k^T) v */
} expression_kind;

static ops_array *expression(expression_kind kind, ops_array *q, ops_array *k, ops_array *v,
                             ops_array *mask, double scale, ops_array **held)
{
    if (kind == SCALED_QUERY) {
        q = ops_array_binary_scalar(OPS_MUL, q, scale);
    }
    ops_array *scores = ops_matmul(q, ops_array_transpose(k, 1, 2));
    if (kind == SCALED) {
        scores = ops_array_binary_scalar(OPS_DIV, scores, 1 / scale);
    } else if (kind != SCALED_QUERY) {
        scores = ops_array_binary_scalar(OPS_MUL, scores, scale);
    }
    if (kind == MASKED) {
        scores = ops_add(mask, scores);
    } else if (kind == SELECTED) {
        scores =
            ops_array_where(mask, scores, ops_array_scalar(test_context, HAL_TYPE_F32, -INFINITY));
    }
    ops_array *weights = ops_array_softmax(2, scores);
    if (held) {
        *held = ops_array_keep(weights);
    }
    return made(ops_matmul(weights, v));
}

/* One kernel of the array layer for each, with the bits of the call; three where something else
 * reads the weights. */
static void expressions_are_the_call(void **state)
{
    const int64_t q_shape[3] = {HEADS, M, D}, k_shape[3] = {1, N, D}, v_shape[3] = {1, N, E};
    const int64_t mask_shape[2] = {M, N};
    ops_array *q = numbers(HAL_TYPE_F32, 3, q_shape, 1), *k = numbers(HAL_TYPE_F32, 3, k_shape, 2);
    ops_array *v = numbers(HAL_TYPE_F32, 3, v_shape, 3);
    ops_array *mask = numbers(HAL_TYPE_F32, 2, mask_shape, 4);
    ops_array *zero = made(ops_array_scalar(test_context, HAL_TYPE_F32, 0));
    ops_array *selection = made(ops_array_binary(OPS_LT, zero, mask));
    ops_array *all[5] = {q, k, v, mask, selection};
    float got[HEADS * M * E], want[HEADS * M * E];
    ok(ops_array_evaluate(all, 5));
    for (expression_kind kind = SCALED; kind <= SCALED_QUERY; kind++) {
        const double scale = 0.25;
        ops_array *given = kind == MASKED ? mask : kind == SELECTED ? selection : NULL;
        ok(ops_scope_begin(test_context));
        const uint64_t before = statistics_of(test_context).kernels;
        ok(ops_array_read(expression(kind, q, k, v, given, scale, NULL), sizeof got, got));
        const uint64_t after = statistics_of(test_context).kernels;
        assert_int_equal(after, before + (kind == SCALED_QUERY ? 2 : 1));
        assert_int_equal(statistics_of(test_context).dropped, 0);
        ops_array *scaled = kind == SCALED_QUERY ? ops_array_binary_scalar(OPS_MUL, q, scale) : q;
        ops_array *call = made(ops_array_scaled_attention(scaled, k, v, given, 0, HAL_GEMM_STRICT,
                                                          kind == SCALED_QUERY ? 1 : scale));
        ok(ops_array_read(call, sizeof want, want));
        assert_memory_equal(got, want, sizeof got);
        ok(ops_scope_end(test_context));
    }
    ops_array *held;
    ok(ops_scope_begin(test_context));
    const uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = expression(SCALED, q, k, v, NULL, 0.25, &held);
    ok(ops_array_evaluate(&y, 1));
    assert_int_equal(statistics_of(test_context).kernels, before + 3);
    ok(ops_scope_end(test_context));
    release_all(q, k, v, mask, zero, selection, held);
}

/* Those of the expression, with the weights that it stores. */
static void gradients_are_near_the_expression(void **state)
{
    const int64_t q_shape[3] = {HEADS, M, D}, k_shape[3] = {HEADS, N, D};
    const int64_t v_shape[3] = {HEADS, N, E}, y_shape[3] = {HEADS, M, E};
    const double scale = 0.25;
    float got[HEADS * N * D], want[HEADS * N * D];
    ok(ops_scope_begin(test_context));
    ops_array *q = numbers(HAL_TYPE_F32, 3, q_shape, 1), *k = numbers(HAL_TYPE_F32, 3, k_shape, 2);
    ops_array *v = numbers(HAL_TYPE_F32, 3, v_shape, 3), *dy = numbers(HAL_TYPE_F32, 3, y_shape, 4);
    ops_array *scores =
        ops_array_binary_scalar(OPS_MUL, ops_matmul(q, ops_array_transpose(k, 1, 2)), scale);
    ops_array *w = made(ops_array_keep(ops_array_softmax(2, scores))), *y = made(ops_matmul(w, v));
    ops_array *delta = ops_array_reduce(OPS_REDUCE_SUM, 2, 1, ops_mul(dy, y));
    ops_array *changes = ops_sub(ops_matmul(dy, ops_array_transpose(v, 1, 2)), delta);
    changes = ops_array_binary_scalar(OPS_MUL, ops_mul(w, changes), scale);
    ops_array *expected[3] = {ops_matmul(changes, k),
                              ops_matmul(ops_array_transpose(changes, 1, 2), q),
                              ops_matmul(ops_array_transpose(w, 1, 2), dy)};
    ops_array *gradients[3];
    ok(ops_array_attention_gradients(q, k, v, NULL, y, dy, 0, HAL_GEMM_STRICT, scale, gradients));
    for (int i = 0; i < 3; i++) {
        const uint64_t count = i == 0 ? HEADS * M * D : i == 1 ? HEADS * N * D : HEADS * N * E;
        ok(ops_array_read(gradients[i], count * sizeof *got, got));
        ok(ops_array_read(made(expected[i]), count * sizeof *want, want));
        for (uint64_t n = 0; n < count; n++) {
            assert_true(fabsf(got[n] - want[n]) < 2e-6f);
        }
    }
    assert_int_equal(ops_array_attention_gradients(q, k, v, NULL, y, q, 0, 0, scale, gradients),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_null(gradients[0]);
    assert_int_equal(ops_array_attention_gradients(q, k, v, NULL, y, NULL, 0, 0, scale, gradients),
                     HAL_ERROR_INVALID_ARGUMENT);
    ops_array_release(w);
    ok(ops_scope_end(test_context));
}

static void rows_without_columns(void **state)
{
    const int64_t q_shape[2] = {3, D}, k_shape[2] = {2, D}, none[2] = {0, D};
    ops_array *q = numbers(HAL_TYPE_F32, 2, q_shape, 1), *k = numbers(HAL_TYPE_F32, 2, k_shape, 2);
    ops_array *empty = made(ops_array_full(test_context, HAL_TYPE_F32, 2, none, 1));
    float got[3 * D];
    ops_array *causal = made(ops_array_attention(q, k, k, NULL, 1, HAL_GEMM_STRICT));
    ok(ops_array_read(causal, sizeof got, got));
    assert_true(isnan(got[0]) && !isnan(got[D]) && !isnan(got[2 * D]));
    ops_array *zeros = made(ops_array_attention(q, empty, empty, NULL, 0, HAL_GEMM_STRICT));
    ok(ops_array_read(zeros, sizeof got, got));
    for (int i = 0; i < 3 * D; i++) {
        assert_true(got[i] == 0);
    }
    ops_array *no_rows = made(ops_array_attention(empty, k, k, NULL, 0, HAL_GEMM_STRICT));
    ok(ops_array_evaluate(&no_rows, 1));
    release_all(q, k, empty, causal, zeros, no_rows);
}

/* All columns have the same weight then, and v has a gradient. */
static void gradients_of_empty_heads(void **state)
{
    const int64_t q_shape[2] = {3, 0}, k_shape[2] = {2, 0}, v_shape[2] = {2, 1},
                  y_shape[2] = {3, 1};
    ops_array *q = made(ops_array_full(test_context, HAL_TYPE_F32, 2, q_shape, 0));
    ops_array *k = made(ops_array_full(test_context, HAL_TYPE_F32, 2, k_shape, 0));
    ops_array *v = numbers(HAL_TYPE_F32, 2, v_shape, 1);
    ops_array *dy = made(ops_array_full(test_context, HAL_TYPE_F32, 2, y_shape, 1));
    ops_array *y = made(ops_array_attention(q, k, v, NULL, 0, HAL_GEMM_STRICT)), *gradients[3];
    float got[2];
    ok(ops_array_attention_gradients(q, k, v, NULL, y, dy, 0, HAL_GEMM_STRICT, 0, gradients));
    ok(ops_array_read(gradients[2], sizeof got, got));
    assert_true(got[0] == 1.5f && got[1] == 1.5f);
    release_all(q, k, v, dy, y, gradients[0], gradients[1], gradients[2]);
}

/* The scale may have either sign: with -q and -scale the scores are the same. */
static void gradients_of_negative_scales(void **state)
{
    const int64_t shape[2] = {M, D};
    ops_array *q = numbers(HAL_TYPE_F32, 2, shape, 1), *k = numbers(HAL_TYPE_F32, 2, shape, 2);
    ops_array *negative = made(ops_array_binary_scalar(OPS_MUL, q, -1));
    ops_array *y = made(ops_array_scaled_attention(q, k, k, NULL, 0, HAL_GEMM_STRICT, 0.25));
    ops_array *gradients[2][3];
    float of[2][M * D];
    for (int i = 0; i < 2; i++) {
        ok(ops_array_attention_gradients(i ? negative : q, k, k, NULL, y, y, 0, HAL_GEMM_STRICT,
                                         i ? -0.25 : 0.25, gradients[i]));
        ok(ops_array_read(gradients[i][1], sizeof of[i], of[i]));
    }
    for (int n = 0; n < M * D; n++) {
        assert_true(fabsf(of[0][n] - of[1][n]) < 2e-6f);
    }
    for (int i = 0; i < 2; i++) {
        release_all(gradients[i][0], gradients[i][1], gradients[i][2]);
    }
    release_all(q, k, negative, y);
}

static void wrong_arguments_are_refused(void **state)
{
    const int64_t shape[2] = {4, D}, other[2] = {4, D + 1}, five[5] = {1, 1, 1, 4, D};
    ops_array *q = numbers(HAL_TYPE_F32, 2, shape, 1), *half = numbers(HAL_TYPE_F16, 2, shape, 1);
    ops_array *wide = numbers(HAL_TYPE_F32, 2, other, 1), *deep = numbers(HAL_TYPE_F32, 5, five, 1);
    ops_array *whole = numbers(HAL_TYPE_I32, 2, shape, 1);
    nothing(ops_array_attention(q, wide, q, NULL, 0, 0), "k, v: expected floats of the type of q");
    nothing(ops_array_attention(q, q, half, NULL, 0, 0), "got q f32[4, 8], k f32[4, 8], v f16");
    nothing(ops_array_attention(deep, deep, deep, NULL, 0, 0), "two leading axes");
    nothing(ops_array_attention(whole, whole, whole, NULL, 0, 0), "expected floats");
    nothing(ops_array_attention(q, q, q, q, 0, 0), "mask");
    nothing(ops_array_attention(q, q, q, whole, 0, 0), "mask: expected bool, or floats");
    nothing(ops_array_attention(q, q, q, NULL, 0, 77), "precision");
    nothing(ops_array_attention(q, NULL, q, NULL, 0, 0), "");
    ops_tensor x, y;
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    ok(ops_array_get_tensor(q, &x));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, other, &y));
    assert_int_equal(ops_attention(test_context, NULL, &x, &x, &x, &y), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_attention(test_context, NULL, &x, &x, &x, &x), HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(hal_status_message(), "overlap"));
    options.size = 4;
    assert_int_equal(ops_attention(test_context, &options, &x, &x, &x, &x),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_attention(test_context, NULL, &x, &x, NULL, &y),
                     HAL_ERROR_INVALID_ARGUMENT);
    ops_tensor_release(&y);
    release_all(q, half, wide, deep, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_near_the_expression),
        cmocka_unit_test(expressions_are_the_call),
        cmocka_unit_test(gradients_are_near_the_expression),
        cmocka_unit_test(gradients_of_empty_heads),
        cmocka_unit_test(gradients_of_negative_scales),
        cmocka_unit_test(rows_without_columns),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
