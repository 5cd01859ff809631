/* ir_math_f32.h: the f32 exponentials, logarithms and their kin, in the macros that ir_math.h
 * documents. Included by ir_math.h only. The worst errors named here are over all inputs. */
#ifndef HAL_IR_MATH_F32_H
#define HAL_IR_MATH_F32_H

/* Where the mantissa's interval begins: for log the ends of [2/3, 4/3) are where it loses least in
 * the sum with k * log(2), for pow [sqrt(1/2), sqrt(2)) has the smallest s. */
#define MATH_TWO_THIRDS_F32 0x3f2aaaabu
#define MATH_ROOT_HALF_F32  0x3f3504f3u

/* p * 2^n in two steps, so that n may go from -252 to 254 and a denormal result is rounded once.
 * biased holds n + 254 in its low 10 bits, and in the others nothing that the shifts keep. */
static inline MATH_F32 math_scale_f32(MATH_CONTEXT, MATH_F32 p, MATH_U32 biased)
{
    MATH_U32 half = MATH_SHR_U32(biased, 1);
    MATH_U32 other = MATH_SUB(biased, half);
    MATH_U32 first = MATH_SHL_U32(half, 23);
    MATH_U32 second = MATH_SHL_U32(other, 23);
    MATH_F32 scaled = MATH_MUL(p, MATH_FLOAT_F32(first));
    return MATH_MUL(scaled, MATH_FLOAT_F32(second));
}

/* x held in [low, high]; NaN passes. */
static inline MATH_F32 math_clamp_f32(MATH_CONTEXT, MATH_F32 x, float low, float high)
{
    MATH_F32 lowest = MATH_CONST_F32(low);
    MATH_F32 highest = MATH_CONST_F32(high);
    MATH_F32 y = MATH_SELECT(MATH_LT(x, lowest), lowest, x);
    return MATH_SELECT(MATH_GT(x, highest), highest, y);
}

/* r * r, but 2^-80 for smaller squares, which change no bit of r + r^3 * p(r * r) and its like: a
 * processor takes a hundred times as long for subnormal numbers, as the square of 1e-20. */
static inline MATH_F32 math_square_f32(MATH_CONTEXT, MATH_F32 r)
{
    MATH_F32 size = MATH_ABS_F32(r);
    MATH_F32 least = MATH_CONST_F32(0x1p-40f);
    MATH_F32 held = MATH_SELECT(MATH_LT(size, least), least, size);
    return MATH_MUL(held, held);
}

/* size, which has no sign, with that of x. */
static inline MATH_F32 math_with_sign_f32(MATH_CONTEXT, MATH_F32 size, MATH_F32 x)
{
    MATH_U32 bits = MATH_BITS_F32(size);
    MATH_U32 sign = MATH_BITS_F32(x);
    sign = MATH_AND(sign, MATH_CONST_U32(0x80000000));
    return MATH_FLOAT_F32(MATH_OR(bits, sign));
}

/* x = n * log(2) + r with |r| < 0.3475. Adding 1.5 * 2^23 rounds to an integer that stays readable
 * in the low bits; the 254 above it is the bias that math_scale_f32 wants. */
typedef struct math_exp_parts_f32 {
    MATH_F32 r;
    MATH_U32 biased;
} math_exp_parts_f32;

static inline math_exp_parts_f32 math_exp_reduce_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 magic = MATH_CONST_F32(0x1.8p23f + 254.0f);
    MATH_F32 t = MATH_FMA_F32(x, MATH_CONST_F32(0x1.715476p0f), magic);
    MATH_F32 n = MATH_SUB(t, magic);
    MATH_F32 r = MATH_FMA_F32(n, MATH_CONST_F32(-0x1.62e43p-1f), x);
    math_exp_parts_f32 parts;
    parts.r = MATH_FMA_F32(n, MATH_CONST_F32(0x1.05c61p-29f), r);
    parts.biased = MATH_BITS_F32(t);
    return parts;
}

