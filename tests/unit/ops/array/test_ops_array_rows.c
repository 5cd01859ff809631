/* Rows of arrays: several reductions along one axis, and what is computed from them, are one
 * kernel; what does not fit is computed as before. Values are compared in hal-conformance. */
#include "ops_arrays.h"
#include "ops_fixture.h"

static ops_array *random_array(int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    return made(
        ops_array_uniform(test_context, HAL_TYPE_F32, 2, shape, (ops_random_key){5, 6}, -1, 1));
}

static ops_array *normalised(ops_array *x, int32_t axis)
{
    ops_array *shifted = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x));
    ops_array *variance = ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, ops_square(shifted));
    return ops_mul(shifted, ops_array_unary(OPS_RSQRT, ops_add_scalar(variance, 1e-5)));
}

static ops_array *softmax(ops_array *x, int32_t axis)
{
    ops_array *power = ops_exp(ops_sub(x, ops_array_reduce(OPS_REDUCE_MAX, axis, 1, x)));
    return ops_div(power, ops_array_reduce(OPS_REDUCE_SUM, axis, 1, power));
}

static ops_array *variance(ops_array *x, int32_t axis)
{
    ops_array *shifted = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x));
    return ops_array_reduce(OPS_REDUCE_MEAN, axis, 0, ops_square(shifted));
}

typedef ops_array *(*row_program)(ops_array *x, int32_t axis);

/* Kernels that a program takes. */
static uint64_t kernels_of(row_program program, ops_array *x, int32_t axis)
{
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_array_keep(made(program(x, axis)));
    ok(ops_scope_end(test_context));
    const uint64_t before = statistics_of(test_context).kernels;
    ok(ops_array_evaluate(&y, 1));
    ops_array_release(y);
    return statistics_of(test_context).kernels - before;
}

static void programs_of_rows_are_one_kernel(void **state)
{
    static const row_program programs[] = {normalised, softmax, variance};
    static const int64_t shapes[][2] = {{7, 5}, {3, 1000}, {1000, 3}, {40, 200}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        ops_array *x = random_array(shapes[s][0], shapes[s][1]);
        for (int32_t axis = 0; axis < 2; axis++) {
            for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
                assert_int_equal(kernels_of(programs[p], x, axis), 1);
            }
        }
        ops_array_release(x);
    }
}

/* x minus its mean along one axis, and minus the mean of that along the other one. */
static ops_array *centred_twice(ops_array *x, int32_t axis)
{
    ops_array *y = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x));
    return ops_sub(y, ops_array_reduce(OPS_REDUCE_MEAN, 1 - axis, 1, y));
}

static void other_axes_are_other_kernels(void **state)
{
    ops_array *x = random_array(30, 40);
    assert_true(kernels_of(centred_twice, x, 0) > 1);
    ops_array_release(x);
}

/* Held values are further outputs, of the row and of its elements. */
static void held_values_are_stored(void **state)
{
    float given[12], got[12], means[3];
    const int64_t shape[2] = {3, 4};
    for (int i = 0; i < 12; i++) {
        given[i] = (float)(i * i % 7);
    }
    ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, shape, given));
    ok(ops_scope_begin(test_context));
    ops_array *mean = ops_array_keep(made(ops_array_reduce(OPS_REDUCE_MEAN, 1, 1, x)));
    ops_array *shifted = ops_array_keep(made(ops_sub(x, mean)));
    ops_array *y = ops_array_keep(made(ops_mul(shifted, ops_add_scalar(mean, 1))));
    ok(ops_scope_end(test_context));
    const uint64_t before = statistics_of(test_context).kernels;
    ok(ops_array_evaluate(&y, 1));
    ok(ops_array_read(mean, sizeof means, means));
    ok(ops_array_read(shifted, sizeof got, got));
    assert_int_equal(statistics_of(test_context).kernels, before + 1);
    for (int i = 0; i < 12; i++) {
        const float *row = given + i / 4 * 4;
        assert_true(means[i / 4] == (row[0] + row[1] + row[2] + row[3]) / 4);
        assert_true(got[i] == given[i] - means[i / 4]);
    }
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < 12; i++) {
        assert_true(got[i] == (given[i] - means[i / 4]) * (means[i / 4] + 1));
    }
    release_all(x, mean, shifted, y);
}

