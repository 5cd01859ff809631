/* Complex arrays: how many kernels they take, shapes of results, no array left, bad arguments.
 * hal-conformance compares the values with the C library. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <ops/complex.h>

static ops_array *numbers(uint32_t rank, const int64_t *shape)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    ops_array *line = made(ops_array_iota(test_context, HAL_TYPE_F32, count, -1, 0.25));
    return made(ops_array_reshape(line, rank, shape));
}

/* The kernels that an array takes. */
static uint64_t kernels_of(ops_array *array)
{
    array = made(array);
    const uint64_t before = statistics_of(test_context).kernels;
    ok(ops_array_evaluate(&array, 1));
    return statistics_of(test_context).kernels - before;
}

static void kernels_are_counted(void **state)
{
    const uint64_t arrays = statistics_of(test_context).arrays;
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(3, (int64_t[]){3, 5, 2}), *y = numbers(2, (int64_t[]){5, 2});
    ok(ops_array_evaluate((ops_array *[]){x, y}, 2));
    for (int i = 0; i < OPS_COMPLEX_UNARY_COUNT; i++) {
        assert_int_equal(kernels_of(ops_complex_unary((ops_complex_unary_function)i, x)), 1);
        assert_non_null(ops_complex_unary_name((ops_complex_unary_function)i));
    }
    for (int i = 0; i < OPS_COMPLEX_BINARY_COUNT; i++) {
        assert_int_equal(kernels_of(ops_complex_binary((ops_complex_binary_function)i, x, y)), 1);
        assert_non_null(ops_complex_binary_name((ops_complex_binary_function)i));
    }
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
    assert_null(ops_complex_unary_name(OPS_COMPLEX_UNARY_COUNT));
    assert_null(ops_complex_binary_name(OPS_COMPLEX_BINARY_COUNT));
}

/* A result that is held and computed late is used by its parts, and then computed itself. */
static void results_are_used_before_they_are_computed(void **state)
{
    float product[2], square[2];
    const float one[2] = {1, 2}, other[2] = {3, -1};
    ok(ops_scope_begin(test_context));
    ops_array *x = ops_array_from_host(test_context, HAL_TYPE_F32, 1, (int64_t[]){2}, one);
    ops_array *y = ops_array_from_host(test_context, HAL_TYPE_F32, 1, (int64_t[]){2}, other);
    ops_array *z = made(ops_complex_binary(OPS_COMPLEX_MUL, x, y));
    ops_array *w = made(ops_complex_binary(OPS_COMPLEX_MUL, z, z));
    ok(ops_array_read(w, sizeof square, square));
    ok(ops_array_read(z, sizeof product, product));
    ok(ops_scope_end(test_context));
    assert_true(product[0] == 5 && product[1] == 5 && square[0] == 0 && square[1] == 50);
}

static void shapes_are_those_without_the_parts(void **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(3, (int64_t[]){3, 5, 2});
    ops_array *re = made(ops_complex_real(x)), *sum, *joined;
    assert_int_equal(ops_array_get_rank(re), 2);
    assert_int_equal(ops_array_get_length(re, 1), 5);
    sum = made(ops_complex_reduce(OPS_REDUCE_PRODUCT, -1, 0, x));
    assert_int_equal(ops_array_get_rank(sum), 2);
    assert_int_equal(ops_array_get_length(sum, 0), 3);
    joined = made(ops_complex_join(re, made(ops_array_slice(re, 0, 0, 1, 1))));
    assert_int_equal(ops_array_get_rank(joined), 3);
    assert_int_equal(ops_array_get_length(joined, 0), 3);
    ok(ops_scope_end(test_context));
}

static void bad_arguments_are_refused(void **state)
{
    const uint64_t arrays = statistics_of(test_context).arrays;
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(3, (int64_t[]){3, 5, 2}), *three = numbers(2, (int64_t[]){2, 3});
    ops_array *whole = made(ops_array_cast(HAL_TYPE_I32, x));
    ops_array *deep = numbers(
        OPS_MAX_RANK, (int64_t[OPS_MAX_RANK]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2});
    nothing(ops_complex_unary(OPS_COMPLEX_EXP, three), "a last axis of length 2");
    nothing(ops_complex_unary(OPS_COMPLEX_EXP, whole), "expected f32 or f64");
    nothing(ops_complex_unary(OPS_COMPLEX_UNARY_COUNT, x), "ops_complex_unary_function");
    nothing(ops_complex_unary(OPS_COMPLEX_EXP, NULL), "");
    nothing(ops_complex_binary(OPS_COMPLEX_BINARY_COUNT, x, x), "ops_complex_binary_function");
    nothing(ops_complex_binary(OPS_COMPLEX_ADD, x, three), "ops_complex_binary: y:");
    nothing(ops_complex_binary(OPS_COMPLEX_ADD, x, made(ops_array_cast(HAL_TYPE_F64, x))), "f64");
    nothing(ops_complex_real(three), "ops_complex_real: x:");
    nothing(ops_complex_imag(whole), "ops_complex_imag: x:");
    nothing(ops_complex_join(whole, NULL), "ops_complex_join: re and im:");
    nothing(ops_complex_join(deep, NULL), "expected a rank below 16");
    nothing(ops_complex_test(OPS_EXP, x), "OPS_IS_NAN");
    nothing(ops_complex_reduce(OPS_REDUCE_MAX, 0, 0, x), "OPS_REDUCE_SUM");
    nothing(ops_complex_reduce(OPS_REDUCE_SUM, 2, 0, x), "axis");
    nothing(ops_complex_scan(OPS_SCAN_MAX, 0, x), "OPS_SCAN_SUM");
    nothing(ops_complex_matmul(x, x, HAL_GEMM_STRICT), "[m, k, 2] and [k, n, 2]");
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_counted),
        cmocka_unit_test(results_are_used_before_they_are_computed),
        cmocka_unit_test(shapes_are_those_without_the_parts),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return RUN_ON_ALL(tests);
}
