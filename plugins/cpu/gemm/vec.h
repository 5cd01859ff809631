/* Included first by every micro_<isa>.c: unrolling, dispatch on the storage type, and the
 * scalar conversions of f16 and bf16, which also serve the ends of rows. */
#ifndef PLUGINS_CPU_GEMM_VEC_H
#define PLUGINS_CPU_GEMM_VEC_H

#include "gemm/kernels.h"

#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Rows of B that a tile asks for ahead: no hardware does, where each is in a separate page. */
enum { PREFETCH_ROWS = 8 };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Calls fn with the storage type appended as a constant. */
#define DISPATCH_F32(fn, type, ...)         \
    do {                                    \
        if ((type) == CPU_GEMM_F16)         \
            fn(__VA_ARGS__, CPU_GEMM_F16);  \
        else if ((type) == CPU_GEMM_BF16)   \
            fn(__VA_ARGS__, CPU_GEMM_BF16); \
        else                                \
            fn(__VA_ARGS__, CPU_GEMM_F32);  \
    } while (0)
#define DISPATCH_F64(fn, type, ...) ((void)(type), fn(__VA_ARGS__, CPU_GEMM_F64))

static inline float f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    /* The product with 2^112 moves the exponent and normalises subnormals at once. */
    uint32_t bits = bits_of_f32(f32_of_bits(rest) * 0x1p112f);
    if (rest >= 0x0f800000) {
        bits = rest | 0x7f800000;
    }
    return f32_of_bits(bits | sign);
}

static inline uint16_t f16_of_f32(float value)
{
    uint32_t bits = bits_of_f32(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    uint32_t half;
    if (rest > 0x7f800000) {
        half = 0x7e00 | (rest >> 13 & 0x3ff);
    } else if (rest >= 0x477ff000) {
        half = 0x7c00;
    } else if (rest <
               0x38800000) { /* subnormal: adding 1/2 aligns the last place of f16 with f32's */
        half = bits_of_f32(f32_of_bits(rest) + 0.5f) - 0x3f000000;
    } else {
        half = (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;
    }
    return (uint16_t)(half | sign);
}

static inline float f32_of_bf16(uint16_t half)
{
    return f32_of_bits((uint32_t)half << 16);
}

static inline uint16_t bf16_of_f32(float value)
{
    uint32_t bits = bits_of_f32(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

ALWAYS_INLINE float widen_one_f32(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F32) {
        return ((const float *)p)[i];
    }
    uint16_t half = ((const uint16_t *)p)[i];
    return type == CPU_GEMM_F16 ? f32_of_f16(half) : f32_of_bf16(half);
}

ALWAYS_INLINE void narrow_one_f32(void *p, int64_t i, const enum cpu_gemm_type type, float value)
{
    if (type == CPU_GEMM_F32) {
        ((float *)p)[i] = value;
    } else {
        ((uint16_t *)p)[i] = type == CPU_GEMM_F16 ? f16_of_f32(value) : bf16_of_f32(value);
    }
}

ALWAYS_INLINE double widen_one_f64(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    (void)type;
    return ((const double *)p)[i];
}

ALWAYS_INLINE void narrow_one_f64(void *p, int64_t i, const enum cpu_gemm_type type, double value)
{
    (void)type;
    ((double *)p)[i] = value;
}

#endif