static inline MATH_F32 math_exp_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 zero = MATH_CONST_F32(0.0f);
    MATH_BOOL is_zero = MATH_LT(x, MATH_CONST_F32(-104.0f)); /* chosen, as an underflow is slow */
    MATH_F32 highest = MATH_CONST_F32(89.0f);
    MATH_F32 held = MATH_SELECT(is_zero, zero, x);
    held = MATH_SELECT(MATH_GT(x, highest), highest, held);
    math_exp_parts_f32 parts = math_exp_reduce_f32(MATH_PASS, held);
    MATH_F32 r = parts.r;
    MATH_F32 p = MATH_CONST_F32(0x1.695414p-10f);
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.123b04p-7f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.555a22p-5f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.55549p-3f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.fffffap-2f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(1.0f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(1.0f));
    MATH_F32 result = math_scale_f32(MATH_PASS, p, parts.biased);
    return MATH_SELECT(is_zero, zero, result);
}

/* 2^r for |r| <= 1/2. */
static inline MATH_F32 math_exp2_polynomial_f32(MATH_CONTEXT, MATH_F32 r)
{
    MATH_F32 p = MATH_CONST_F32(0x1.3fad5cp-13f);
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.5f0ca8p-10f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.3b3096p-7f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.c6af74p-5f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.ebfbd8p-3f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.62e43p-1f));
    return MATH_FMA_F32(p, r, MATH_CONST_F32(1.0f));
}

static inline MATH_F32 math_exp2_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 zero = MATH_CONST_F32(0.0f);
    MATH_BOOL is_zero = MATH_LT(x, MATH_CONST_F32(-151.0f));
    MATH_F32 highest = MATH_CONST_F32(129.0f);
    MATH_F32 held = MATH_SELECT(is_zero, zero, x);
    held = MATH_SELECT(MATH_GT(x, highest), highest, held);
    MATH_F32 magic = MATH_CONST_F32(0x1.8p23f + 254.0f);
    MATH_F32 t = MATH_ADD(held, magic);
    MATH_F32 n = MATH_SUB(t, magic);
    MATH_F32 r = MATH_SUB(held, n);
    MATH_F32 p = math_exp2_polynomial_f32(MATH_PASS, r);
    MATH_F32 result = math_scale_f32(MATH_PASS, p, MATH_BITS_F32(t));
    return MATH_SELECT(is_zero, zero, result);
}

/* exp(x) - 1 = 2 * (2^(n-1) * expm1(r) + (2^(n-1) - 1/2)); halved, so that n = 128 does not
 * overflow. */
static inline MATH_F32 math_expm1_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 held = math_clamp_f32(MATH_PASS, x, -18.0f, 89.0f);
    math_exp_parts_f32 parts = math_exp_reduce_f32(MATH_PASS, held);
    MATH_F32 r = parts.r;
    MATH_F32 p = MATH_CONST_F32(0x1.9e0de4p-13f);
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.6d43c2p-10f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.111306p-7f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.5554fp-5f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.555554p-3f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0.5f));
    MATH_F32 square = MATH_MUL(r, r);
    p = MATH_FMA_F32(p, square, r);
    MATH_U32 exponent = MATH_SUB(parts.biased, MATH_CONST_U32(128));
    MATH_F32 scale = MATH_FLOAT_F32(MATH_SHL_U32(exponent, 23));
    MATH_F32 shifted = MATH_SUB(scale, MATH_CONST_F32(0.5f));
    MATH_F32 half = MATH_FMA_F32(p, scale, shifted);
    MATH_F32 result = MATH_ADD(half, half);
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_BOOL tiny = MATH_LT(size, MATH_CONST_F32(0x1p-26f));
    return MATH_SELECT(tiny, x, result);
}

/* x = 2^k * (1 + f) with 2/3 <= 1 + f < 4/3, for positive normal x; the lower end is an argument,
 * given by its bits. */
typedef struct math_log_parts_f32 {
    MATH_F32 f;
    MATH_F32 k;
} math_log_parts_f32;

