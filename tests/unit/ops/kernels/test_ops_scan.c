/* Scans: groups that share a line, as on GPUs, give what work-items that walk alone give, and the
 * parts of long lines follow one another. */
#include "ops_fixture.h"

/* Sums and maxima of I32 along the middle axis. */
static void check_lines(const int64_t shape[3], int64_t step)
{
    const int64_t all[3] = {shape[0], shape[1], step * shape[2]};
    const int64_t count = shape[0] * shape[1] * shape[2];
    const size_t bytes = (size_t)(all[0] * all[1] * all[2]) * 4;
    int32_t *numbers = malloc(bytes), *got = malloc((size_t)count * 4);
    for (size_t i = 0; i < bytes / 4; i++) {
        numbers[i] = (int32_t)(i * 2654435761u >> 7) % 1000 - 400;
    }
    ops_tensor t, x, y;
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 3, all, numbers, &t));
    ok(ops_tensor_slice(&t, 2, 0, shape[2], step, &x));
    ok(ops_tensor_create(test_context, HAL_TYPE_I32, 3, shape, &y));
    for (int is_max = 0; is_max < 2; is_max++) {
        ok(ops_scan(test_context, is_max ? OPS_SCAN_MAX : OPS_SCAN_SUM, 1, &x, &y));
        ok(ops_tensor_read(test_context, &y, (uint64_t)count * 4, got));
        for (int64_t line = 0; line < shape[0] * shape[2]; line++) {
            int32_t want = is_max ? INT32_MIN : 0;
            for (int64_t k = 0; k < shape[1]; k++) {
                const int64_t row = line / shape[2] * shape[1] + k;
                const int32_t value = numbers[row * all[2] + line % shape[2] * step];
                want = !is_max ? want + value : want > value ? want : value;
                if (got[row * shape[2] + line % shape[2]] != want) {
                    fail_msg("%lld x %lld x %lld by %lld, %s: line %lld, element %lld: %d "
                             "instead of %d",
                             (long long)shape[0], (long long)shape[1], (long long)shape[2],
                             (long long)step, is_max ? "max" : "sum", (long long)line, (long long)k,
                             got[row * shape[2] + line % shape[2]], want);
                }
            }
        }
    }
    ops_tensor_release(&t);
    ops_tensor_release(&y);
    free(numbers);
    free(got);
}

static void lines_of_every_length(void **state)
{
    static const int64_t shapes[][3] = {{1, 65, 1},     {3, 100, 2},  {1, 1024, 1}, {2, 1025, 1},
                                        {1, 100000, 1}, {1, 4097, 3}, {300, 70, 1}, {40, 3, 50}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_lines(shapes[i], 1);
        check_lines(shapes[i], 3);
    }
}

static void zeros_keep_their_sign(void **state)
{
    const int64_t shape[1] = {300};
    float zeros[300];
    ops_tensor x;
    for (int i = 0; i < 300; i++) {
        zeros[i] = -0.0f;
    }
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, shape, zeros, &x));
    ok(ops_scan(test_context, OPS_SCAN_SUM, 0, &x, &x));
    ok(ops_tensor_read(test_context, &x, sizeof zeros, zeros));
    for (int i = 0; i < 300; i++) {
        assert_true(signbit(zeros[i]));
    }
    ops_tensor_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_every_length),
                                       cmocka_unit_test(zeros_keep_their_sign)};
    return RUN_ON_ALL(tests);
}
