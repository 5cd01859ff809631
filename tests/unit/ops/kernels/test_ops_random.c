/* Random tensors on every kind of device: the published vectors of Philox, equal numbers on host
 * and device, borders, permutations, errors; hal-conformance has the distributions. */
#include "ops_fixture.h"

#include "kernels/philox.h"

static void known_answers(void **state)
{
    const uint32_t zero[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
    const uint32_t want_zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t want_ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    uint32_t words[4];
    ops_philox(zero, zero, words);
    assert_memory_equal(words, want_zero, sizeof words);
    ops_philox(ones, ones, words);
    assert_memory_equal(words, want_ones, sizeof words);
}

/* U32 tensors are the bare words, whatever their length. */
static void device_words(void **state)
{
    const ops_random_key key = {UINT64_C(0x123456789abcdef0), UINT64_C(0xfedcba9876543210)};
    for (int64_t n = 1; n < 3000; n = 2 * n + 1) {
        uint32_t *got = malloc((size_t)n * 4);
        ops_tensor y;
        ok(ops_tensor_create(test_context, HAL_TYPE_U32, 1, &n, &y));
        ok(ops_random_uniform(test_context, key, 0, 0, &y));
        ok(ops_tensor_read(test_context, &y, (uint64_t)n * 4, got));
        for (int64_t i = 0; i < n; i++) {
            const uint32_t counter[4] = {(uint32_t)(i / 4), 0, (uint32_t)key.stream,
                                         (uint32_t)(key.stream >> 32)};
            const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
            uint32_t words[4];
            ops_philox(counter, seed, words);
            assert_int_equal(got[i], words[i % 4]);
        }
        free(got);
        ops_tensor_release(&y);
    }
}

/* A part of a buffer gets its numbers, and elements next to it are not touched; hal-conformance has
 * the distributions. */
static void borders(void **state)
{
    const int64_t shape[2] = {101, 97};
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (!hal_type_is_float(type)) {
            continue;
        }
        box y = box_make(type, 2, shape, NULL, 50, 60);
        ok(ops_random_uniform(test_context, (ops_random_key){7, 1}, 1, 1.25, &y.t));
        const uint64_t size = hal_type_size(type);
        char *bytes = malloc((size_t)((uint64_t)y.count * size));
        ok(hal_queue_read(test_queue, y.t.buffer, 0, (uint64_t)y.count * size, bytes));
        for (int64_t i = 0; i < y.count; i++) {
            const double got = decode(type, bytes + (uint64_t)i * size);
            const int is_inside = i >= y.t.offset && i < y.t.offset + 101 * 97;
            assert_true(is_inside ? got >= 1 && got < 1.25 : got == y.host[i]);
        }
        free(bytes);
        box_free(&y);
    }
}

/* Numbers of few bits are not rounded down: the mean of numbers between -1 and 1 is 0. */
static void uniform_mean(void **state)
{
    enum { COUNT = 1 << 18 };
    const int64_t count = COUNT;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (!hal_type_is_float(type)) {
            continue;
        }
        ops_tensor y;
        const uint64_t size = hal_type_size(type);
        uint8_t *bytes = malloc((size_t)(COUNT * size));
        double sum = 0;
        ok(ops_tensor_create(test_context, type, 1, &count, &y));
        ok(ops_random_uniform(test_context, (ops_random_key){11, 2}, -1, 1, &y));
        ok(ops_tensor_read(test_context, &y, COUNT * size, bytes));
        for (int64_t i = 0; i < COUNT; i++) {
            const double got = decode(type, bytes + (uint64_t)i * size);
            assert_true(got >= -1 && got < 1);
            sum += got;
        }
        /* Of the last number, half a step more is rounded down, as 1 is excluded. */
        const double step = ldexp(1.0, -hal_type_float_format(type).digits);
        if (fabs(sum / COUNT) > 0.003 + step * step) {
            fail_msg("%s: the mean is %g", hal_type_name(type), sum / COUNT);
        }
        free(bytes);
        ops_tensor_release(&y);
    }
}

/* The same words for every type: F16 is F32 rounded; and Box and Muller's formula on the first
 * pair. */