static inline math_log_parts_f32 math_log_reduce_f32(MATH_CONTEXT, MATH_F32 x, uint32_t low)
{
    MATH_U32 lowest = MATH_CONST_U32(low);
    MATH_U32 above = MATH_SUB(MATH_BITS_F32(x), lowest);
    MATH_U32 fraction = MATH_AND(above, MATH_CONST_U32(0x007fffff));
    MATH_F32 mantissa = MATH_FLOAT_F32(MATH_ADD(fraction, lowest));
    MATH_I32 exponent = MATH_SHR_I32(MATH_I32_FROM_U32(above), 23);
    math_log_parts_f32 parts;
    parts.f = MATH_SUB(mantissa, MATH_CONST_F32(1.0f));
    parts.k = MATH_F32_FROM_I32(exponent);
    return parts;
}

/* k * log(2) + log(1 + f) for f in [-1/3, 1/3). The first 15 bits of log(2) times k are exact, so
 * what rounding loses when f is added to them can be computed, and is added to the small terms. */
static inline MATH_F32 math_log_sum_f32(MATH_CONTEXT, MATH_F32 f, MATH_F32 k)
{
    MATH_F32 p = MATH_CONST_F32(-0x1.06cdfcp-3f);
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.1ec6f8p-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.f3a7dep-4f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.1ec0cep-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.559802p-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.99d1c6p-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.ffff14p-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.555502p-2f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0.5f));
    MATH_F32 square = MATH_MUL(f, f);
    p = MATH_MUL(p, square);
    p = MATH_FMA_F32(k, MATH_CONST_F32(0x1.7f7d1cp-20f), p);
    MATH_F32 high = MATH_FMA_F32(k, MATH_CONST_F32(0x1.62e4p-1f), f);
    MATH_F32 added = MATH_FMA_F32(k, MATH_CONST_F32(-0x1.62e4p-1f), high);
    MATH_F32 low = MATH_SUB(f, added);
    low = MATH_ADD(low, p);
    return MATH_ADD(high, low);
}

/* Not a positive normal number: what the logarithms leave to their rare path. */
static inline MATH_BOOL math_log_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    MATH_U32 bits = MATH_BITS_F32(x);
    MATH_U32 above = MATH_SUB(bits, MATH_CONST_U32(0x00800000));
    return MATH_GE(above, MATH_CONST_U32(0x7f000000));
}

/* The logarithm's value at the ends: result for x in (0, inf), else -inf, inf or NaN. */
static inline MATH_F32 math_log_ends_f32(MATH_CONTEXT, MATH_F32 x, MATH_F32 result)
{
    MATH_F32 zero = MATH_CONST_F32(0.0f);
    MATH_BOOL finite = MATH_LT(x, MATH_CONST_F32(INFINITY));
    MATH_F32 y = MATH_SELECT(finite, result, x);
    MATH_BOOL negative = MATH_LT(x, zero);
    y = MATH_SELECT(negative, MATH_CONST_F32(NAN), y);
    MATH_BOOL none = MATH_EQ(x, zero);
    return MATH_SELECT(none, MATH_CONST_F32(-INFINITY), y);
}

static inline MATH_F32 math_log_f32_fast(MATH_CONTEXT, MATH_F32 x)
{
    math_log_parts_f32 parts = math_log_reduce_f32(MATH_PASS, x, MATH_TWO_THIRDS_F32);
    return math_log_sum_f32(MATH_PASS, parts.f, parts.k);
}

static inline MATH_F32 math_log_f32_rare(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 scaled = MATH_MUL(x, MATH_CONST_F32(0x1p23f));
    math_log_parts_f32 parts = math_log_reduce_f32(MATH_PASS, scaled, MATH_TWO_THIRDS_F32);
    MATH_F32 k = MATH_SUB(parts.k, MATH_CONST_F32(23.0f));
    MATH_F32 result = math_log_sum_f32(MATH_PASS, parts.f, k);
    return math_log_ends_f32(MATH_PASS, x, result);
}

