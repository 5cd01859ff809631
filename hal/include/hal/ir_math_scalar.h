/* The transcendental functions of hal/ir_math.h as plain C on scalars, with the bits that the
 * expanded IR gives. An includer may define MATH_RARE_F32 and MATH_RARE2_F32 in another way. */
#ifndef HAL_IR_MATH_SCALAR_H
#define HAL_IR_MATH_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t math_bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float math_float_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t math_bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double math_float_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The upper half of a product of 64 bits, from four products of 32. */
static inline uint64_t math_mulhi_u64(uint64_t a, uint64_t b)
{
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t first = a_high * b_low + (a_low * b_low >> 32);
    const uint64_t second = a_low * b_high + (uint32_t)first;
    return a_high * b_high + (first >> 32) + (second >> 32);
}

#define MATH_CONTEXT int m
#define MATH_PASS m
#define MATH_BOOL int
#define MATH_F32 float
#define MATH_I32 int32_t
#define MATH_U32 uint32_t
#define MATH_F64 double
#define MATH_I64 int64_t
#define MATH_U64 uint64_t

#define MATH_CONST_F32(value) ((void)m, (float)(value))
#define MATH_CONST_I32(value) ((void)m, (int32_t)(value))
#define MATH_CONST_U32(value) ((void)m, (uint32_t)(value))
#define MATH_CONST_F64(value) ((void)m, (double)(value))
#define MATH_CONST_I64(value) ((void)m, (int64_t)(value))
#define MATH_CONST_U64(value) ((void)m, (uint64_t)(value))

#define MATH_ADD(x, y) ((void)m, (x) + (y))
#define MATH_SUB(x, y) ((void)m, (x) - (y))
#define MATH_MUL(x, y) ((void)m, (x) * (y))
#define MATH_DIV(x, y) ((void)m, (x) / (y))
#define MATH_NEG(x) (-(x))
#define MATH_ABS_F32(x) fabsf(x)
#define MATH_ABS_F64(x) fabs(x)
#define MATH_SQRT_F32(x) sqrtf(x)
#define MATH_SQRT_F64(x) sqrt(x)
#define MATH_RINT_F32(x) rintf(x)
#define MATH_RINT_F64(x) rint(x)
#define MATH_FMA_F32(x, y, z) fmaf(x, y, z)
#define MATH_FMA_F64(x, y, z) fma(x, y, z)

#define MATH_AND(x, y) ((x) & (y))
#define MATH_OR(x, y) ((x) | (y))
#define MATH_XOR(x, y) ((x) ^ (y))
#define MATH_SHL_U32(x, n) ((uint32_t)(x) << (n))
#define MATH_SHR_U32(x, n) ((uint32_t)(x) >> (n))
#define MATH_SHR_I32(x, n) ((int32_t)(x) >> (n))
#define MATH_SHL_U64(x, n) ((uint64_t)(x) << (n))
#define MATH_SHR_U64(x, n) ((uint64_t)(x) >> (n))
#define MATH_SHR_I64(x, n) ((int64_t)(x) >> (n))
#define MATH_SHL_BY_U32(x, n) ((uint32_t)(x) << (n))
#define MATH_SHR_BY_U32(x, n) ((uint32_t)(x) >> (n))
#define MATH_SHL_BY_U64(x, n) ((uint64_t)(x) << (n))
#define MATH_SHR_BY_U64(x, n) ((uint64_t)(x) >> (n))
#define MATH_MULHI_U32(x, y) ((uint32_t)((uint64_t)(x) * (y) >> 32))
#define MATH_MULHI_U64(x, y) math_mulhi_u64(x, y)

#define MATH_LT(x, y) ((x) < (y))
#define MATH_LE(x, y) ((x) <= (y))
#define MATH_GT(x, y) ((x) > (y))
#define MATH_GE(x, y) ((x) >= (y))
#define MATH_EQ(x, y) ((x) == (y))
#define MATH_NE(x, y) ((x) != (y))
#define MATH_BOTH(x, y) ((x) & (y))
#define MATH_EITHER(x, y) ((x) | (y))
#define MATH_NOT(x) (!(x))
#define MATH_SELECT(c, x, y) ((c) ? (x) : (y))

#define MATH_I32_FROM_U32(x) ((int32_t)(x))
#define MATH_U32_FROM_I32(x) ((uint32_t)(x))
#define MATH_I64_FROM_U64(x) ((int64_t)(x))
#define MATH_U64_FROM_I64(x) ((uint64_t)(x))
#define MATH_U32_FROM_U64(x) ((uint32_t)(x))
#define MATH_U64_FROM_U32(x) ((uint64_t)(x))
#define MATH_F32_FROM_I32(x) ((float)(x))
#define MATH_BITS_F32(x) math_bits_f32(x)
#define MATH_FLOAT_F32(x) math_float_f32(x)
#define MATH_BITS_F64(x) math_bits_f64(x)
#define MATH_FLOAT_F64(x) math_float_f64(x)

#ifndef MATH_RARE_F32
#define MATH_RARE_F32(result, condition, function, x) \
    do {                                              \
        if (condition) {                              \
            (result) = function(m, x);                \
        }                                             \
    } while (0)
#define MATH_RARE2_F32(result, condition, function, x, y) \
    do {                                                  \
        if (condition) {                                  \
            (result) = function(m, x, y);                 \
        }                                                 \
    } while (0)
#endif
#define MATH_RARE_F64 MATH_RARE_F32
#define MATH_RARE2_F64 MATH_RARE2_F32

#include <hal/ir_math.h>

#endif
