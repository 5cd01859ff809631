/* Families made of array calls: how many kernels they take, that no array is left, casts that wrap,
 * bad arguments. hal-conformance compares the values with double precision. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <math.h>
#include <ops/normalisation.h>
#include <ops/pooling.h>
#include <ops/resize.h>
#include <ops/shape.h>
#include <ops/statistics.h>
#include <stdlib.h>

static ops_array *numbers(hal_type type, uint32_t rank, const int64_t *shape)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    ops_array *line = made(ops_array_iota(test_context, type, count, -4, 1));
    ops_array *array = made(ops_array_reshape(line, rank, shape));
    ops_array_release(line);
    ok(ops_array_evaluate(&array, 1));
    return array;
}

/* Evaluates an array, and compares the kernels that it takes. */
static void takes(ops_array *array, uint64_t kernels)
{
    const uint64_t before = statistics_of(test_context).kernels;
    made(array);
    ok(ops_array_evaluate(&array, 1));
    const uint64_t taken = statistics_of(test_context).kernels - before;
    if (taken != kernels) {
        fail_msg("%d kernels of rank %u, wanted %d", (int)taken, ops_array_get_rank(array),
                 (int)kernels);
    }
}

static void normalisations_are_few_kernels(void **state)
{
    const ops_normalised none = {NULL, NULL};
    const uint64_t arrays = statistics_of(test_context).arrays;
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(HAL_TYPE_F32, 3, (int64_t[]){4, 6, 8}), *mean, *scale;
    ops_array *w = numbers(HAL_TYPE_F32, 1, (int64_t[]){8});
    ops_array *v = numbers(HAL_TYPE_F32, 1, (int64_t[]){6});
    takes(ops_relu(ops_array_layer_norm(x, 1, w, w, 1e-5, none)), 1);
    takes(ops_array_rms_norm(x, 1, w, 1e-5, none), 1);
    takes(ops_array_layer_norm(x, 2, NULL, NULL, 1e-5, none), 1);
    takes(ops_relu(ops_array_batch_norm_given(x, v, v, v, v, 9)), 2); /* one of channels */
    ops_array *y = ops_array_layer_norm(x, 1, w, w, 1e-5, (ops_normalised){&mean, &scale});
    assert_int_equal(ops_array_get_element_count(mean), 24);
    assert_int_equal(ops_array_get_element_count(scale), 24);
    ok(ops_array_evaluate((ops_array *[]){y, mean, scale}, 3));
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static void pooling_is_one_kernel(void **state)
{
    const ops_pool_options o = {.size = sizeof o, .window = {3, 3}, .stride = {2, 2}};
    const ops_pool_options padded = {
        .size = sizeof o, .window = {2, 2}, .before = {1, 1}, .after = {1, 1}};
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(HAL_TYPE_F32, 4, (int64_t[]){1, 2, 9, 9});
    takes(ops_array_pool(OPS_POOL_MAX, &o, x, NULL), 1);
    takes(ops_relu(ops_array_pool(OPS_POOL_AVERAGE, &o, x, NULL)), 1);
    const uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = made(ops_array_pool(OPS_POOL_MAX, &padded, x, NULL));
    ok(ops_array_evaluate(&y, 1));
    assert_int_equal(statistics_of(test_context).kernels - before,
                     test_context->tuning->convolution.pools_at_once ? 1 : 3);
    takes(ops_array_adaptive_pool(OPS_POOL_AVERAGE, (int64_t[]){3, 3}, 0, x), 2);
    ok(ops_scope_end(test_context));
}

/* The bits of a float array, as F64. */
static double *read_numbers(ops_array *x)
{
    const int64_t count = ops_array_get_element_count(x);
    double *numbers = calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    ok(ops_array_read(made(ops_array_cast(HAL_TYPE_F64, x)), (uint64_t)count * sizeof *numbers,
                      numbers));
    return numbers;
}

static void same_numbers(ops_array *x, ops_array *y)
{
    assert_int_equal(ops_array_get_element_count(x), ops_array_get_element_count(y));
    double *a = read_numbers(x), *b = read_numbers(y);
    assert_memory_equal(a, b, (size_t)ops_array_get_element_count(x) * sizeof *a);
    free(a);
    free(b);
}

/* On devices that pool at once: maxima and their places are one kernel, gradients one, and with
 * channels last results have their channels last in memory. */
static void gradients_of_pooling_are_one_kernel(void **state)
{
    const ops_pool_options o = {.size = sizeof o,
                                .channels_last = 1,
                                .window = {3, 3},
                                .stride = {2, 2},
                                .before = {1, 1},
                                .after = {1, 1}};
    const int64_t lengths[2] = {9, 9};
    if (!test_context->tuning->convolution.pools_at_once) {
        skip();
    }
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(HAL_TYPE_F32, 4, (int64_t[]){2, 9, 9, 8}), *places;
    ops_array *dy = numbers(HAL_TYPE_F32, 4, (int64_t[]){2, 5, 5, 8});
    const uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = made(ops_array_pool(OPS_POOL_MAX, &o, x, &places));
    ok(ops_array_evaluate((ops_array *[]){y, places}, 2));
    assert_int_equal(statistics_of(test_context).kernels - before, 1);
    ops_array *again, *alone;
    made(ops_array_pool(OPS_POOL_MAX, &o, x, &alone));
    made(again = ops_array_pool(OPS_POOL_MAX, &o, x, NULL));
    takes(alone, 1);
    same_numbers(alone, places);
    same_numbers(again, y);
    ops_tensor view;
    ok(ops_array_describe(y, &view));
    assert_int_equal(view.stride[3], 1);
    assert_int_equal(view.stride[2], 8);
    takes(ops_array_pool_gradient(OPS_POOL_MAX, &o, dy, places, lengths), 1);
    takes(ops_array_pool_gradient(OPS_POOL_AVERAGE, &o, dy, NULL, lengths), 1);
    ok(ops_scope_end(test_context));
}

/* x [2, 9, 9, C] with channels second. */
static ops_array *second_of(ops_array *x)
{
    return ops_array_copy(ops_array_permute(x, (int32_t[]){0, 3, 1, 2}));
}

/* Vectors of channels, also where their number allows short ones alone, give the bits of single
 * elements. */
static void pooling_has_one_result_in_both_orders(void **state)
{
    static const int64_t lengths[2] = {9, 9}, channels[] = {8, 6, 5};
    for (uint32_t i = 0; i < 12; i++) {
        const int64_t c = channels[i % 3], shape[4] = {2, 9, 9, c};
        const hal_type type = i / 3 % 2 ? HAL_TYPE_BF16 : HAL_TYPE_F32;
        const ops_pool_kind kind = (ops_pool_kind)(i / 6);
        ops_pool_options o = {.size = sizeof o, .window = {3, 3}, .stride = {2, 1}};
        o.before[0] = o.before[1] = o.after[0] = 1;
        ok(ops_scope_begin(test_context));
        ops_array *line = made(ops_array_iota(test_context, HAL_TYPE_F32, 162 * c, 0, 1));
        ops_array *wave = ops_array_cast(type, ops_array_unary(OPS_SIN, line));
        ops_array *x = made(ops_array_reshape(wave, 4, shape)), *places[2] = {NULL, NULL};
        ops_array *x2 = made(second_of(x));
        ops_array *z = made(ops_array_pool(kind, &o, x2, kind == OPS_POOL_MAX ? places : NULL));
        ops_array *dx = made(ops_array_pool_gradient(kind, &o, z, places[0], lengths));
        o.channels_last = 1;
        ops_array *y = made(ops_array_pool(kind, &o, x, kind == OPS_POOL_MAX ? places + 1 : NULL));
        same_numbers(second_of(y), z);
        same_numbers(second_of(ops_array_pool_gradient(kind, &o, y, places[1], lengths)), dx);
        ok(ops_scope_end(test_context));
    }
}

static ops_array *resized(ops_resize_kind kind, bool is_gradient, const int64_t *lengths,
                          int channels_last, ops_array *x)
{
    return made((is_gradient ? ops_array_resize_gradient : ops_array_resize)(
        kind, OPS_RESIZE_HALF, 2, lengths, channels_last, x));
}

/* Vectors of channels, several planes of a work-item, and single elements have the same bits. On
 * devices that resize all axes at once each is one kernel. */
static void resizing_has_one_result_in_both_orders(void **state)
{
    static const int64_t shape[4] = {2, 50, 41, 8}, lengths[2] = {77, 30};
    const bool is_one = test_context->tuning->convolution.pools_at_once;
    for (uint32_t i = 0; i < 8; i++) {
        const ops_resize_kind kind = (ops_resize_kind)(i % 2);
        const hal_type type = i / 2 % 2 ? HAL_TYPE_BF16 : HAL_TYPE_F32;
        const bool is_gradient = i / 4;
        ok(ops_scope_begin(test_context));
        ops_array *line = made(ops_array_iota(test_context, HAL_TYPE_F32, 2 * 50 * 41 * 8, 0, 1));
        ops_array *wave = ops_array_cast(type, ops_array_unary(OPS_SIN, line));
        ops_array *x = made(ops_array_reshape(wave, 4, shape)), *x2 = made(second_of(x));
        ok(ops_array_evaluate((ops_array *[]){x, x2}, 2));
        const uint64_t before = statistics_of(test_context).kernels;
        ops_array *y = resized(kind, is_gradient, lengths, 1, x);
        ops_array *y2 = resized(kind, is_gradient, lengths, 0, x2);
        ok(ops_array_evaluate((ops_array *[]){y, y2}, 2));
        assert_true(!is_one || statistics_of(test_context).kernels - before == 2);
        same_numbers(second_of(y), y2);
        ops_array *one = made(ops_array_slice(x2, 1, 5, 1, 1));
        same_numbers(resized(kind, is_gradient, lengths, 0, one), ops_array_slice(y2, 1, 5, 1, 1));
        ok(ops_scope_end(test_context));
    }
}

/* Coordinates that are whole numbers are not rounded below them. */
static void coordinates_of_resizing_are_exact(void **state)
{
    enum { MOST = 120 };
    ok(ops_scope_begin(test_context));
    for (int64_t n = 1; n <= MOST; n += 7) {
        for (int64_t m = 1; m <= MOST; m += 3) {
            float found[MOST];
            ops_array *x = made(ops_array_iota(test_context, HAL_TYPE_F32, n, 0, 1));
            ops_array *y =
                made(ops_array_resize(OPS_RESIZE_NEAREST, OPS_RESIZE_CORNER, 1, &m, 0, x));
            ok(ops_array_read(y, (uint64_t)m * sizeof *found, found));
            for (int64_t i = 0; i < m; i++) {
                assert_int_equal(found[i], i * n / m);
            }
        }
    }
    ok(ops_scope_end(test_context));
}

/* Both owners: the caller without a scope, who releases each result, and an operand that is its own
 * result. */
static void results_belong_to_the_caller(void **state)
{
    const int64_t none[2] = {0, 0};
    const uint64_t arrays = statistics_of(test_context).arrays;
    ops_array *x = numbers(HAL_TYPE_F32, 1, (int64_t[]){6}), *at, *often;
    ops_array *same = made(ops_array_pad(OPS_PAD_EDGE, none, none, 0, x));
    ops_array *again = made(ops_array_unique(x, &at, &often));
    assert_ptr_not_equal(same, x);
    assert_int_equal(ops_array_get_length(again, 0), 6);
    release_all(same, again, at, often);
    float got[6];
    ok(ops_array_read(x, sizeof got, got));
    assert_true(got[0] == -4 && got[5] == 1);
    ops_array_release(x);
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static void casts_wrap(void **state)
{
    static const float given[6] = {300, -1, 3e9F, -129.9F, 1e30F, NAN};
    static const int8_t small[6] = {44, -1, 0, 127, -1, 0};
    static const uint64_t large[3] = {300, UINT64_MAX, 3000000000u};
    int8_t got[6];
    uint64_t wide[6];
    ok(ops_scope_begin(test_context));
    ops_array *x = ops_array_from_host(test_context, HAL_TYPE_F32, 1, (int64_t[]){6}, given);
    ok(ops_array_read(made(ops_array_cast_wrapping(HAL_TYPE_I8, x)), sizeof got, got));
    assert_memory_equal(got, small, sizeof small);
    ok(ops_array_read(made(ops_array_cast_wrapping(HAL_TYPE_U64, x)), sizeof wide, wide));
    assert_memory_equal(wide, large, sizeof large);
    assert_true(wide[4] == UINT64_MAX && wide[5] == 0);
    x = made(ops_array_iota(test_context, HAL_TYPE_I32, 6, 254, 1));
    ok(ops_array_read(made(ops_array_cast_wrapping(HAL_TYPE_I8, x)), sizeof got, got));
    assert_memory_equal(got, ((int8_t[]){-2, -1, 0, 1, 2, 3}), sizeof got);
    ok(ops_scope_end(test_context));
}

static void integers_are_not_doubles(void **state)
{
    const int64_t number = (INT64_C(1) << 53) + 1, shape[1] = {3};
    int64_t got[3];
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_full_of(test_context, HAL_TYPE_I64, 1, shape, &number));
    ok(ops_array_read(ops_add_scalar(x, 1), sizeof got, got));
    assert_true(got[0] == number + 1 && got[2] == number + 1);
    nothing(ops_array_full_of(test_context, HAL_TYPE_I64, 1, shape, NULL), "elements");
    ok(ops_scope_end(test_context));
}

/* As in NumPy: -0 gives 0, NaN stays. */
static void signs_are_those_of_numpy(void **state)
{
    const float given[4] = {-0.0F, NAN, -3, 5};
    float got[4];
    ok(ops_scope_begin(test_context));
    ops_array *x = ops_array_from_host(test_context, HAL_TYPE_F32, 1, (int64_t[]){4}, given);
    ok(ops_array_read(made(ops_array_unary(OPS_SIGN, x)), sizeof got, got));
    ok(ops_scope_end(test_context));
    assert_true(got[0] == 0 && !signbit(got[0]) && isnan(got[1]) && got[2] == -1 && got[3] == 1);
}

static void wrong_calls_are_refused(void **state)
{
    ops_pool_options o = {.size = sizeof o, .window = {3, 3}};
    const ops_normalised none = {NULL, NULL};
    ops_array *places;
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(HAL_TYPE_F32, 4, (int64_t[]){1, 4, 5, 5});
    ops_array *i = numbers(HAL_TYPE_I32, 1, (int64_t[]){4});
    ops_array *v = numbers(HAL_TYPE_F32, 1, (int64_t[]){3});
    nothing(ops_array_pool(OPS_POOL_AVERAGE, &o, x, &places), "places: expected null");
    nothing(ops_array_pool(OPS_POOL_MAX, &o, i, NULL), "lengths");
    nothing(ops_array_pool(OPS_POOL_MAX, NULL, x, NULL), "options");
    o.before[0] = 3;
    nothing(ops_array_pool(OPS_POOL_MAX, &o, x, NULL), "options.before[0]");
    nothing(ops_array_adaptive_pool(OPS_POOL_MAX, (int64_t[]){0, 1}, 0, x), "places");
    nothing(ops_array_adaptive_maxima((int64_t[]){2, 2}, 0, x, NULL), "found: expected a pointer");
    nothing(ops_array_adaptive_pool_gradient(OPS_POOL_MAX, (int64_t[]){9, 9}, 0, x, NULL),
            "places: expected those of maxima");
    nothing(ops_array_adaptive_pool_gradient(OPS_POOL_MAX, (int64_t[]){9, 9}, 0, x, x),
            "places: expected those of the pooling");
    nothing(ops_array_layer_norm(x, 5, NULL, NULL, 0, none), "x: expected floats");
    nothing(ops_array_layer_norm(x, 1, v, NULL, 0, none), "weight: expected 5 elements");
    nothing(ops_array_group_norm(x, 3, NULL, NULL, 0, none), "x: expected floats");
    nothing(ops_array_batch_norm(i, NULL, NULL, 0, none), "x: expected floats");
    nothing(ops_array_pad(OPS_PAD_WRAP, NULL, NULL, 0, x), "two lists of 4 numbers");
    nothing(ops_array_flip((int32_t[]){4}, 1, x), "got 4");
    nothing(ops_array_tile((int64_t[]){1, 1, -1, 1}, x), "repeats[2]");
    nothing(ops_array_lower_triangle(0, i), "at least two axes");
    nothing(ops_array_variance(NULL, 0, 0, 1, i), "expected floats");
    nothing(ops_array_search_sorted(x, v, 0), "sorted: expected rank 1");
    nothing(ops_array_bin_count(4, v, NULL), "expected i32 or i64");
    nothing(ops_array_masked_select(x, v), "mask: expected bool");
    nothing(ops_array_scan_places(OPS_SCAN_SUM, 0, i), "OPS_SCAN_MAX or OPS_SCAN_MIN");
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(normalisations_are_few_kernels),
                                       cmocka_unit_test(pooling_is_one_kernel),
                                       cmocka_unit_test(gradients_of_pooling_are_one_kernel),
                                       cmocka_unit_test(pooling_has_one_result_in_both_orders),
                                       cmocka_unit_test(resizing_has_one_result_in_both_orders),
                                       cmocka_unit_test(coordinates_of_resizing_are_exact),
                                       cmocka_unit_test(results_belong_to_the_caller),
                                       cmocka_unit_test(casts_wrap),
                                       cmocka_unit_test(integers_are_not_doubles),
                                       cmocka_unit_test(signs_are_those_of_numpy),
                                       cmocka_unit_test(wrong_calls_are_refused)};
    return RUN_ON_ALL(tests);
}
