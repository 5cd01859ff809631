/* ops_array_reduce_each: sums and extremes of many arrays are few kernels, near to exact ones, and
 * have the same bits wherever the arrays are in memory. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <math.h>

enum { COUNT = 60, LONGEST = 70001 };

static int64_t length_of(uint32_t i)
{
    static const int64_t odd[] = {1, 10, 3, 64, 257, 1000, 1024, 4093, 16384, 16385};
    return i == 17 ? LONGEST : odd[i % 10] + (i / 10) % 3;
}

static ops_array *numbers(hal_type type, int64_t count, uint64_t seed)
{
    return made(ops_array_uniform(test_context, type, 1, &count, (ops_random_key){5, seed}, -2, 1));
}

static void arrays_open(hal_type type, ops_array **x)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = numbers(type, length_of(i), i);
    }
    ok(ops_array_evaluate(x, COUNT));
}

static double exact(ops_reduction reduction, ops_unary_function function, const float *x, int64_t n)
{
    double result = 0;
    for (int64_t i = 0; i < n; i++) {
        const double value = function == OPS_SQUARE ? (double)x[i] * x[i] : fabs((double)x[i]);
        const double least = i == 0 || value < result ? value : result;
        result = reduction == OPS_REDUCE_SUM   ? result + value
                 : reduction == OPS_REDUCE_MAX ? fmax(result, value)
                                               : least;
    }
    return result;
}

static void expect(ops_reduction reduction, ops_unary_function function, hal_type type,
                   ops_array *const *x)
{
    static float values[LONGEST];
    float got[COUNT];
    ops_array *y = made(ops_array_reduce_each(reduction, function, x, COUNT));
    ok(ops_array_read(y, sizeof got, got));
    for (uint32_t i = 0; i < COUNT; i++) {
        ops_array *wide = made(ops_array_cast(HAL_TYPE_F32, x[i]));
        ok(ops_array_read(wide, (uint64_t)length_of(i) * sizeof *values, values));
        const double want = exact(reduction, function, values, length_of(i));
        if (!(fabs(got[i] - want) <= 2e-6 * want)) {
            fail_msg("%s, array %u of %lld: %.9g, expected %.9g", hal_type_name(type), i,
                     (long long)length_of(i), (double)got[i], want);
        }
        ops_array_release(wide);
    }
    ops_array_release(y);
}

static void reductions_are_near(void **state)
{
    (void)state;
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16};
    for (uint32_t t = 0; t < 2; t++) {
        ops_array *x[COUNT];
        arrays_open(types[t], x);
        expect(OPS_REDUCE_SUM, OPS_SQUARE, types[t], x);
        expect(OPS_REDUCE_SUM, OPS_ABS, types[t], x);
        expect(OPS_REDUCE_MAX, OPS_ABS, types[t], x);
        expect(OPS_REDUCE_MIN, OPS_ABS, types[t], x);
        arrays_release(x, COUNT);
    }
    assert_int_equal(statistics_of(test_context).arrays, 0);
}

static void kernels_are_few(void **state)
{
    (void)state;
    ops_array *x[COUNT];
    arrays_open(HAL_TYPE_F32, x);
    const uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = made(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_SQUARE, x, COUNT));
    /* Two passes; longer arrays in buffers of their own may take a kernel for some of them. */
    assert_in_range(statistics_of(test_context).kernels - before, 2, 6);
    arrays_release(x, COUNT);
    ops_array_release(y);
}

/* Arrays in one buffer at odd places, broadcast, transposed, and deferred. */
static void places_do_not_change_bits(void **state)
{
    (void)state;
    ops_array *x[COUNT], *moved[COUNT];
    float got[COUNT], again[COUNT];
    arrays_open(HAL_TYPE_F32, x);
    ops_array *all = made(ops_array_concatenate(0, x, COUNT));
    int64_t at = 0;
    for (uint32_t i = 0; i < COUNT; at += length_of(i++)) {
        moved[i] = made(ops_array_slice(all, 0, at, length_of(i), 1));
    }
    ops_array_release(moved[3]);
    moved[3] = made(ops_mul_scalar(x[3], 1));
    ops_array *y = made(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_SQUARE, x, COUNT));
    ops_array *z = made(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_SQUARE, moved, COUNT));
    ok(ops_array_read(y, sizeof got, got));
    ok(ops_array_read(z, sizeof again, again));
    assert_memory_equal(got, again, sizeof got);
    release_all(all, y, z);
    arrays_release(moved, COUNT);
    arrays_release(x, COUNT);
    const int64_t shape[2] = {3, 5};
    ops_array *constant = made(ops_array_full(test_context, HAL_TYPE_F32, 2, shape, 2));
    ops_array *turned = made(ops_array_transpose(constant, 0, 1));
    ops_array *const two[2] = {constant, turned};
    y = made(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_SQUARE, two, 2));
    ok(ops_array_read(y, 2 * sizeof *got, got));
    assert_true(got[0] == 60 && got[1] == 60);
    release_all(constant, turned, y);
    assert_int_equal(statistics_of(test_context).arrays, 0);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    const int64_t none = 0;
    ops_array *x = numbers(HAL_TYPE_F32, 3, 1), *half = numbers(HAL_TYPE_F16, 3, 1);
    ops_array *empty = made(ops_array_full(test_context, HAL_TYPE_F32, 1, &none, 0));
    nothing(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_SQUARE, &x, 0), "at least one");
    nothing(ops_array_reduce_each(OPS_REDUCE_MEAN, OPS_SQUARE, &x, 1), "expected SUM");
    nothing(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_EXP, &x, 1), "SQUARE");
    ops_array *const types[2] = {x, half}, *const lengths[2] = {x, empty};
    nothing(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_ABS, types, 2), "arrays[1]");
    nothing(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_ABS, lengths, 2), "arrays[1]");
    release_all(x, half, empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_are_near),
        cmocka_unit_test(kernels_are_few),
        cmocka_unit_test(places_do_not_change_bits),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