static void normal(void **state)
{
    float single[8];
    uint16_t half[8];
    const int64_t eight = 8;
    ops_tensor a, b;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, &eight, &a));
    ok(ops_tensor_create(test_context, HAL_TYPE_F16, 1, &eight, &b));
    ok(ops_random_normal(test_context, (ops_random_key){3, 4}, 0, 1, &a));
    ok(ops_random_normal(test_context, (ops_random_key){3, 4}, 0, 1, &b));
    ok(ops_tensor_read(test_context, &a, sizeof single, single));
    ok(ops_tensor_read(test_context, &b, sizeof half, half));
    for (int i = 0; i < 8; i++) {
        assert_true(decode(HAL_TYPE_F16, &half[i]) == in_type(HAL_TYPE_F16, (double)single[i]));
    }
    const uint32_t counter[4] = {0, 0, 4, 0}, key[2] = {3, 0};
    uint32_t words[4];
    ops_philox(counter, key, words);
    const double radius = sqrt(-2 * log((words[0] + 0.5) * 0x1p-32));
    const double angle = words[1] * 0x1p-31 * 3.14159265358979323846;
    assert_true(fabs((double)single[0] - radius * cos(angle)) < 2e-6);
    assert_true(fabs((double)single[1] - radius * sin(angle)) < 2e-6);
    ops_tensor_release(&a);
    ops_tensor_release(&b);
}

/* Lengths of 1 and 2, a tensor with gaps, and all 6 orders of 3 equally often. */
static void permutation(void **state)
{
    const int64_t three = 3, gaps[1] = {2};
    int counts[27] = {0};
    for (uint64_t i = 0; i < 3000; i++) {
        int32_t p[3] = {0};
        const int64_t length = i < 2 ? (int64_t)i + 1 : three;
        box y = box_make(HAL_TYPE_I32, 1, &length, i % 2 ? gaps : NULL, 0, 1);
        ok(ops_random_permutation(test_context, (ops_random_key){i, 0}, &y.t));
        ok(ops_tensor_read(test_context, &y.t, (uint64_t)length * 4, p));
        if (length == three) {
            counts[p[0] * 9 + p[1] * 3 + p[2]]++;
        } else {
            assert_int_equal(p[0] + p[1], length - 1);
        }
        box_free(&y);
    }
    for (int i = 0; i < 27; i++) {
        const int is_order = i % 3 != i / 9 && i % 3 != i / 3 % 3 && i / 9 != i / 3 % 3;
        assert_true(is_order ? counts[i] > 400 && counts[i] < 600 : counts[i] == 0);
    }
}

static void bad_arguments(void **state)
{
    const ops_random_key key = {1, 1};
    const int64_t shape[2] = {4, 6}, gaps[2] = {20, 2};
    box f = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 1);
    box g = box_make(HAL_TYPE_F32, 2, shape, gaps, 0, 1);
    box i = box_make(HAL_TYPE_I32, 2, shape, NULL, 0, 1);
    invalid(ops_random_uniform(test_context, key, 1, 1, &f.t), "got low 1 and high 1");
    invalid(ops_random_uniform(test_context, key, 0, (double)NAN, &f.t), "high nan");
    invalid(ops_random_uniform(test_context, key, -3e38, 3e38, &f.t), "finite range");
    invalid(ops_random_uniform(test_context, key, 0, 1, &g.t), "expected a contiguous tensor");
    invalid(ops_random_uniform(test_context, key, 0, 1, NULL), "y: expected");
    invalid(ops_random_normal(test_context, key, 0, -1, &f.t), "deviation -1");
    invalid(ops_random_normal(test_context, key, 0, 1, &i.t), "expected floats, got i32[4, 6]");
    invalid(ops_random_permutation(test_context, key, &f.t),
            "expected i32 of rank 1, got f32[4, 6]");
    box_expect(&f, f.host, 0, 0);
    boxes_free(&f, &g, &i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers), cmocka_unit_test(device_words),
        cmocka_unit_test(borders),       cmocka_unit_test(uniform_mean),
        cmocka_unit_test(normal),        cmocka_unit_test(permutation),
        cmocka_unit_test(bad_arguments),
    };
    return RUN_ON_ALL(tests);
}
