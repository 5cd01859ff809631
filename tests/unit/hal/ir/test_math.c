/* test_math.c: the polynomials of hal/ir_math.h as plain C: special cases exactly, samples within
 * their bounds, and the three parts of those that have rare inputs. hal-math-exhaustive, whose
 * cases are used here, runs over all of f32. */

#include "unit.h"
#include <fenv.h>
#include <math.h>

#include <stdbool.h>

#include "math/scalar_reader.h"
#include "math/exhaustive.h"
#include "math/ulp.h"

#define BLOCK 4096

typedef struct special {
    math_function function;
    double x;
    double expected;
} special;

/* All of them hold in both types. */
static const special specials[] = {
    {MATH_EXP, 0.0, 1.0},
    {MATH_EXP, -0.0, 1.0},
    {MATH_EXP, INFINITY, INFINITY},
    {MATH_EXP, -INFINITY, 0.0},
    {MATH_EXP, 1e30, INFINITY},
    {MATH_EXP, -1e30, 0.0},
    {MATH_EXP2, 0.0, 1.0},
    {MATH_EXP2, 10.0, 1024.0},
    {MATH_EXP2, -126.0, 0x1p-126},
    {MATH_EXP2, -149.0, 0x1p-149},
    {MATH_EXP2, 127.0, 0x1p127},
    {MATH_EXP2, 1e30, INFINITY},
    {MATH_EXP2, -INFINITY, 0.0},
    {MATH_EXPM1, 0.0, 0.0},
    {MATH_EXPM1, -0.0, -0.0},
    {MATH_EXPM1, 0x1p-149, 0x1p-149},
    {MATH_EXPM1, -INFINITY, -1.0},
    {MATH_EXPM1, -100.0, -1.0},
    {MATH_EXPM1, INFINITY, INFINITY},
    {MATH_LOG, 1.0, 0.0},
    {MATH_LOG, 0.0, -INFINITY},
    {MATH_LOG, -0.0, -INFINITY},
    {MATH_LOG, -1.0, NAN},
    {MATH_LOG, -INFINITY, NAN},
    {MATH_LOG, INFINITY, INFINITY},
    {MATH_LOG2, 1.0, 0.0},
    {MATH_LOG2, 8.0, 3.0},
    {MATH_LOG2, 0x1p-149, -149.0},
    {MATH_LOG2, 0x1p127, 127.0},
    {MATH_LOG2, 0.0, -INFINITY},
    {MATH_LOG2, -1.0, NAN},
    {MATH_LOG2, INFINITY, INFINITY},
    {MATH_LOG1P, 0.0, 0.0},
    {MATH_LOG1P, -0.0, -0.0},
    {MATH_LOG1P, 0x1p-149, 0x1p-149},
    {MATH_LOG1P, -1.0, -INFINITY},
    {MATH_LOG1P, -1.5, NAN},
    {MATH_LOG1P, INFINITY, INFINITY},
    {MATH_SIN, 0.0, 0.0},
    {MATH_SIN, -0.0, -0.0},
    {MATH_SIN, 0x1p-149, 0x1p-149},
    {MATH_SIN, INFINITY, NAN},
    {MATH_SIN, -INFINITY, NAN},
    {MATH_COS, 0.0, 1.0},
    {MATH_COS, -0.0, 1.0},
    {MATH_COS, INFINITY, NAN},
    {MATH_TAN, 0.0, 0.0},
    {MATH_TAN, -0.0, -0.0},
    {MATH_TAN, -0x1p-149, -0x1p-149},
    {MATH_TAN, -INFINITY, NAN},
    {MATH_ATAN, 0.0, 0.0},
    {MATH_ATAN, -0.0, -0.0},
    {MATH_ATAN, 0x1p-149, 0x1p-149},
    {MATH_TANH, 0.0, 0.0},
    {MATH_TANH, -0.0, -0.0},
    {MATH_TANH, 0x1p-149, 0x1p-149},
    {MATH_TANH, INFINITY, 1.0},
    {MATH_TANH, -INFINITY, -1.0},
    {MATH_TANH, 30.0, 1.0},
    {MATH_ERF, 0.0, 0.0},
    {MATH_ERF, -0.0, -0.0},
    {MATH_ERF, INFINITY, 1.0},
    {MATH_ERF, -INFINITY, -1.0},
    {MATH_ERF, 7.0, 1.0},
    {MATH_RSQRT, 4.0, 0.5},
    {MATH_RSQRT, 0.0, INFINITY},
    {MATH_RSQRT, -0.0, -INFINITY},
    {MATH_RSQRT, INFINITY, 0.0},
    {MATH_RSQRT, -1.0, NAN},
};

