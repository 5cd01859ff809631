/* Arrays: take_along_axis, scatter, scan and sort between elementwise work, fused and not. */
#include "ops_arrays.h"
#include "ops_fixture.h"

enum { ROWS = 3, COLUMNS = 5, COUNT = ROWS * COLUMNS };

static const int64_t shape[2] = {ROWS, COLUMNS};
static const float values[COUNT] = {3, 1, 2, 1, 0, -1, 7, 7, 5, -2, 0, 0, 9, 4, 4};

static ops_array *matrix(void)
{
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, shape, values));
}

static void expect(ops_array *array, const float *want, uint32_t count)
{
    float got[COUNT];
    ok(ops_array_read(made(array), count * sizeof *got, got));
    for (uint32_t i = 0; i < count; i++) {
        if (got[i] != want[i]) {
            fail_msg("element %u is %g, wanted %g", i, (double)got[i], (double)want[i]);
        }
    }
}

/* Runs the program of a test with fusion and without; it leaves no array. */
static void both_ways(void **state)
{
    void (*const *program)(void) = *state;
    const uint64_t before = statistics_of(test_context).arrays;
    for (int fusion = 1; fusion >= 0; fusion--) {
        ops_context_set_fusion(test_context, fusion);
        ok(ops_scope_begin(test_context));
        (*program)();
        ok(ops_scope_end(test_context));
    }
    ops_context_set_fusion(test_context, 1);
    assert_int_equal(statistics_of(test_context).arrays, before);
}

#define BOTH_WAYS(program)                                 \
    {                                                      \
#program, both_ways, NULL, NULL, &(void (*)(void)) \
        {                                                  \
            program                                        \
        }                                                  \
    }

static void taken(void)
{
    static const int32_t picks[ROWS * 2] = {4, 0, 1, 9, 2, -1}; /* two are out of range */
    static const int64_t narrow[2] = {ROWS, 2};
    static const float want[ROWS * 2] = {1, -2, -6, 1, -8, 1};
    ops_array *index = made(ops_array_from_host(test_context, HAL_TYPE_I32, 2, narrow, picks));
    ops_array *picked = made(ops_array_take_along_axis(-1, ops_neg(matrix()), index));
    expect(ops_add_scalar(picked, 1), want, ROWS * 2);
}

static void scattered(void)
{
    static const int32_t picks[ROWS * 2] = {4, 4, 0, 5, 1, 2};
    static const int64_t narrow[2] = {ROWS, 2};
    static const float numbers[ROWS * 2] = {10, 20, 30, 40, 50, 60};
    static const float sums[COUNT] = {3, 1, 2, 1, 30, 29, 7, 7, 5, -2, 0, 50, 69, 4, 4};
    static const float last[COUNT] = {3, 1, 2, 1, 20, 30, 7, 7, 5, -2, 0, 50, 60, 4, 4};
    ops_array *x = matrix();
    ops_array *index = made(ops_array_from_host(test_context, HAL_TYPE_I32, 2, narrow, picks));
    ops_array *y = made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, narrow, numbers));
    for (int order = 0; order < OPS_SCATTER_ORDER_COUNT; order++) {
        ops_context_set_scatter(test_context, (ops_scatter_order)order);
        expect(ops_array_scatter(OPS_SCATTER_ADD, 1, x, index, y), sums, COUNT);
        expect(ops_array_scatter(OPS_SCATTER_ASSIGN, 1, x, index, y), last, COUNT);
        expect(x, values, COUNT);
    }
    ops_context_set_scatter(test_context, OPS_SCATTER_ORDERED);
}

static void scanned(void)
{
    static const float down[COUNT] = {3, 1, 2, 1, 0, 2, 8, 9, 6, -2, 2, 8, 18, 10, 2};
    static const float greatest[COUNT] = {3, 3, 3, 3, 3, -1, 7, 7, 7, 7, 0, 0, 9, 9, 9};
    ops_array *x = matrix();
    expect(ops_array_scan(OPS_SCAN_SUM, 0, ops_neg(ops_neg(x))), down, COUNT);
    expect(ops_array_scan(OPS_SCAN_MAX, 1, x), greatest, COUNT);
}

static void sorted(void)
{
    static const float up[COUNT] = {0, 1, 1, 2, 3, -2, -1, 5, 7, 7, 0, 0, 4, 4, 9};
    static const float top[ROWS * 2] = {3, 2, 7, 7, 9, 4};
    static const int32_t places[ROWS * 2] = {0, 2, 1, 2, 2, 3};
    int32_t got[ROWS * 2];
    ops_array *x = matrix();
    expect(ops_array_sort(1, 0, -1, x), up, COUNT);
    expect(ops_array_sort(-1, 1, 2, ops_neg(ops_neg(x))), top, ROWS * 2);
    ok(ops_array_read(made(ops_array_argsort(1, 1, 2, x)), sizeof got, got));
    assert_memory_equal(got, places, sizeof places);
}

static void wrong_calls_are_refused(void **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *x = matrix(), *index = made(ops_array_cast(HAL_TYPE_I32, x));
    ops_array *row = made(ops_array_slice(index, 0, 0, 1, 1));
    nothing(ops_array_take_along_axis(0, x, x), "expected i32 or i64, got f32");
    nothing(ops_array_take_along_axis(1, x, row), "except at axis 1, got i32[1, 5]");
    nothing(ops_array_take_along_axis(2, x, index), "got 2");
    nothing(ops_array_scatter(OPS_SCATTER_ADD, 0, x, index, index), "updates: expected the type");
    nothing(ops_array_scatter(OPS_SCATTER_ADD, 1, x, row, x), "except at axis 1");
    nothing(ops_array_scatter(OPS_SCATTER_KIND_COUNT, 0, x, index, x), "expected an ops_scatter");
    nothing(ops_array_scan(OPS_SCAN_KIND_COUNT, 0, x), "got 4 and f32");
    nothing(ops_array_scan(OPS_SCAN_SUM, 2, x), "got 2");
    nothing(ops_array_argsort(0, 0, 4, x), "at most the 3 elements of axis 0, got 4");
    nothing(ops_array_sort(0, 0, 0, NULL), "");
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH_WAYS(taken), BOTH_WAYS(scattered), BOTH_WAYS(scanned),
                                       BOTH_WAYS(sorted),
                                       cmocka_unit_test(wrong_calls_are_refused)};
    return RUN_ON_ALL(tests);
}