static inline MATH_F32 math_log_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 result = math_log_f32_fast(MATH_PASS, x);
    MATH_BOOL rare = math_log_f32_is_rare(MATH_PASS, x);
    MATH_RARE_F32(result, rare, math_log_f32_rare, x);
    return result;
}

/* k + log2(1 + f) for f in [-1/3, 1/3). */
static inline MATH_F32 math_log2_sum_f32(MATH_CONTEXT, MATH_F32 f, MATH_F32 k)
{
    MATH_F32 p = MATH_CONST_F32(-0x1.8b4dfep-3f);
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.9db04ep-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.645364p-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.9db506p-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.ed2a4cp-3f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.279f34p-2f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.71525cp-2f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.ec7026p-2f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(-0x1.715478p-1f));
    p = MATH_FMA_F32(p, f, MATH_CONST_F32(0x1.4ae0cp-26f));
    p = MATH_MUL(p, f);
    p = MATH_FMA_F32(f, MATH_CONST_F32(0x1.715476p0f), p);
    return MATH_ADD(p, k);
}

static inline MATH_F32 math_log2_f32_fast(MATH_CONTEXT, MATH_F32 x)
{
    math_log_parts_f32 parts = math_log_reduce_f32(MATH_PASS, x, MATH_TWO_THIRDS_F32);
    return math_log2_sum_f32(MATH_PASS, parts.f, parts.k);
}

static inline MATH_BOOL math_log2_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    return math_log_f32_is_rare(MATH_PASS, x);
}

static inline MATH_F32 math_log2_f32_rare(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 scaled = MATH_MUL(x, MATH_CONST_F32(0x1p23f));
    math_log_parts_f32 parts = math_log_reduce_f32(MATH_PASS, scaled, MATH_TWO_THIRDS_F32);
    MATH_F32 k = MATH_SUB(parts.k, MATH_CONST_F32(23.0f));
    MATH_F32 result = math_log2_sum_f32(MATH_PASS, parts.f, k);
    return math_log_ends_f32(MATH_PASS, x, result);
}

static inline MATH_F32 math_log2_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 result = math_log2_f32_fast(MATH_PASS, x);
    MATH_BOOL rare = math_log2_f32_is_rare(MATH_PASS, x);
    MATH_RARE_F32(result, rare, math_log2_f32_rare, x);
    return result;
}

/* With k taken from 1 + x, 1 + f = (1 + x) / 2^k gives f = x / 2^k + (1 / 2^k - 1), rounded
 * once. */
static inline MATH_F32 math_log1p_f32_fast(MATH_CONTEXT, MATH_F32 x)
{
    MATH_U32 lowest = MATH_CONST_U32(MATH_TWO_THIRDS_F32);
    MATH_F32 near = MATH_ADD(x, MATH_CONST_F32(1.0f));
    MATH_U32 above = MATH_SUB(MATH_BITS_F32(near), lowest);
    MATH_U32 exponent = MATH_AND(above, MATH_CONST_U32(0xff800000));
    MATH_I32 k = MATH_SHR_I32(MATH_I32_FROM_U32(above), 23);
    MATH_F32 scale = MATH_FLOAT_F32(MATH_SUB(MATH_CONST_U32(0x3f800000), exponent));
    MATH_F32 offset = MATH_SUB(scale, MATH_CONST_F32(1.0f));
    MATH_F32 f = MATH_FMA_F32(x, scale, offset);
    MATH_F32 result = math_log_sum_f32(MATH_PASS, f, MATH_F32_FROM_I32(k));
    MATH_BOOL zero = MATH_EQ(x, MATH_CONST_F32(0.0f));
    return MATH_SELECT(zero, x, result);
}

/* x <= -1, or so large that 1 / 2^k has no normal form, or NaN. */
static inline MATH_BOOL math_log1p_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    MATH_BOOL above = MATH_GT(x, MATH_CONST_F32(-1.0f));
    MATH_BOOL below = MATH_LT(x, MATH_CONST_F32(0x1p100f));
    return MATH_NOT(MATH_BOTH(above, below));
}

