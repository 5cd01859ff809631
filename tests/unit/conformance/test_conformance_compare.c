/* The comparisons of hal-conformance notice what is wrong: one step beyond each bound, NaN, signs
 * of zeros, broken canaries, failures that were expected. */

#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/expect.h"
#include "math/number.h"
#include "math/random.h"
#include "case/redzone.h"
#include "case/reference.h"
#include "scratch.h"

TEST(a_step_beyond_the_bound_is_wrong)
{
    const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64};
    const double values[] = {1.0, -3.5, 1000.0, 0.001};
    for (size_t t = 0; t < 4; t++) {
        for (size_t v = 0; v < 4; v++) {
            uint8_t actual[3 * 8];
            long double expected[3];
            comparison found;
            for (size_t i = 0; i < 3; i++) {
                number_put(types[t], actual, i, values[v]);
                expected[i] = (long double)number_get(types[t], actual, i);
            }
            assert_true(compare_ulps(types[t], actual, expected, 3, 0.0, &found));
            number_store(types[t], actual, 1, number_load(types[t], actual, 1) + 2);
            assert_true(compare_ulps(types[t], actual, expected, 3, 2.0, &found));
            assert_false(compare_ulps(types[t], actual, expected, 3, 1.9, &found));
            assert_int_equal(found.wrong, 1);
            assert_int_equal(found.worst_index, 1);
            assert_float_equal(found.worst, 2.0, 1e-9);
        }
    }
}

TEST(nan_is_only_right_for_nan)
{
    const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64};
    const double bound = 1e30;
    for (size_t t = 0; t < 4; t++) {
        uint8_t actual[8];
        const long double nan_value = (long double)NAN, one = 1.0L;
        comparison found;
        number_put(types[t], actual, 0, (double)NAN);
        assert_false(compare_ulps(types[t], actual, &one, 1, 1e9, &found));
        assert_false(compare_bounds(types[t], actual, &one, &bound, 1, &found));
        assert_true(compare_ulps(types[t], actual, &nan_value, 1, 0.0, &found));
        assert_true(compare_bounds(types[t], actual, &nan_value, &bound, 1, &found));
        number_put(types[t], actual, 0, 1.0);
        assert_false(compare_ulps(types[t], actual, &nan_value, 1, 1e9, &found));
        assert_false(compare_bounds(types[t], actual, &nan_value, &bound, 1, &found));
    }
}

TEST(infinities_and_zeros_have_signs)
{
    const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64};
    for (size_t t = 0; t < 4; t++) {
        const uint64_t infinity = number_bits(types[t], (double)INFINITY);
        assert_true(reference_ulps(types[t], infinity, (long double)INFINITY) == 0.0);
        assert_true(isinf(reference_ulps(types[t], infinity, -(long double)INFINITY)));
        assert_true(
            isinf(reference_ulps(types[t], number_bits(types[t], 1.0), (long double)INFINITY)));
        assert_true(isinf(reference_ulps(types[t], number_bits(types[t], -0.0), 0.0L)));
        assert_true(reference_ulps(types[t], number_bits(types[t], -0.0), -0.0L) == 0.0);
    }
    /* 65520 is the first number that rounds to an infinite f16. */
    assert_true(reference_ulps(HAL_TYPE_F16, 0x7c00, 65520.0L) == 0.0);
    assert_true(reference_ulps(HAL_TYPE_F16, 0x7c00, 65000.0L) > 10.0);
}

TEST(bounds_are_held_to_a_thousandth)
{
    float actual[2] = {1.0f, 100.5f};
    const long double expected[2] = {1.0L, 100.0L};
    const double wide[2] = {0.0, 0.5}, narrow[2] = {0.0, 0.4995};
    comparison found;
    assert_true(compare_bounds(HAL_TYPE_F32, actual, expected, wide, 2, &found));
    assert_false(compare_bounds(HAL_TYPE_F32, actual, expected, narrow, 2, &found));
    assert_int_equal(found.worst_index, 1);
    actual[0] = 1.0000001f;
    assert_false(compare_bounds(HAL_TYPE_F32, actual, expected, wide, 2, &found));
    actual[0] = INFINITY;
    assert_false(compare_bounds(HAL_TYPE_F32, actual, expected, wide, 2, &found));
}

TEST(bits_are_compared_one_by_one)
{
    comparison found;
    const uint32_t expected[3] = {0x80000000, 0x7fc00000, 5};
    uint32_t actual[3] = {0x80000000, 0xffc00001, 5};
    assert_true(compare_bits(HAL_TYPE_F32, actual, expected, 3, true, &found));
    assert_false(compare_bits(HAL_TYPE_F32, actual, expected, 3, false, &found));
    actual[0] = 0;
    assert_false(compare_bits(HAL_TYPE_F32, actual, expected, 3, true, &found));
    assert_int_equal(found.worst_index, 0);
    assert_int_equal(found.wrong, 1);
    const uint8_t low = 0x7f, high = 0xff;
    assert_false(compare_bits(HAL_TYPE_I8, &low, &high, 1, true, &found));
    char text[512];
    comparison_text(&found, text, sizeof text);
    assert_non_null(strstr(text, "127 instead of -1"));
    assert_null(strstr(text, "poison"));
    uint16_t never_written;
    canary_fill(&never_written, sizeof never_written);
    const uint16_t half = 0x3c00;
    assert_false(compare_bits(HAL_TYPE_F16, &never_written, &half, 1, true, &found));
    comparison_text(&found, text, sizeof text);
    assert_non_null(strstr(text, "poison of unwritten memory"));
}

