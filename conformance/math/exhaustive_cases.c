/* the functions, inputs and references of hal-math-exhaustive. f32 is held against double; f64 and
 * the x87's or a software long double, which has 11 bits more or better. */
#include "math/exhaustive.h"
#include "math/ulp.h"

#include <hal/plugin.h>
#include <math.h>
#include <string.h>

/* The bounds are what the polynomials reach, rounded up, and every device with exact arithmetic
 * gives their bits; what users are promised on any device is wider. */
const math_case math_cases[] = {
    {"exp_f32", MATH_EXP, 1.0, 3.0, 745.0, 0, 0, 0},
    {"exp2_f32", MATH_EXP2, 1.0, 3.0, 1075.0, 0, 0, 0},
    {"expm1_f32", MATH_EXPM1, 2.0, 3.0, 710.0, 0, 0, 0},
    {"log_f32", MATH_LOG, 1.0, 3.0, 4.0, 0, 0, 0},
    {"log2_f32", MATH_LOG2, 2.0, 3.0, 4.0, 0, 0, 0},
    {"log1p_f32", MATH_LOG1P, 2.0, 2.0, 4.0, 0, 0, 0},
    {"sin_f32", MATH_SIN, 2.0, 4.0, 4000000.0, 0, 0, 0},
    {"cos_f32", MATH_COS, 2.0, 4.0, 4000000.0, 0, 0, 0},
    {"tan_f32", MATH_TAN, 4.0, 5.0, 4000000.0, 0, 0, 0},
    {"atan_f32", MATH_ATAN, 2.0, 5.0, 4.0, 0, 0, 0},
    {"tanh_f32", MATH_TANH, 1.0, 5.0, 22.0, 0, 0, 0},
    {"erf_f32", MATH_ERF, 2.0, 16.0, 6.0, 0, 0, 0},
    {"rsqrt_f32", MATH_RSQRT, 2.0, 2.0, 4.0, 0, 0, 0},
    {"pow_f32", MATH_POW, 3.0, 16.0, 0.0, 0, 1, 1},
    {"sqrt_f32", MATH_SQRT, 0.5, 3.0, 4.0, 0, 0, 0},
    {"divide_f32", MATH_DIVIDE, 0.5, 2.5, 0.0, 0, 1, 1},
    {"exp_f64", MATH_EXP, 2.0, 3.0, 745.0, 1, 1, 0},
    {"exp2_f64", MATH_EXP2, 2.0, 3.0, 1075.0, 1, 1, 0},
    {"expm1_f64", MATH_EXPM1, 3.0, 3.0, 710.0, 1, 1, 0},
    {"log_f64", MATH_LOG, 2.0, 3.0, 4.0, 1, 1, 0},
    {"log2_f64", MATH_LOG2, 2.0, 3.0, 4.0, 1, 1, 0},
    {"log1p_f64", MATH_LOG1P, 3.0, 3.0, 4.0, 1, 1, 0},
    {"sin_f64", MATH_SIN, 2.0, 4.0, 4000000.0, 1, 1, 0},
    {"cos_f64", MATH_COS, 2.0, 4.0, 4000000.0, 1, 1, 0},
    {"tan_f64", MATH_TAN, 4.0, 5.0, 4000000.0, 1, 1, 0},
    {"atan_f64", MATH_ATAN, 3.0, 5.0, 4.0, 1, 1, 0},
    {"tanh_f64", MATH_TANH, 3.0, 5.0, 22.0, 1, 1, 0},
    {"erf_f64", MATH_ERF, 2.0, 16.0, 6.0, 1, 1, 0},
    {"rsqrt_f64", MATH_RSQRT, 2.0, 2.0, 4.0, 1, 1, 0},
    {"pow_f64", MATH_POW, 2.0, 16.0, 0.0, 1, 1, 1},
    {"sqrt_f64", MATH_SQRT, 0.5, 3.0, 4.0, 1, 1, 0},
    {"divide_f64", MATH_DIVIDE, 0.5, 2.5, 0.0, 1, 1, 1},
};
const size_t math_case_count = sizeof math_cases / sizeof math_cases[0];

/* Numbers that both types have, and the bounds of each: smallest denormal, largest denormal,
 * smallest normal, largest. */
static const double specials[] = {
    0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 0x1p24 - 1.0, (double)INFINITY, (double)NAN};
static const double bounds_f32[4] = {0x1p-149, 0x1.fffffcp-127, 0x1p-126, 0x1.fffffep127};
static const double bounds_f64[4] = {0x1p-1074, 0x1.ffffffffffffep-1023, 0x1p-1022,
                                     0x1.fffffffffffffp1023};