/* 1 + x is x itself when x is large, and zero, negative or NaN otherwise. */
static inline MATH_F32 math_log1p_f32_rare(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 near = MATH_ADD(x, MATH_CONST_F32(1.0f));
    MATH_F32 result = math_log_f32_fast(MATH_PASS, near);
    return math_log_ends_f32(MATH_PASS, near, result);
}

static inline MATH_F32 math_log1p_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 result = math_log1p_f32_fast(MATH_PASS, x);
    MATH_BOOL rare = math_log1p_f32_is_rare(MATH_PASS, x);
    MATH_RARE_F32(result, rare, math_log1p_f32_rare, x);
    return result;
}

/* tanh(size) for sizes below 1: an odd polynomial. */
static inline MATH_F32 math_tanh_small_f32(MATH_CONTEXT, MATH_F32 size)
{
    MATH_F32 z = math_square_f32(MATH_PASS, size);
    MATH_F32 q = MATH_CONST_F32(-0x1.77adccp-12f);
    q = MATH_FMA_F32(q, z, MATH_CONST_F32(0x1.2d9588p-9f));
    q = MATH_FMA_F32(q, z, MATH_CONST_F32(-0x1.045d62p-7f));
    q = MATH_FMA_F32(q, z, MATH_CONST_F32(0x1.60091ep-6f));
    q = MATH_FMA_F32(q, z, MATH_CONST_F32(-0x1.b9623p-5f));
    q = MATH_FMA_F32(q, z, MATH_CONST_F32(0x1.110be4p-3f));
    q = MATH_FMA_F32(q, z, MATH_CONST_F32(-0x1.55553cp-2f));
    MATH_F32 cube = MATH_MUL(z, size);
    return MATH_FMA_F32(q, cube, size);
}

/* Right where |x| < 1. */
static inline MATH_F32 math_tanh_f32_near(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 small = math_tanh_small_f32(MATH_PASS, MATH_ABS_F32(x));
    return math_with_sign_f32(MATH_PASS, small, x);
}

/* From 1 on, 1 - 2 / (exp(2|x|) + 1), whose second term is then under 1/4, so that its error counts
 * for little. */
static inline MATH_F32 math_tanh_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_F32 one = MATH_CONST_F32(1.0f);

    MATH_F32 ten = MATH_CONST_F32(10.0f);
    MATH_F32 held = MATH_SELECT(MATH_GT(size, ten), ten, size);
    MATH_F32 magic = MATH_CONST_F32(0x1.8p23f + 127.0f);
    MATH_F32 t = MATH_FMA_F32(held, MATH_CONST_F32(0x1.715476p1f), magic);
    MATH_F32 n = MATH_SUB(t, magic);
    MATH_F32 r = MATH_FMA_F32(n, MATH_CONST_F32(-0x1.62e43p-2f), held);
    r = MATH_FMA_F32(n, MATH_CONST_F32(0x1.05c61p-30f), r);
    MATH_F32 p = MATH_CONST_F32(0x1.695458p-4f);
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.123b0ep-2f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.555a22p-1f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.55549p0f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.fffffap0f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(2.0f));
    p = MATH_FMA_F32(p, r, one);
    MATH_U32 exponent = MATH_SHL_U32(MATH_BITS_F32(t), 23);
    MATH_F32 power = MATH_MUL(p, MATH_FLOAT_F32(exponent));
    MATH_F32 divisor = MATH_ADD(power, one);
    MATH_F32 half_tail = MATH_DIV(one, divisor);
    MATH_F32 large = MATH_FMA_F32(half_tail, MATH_CONST_F32(-2.0f), one);

    MATH_F32 small = math_tanh_small_f32(MATH_PASS, size);
    MATH_BOOL below = MATH_LT(size, one);
    return math_with_sign_f32(MATH_PASS, MATH_SELECT(below, small, large), x);
}

