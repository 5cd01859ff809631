/* Numbers of 16 bits: F16 is IEEE 754's binary16, BF16 the high half of a float. */
#ifndef BLAS_SRC_HALF_H
#define BLAS_SRC_HALF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline double blas_bf16_load(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static inline double blas_f16_load(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, digits = bits & 1023;
    const double size = exponent == 31  ? (digits ? (double)NAN : (double)INFINITY)
                        : exponent == 0 ? ldexp(digits, -24)
                                        : ldexp(digits + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
}

/* The nearest number with so many binary digits, whose exponents begin at `lowest`; of two the even
 * one. */
static inline double blas_round(double value, int digits, int lowest)
{
    int exponent;
    frexp(value, &exponent);
    exponent = (exponent - 1 < lowest ? lowest : exponent - 1) - (digits - 1);
    const double scaled = ldexp(value, -exponent), down = floor(scaled), rest = scaled - down;
    const bool is_up = rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0);
    return copysign(ldexp(down + is_up, exponent), value);
}

static inline uint16_t blas_bf16_store(double value)
{
    const float rounded = isfinite(value) ? (float)blas_round(value, 8, -126) : (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(bits >> 16 | (value != value ? 64 : 0));
}

static inline uint16_t blas_f16_store(double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (value != value) {
        return sign | 0x7e00;
    }
    const double size = isfinite(value) ? fabs(blas_round(value, 11, -14)) : (double)INFINITY;
    if (size > 65504) {
        return sign | 0x7c00;
    }
    int exponent;
    frexp(size, &exponent);
    return (uint16_t)(sign | (size < 0x1p-14 ? (int)ldexp(size, 24)
                                             : ((exponent + 14) << 10) +
                                                   (int)ldexp(size, 11 - exponent) - 1024));
}

#endif