/* The C library's own, of one operand. */
static const struct {
    double (*f32)(double x);
    long double (*f64)(long double x);
} references[] = {
    [MATH_EXP] = {exp, expl},
    [MATH_EXP2] = {exp2, exp2l},
    [MATH_EXPM1] = {expm1, expm1l},
    [MATH_LOG] = {log, logl},
    [MATH_LOG2] = {log2, log2l},
    [MATH_LOG1P] = {log1p, log1pl},
    [MATH_SIN] = {sin, sinl},
    [MATH_COS] = {cos, cosl},
    [MATH_TAN] = {tan, tanl},
    [MATH_ATAN] = {atan, atanl},
    [MATH_TANH] = {tanh, tanhl},
    [MATH_ERF] = {erf, erfl},
    [MATH_SQRT] = {sqrt, sqrtl},
};

/* Sample `number` of a seed, whatever the others: a multiple of an odd constant, well mixed. */
static uint64_t random_bits(uint64_t seed, uint64_t number)
{
    uint64_t z = (seed * UINT64_C(0xd1342543de82ef95) + number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A special number of one of both signs. */
static double special_value(uint64_t bits, const double bounds[4])
{
    const size_t count = sizeof specials / sizeof specials[0];
    size_t which = (size_t)(bits >> 1 & 0xffff) % (count + 4);
    double value = which < count ? specials[which] : bounds[which - count];
    return bits & 1 ? -value : value;
}

/* Uniform in [-1, 1), and never 0. */
static double random_signed(uint64_t seed, uint64_t number)
{
    return (double)(int64_t)(random_bits(seed, number) | 1) * 0x1p-63;
}

/* About 2^exponent: straight lines between the powers, the same number on every machine. */
static double power_of_two(double exponent)
{
    double whole = floor(exponent);
    return ldexp(1.0 + (exponent - whole), (int)whole);
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double reference_f32(math_function function, double x, double y)
{
    switch (function) {
    case MATH_RSQRT:
        return 1.0 / sqrt(x);
    case MATH_POW:
        return pow(x, y);
    case MATH_DIVIDE:
        return x / y;
    default:
        return references[function].f32(x);
    }
}

/* A filter, for 2^32 distances take a while: among the normal numbers the unit is more than
 * the reference times 2^-24, so what differs by less than `worst` such parts is nearer. False
 * where either is not finite. */
static int cannot_be_worst(double result, double reference, double worst)
{
    double size = fabs(reference);
    return size >= 0x1p-126 && size < 0x1p128 && fabs(result - reference) < size * worst;
}

static bool is_denormal(double value, double smallest)
{
    return value != 0.0 && fabs(value) < smallest;
}

/* The host's own arithmetic is correctly rounded. */
static float rounded_f32(math_function function, float x, float y)
{
    return function == MATH_SQRT ? sqrtf(x) : x / y;
}

static long double reference_f64(math_function function, long double x, long double y)
{
    switch (function) {
    case MATH_RSQRT:
        return 1.0L / sqrtl(x);
    case MATH_POW:
        return powl(x, y);
    case MATH_DIVIDE:
        return x / y;
    default:
        return references[function].f64(x);
    }
}

static double rounded_f64(math_function function, double x, double y)
{
    return function == MATH_SQRT ? sqrt(x) : x / y;
}

math_demand math_demand_of(const math_case *function, uint32_t exactness)
{
    const uint32_t all = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    uint32_t needed = all;
    math_demand demand = {0};
    if (function->function == MATH_SQRT || function->function == MATH_DIVIDE) {
        needed = function->function == MATH_SQRT ? HAL_EXACT_SQRT : HAL_EXACT_DIVIDE;
        demand.is_rounded = (exactness & needed) != 0;
    }
    demand.bound = (exactness & needed) == needed ? function->bound : function->promise;
    demand.keeps_denormals = (exactness & HAL_EXACT_DENORMALS) != 0;
    return demand;
}

void math_enumerate_f32(uint64_t first, uint64_t step, size_t count, float *x)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)((first + i) * step);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

/* Pow and divide are sampled in f32. */
void math_sample_f32(uint64_t seed, uint64_t first, size_t count, float *x, float *y)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = (first + i) * 4;
        uint64_t bits = random_bits(seed, number);
        if ((first + i) % 16 == 4) {
            x[i] = (float)special_value(bits, bounds_f32);
            y[i] = (float)special_value(bits >> 32, bounds_f32);
            continue;
        }
        if ((first + i) % 4 == 0) {
            uint32_t halves[2] = {(uint32_t)bits, (uint32_t)(bits >> 32)};
            memcpy(&x[i], &halves[0], sizeof halves[0]);
            memcpy(&y[i], &halves[1], sizeof halves[1]);
            continue;
        }
        double exponent = random_signed(seed, number + 1) * ((first + i) % 4 == 1 ? 1.0 : 127.0);
        x[i] = (float)power_of_two(exponent);
        y[i] = (float)(random_signed(seed, number + 2) * 150.0 / exponent);
    }
}