/* erf(size) for sizes below 1: an odd polynomial. */
static inline MATH_F32 math_erf_small_f32(MATH_CONTEXT, MATH_F32 size)
{
    MATH_F32 z = math_square_f32(MATH_PASS, size);
    MATH_F32 s = MATH_CONST_F32(0x1.4c5cb4p-14f);
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(-0x1.a5197ap-11f));
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(0x1.542fecp-8f));
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(-0x1.b7fec4p-6f));
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(0x1.ce2d52p-4f));
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(-0x1.81274p-2f));
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(0x1.06eba8p-3f));
    return MATH_FMA_F32(s, size, size);
}

/* Right where |x| < 1. */
static inline MATH_F32 math_erf_f32_near(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 small = math_erf_small_f32(MATH_PASS, MATH_ABS_F32(x));
    return math_with_sign_f32(MATH_PASS, small, x);
}

/* From 1 on, 1 - 2^-q(|x|) with a polynomial q. Beyond 4 the second term is lost in rounding, so
 * |x| is held there. */
static inline MATH_F32 math_erf_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_F32 one = MATH_CONST_F32(1.0f);

    MATH_F32 four = MATH_CONST_F32(4.0f);
    MATH_F32 held = MATH_SELECT(MATH_GT(size, four), four, size);
    MATH_F32 q = MATH_CONST_F32(0x1.18ea0ap-12f);
    q = MATH_FMA_F32(q, held, MATH_CONST_F32(-0x1.160d48p-8f));
    q = MATH_FMA_F32(q, held, MATH_CONST_F32(0x1.01c4a2p-5f));
    q = MATH_FMA_F32(q, held, MATH_CONST_F32(-0x1.3078a4p-3f));
    q = MATH_FMA_F32(q, held, MATH_CONST_F32(-0x1.d76bfcp-1f));
    q = MATH_FMA_F32(q, held, MATH_CONST_F32(-0x1.a040b2p0f));
    q = MATH_FMA_F32(q, held, MATH_CONST_F32(-0x1.09ee5cp-11f));
    MATH_F32 magic = MATH_CONST_F32(0x1.8p23f + 127.0f);
    MATH_F32 t = MATH_ADD(q, magic);
    MATH_F32 n = MATH_SUB(t, magic);
    MATH_F32 r = MATH_SUB(q, n);
    MATH_F32 p = MATH_CONST_F32(0x1.5bffbap-10f);
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.3ceca6p-7f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.c6b69ap-5f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.ebf9b6p-3f));
    p = MATH_FMA_F32(p, r, MATH_CONST_F32(0x1.62e42ap-1f));
    p = MATH_FMA_F32(p, r, one);
    MATH_U32 exponent = MATH_SHL_U32(MATH_BITS_F32(t), 23);
    MATH_F32 tail = MATH_MUL(p, MATH_FLOAT_F32(exponent));
    MATH_F32 large = MATH_SUB(one, tail);

    MATH_F32 small = math_erf_small_f32(MATH_PASS, size);
    MATH_BOOL below = MATH_LT(size, one);
    return math_with_sign_f32(MATH_PASS, MATH_SELECT(below, small, large), x);
}

static inline MATH_F32 math_rsqrt_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 root = MATH_SQRT_F32(x);
    return MATH_DIV(MATH_CONST_F32(1.0f), root);
}

/* y * log2(x) for positive normal x, as high + low: log2(x) = k + 2 log2(e) * atanh(s) with
 * s = f / (2 + f). All that matters is carried in pairs of floats, the second of which holds what
 * the first lost in rounding. shift is added to k. */
typedef struct math_pair_f32 {
    MATH_F32 high;
    MATH_F32 low;
} math_pair_f32;