static const double pow_arguments[] = {
    0.0,        -0.0,      1.0,        -1.0,         0.5,           -0.5,
    2.0,        -2.0,      3.0,        -3.0,         2.5,           -2.5,
    INFINITY,   -INFINITY, NAN,        0x1p-149,     -0x1p-149,     0x1p-126,
    8388607.0,  8388609.0, 16777215.0, -16777217.0,  8388607.5,     1e30,
    -1e30,      1e-40,     -1e-40,     0x1.000002p0, 0x1.fffffep-1, -0x1.fffffep-1,
    33554433.0, 7.0,
};

TEST(test_distance)
{
    assert_true(ulp_distance_f32(1.0f, 1.0) == 0.0);
    assert_true(ulp_distance_f32(1.0f, 1.0 + 0x1p-24) == 0.5);
    assert_true(ulp_distance_f32(0x1.fffffep-1f, 1.0) == 0.5);
    assert_true(ulp_distance_f32(0.0f, 0x1p-149) == 1.0);
    assert_true(ulp_distance_f32(0.0f, -0.0) == (double)INFINITY);
    assert_true(ulp_distance_f32(INFINITY, 1e40) == 0.0);
    assert_true(ulp_distance_f32(INFINITY, 0x1.fffffep127) == 1.0);
    assert_true(ulp_distance_f32(1.0f, (double)INFINITY) == (double)INFINITY);
    assert_true(ulp_distance_f32(NAN, (double)NAN) == 0.0);
    assert_true(ulp_distance_f32(NAN, 1.0) == (double)INFINITY);
    assert_true(ulp_distance_f32(1.0f, (double)NAN) == (double)INFINITY);
    assert_true(ulp_distance_f64(1.0, 1.0L + 0x1p-54L) == 0.25);
    assert_true(ulp_distance_f64(3.0, 2.0L) == 0x1p51);
    assert_true(ulp_distance_f64(0x1p-1074, 0.0L) == 1.0);
}

static void check_special(math_function function, double x, double expected, double result,
                          const char *type)
{
    bool same = result == expected && signbit(result) == signbit(expected);
    if (!same && !(isnan(result) && isnan(expected))) {
        fail_msg("function %d in %s of %.9g is %.9g, not %.9g", (int)function, type, x, result,
                 expected);
    }
}

TEST(test_specials)
{
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        const special *s = &specials[i];
        float x32 = (float)s->x;
        float result32;
        math_run_f32(s->function, &x32, NULL, &result32, 1);
        check_special(s->function, s->x, s->expected, (double)result32, "f32");
        double result64;
        math_run_f64(s->function, &s->x, NULL, &result64, 1);
        check_special(s->function, s->x, s->expected, result64, "f64");
    }
    for (int function = MATH_EXP; function <= MATH_RSQRT; function++) {
        /* A NaN with a payload: its bits must not leak into arithmetic on integers. */
        for (uint32_t bits = 0x7f800001; bits < 0x7fffffff; bits = bits * 2 - 0x7f800000) {
            float x32[2] = {math_float_f32(bits), math_float_f32(bits | 0x80000000)};
            double x64[2] = {(double)x32[0], (double)x32[1]};
            float result32[2];
            double result64[2];
            math_run_f32((math_function)function, x32, NULL, result32, 2);
            math_run_f64((math_function)function, x64, NULL, result64, 2);
            for (int i = 0; i < 2; i++) {
                check_special((math_function)function, NAN, NAN, (double)result32[i], "f32");
                check_special((math_function)function, NAN, NAN, result64[i], "f64");
            }
        }
    }
}

