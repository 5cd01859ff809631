/* Random tensors: the published vectors of Philox, the host's and the device's numbers alike,
 * ranges, moments, permutations. */
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

/* A part of a buffer gets its numbers, and nothing next to it is touched. */
static void ranges_and_borders(void **state)
{
    const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64,
                              HAL_TYPE_I32};
    const double ranges[][2] = {{0, 1}, {-3, 5}, {1, 1.25}, {-0.5, 0}};
    for (int t = 0; t < 5; t++) {
        for (int r = 0; r < 4; r++) {
            const int64_t shape[2] = {101, 97};
            box y = box_make(types[t], 2, shape, NULL, 50, 60);
            const ops_random_key key = {7, (uint64_t)r};
            ok(ops_random_uniform(test_context, key, ranges[r][0], ranges[r][1], &y.t));
            uint64_t size = hal_type_size(types[t]);
            char *bytes = malloc((size_t)((uint64_t)y.count * size));
            ok(hal_queue_read(test_queue, y.t.buffer, 0, (uint64_t)y.count * size, bytes));
            double sum = 0;
            for (int64_t i = 0; i < y.count; i++) {
                double got = decode(types[t], bytes + (uint64_t)i * size);
                if (i < y.t.offset || i >= y.t.offset + 101 * 97) {
                    assert_true(got == y.host[i]);
                } else if (types[t] != HAL_TYPE_I32) {
                    assert_true(got >= ranges[r][0] && got < ranges[r][1]);
                    sum += got;
                }
            }
            double width = ranges[r][1] - ranges[r][0];
            double mean = types[t] == HAL_TYPE_I32 ? 0 : sum / (101 * 97);
            double middle = types[t] == HAL_TYPE_I32 ? 0 : ranges[r][0] + width / 2;
            assert_true(fabs(mean - middle) < 0.02 * width + 0.004);
            free(bytes);
            box_free(&y);
        }
    }
}

static void normal(void **state)
{
    const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64};
    const int64_t n = 40001;
    for (int t = 0; t < 4; t++) {
        box y = box_make(types[t], 1, &n, NULL, 0, 1);
        ok(ops_random_normal(test_context, (ops_random_key){3, 4}, 2, 0.5, &y.t));
        uint64_t size = hal_type_size(types[t]);
        char *bytes = malloc((size_t)n * size);
        ok(ops_tensor_read(test_context, &y.t, (uint64_t)n * size, bytes));
        double moments[5] = {0};
        int64_t beyond = 0;
        for (int64_t i = 0; i < n; i++) {
            double z = (decode(types[t], bytes + (uint64_t)i * size) - 2) / 0.5, power = 1;
            assert_true(isfinite(z) && fabs(z) < 9);
            for (int p = 0; p < 5; p++, power *= z) {
                moments[p] += power / (double)n;
            }
            beyond += fabs(z) > 1.959964;
        }
        assert_true(fabs(moments[1]) < 0.02 && fabs(moments[2] - 1) < 0.03);
        assert_true(fabs(moments[3]) < 0.06 && fabs(moments[4] - 3) < 0.15);
        assert_true(fabs((double)beyond / (double)n - 0.05) < 0.006);
        free(bytes);
        box_free(&y);
    }
    /* The same numbers in F32 and, rounded, in F16: the words do not depend on the type. */
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
        assert_true(decode_f16(half[i]) == in_type(HAL_TYPE_F16, (double)single[i]));
    }
    /* Box and Muller's formula on the first pair. */
    const uint32_t counter[4] = {0, 0, 4, 0}, key[2] = {3, 0};
    uint32_t words[4];
    ops_philox(counter, key, words);
    double radius = sqrt(-2 * log((words[0] + 0.5) * 0x1p-32));
    double angle = words[1] * 0x1p-31 * 3.14159265358979323846;
    assert_true(fabs((double)single[0] - radius * cos(angle)) < 2e-6);
    assert_true(fabs((double)single[1] - radius * sin(angle)) < 2e-6);
    ops_tensor_release(&a);
    ops_tensor_release(&b);
}

static void permutation(void **state)
{
    const int64_t lengths[] = {1, 2, 1000, 6};
    for (int l = 0; l < 3; l++) {
        int32_t n = (int32_t)lengths[l], numbers[2][1000];
        char seen[1000] = {0};
        const int64_t gaps[1] = {2};
        for (int i = 0; i < 2; i++) {
            box y = box_make(HAL_TYPE_I32, 1, &lengths[l], i ? gaps : NULL, 0, 1);
            ok(ops_random_permutation(test_context, (ops_random_key){5, 6}, &y.t));
            ok(ops_tensor_read(test_context, &y.t, (uint64_t)n * 4, numbers[i]));
            box_free(&y);
        }
        assert_memory_equal(numbers[0], numbers[1], (size_t)n * 4);
        int fixed = 0;
        for (int32_t i = 0; i < n; i++) {
            assert_true(numbers[0][i] >= 0 && numbers[0][i] < n && !seen[numbers[0][i]]);
            seen[numbers[0][i]] = 1;
            fixed += numbers[0][i] == i;
        }
        assert_true(n < 10 || fixed < 10);
    }
    /* All 6 orders of 3 come equally often. */
    const int64_t three = 3;
    int counts[27] = {0};
    ops_tensor y;
    ok(ops_tensor_create(test_context, HAL_TYPE_I32, 1, &three, &y));
    for (uint64_t i = 0; i < 3000; i++) {
        int32_t p[3];
        ok(ops_random_permutation(test_context, (ops_random_key){i, 0}, &y));
        ok(ops_tensor_read(test_context, &y, sizeof p, p));
        counts[p[0] * 9 + p[1] * 3 + p[2]]++;
    }
    for (int i = 0; i < 27; i++) {
        assert_true(counts[i] == 0 || (counts[i] > 400 && counts[i] < 600));
    }
    ops_tensor_release(&y);
}

static void bad_arguments(void **state)
{
    const hal_status bad = HAL_ERROR_INVALID_ARGUMENT;
    const ops_random_key key = {1, 1};
    const int64_t shape[2] = {4, 6}, gaps[2] = {20, 2};
    box f = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 1);
    box g = box_make(HAL_TYPE_F32, 2, shape, gaps, 0, 1);
    box i = box_make(HAL_TYPE_I32, 2, shape, NULL, 0, 1);
    refused(ops_random_uniform(test_context, key, 1, 1, &f.t), bad, "got low 1 and high 1");
    refused(ops_random_uniform(test_context, key, 0, (double)NAN, &f.t), bad, "high nan");
    refused(ops_random_uniform(test_context, key, -3e38, 3e38, &f.t), bad, "finite range");
    refused(ops_random_uniform(test_context, key, 0, 1, &g.t), bad, "expected a contiguous tensor");
    refused(ops_random_uniform(test_context, key, 0, 1, NULL), bad, "y is null");
    refused(ops_random_normal(test_context, key, 0, -1, &f.t), bad, "deviation -1");
    refused(ops_random_normal(test_context, key, 0, 1, &i.t), bad,
            "expected floats, got i32[4, 6]");
    refused(ops_random_permutation(test_context, key, &f.t), bad,
            "expected i32 of rank 1, got f32[4, 6]");
    box_expect(&f, f.host, 0, 0);
    boxes_free(&f, &g, &i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),      cmocka_unit_test(device_words),
        cmocka_unit_test(ranges_and_borders), cmocka_unit_test(normal),
        cmocka_unit_test(permutation),        cmocka_unit_test(bad_arguments),
    };
    return RUN_ON_ALL(tests);
}