TEST(integers_have_no_tolerance)
{
    const int64_t actual = INT64_C(9007199254740993);
    const long double expected = 9007199254740992.0L;
    const double bound = 0.5;
    comparison found;
    assert_false(compare_ulps(HAL_TYPE_I64, &actual, &expected, 1, 100.0, &found));
    assert_false(compare_bounds(HAL_TYPE_I64, &actual, &expected, &bound, 1, &found));
}

TEST(every_broken_canary_is_found)
{
    uint8_t memory[300];
    for (size_t i = 0; i < sizeof memory; i++) {
        canary_fill(memory, sizeof memory);
        assert_int_equal(canary_first_broken(memory, sizeof memory), sizeof memory);
        memory[i] ^= 1;
        assert_int_equal(canary_first_broken(memory, sizeof memory), i);
    }
}

TEST(canary_is_nan_in_every_float_type)
{
    uint8_t memory[8];
    canary_fill(memory, sizeof memory);
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (hal_type_is_float(type)) {
            const size_t last = sizeof memory / hal_type_size(type) - 1; /* bytes: every other */
            assert_true(isnan(number_get(type, memory, last)));
        }
    }
}

TEST(small_floats_round_to_nearest_even)
{
    assert_int_equal(number_bits(HAL_TYPE_F16, 1.0), 0x3c00);
    assert_int_equal(number_bits(HAL_TYPE_F16, 1.0 + 0x1p-11), 0x3c00);
    assert_int_equal(number_bits(HAL_TYPE_F16, 1.0 + 0x3p-11), 0x3c02);
    assert_int_equal(number_bits(HAL_TYPE_F16, 65519.0), 0x7bff);
    assert_int_equal(number_bits(HAL_TYPE_F16, 65520.0), 0x7c00);
    assert_int_equal(number_bits(HAL_TYPE_F16, -0x1p-24), 0x8001);
    assert_int_equal(number_bits(HAL_TYPE_F16, 0x1p-25), 0);
    assert_int_equal(number_bits(HAL_TYPE_F16, 0x1.8p-25), 1);
    assert_int_equal(number_bits(HAL_TYPE_BF16, 1.0 + 0x1p-8), 0x3f80);
    assert_int_equal(number_bits(HAL_TYPE_BF16, 0x1p-133), 1);
    for (uint64_t bits = 0; bits < 0x10000; bits++) {
        for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
            if (hal_type_is_narrow_float(type) && bits <= number_mask(type)) {
                const double value = number_value(type, bits);
                assert_true(isnan(value) || number_bits(type, value) == bits);
            }
        }
    }
    /* OCP 8-bit Floating Point Specification (OFP8) 1.0, tables 1 and 2; ties at 464 and 2^-10 */
    static const struct {
        double value;
        uint64_t bits;
    } f8[] = {{448.0, 0x7e},   {464.0, 0x7e},      {464.5, 0x7f},   {-1e9, 0xff},   {1.0, 0x38},
              {-1.0625, 0xb8}, {1.1875, 0x3a},     {0x1p-6, 0x08},  {0x7p-9, 0x07}, {0x1p-9, 0x01},
              {0x1p-10, 0x00}, {-0x1.8p-10, 0x81}, {INFINITY, 0x7f}};
    for (size_t i = 0; i < sizeof f8 / sizeof f8[0]; i++) {
        assert_int_equal(number_bits(HAL_TYPE_F8_E4M3, f8[i].value), f8[i].bits);
    }
    assert_true(isnan(number_value(HAL_TYPE_F8_E4M3, 0xff)));
    assert_true(reference_ulps(HAL_TYPE_F8_E4M3, 0x7f, 465.0L) == 0.0);
    assert_true(reference_ulps(HAL_TYPE_F8_E4M3, 0x7f, 300.0L) > 5.0);
    assert_int_equal(number_bits(HAL_TYPE_I8, -200.0), 0x80);
    assert_int_equal(number_bits(HAL_TYPE_U8, 255.9), 0xff);
    assert_int_equal(number_bits(HAL_TYPE_I32, 2147483648.0), 0x7fffffff);
    assert_int_equal(number_bits(HAL_TYPE_U32, (double)NAN), 0);
}

TEST(a_seed_gives_the_same_numbers)
{
    random_state one = {random_seed_of(7, "gemm")}, two = {random_seed_of(7, "gemm")};
    random_state other = {random_seed_of(7, "gemn")}, later = {random_seed_of(8, "gemm")};
    const uint64_t first = random_next(&one);
    assert_int_equal(first, random_next(&two));
    assert_int_not_equal(first, random_next(&other));
    assert_int_not_equal(first, random_next(&later));
}

TEST(expectations_are_found_by_name)
{
    char path[SCRATCH_BYTES], message[512];
    expect_list list;
    const int file = scratch_file(path, "expect");
    assert_true(file >= 0);
    const char text[] = "# known\n\nir/add(type=f16*  rounds down\n"
                        "gemm(m=1,n=2)\tthe driver's fault\n";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    close(file);
    assert_true(expect_read(path, &list, message, sizeof message));
    assert_int_equal(list.count, 2);
    assert_non_null(expect_find(&list, "ir/add(type=f16,seed=3)"));
    assert_null(expect_find(&list, "ir/add(type=f32,seed=3)"));
    assert_string_equal(expect_find(&list, "gemm(m=1,n=2,seed=9)")->reason, "the driver's fault");
    assert_null(expect_find(&list, "gemm(m=1,n=23,seed=9)"));
    expect_free(&list);
    assert_int_equal(truncate(path, 20), 0);
    assert_false(expect_read(path, &list, message, sizeof message));
    assert_non_null(strstr(message, ":3:"));
    expect_free(&list);
    unlink(path);
    assert_false(expect_read(path, &list, message, sizeof message));
}

UNIT_MAIN(NULL, NULL)
