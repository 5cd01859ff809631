/* scalar_reader.h: reads hal/ir_math.h as plain C scalars, for cases, tests and the exhaustive
 * check, apart from the kit's reader, which plugins use. A loop over one of its functions
 * vectorises. MATH_RARE is a conditional expression here, so the composed functions compute both
 * paths. */
#ifndef CONFORMANCE_MATH_SCALAR_READER_H
#define CONFORMANCE_MATH_SCALAR_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t scalar_bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float scalar_float_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t scalar_bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double scalar_float_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t scalar_mulhi_u64(uint64_t a, uint64_t b)
{
    uint64_t low = (a & 0xffffffff) * (b & 0xffffffff);
    uint64_t middle = (a >> 32) * (b & 0xffffffff) + (low >> 32);
    uint64_t other = (a & 0xffffffff) * (b >> 32) + (middle & 0xffffffff);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

#define MATH_CONTEXT int m
#define MATH_PASS    m
#define MATH_BOOL    bool
#define MATH_F32     float
#define MATH_I32     int32_t
#define MATH_U32     uint32_t
#define MATH_F64     double
#define MATH_I64     int64_t
#define MATH_U64     uint64_t

/* The context is named by every function, if only here. */
#define MATH_CONST_F32(c) ((void)m, (float)(c))
#define MATH_CONST_I32(c) ((void)m, (int32_t)(c))
#define MATH_CONST_U32(c) ((void)m, (uint32_t)(c))
#define MATH_CONST_F64(c) ((void)m, (double)(c))
#define MATH_CONST_I64(c) ((void)m, (int64_t)(c))
#define MATH_CONST_U64(c) ((void)m, (uint64_t)(c))

#define MATH_ADD(a, b)        ((void)m, (a) + (b))
#define MATH_SUB(a, b)        ((void)m, (a) - (b))
#define MATH_MUL(a, b)        ((void)m, (a) * (b))
#define MATH_DIV(a, b)        ((void)m, (a) / (b))
#define MATH_NEG(a)           (-(a))
#define MATH_ABS_F32(a)       __builtin_fabsf(a)
#define MATH_ABS_F64(a)       __builtin_fabs(a)
#define MATH_SQRT_F32(a)      __builtin_sqrtf(a)
#define MATH_SQRT_F64(a)      __builtin_sqrt(a)
#define MATH_RINT_F32(a)      __builtin_rintf(a)
#define MATH_RINT_F64(a)      __builtin_rint(a)
#define MATH_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#define MATH_FMA_F64(a, b, c) __builtin_fma(a, b, c)

#define MATH_AND(a, b)        ((a) & (b))
#define MATH_OR(a, b)         ((a) | (b))
#define MATH_XOR(a, b)        ((a) ^ (b))
#define MATH_SHL_U32(a, n)    ((uint32_t)(a) << (n))
#define MATH_SHR_U32(a, n)    ((uint32_t)(a) >> (n))
#define MATH_SHR_I32(a, n)    ((int32_t)(a) >> (n))
#define MATH_SHL_U64(a, n)    ((uint64_t)(a) << (n))
#define MATH_SHR_U64(a, n)    ((uint64_t)(a) >> (n))
#define MATH_SHR_I64(a, n)    ((int64_t)(a) >> (n))
#define MATH_SHL_BY_U32(a, n) ((uint32_t)(a) << (n))
#define MATH_SHR_BY_U32(a, n) ((uint32_t)(a) >> (n))
#define MATH_SHL_BY_U64(a, n) ((uint64_t)(a) << (n))
#define MATH_SHR_BY_U64(a, n) ((uint64_t)(a) >> (n))
#define MATH_MULHI_U32(a, b)  ((uint32_t)(((uint64_t)(a) * (b)) >> 32))
#define MATH_MULHI_U64(a, b)  scalar_mulhi_u64(a, b)

#define MATH_LT(a, b)        ((a) < (b))
#define MATH_LE(a, b)        ((a) <= (b))
#define MATH_GT(a, b)        ((a) > (b))
#define MATH_GE(a, b)        ((a) >= (b))
#define MATH_EQ(a, b)        ((a) == (b))
#define MATH_NE(a, b)        ((a) != (b))
#define MATH_BOTH(a, b)      ((a) & (b))
#define MATH_EITHER(a, b)    ((a) | (b))
#define MATH_NOT(a)          (!(a))
#define MATH_SELECT(c, a, b) ((c) ? (a) : (b))

#define MATH_I32_FROM_U32(a) ((int32_t)(a))
#define MATH_U32_FROM_I32(a) ((uint32_t)(a))
#define MATH_I64_FROM_U64(a) ((int64_t)(a))
#define MATH_U64_FROM_I64(a) ((uint64_t)(a))
#define MATH_U32_FROM_U64(a) ((uint32_t)(a))
#define MATH_U64_FROM_U32(a) ((uint64_t)(a))
#define MATH_F32_FROM_I32(a) ((float)(a))
#define MATH_BITS_F32(a)     scalar_bits_f32(a)
#define MATH_FLOAT_F32(a)    scalar_float_f32(a)
#define MATH_BITS_F64(a)     scalar_bits_f64(a)
#define MATH_FLOAT_F64(a)    scalar_float_f64(a)

#define MATH_RARE_F32(result, condition, function, x)                                              \
    ((result) = (condition) ? function(m, x) : (result))
#define MATH_RARE2_F32(result, condition, function, x, y)                                          \
    ((result) = (condition) ? function(m, x, y) : (result))
#define MATH_RARE_F64(result, condition, function, x) MATH_RARE_F32(result, condition, function, x)
#define MATH_RARE2_F64(result, condition, function, x, y)                                          \
    MATH_RARE2_F32(result, condition, function, x, y)

#include <hal/ir_math.h>

#endif