void math_sample_f64(const math_case *function, uint64_t seed, uint64_t first, size_t count,
                     double *x, double *y)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = (first + i) * 4;
        unsigned kind = (first + i) % 4;
        double u = random_signed(seed, number);
        if ((first + i) % 16 == 4) {
            uint64_t bits = random_bits(seed, number + 1);
            x[i] = special_value(bits, bounds_f64);
            y[i] = special_value(bits >> 32, bounds_f64);
        } else if (kind == 0) {
            x[i] = double_of(random_bits(seed, number + 1));
            y[i] = double_of(random_bits(seed, number + 2));
        } else if (function->has_two_arguments) {
            double exponent = u * (kind == 1 ? 1.0 : 1023.0);
            x[i] = power_of_two(exponent);
            y[i] = random_signed(seed, number + 2) * 1080.0 / exponent;
        } else if (kind == 1) {
            x[i] = u * function->range;
        } else if (kind == 2) {
            x[i] = copysign(power_of_two(random_signed(seed, number + 1) * 40.0), u);
        } else {
            x[i] = 2.0 * u;
        }
    }
}

void math_judge_f32(const math_case *function, const math_demand *demand, const float *x,
                    const float *y, const float *result, size_t count, math_worst *worst)
{
    for (size_t i = 0; i < count; i++) {
        float second = function->has_two_arguments ? y[i] : 0.0f;
        double reference = reference_f32(function->function, (double)x[i], (double)second);
        if (!demand->is_rounded &&
            cannot_be_worst((double)result[i], reference, worst->distance * 0x1p-24)) {
            continue;
        }
        if (!demand->keeps_denormals &&
            (is_denormal((double)x[i], 0x1p-126) || is_denormal((double)second, 0x1p-126) ||
             is_denormal(reference, 0x1p-126))) {
            continue;
        }
        double distance = ulp_distance_f32(result[i], reference);
        if (demand->is_rounded && !isnan(result[i])) {
            float rounded = rounded_f32(function->function, x[i], second);
            const bool is_same = memcmp(&rounded, &result[i], sizeof rounded) == 0;
            distance = is_same ? fmin(distance, 0.5) : fmax(distance, 1.0);
        }
        if (distance > worst->distance) {
            *worst = (math_worst){distance, (double)x[i], (double)second, (double)result[i],
                                  (long double)reference};
        }
    }
}

void math_judge_f64(const math_case *function, const math_demand *demand, const double *x,
                    const double *y, const double *result, size_t count, math_worst *worst)
{
    for (size_t i = 0; i < count; i++) {
        double second = function->has_two_arguments ? y[i] : 0.0;
        long double reference =
            reference_f64(function->function, (long double)x[i], (long double)second);
        if (!demand->keeps_denormals &&
            (is_denormal(x[i], 0x1p-1022) || is_denormal(second, 0x1p-1022) ||
             is_denormal((double)reference, 0x1p-1022))) {
            continue;
        }
        double distance = ulp_distance_f64(result[i], reference);
        if (demand->is_rounded && !isnan(result[i])) {
            double rounded = rounded_f64(function->function, x[i], second);
            const bool is_same = memcmp(&rounded, &result[i], sizeof rounded) == 0;
            distance = is_same ? fmin(distance, 0.5) : fmax(distance, 1.0);
        }
        if (distance > worst->distance) {
            *worst = (math_worst){distance, x[i], second, result[i], reference};
        }
    }
}

void math_check_f32(const math_case *function, const float *x, const float *y, size_t count,
                    math_worst *worst)
{
    float result[MATH_BLOCK];
    math_demand demand = math_demand_of(function, MATH_EXACT);
    math_run_f32(function->function, x, y, result, count);
    math_judge_f32(function, &demand, x, y, result, count, worst);
}

void math_check_f64(const math_case *function, const double *x, const double *y, size_t count,
                    math_worst *worst)
{
    double result[MATH_BLOCK];
    math_demand demand = math_demand_of(function, MATH_EXACT);
    math_run_f64(function->function, x, y, result, count);
    math_judge_f64(function, &demand, x, y, result, count, worst);
}