static inline math_pair_f32 math_pow_exponent_f32(MATH_CONTEXT, MATH_F32 x, MATH_F32 y,
                                                  MATH_F32 shift)
{
    math_log_parts_f32 parts = math_log_reduce_f32(MATH_PASS, x, MATH_ROOT_HALF_F32);
    MATH_F32 f = parts.f;
    MATH_F32 k = MATH_ADD(parts.k, shift);

    MATH_F32 two = MATH_CONST_F32(2.0f);
    MATH_F32 divisor = MATH_ADD(f, two);
    MATH_F32 divisor_low = MATH_SUB(divisor, two);
    divisor_low = MATH_SUB(f, divisor_low);
    MATH_F32 inverse = MATH_DIV(MATH_CONST_F32(1.0f), divisor);
    MATH_F32 s = MATH_MUL(f, inverse);
    MATH_F32 minus = MATH_NEG(s);
    MATH_F32 rest = MATH_FMA_F32(minus, divisor, f);
    rest = MATH_FMA_F32(minus, divisor_low, rest);
    MATH_F32 s_low = MATH_MUL(rest, inverse);

    /* The derivative of atanh, 1 / (1 - z), carries s_low through the tail as well. */
    MATH_F32 z = MATH_MUL(s, s);
    s_low = MATH_FMA_F32(s_low, z, s_low);
    MATH_F32 tail = MATH_CONST_F32(0x1.558d6ep-2f);
    tail = MATH_FMA_F32(tail, z, MATH_CONST_F32(0x1.a5f2a6p-2f));
    tail = MATH_FMA_F32(tail, z, MATH_CONST_F32(0x1.2776b2p-1f));
    tail = MATH_FMA_F32(tail, z, MATH_CONST_F32(0x1.ec709ep-1f));
    MATH_F32 cube = MATH_MUL(z, s);

    MATH_F32 factor = MATH_CONST_F32(0x1.715476p1f);
    MATH_F32 high = MATH_MUL(s, factor);
    MATH_F32 low = MATH_FMA_F32(s, factor, MATH_NEG(high));
    low = MATH_FMA_F32(s, MATH_CONST_F32(0x1.4ae0cp-25f), low);
    low = MATH_FMA_F32(s_low, factor, low);
    low = MATH_FMA_F32(cube, tail, low);

    MATH_F32 sum = MATH_ADD(k, high);
    MATH_F32 lost = MATH_SUB(sum, k);
    lost = MATH_SUB(high, lost);
    low = MATH_ADD(low, lost);
    MATH_F32 log_high = MATH_ADD(sum, low);
    lost = MATH_SUB(log_high, sum);
    MATH_F32 log_low = MATH_SUB(low, lost);

    math_pair_f32 product;
    product.high = MATH_MUL(log_high, y);
    product.low = MATH_FMA_F32(log_high, y, MATH_NEG(product.high));
    product.low = MATH_FMA_F32(log_low, y, product.low);
    return product;
}

/* 2^(high + low); beyond 160 low may be anything and does not count. */
static inline MATH_F32 math_pow_power_f32(MATH_CONTEXT, math_pair_f32 exponent)
{
    MATH_F32 size = MATH_ABS_F32(exponent.high);
    MATH_BOOL fits = MATH_LT(size, MATH_CONST_F32(160.0f));
    MATH_F32 low = MATH_SELECT(fits, exponent.low, MATH_CONST_F32(0.0f));
    MATH_F32 held = math_clamp_f32(MATH_PASS, exponent.high, -160.0f, 160.0f);
    MATH_F32 magic = MATH_CONST_F32(0x1.8p23f + 254.0f);
    MATH_F32 t = MATH_ADD(held, magic);
    MATH_F32 n = MATH_SUB(t, magic);
    MATH_F32 r = MATH_SUB(held, n);
    r = MATH_ADD(r, low);
    MATH_F32 p = math_exp2_polynomial_f32(MATH_PASS, r);
    return math_scale_f32(MATH_PASS, p, MATH_BITS_F32(t));
}

static inline MATH_F32 math_pow_f32_fast(MATH_CONTEXT, MATH_F32 x, MATH_F32 y)
{
    MATH_F32 none = MATH_CONST_F32(0.0f);
    math_pair_f32 exponent = math_pow_exponent_f32(MATH_PASS, x, y, none);
    return math_pow_power_f32(MATH_PASS, exponent);
}