/* Computes y now, and returns it. */
static ops_array *alone(ops_array *y)
{
    ok(ops_array_evaluate(&y, 1));
    return y;
}

/* normalised(), with one operation at a time. */
static ops_array *normalised_apart(ops_array *x, int32_t axis)
{
    ops_array *mean = alone(ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x));
    ops_array *shifted = alone(ops_sub(x, mean)), *square = alone(ops_square(shifted));
    ops_array *variance = alone(ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, square));
    ops_array *sum = alone(ops_add_scalar(variance, 1e-5));
    return ops_mul(shifted, alone(ops_array_unary(OPS_RSQRT, sum)));
}

static ops_array *softmax_apart(ops_array *x, int32_t axis)
{
    ops_array *shifted = alone(ops_sub(x, alone(ops_array_reduce(OPS_REDUCE_MAX, axis, 1, x))));
    ops_array *power = alone(ops_exp(shifted));
    return ops_div(power, alone(ops_array_reduce(OPS_REDUCE_SUM, axis, 1, power)));
}

static ops_array *variance_apart(ops_array *x, int32_t axis)
{
    ops_array *shifted = alone(ops_sub(x, alone(ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x))));
    return ops_array_reduce(OPS_REDUCE_MEAN, axis, 0, alone(ops_square(shifted)));
}

/* Where the greatest is, relative to the mean: places, and a row's value as the output. */
static ops_array *place(ops_array *x, int32_t axis)
{
    ops_array *shifted = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x));
    return ops_array_reduce(OPS_REDUCE_ARGMAX, axis, 0, shifted);
}

static ops_array *place_apart(ops_array *x, int32_t axis)
{
    ops_array *mean = alone(ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x));
    return ops_array_reduce(OPS_REDUCE_ARGMAX, axis, 0, alone(ops_sub(x, mean)));
}

/* Few long rows are cut into slices: values do not change, and elements are stored only once. */
static void sliced_rows_have_the_same_bits(void **state)
{
    static const row_program programs[][2] = {{normalised, normalised_apart},
                                              {softmax, softmax_apart},
                                              {variance, variance_apart},
                                              {place, place_apart}};
    static const int64_t shapes[][2] = {{1, 131072}, {2, 65537}, {70001, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int32_t axis = shapes[i][0] < shapes[i][1];
        ops_array *x = random_array(shapes[i][0], shapes[i][1]);
        for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
            assert_int_equal(kernels_of(programs[p][0], x, axis), 1);
            ok(ops_scope_begin(test_context));
            ops_array *y = made(programs[p][0](x, axis)), *expected = made(programs[p][1](x, axis));
            ops_tensor view;
            ok(ops_array_get_tensor(y, &view));
            const size_t bytes = (size_t)ops_tensor_get_element_count(&view) * sizeof(float);
            float *given = malloc(bytes), *wanted = malloc(bytes);
            ok(ops_array_read(y, bytes, given));
            ok(ops_array_read(expected, bytes, wanted));
            assert_memory_equal(given, wanted, bytes);
            free(given);
            free(wanted);
            ok(ops_scope_end(test_context));
        }
        ops_array_release(x);
    }
}

enum { JOINED = 6 };

/* Reductions of x that read nothing else; of variance() the mean is one more. */
static void joined(ops_array *x, int32_t axis, bool is_apart, ops_array *results[JOINED])
{
    static const ops_reduction kinds[] = {OPS_REDUCE_MAX, OPS_REDUCE_MIN, OPS_REDUCE_SUM,
                                          OPS_REDUCE_ARGMAX, OPS_REDUCE_MEAN};
    for (uint32_t i = 0; i < JOINED; i++) {
        results[i] = made(i + 1 < JOINED ? ops_array_reduce(kinds[i], axis, i % 2, x)
                          : is_apart     ? variance_apart(x, axis)
                                         : variance(x, axis));
        ops_array_keep(results[i]);
        if (is_apart) {
            alone(results[i]);
        }
    }
}