TEST(test_pow)
{
    const size_t count = sizeof pow_arguments / sizeof pow_arguments[0];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            float x32 = (float)pow_arguments[i], y32 = (float)pow_arguments[j];
            float result32 = math_pow_f32(0, x32, y32);
            double distance = ulp_distance_f32(result32, pow((double)x32, (double)y32));
            if (distance > 3.0) {
                fail_msg("pow f32 of %.9g and %.9g is %.9g, %g ULP off", (double)x32, (double)y32,
                         (double)result32, distance);
            }
            double x64 = pow_arguments[i], y64 = pow_arguments[j];
            double result64 = math_pow_f64(0, x64, y64);
            distance = ulp_distance_f64(result64, powl(x64, y64));
            if (distance > 2.0) {
                fail_msg("pow f64 of %.17g and %.17g is %.17g, %g ULP off", x64, y64, result64,
                         distance);
            }
        }
    }
}

static void check_samples(const math_case *function)
{
    /* A long double in software takes its time. */
    const uint64_t blocks = function->is_double ? 8 : 32;
    math_worst worst = {-1.0, 0, 0, 0, 0};
    for (uint64_t block = 0; block < blocks; block++) {
        if (function->is_double) {
            double x[BLOCK], y[BLOCK];
            math_sample_f64(function, 7, block * BLOCK, BLOCK, x, y);
            math_check_f64(function, x, y, BLOCK, &worst);
        } else {
            float x[BLOCK], y[BLOCK];
            if (function->is_sampled) {
                math_sample_f32(7, block * BLOCK, BLOCK, x, y);
            } else {
                math_enumerate_f32(block * BLOCK, (UINT64_C(1) << 32) / (blocks * BLOCK) - 1, BLOCK,
                                   x);
            }
            math_check_f32(function, x, y, BLOCK, &worst);
        }
    }
    if (!(worst.distance <= function->bound)) {
        fail_msg("%s is %.4f ULP off at %.17g, %.17g: %.17g, true value %.20Lg", function->name,
                 worst.distance, worst.x, worst.y, worst.result, worst.reference);
    }
}

TEST(test_samples)
{
    for (size_t i = 0; i < math_case_count; i++) {
        check_samples(&math_cases[i]);
    }
}

/* The doubles that come closest to a multiple of pi/2, by the continued fractions of 2^e * 2/pi:
 * the first is 2^-60.9 away. And the ends of what each reduction takes. */
TEST(test_hard_angles)
{
    static const double hard[] = {0x1.6ac5b262ca1ffp849,  0x1.6ac5b262ca1ffp850,
                                  0x1.b951f1572eba5p23,   0x1.504cac51f1eafp131,
                                  0x1.e009c53148be1p991,  0x1p1023,
                                  0x1.fffffffffffffp1023, 0x1p22,
                                  0x1.fffffffffffffp21,   0x1.921fb54442d18p0,
                                  0x1.921fb54442d18p1,    0x1.921fb54442d18p21};
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        double x = hard[i];
        assert_true(ulp_distance_f64(math_sin_f64(0, x), sinl(x)) <= 2.0);
        assert_true(ulp_distance_f64(math_cos_f64(0, x), cosl(x)) <= 2.0);
        assert_true(ulp_distance_f64(math_tan_f64(0, x), tanl(x)) <= 4.0);
    }
}

static void same_bits_f32(float composed, bool rare, float rare_result, float fast_result)
{
    float expected = rare ? rare_result : fast_result;
    assert_int_equal(math_bits_f32(composed), math_bits_f32(expected));
}

