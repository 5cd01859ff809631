/* Sorting, on each kind of device: blocks, merges and lines that share a group; which elements are
 * first, and that nothing else is written. */
#include "ops_fixture.h"

static void check_sorted(const int64_t shape[2], int64_t taken, int descending)
{
    const int64_t out[2] = {shape[0], taken};
    const size_t count = (size_t)(shape[0] * shape[1]);
    int32_t *numbers = malloc(count * 4), *places = malloc(count * 4), *sorted = malloc(count * 4);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (int32_t)(i * 2654435761u >> 9) % 100 - 50;
    }
    ops_tensor x, y, p;
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 2, shape, numbers, &x));
    ok(ops_tensor_create(test_context, HAL_TYPE_I32, 2, out, &y));
    ok(ops_tensor_create(test_context, HAL_TYPE_I32, 2, out, &p));
    ok(ops_sort(test_context, -1, descending, &x, &y, &p));
    ok(ops_tensor_read(test_context, &y, (uint64_t)(shape[0] * taken) * 4, sorted));
    ok(ops_tensor_read(test_context, &p, (uint64_t)(shape[0] * taken) * 4, places));
    for (int64_t line = 0; line < shape[0]; line++) {
        const int32_t *values = sorted + line * taken, *from = places + line * taken;
        int64_t before = 0; /* elements that belong before the last one taken */
        for (int64_t k = 0; k < taken; k++) {
            assert_in_range(from[k], 0, shape[1] - 1);
            assert_int_equal(values[k], numbers[line * shape[1] + from[k]]);
            if (k > 0 && values[k] == values[k - 1]) {
                assert_true(from[k] > from[k - 1]);
            } else if (k > 0) {
                assert_true(descending ? values[k] < values[k - 1] : values[k] > values[k - 1]);
            }
        }
        for (int64_t i = 0; i < shape[1]; i++) {
            const int32_t value = numbers[line * shape[1] + i], last = values[taken - 1];
            before += value == last ? i < from[taken - 1] : (value < last) != descending;
        }
        assert_int_equal(before, taken - 1);
    }
    ops_tensor_release(&x);
    ops_tensor_release(&y);
    ops_tensor_release(&p);
    free(numbers);
    free(places);
    free(sorted);
}

static void lines_of_every_length(void **state)
{
    static const int64_t shapes[][2] = {{1, 1},    {5, 2},    {300, 7},  {3, 1000},
                                        {2, 1025}, {1, 9000}, {3, 2048}, {1, 70001}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_sorted(shapes[i], shapes[i][1], (int)i % 2);
        check_sorted(shapes[i], (shapes[i][1] + 2) / 3, (int)(i + 1) % 2);
    }
}

static void memory_that_is_shared(void **state)
{
    const int64_t shape[1] = {40};
    float numbers[40];
    ops_tensor x, y;
    for (int i = 0; i < 40; i++) {
        numbers[i] = (float)(i * 7 % 40);
    }
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, shape, numbers, &x));
    ok(ops_tensor_slice(&x, 0, 39, 40, -1, &y));
    invalid(ops_sort(test_context, 0, 0, &x, &y, NULL), "got an overlap");
    ok(ops_sort(test_context, 0, 0, &x, &x, NULL));
    ok(ops_tensor_read(test_context, &x, sizeof numbers, numbers));
    for (int i = 0; i < 40; i++) {
        assert_true(numbers[i] == (float)i);
    }
    ops_tensor_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_every_length),
                                       cmocka_unit_test(memory_that_is_shared)};
    return RUN_ON_ALL(tests);
}