static void read_joined(ops_array *const *results, uint8_t *bytes, size_t each)
{
    for (uint32_t i = 0; i < JOINED; i++) {
        const uint64_t count = (uint64_t)ops_array_get_element_count(results[i]);
        ok(ops_array_read(results[i], count * 4, bytes + i * each));
    }
}

/* Reductions of one array are one kernel, however they are read, with the bits that each has by
 * itself. */
static void reductions_of_an_array_are_one_kernel(void **state)
{
    static const int64_t shapes[][2] = {{7, 5}, {3, 1000}, {1000, 3}, {40, 200}, {1, 131072}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int32_t axis = 0; axis < 2; axis++) {
            ops_array *x = random_array(shapes[s][0], shapes[s][1]), *first[JOINED], *apart[JOINED];
            const size_t each = (size_t)shapes[s][1 - axis] * 4;
            uint8_t *got = malloc(2 * each * JOINED), *expected = got + each * JOINED;
            ok(ops_array_evaluate(&x, 1));
            ok(ops_scope_begin(test_context));
            joined(x, axis, false, first);
            ok(ops_scope_end(test_context));
            const uint64_t before = statistics_of(test_context).kernels;
            read_joined(first, got, each);
            const uint64_t kernels = statistics_of(test_context).kernels - before;
            ok(ops_scope_begin(test_context));
            joined(x, axis, true, apart);
            ok(ops_scope_end(test_context));
            read_joined(apart, expected, each);
            assert_memory_equal(got, expected, each * JOINED);
            assert_true(kernels == 1 || shapes[s][axis] == 1);
            arrays_release(first, JOINED);
            arrays_release(apart, JOINED);
            ops_array_release(x);
            free(got);
        }
    }
}

/* Elementwise work before several reductions is part of their kernel, what follows one as well. */
static void work_around_joined_reductions_is_fused(void **state)
{
    ops_array *x = random_array(30, 50);
    float norms[30], greatest[30], sums[30];
    ok(ops_array_evaluate(&x, 1));
    ok(ops_scope_begin(test_context));
    ops_array *square = ops_square(x);
    ops_array *norm = made(ops_sqrt(ops_array_reduce(OPS_REDUCE_SUM, 1, 1, square)));
    ops_array *most = made(ops_array_reduce(OPS_REDUCE_MAX, 1, 0, square));
    ops_array *sum = made(ops_array_reduce(OPS_REDUCE_SUM, 1, 0, x));
    const uint64_t before = statistics_of(test_context).kernels;
    ok(ops_array_read(norm, sizeof norms, norms));
    ok(ops_array_read(most, sizeof greatest, greatest));
    ok(ops_array_read(sum, sizeof sums, sums));
    assert_int_equal(statistics_of(test_context).kernels, before + 1);
    for (int i = 0; i < 30; i++) {
        assert_true(greatest[i] <= norms[i] * norms[i] * 1.001F && sums[i] <= norms[i] * 8);
    }
    ok(ops_scope_end(test_context));
    release_all(x);
}

/* There is nothing to compute, but a plan and its layout are made. */
static void no_rows_are_computed(void **state)
{
    static const row_program programs[] = {normalised, softmax, variance, place};
    ops_array *x = random_array(0, 100000);
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        kernels_of(programs[p], x, 1);
    }
    release_all(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_rows_are_one_kernel),
        cmocka_unit_test(other_axes_are_other_kernels),
        cmocka_unit_test(held_values_are_stored),
        cmocka_unit_test(sliced_rows_have_the_same_bits),
        cmocka_unit_test(reductions_of_an_array_are_one_kernel),
        cmocka_unit_test(work_around_joined_reductions_is_fused),
        cmocka_unit_test(no_rows_are_computed),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