/* x is no positive normal number, or y is infinite or NaN. */
static inline MATH_BOOL math_pow_f32_is_rare(MATH_CONTEXT, MATH_F32 x, MATH_F32 y)
{
    MATH_BOOL rare = math_log_f32_is_rare(MATH_PASS, x);
    MATH_F32 size = MATH_ABS_F32(y);
    MATH_BOOL finite = MATH_LT(size, MATH_CONST_F32(INFINITY));
    return MATH_EITHER(rare, MATH_NOT(finite));
}

/* The special cases of C's pow: zeros, infinities, NaN, and negative x with integer y. */
static inline MATH_F32 math_pow_f32_rare(MATH_CONTEXT, MATH_F32 x, MATH_F32 y)
{
    MATH_F32 zero = MATH_CONST_F32(0.0f);
    MATH_F32 one = MATH_CONST_F32(1.0f);
    MATH_F32 infinity = MATH_CONST_F32(INFINITY);
    MATH_F32 nan = MATH_CONST_F32(NAN);
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_F32 y_size = MATH_ABS_F32(y);

    MATH_BOOL denormal = MATH_LT(size, MATH_CONST_F32(0x1p-126f));
    MATH_F32 scaled = MATH_MUL(size, MATH_CONST_F32(0x1p23f));
    scaled = MATH_SELECT(denormal, scaled, size);
    MATH_F32 shift = MATH_SELECT(denormal, MATH_CONST_F32(-23.0f), zero);
    math_pair_f32 exponent = math_pow_exponent_f32(MATH_PASS, scaled, y, shift);
    MATH_F32 result = math_pow_power_f32(MATH_PASS, exponent);

    /* Results of 0 and infinity: x is one of them, or y is infinite and |x| is not 1. */
    MATH_BOOL small = MATH_LT(size, one);
    MATH_BOOL falling = MATH_LT(y, zero);
    MATH_F32 when_small = MATH_SELECT(falling, infinity, zero);
    MATH_F32 when_large = MATH_SELECT(falling, zero, infinity);
    MATH_F32 end = MATH_SELECT(small, when_small, when_large);
    MATH_BOOL unit = MATH_EQ(size, one);
    end = MATH_SELECT(unit, one, end);
    MATH_BOOL ends = MATH_EQ(y_size, infinity);
    result = MATH_SELECT(ends, end, result);
    ends = MATH_EQ(size, zero);
    result = MATH_SELECT(ends, end, result);
    ends = MATH_EQ(size, infinity);
    result = MATH_SELECT(ends, end, result);

    /* An odd y keeps the sign of x, any other whole y loses it. */
    MATH_BOOL whole = MATH_EQ(MATH_RINT_F32(y), y);
    MATH_F32 half = MATH_MUL(y, MATH_CONST_F32(0.5f));
    MATH_BOOL odd = MATH_NE(MATH_RINT_F32(half), half);
    odd = MATH_BOTH(odd, whole);
    MATH_F32 sign_of = MATH_SELECT(odd, x, one);
    result = math_with_sign_f32(MATH_PASS, result, sign_of);
    MATH_BOOL wrong = MATH_LT(x, zero);
    MATH_BOOL finite = MATH_LT(size, infinity);
    wrong = MATH_BOTH(wrong, finite);
    wrong = MATH_BOTH(wrong, MATH_NOT(whole));
    result = MATH_SELECT(wrong, nan, result);

    MATH_BOOL unknown = MATH_NE(x, x);
    unknown = MATH_EITHER(unknown, MATH_NE(y, y));
    result = MATH_SELECT(unknown, nan, result);
    MATH_BOOL certain = MATH_EQ(y, zero);
    certain = MATH_EITHER(certain, MATH_EQ(x, one));
    return MATH_SELECT(certain, one, result);
}

static inline MATH_F32 math_pow_f32(MATH_CONTEXT, MATH_F32 x, MATH_F32 y)
{
    MATH_F32 result = math_pow_f32_fast(MATH_PASS, x, y);
    MATH_BOOL rare = math_pow_f32_is_rare(MATH_PASS, x, y);
    MATH_RARE2_F32(result, rare, math_pow_f32_rare, x, y);
    return result;
}

#endif
