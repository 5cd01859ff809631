/* Functions of floats that Metal does not promise exactly. The results are off by about half of
 * what the language specification allows, so that nothing can rely on the bits of a real device. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define UNARY(X)                                                                            \
    X(acos, 2) X(acosh, 2) X(asin, 2) X(asinh, 2) X(atan, 2) X(atanh, 2) X(cos, 2) X(cosh, 2) \
    X(exp, 2) X(exp2, 2) X(log, 2) X(log2, 2) X(log10, 2) X(sin, 2) X(sinh, 2) X(tan, 3)      \
    X(tanh, 2)

/* Moves a finite result by up to ulps, by a pattern of its own bits. Values that are exact for
 * arguments like 0 and 1 are left, as on devices. */
static float off_by(double exact, uint32_t ulps)
{
    const float value = (float)exact;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t size = bits & 0x7fffffffu, noise = bits * 2654435761u >> 16;
    if ((double)value == exact || size < 0x01000000u || size > 0x7f000000u) {
        return value;
    }
    bits += noise % (2 * ulps + 1) - ulps;
    float moved;
    memcpy(&moved, &bits, sizeof moved);
    return moved;
}

#define DEFINE(name, ulps)                                                           \
    float msl_precise_##name(float x);                                               \
    float msl_precise_##name(float x) { return off_by(name((double)x), ulps); }      \
    float msl_fast_##name(float x);                                                  \
    float msl_fast_##name(float x) { return off_by(name((double)x), 8 * ulps); }
UNARY(DEFINE)

#define PI 3.14159265358979323846
#define DEFINE_AS(name, expression, precise, fast)                                 \
    float msl_precise_##name(float x);                                             \
    float msl_precise_##name(float x) { return off_by((expression), precise); }    \
    float msl_fast_##name(float x);                                                \
    float msl_fast_##name(float x) { return off_by((expression), fast); }
DEFINE_AS(exp10, pow(10.0, (double)x), 2, 16)
DEFINE_AS(cospi, cos(PI * fmod((double)x, 2.0)), 2, 16)
DEFINE_AS(sinpi, sin(PI * fmod((double)x, 2.0)), 2, 16)
DEFINE_AS(tanpi, tan(PI * fmod((double)x, 2.0)), 3, 16)
DEFINE_AS(rsqrt, 1.0 / sqrt((double)x), 0, 2)

#define DEFINE2(name, expression, precise, fast)                                            \
    float msl_precise_##name(float x, float y);                                             \
    float msl_precise_##name(float x, float y) { return off_by((expression), precise); }    \
    float msl_fast_##name(float x, float y);                                                \
    float msl_fast_##name(float x, float y) { return off_by((expression), fast); }
DEFINE2(atan2, atan2((double)x, (double)y), 3, 16)
DEFINE2(pow, pow((double)x, (double)y), 8, 16)
DEFINE2(powr, pow((double)x, (double)y), 8, 16)
DEFINE2(divide, (double)x / (double)y, 0, 2)

float msl_fast_sqrt(float x);
float msl_fast_sqrt(float x)
{
    return off_by(sqrt((double)x), 2);
}

float msl_fmod(float x, float y);
float msl_fmod(float x, float y)
{
    return fmodf(x, y);
}

float msl_ldexp(float x, int n);
float msl_ldexp(float x, int n)
{
    return ldexpf(x, n);
}

float msl_round(float x);
float msl_round(float x)
{
    return roundf(x);
}

/* a * b + c of halves: the product is exact, and the sum is rounded to 53 bits before 11. */
uint16_t msl_fma_half(float a, float b, float c);
uint16_t msl_fma_half(float a, float b, float c)
{
    const double exact = (double)a * (double)b + (double)c;
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000u);
    const double size = fabs(exact);
    if (isnan(exact)) {
        return 0x7e00u;
    }
    if (size >= 65520.0) {
        return sign | 0x7c00u;
    }
    if (size < 0x1p-14) {
        return sign | (uint16_t)nearbyint(size * 0x1p24);
    }
    int exponent;
    const double fraction = frexp(size, &exponent); /* in [0.5, 1) */
    const uint32_t digits = (uint32_t)nearbyint(fraction * 2048.0);
    return sign | (uint16_t)(((uint32_t)(exponent + 13) << 10) + digits);
}