static void check_parts_f32(float x)
{
    same_bits_f32(math_log_f32(0, x), math_log_f32_is_rare(0, x), math_log_f32_rare(0, x),
                  math_log_f32_fast(0, x));
    same_bits_f32(math_log2_f32(0, x), math_log2_f32_is_rare(0, x), math_log2_f32_rare(0, x),
                  math_log2_f32_fast(0, x));
    same_bits_f32(math_log1p_f32(0, x), math_log1p_f32_is_rare(0, x), math_log1p_f32_rare(0, x),
                  math_log1p_f32_fast(0, x));
    same_bits_f32(math_sin_f32(0, x), math_sin_f32_is_rare(0, x), math_sin_f32_rare(0, x),
                  math_sin_f32_fast(0, x));
    same_bits_f32(math_cos_f32(0, x), math_cos_f32_is_rare(0, x), math_cos_f32_rare(0, x),
                  math_cos_f32_fast(0, x));
    same_bits_f32(math_tan_f32(0, x), math_tan_f32_is_rare(0, x), math_tan_f32_rare(0, x),
                  math_tan_f32_fast(0, x));
    if (fabsf(x) < MATH_NEAR_ANGLES_F32) {
        same_bits_f32(math_sin_f32(0, x), true, math_sin_f32_near(0, x), 0.0f);
        same_bits_f32(math_cos_f32(0, x), true, math_cos_f32_near(0, x), 0.0f);
        same_bits_f32(math_tan_f32(0, x), true, math_tan_f32_near(0, x), 0.0f);
    }
    if (fabsf(x) < 1.0f) {
        same_bits_f32(math_atan_f32(0, x), true, math_atan_f32_near(0, x), 0.0f);
        same_bits_f32(math_tanh_f32(0, x), true, math_tanh_f32_near(0, x), 0.0f);
        same_bits_f32(math_erf_f32(0, x), true, math_erf_f32_near(0, x), 0.0f);
    }
    same_bits_f32(math_pow_f32(0, x, 1.5f), math_pow_f32_is_rare(0, x, 1.5f),
                  math_pow_f32_rare(0, x, 1.5f), math_pow_f32_fast(0, x, 1.5f));
}

static void same_bits_f64(double composed, bool rare, double rare_result, double fast_result)
{
    double expected = rare ? rare_result : fast_result;
    assert_true(math_bits_f64(composed) == math_bits_f64(expected));
}

static void check_parts_f64(double x)
{
    same_bits_f64(math_log_f64(0, x), math_log_f64_is_rare(0, x), math_log_f64_rare(0, x),
                  math_log_f64_fast(0, x));
    same_bits_f64(math_log2_f64(0, x), math_log2_f64_is_rare(0, x), math_log2_f64_rare(0, x),
                  math_log2_f64_fast(0, x));
    same_bits_f64(math_log1p_f64(0, x), math_log1p_f64_is_rare(0, x), math_log1p_f64_rare(0, x),
                  math_log1p_f64_fast(0, x));
    same_bits_f64(math_sin_f64(0, x), math_sin_f64_is_rare(0, x), math_sin_f64_rare(0, x),
                  math_sin_f64_fast(0, x));
    same_bits_f64(math_cos_f64(0, x), math_cos_f64_is_rare(0, x), math_cos_f64_rare(0, x),
                  math_cos_f64_fast(0, x));
    same_bits_f64(math_tan_f64(0, x), math_tan_f64_is_rare(0, x), math_tan_f64_rare(0, x),
                  math_tan_f64_fast(0, x));
    same_bits_f64(math_pow_f64(0, x, -2.5), math_pow_f64_is_rare(0, x, -2.5),
                  math_pow_f64_rare(0, x, -2.5), math_pow_f64_fast(0, x, -2.5));
}

/* The composed function takes the fast path or the rare one, each bit for bit. */
TEST(test_parts)
{
    for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 999983) {
        check_parts_f32(math_float_f32((uint32_t)i));
        check_parts_f64(math_float_f64((i << 32) + i));
    }
}

/* Underflows, and what follows them with subnormal numbers, take a processor a hundred times as
 * long: masks are exp(-inf). */
TEST(test_no_underflow)
{
    static const float low[] = {-105, -1000, -INFINITY}, tiny[] = {1e-18f, -1e-22f, 1e-30f};
    for (int i = 0; i < 3; i++) {
        const volatile float x = low[i], small = tiny[i];
        const volatile double wide = 10 * (double)low[i];
        feclearexcept(FE_UNDERFLOW);
        const volatile float results[] = {math_exp_f32(0, x), math_exp2_f32(0, x * 2),
                                          (float)math_exp_f64(0, wide),
                                          (float)math_exp2_f64(0, wide * 2)};
        const volatile float odd = math_erf_f32(0, small), even = math_cos_f32_near(0, small);
        assert_false(fetestexcept(FE_UNDERFLOW));
        for (int j = 0; j < 4; j++) {
            assert_true(results[j] == 0);
        }
        assert_true(even == 1 && fabsf(odd) > fabsf(small));
    }
}

UNIT_MAIN(NULL, NULL)
