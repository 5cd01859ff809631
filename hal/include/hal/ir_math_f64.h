/* ir_math_f64.h: exponentials, logarithms and related functions of f64, in the macros of ir_math.h,
 * which includes it. Methods are those of ir_math_f32.h unless stated. */
#ifndef HAL_IR_MATH_F64_H
#define HAL_IR_MATH_F64_H

#define MATH_TWO_THIRDS_F64 UINT64_C(0x3fe5555555555555)
#define MATH_ROOT_HALF_F64  UINT64_C(0x3fe6a09e667f3bcd)

/* p * 2^n. The low 13 bits of `biased` are n + 2046; the shifts drop the others. */
static inline MATH_F64 math_scale_f64(MATH_CONTEXT, MATH_F64 p, MATH_U64 biased)
{
    MATH_U64 half = MATH_SHR_U64(biased, 1);
    MATH_U64 other = MATH_SUB(biased, half);
    MATH_U64 first = MATH_SHL_U64(half, 52);
    MATH_U64 second = MATH_SHL_U64(other, 52);
    MATH_F64 scaled = MATH_MUL(p, MATH_FLOAT_F64(first));
    return MATH_MUL(scaled, MATH_FLOAT_F64(second));
}

static inline MATH_F64 math_clamp_f64(MATH_CONTEXT, MATH_F64 x, double low, double high)
{
    MATH_F64 lowest = MATH_CONST_F64(low);
    MATH_F64 highest = MATH_CONST_F64(high);
    MATH_F64 y = MATH_SELECT(MATH_LT(x, lowest), lowest, x);
    return MATH_SELECT(MATH_GT(x, highest), highest, y);
}

static inline MATH_F64 math_with_sign_f64(MATH_CONTEXT, MATH_F64 size, MATH_F64 x)
{
    MATH_U64 bits = MATH_BITS_F64(size);
    MATH_U64 sign = MATH_BITS_F64(x);
    sign = MATH_AND(sign, MATH_CONST_U64(UINT64_C(0x8000000000000000)));
    return MATH_FLOAT_F64(MATH_OR(bits, sign));
}

typedef struct math_exp_parts_f64 {
    MATH_F64 r;
    MATH_U64 biased;
} math_exp_parts_f64;

static inline math_exp_parts_f64 math_exp_reduce_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 magic = MATH_CONST_F64(0x1.8p52 + 2046.0);
    MATH_F64 t = MATH_FMA_F64(x, MATH_CONST_F64(0x1.71547652b82fep0), magic);
    MATH_F64 n = MATH_SUB(t, magic);
    MATH_F64 r = MATH_FMA_F64(n, MATH_CONST_F64(-0x1.62e42fefa39efp-1), x);
    math_exp_parts_f64 parts;
    parts.r = MATH_FMA_F64(n, MATH_CONST_F64(-0x1.abc9e3b39803fp-56), r);
    parts.biased = MATH_BITS_F64(t);
    return parts;
}

static inline MATH_F64 math_exp_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 zero = MATH_CONST_F64(0.0);
    MATH_BOOL is_zero = MATH_LT(x, MATH_CONST_F64(-746.0)); /* chosen, as an underflow is slow */
    MATH_F64 highest = MATH_CONST_F64(710.0);
    MATH_F64 held = MATH_SELECT(is_zero, zero, x);
    held = MATH_SELECT(MATH_GT(x, highest), highest, held);
    math_exp_parts_f64 parts = math_exp_reduce_f64(MATH_PASS, held);
    MATH_F64 r = parts.r;
    MATH_F64 p = MATH_CONST_F64(0x1.ad937209d2824p-26);
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.28ae10fca39b6p-22));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.71df18b9a1062p-19));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.a019994c1311ep-16));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.a01a012ffa32bp-13));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.6c16c1847c94ap-10));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.1111111126b2ep-7));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.55555555506acp-5));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.55555555554fep-3));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.000000000000ap-1));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(1.0));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(1.0));
    MATH_F64 result = math_scale_f64(MATH_PASS, p, parts.biased);
    return MATH_SELECT(is_zero, zero, result);
}

static inline MATH_F64 math_exp2_polynomial_f64(MATH_CONTEXT, MATH_F64 r)
{
    MATH_F64 p = MATH_CONST_F64(0x1.e972f145eece9p-32);
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.e61d57b37fd08p-28));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.b52522db1abedp-24));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.62bfc64f78e84p-20));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.ffcbfc667754fp-17));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.4309130f6fc36p-13));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.5d87fe789e99p-10));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.3b2ab6fb9fd9dp-7));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.c6b08d704a12cp-5));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.ebfbdff82c5a6p-3));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.62e42fefa39efp-1));
    return MATH_FMA_F64(p, r, MATH_CONST_F64(1.0));
}

static inline MATH_F64 math_exp2_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 zero = MATH_CONST_F64(0.0);
    MATH_BOOL is_zero = MATH_LT(x, MATH_CONST_F64(-1076.0));
    MATH_F64 highest = MATH_CONST_F64(1025.0);
    MATH_F64 held = MATH_SELECT(is_zero, zero, x);
    held = MATH_SELECT(MATH_GT(x, highest), highest, held);
    MATH_F64 magic = MATH_CONST_F64(0x1.8p52 + 2046.0);
    MATH_F64 t = MATH_ADD(held, magic);
    MATH_F64 n = MATH_SUB(t, magic);
    MATH_F64 r = MATH_SUB(held, n);
    MATH_F64 p = math_exp2_polynomial_f64(MATH_PASS, r);
    MATH_F64 result = math_scale_f64(MATH_PASS, p, MATH_BITS_F64(t));
    return MATH_SELECT(is_zero, zero, result);
}

static inline MATH_F64 math_expm1_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 held = math_clamp_f64(MATH_PASS, x, -38.0, 710.0);
    math_exp_parts_f64 parts = math_exp_reduce_f64(MATH_PASS, held);
    MATH_F64 r = parts.r;
    MATH_F64 p = MATH_CONST_F64(0x1.1f1a36b0a9e8ap-29);
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.af5f2c464c9c2p-26));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.27e51339881a6p-22));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.71ddf80f86bfep-19));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.a01a018e0f1d8p-16));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.a01a01b0036d9p-13));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.6c16c16c1aafep-10));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.111111110f655p-7));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.555555555554dp-5));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0x1.5555555555559p-3));
    p = MATH_FMA_F64(p, r, MATH_CONST_F64(0.5));
    MATH_F64 square = MATH_MUL(r, r);
    p = MATH_FMA_F64(p, square, r);
    MATH_U64 exponent = MATH_SUB(parts.biased, MATH_CONST_U64(1024));
    MATH_F64 scale = MATH_FLOAT_F64(MATH_SHL_U64(exponent, 52));
    MATH_F64 shifted = MATH_SUB(scale, MATH_CONST_F64(0.5));
    MATH_F64 half = MATH_FMA_F64(p, scale, shifted);
    MATH_F64 result = MATH_ADD(half, half);
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_BOOL tiny = MATH_LT(size, MATH_CONST_F64(0x1p-55));
    return MATH_SELECT(tiny, x, result);
}

typedef struct math_log_parts_f64 {
    MATH_F64 f;
    MATH_F64 k;
} math_log_parts_f64;

/* 2^52 + e for an integer e below 2^52, by its bits: a conversion without instructions. */
static inline MATH_F64 math_whole_f64(MATH_CONTEXT, MATH_U64 bits)
{
    return MATH_FLOAT_F64(MATH_OR(bits, MATH_CONST_U64(UINT64_C(0x4330000000000000))));
}

/* x = 2^k * (1 + f), as in f32; `above` has the biased exponent k + 1023. */
static inline math_log_parts_f64 math_log_reduce_f64(MATH_CONTEXT, MATH_F64 x, uint64_t low)
{
    MATH_U64 bias = MATH_CONST_U64(UINT64_C(0x3ff0000000000000) - low);
    MATH_U64 above = MATH_ADD(MATH_BITS_F64(x), bias);
    MATH_U64 fraction = MATH_AND(above, MATH_CONST_U64(UINT64_C(0x000fffffffffffff)));
    MATH_F64 mantissa = MATH_FLOAT_F64(MATH_ADD(fraction, MATH_CONST_U64(low)));
    MATH_F64 exponent = math_whole_f64(MATH_PASS, MATH_SHR_U64(above, 52));
    math_log_parts_f64 parts;
    parts.f = MATH_SUB(mantissa, MATH_CONST_F64(1.0));
    parts.k = MATH_SUB(exponent, MATH_CONST_F64(0x1p52 + 1023.0));
    return parts;
}

/* log(1 + f) - f for f in [-1/3, 1/3): with s = f / (2 + f), log(1 + f) = 2 atanh(s), and
 * 2 s = f - f^2/2 + s f^2/2. */
static inline MATH_F64 math_log_rest_f64(MATH_CONTEXT, MATH_F64 f)
{
    MATH_F64 divisor = MATH_ADD(f, MATH_CONST_F64(2.0));
    MATH_F64 s = MATH_DIV(f, divisor);
    MATH_F64 z = MATH_MUL(s, s);
    MATH_F64 p = MATH_CONST_F64(0x1.16d50ad532f7p-3);
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.0e83fb88a35efp-3));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.3b2a4da163813p-3));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.745ca889289fcp-3));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.c71c72ee79e65p-3));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.24924923cec7dp-2));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.9999999999ff9p-2));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.5555555555555p-1));
    MATH_F64 half = MATH_MUL(f, MATH_CONST_F64(0.5));
    half = MATH_MUL(half, f);
    p = MATH_FMA_F64(p, z, half);
    return MATH_FMA_F64(p, s, MATH_NEG(half));
}

/* k * log(2) + log(1 + f), summed as in f32; 40 bits of log(2) times k are exact. */
static inline MATH_F64 math_log_sum_f64(MATH_CONTEXT, MATH_F64 f, MATH_F64 k)
{
    MATH_F64 p = math_log_rest_f64(MATH_PASS, f);
    p = MATH_FMA_F64(k, MATH_CONST_F64(-0x1.8432a1b0e2634p-43), p);
    MATH_F64 high = MATH_FMA_F64(k, MATH_CONST_F64(0x1.62e42fefa4p-1), f);
    MATH_F64 added = MATH_FMA_F64(k, MATH_CONST_F64(-0x1.62e42fefa4p-1), high);
    MATH_F64 low = MATH_SUB(f, added);
    low = MATH_ADD(low, p);
    return MATH_ADD(high, low);
}

static inline MATH_BOOL math_log_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    MATH_U64 bits = MATH_BITS_F64(x);
    MATH_U64 above = MATH_SUB(bits, MATH_CONST_U64(UINT64_C(0x0010000000000000)));
    return MATH_GE(above, MATH_CONST_U64(UINT64_C(0x7fe0000000000000)));
}

static inline MATH_F64 math_log_ends_f64(MATH_CONTEXT, MATH_F64 x, MATH_F64 result)
{
    MATH_F64 zero = MATH_CONST_F64(0.0);
    MATH_BOOL finite = MATH_LT(x, MATH_CONST_F64((double)INFINITY));
    MATH_F64 y = MATH_SELECT(finite, result, x);
    MATH_BOOL negative = MATH_LT(x, zero);
    y = MATH_SELECT(negative, MATH_CONST_F64((double)NAN), y);
    MATH_BOOL none = MATH_EQ(x, zero);
    return MATH_SELECT(none, MATH_CONST_F64((double)-INFINITY), y);
}

static inline MATH_F64 math_log_f64_fast(MATH_CONTEXT, MATH_F64 x)
{
    math_log_parts_f64 parts = math_log_reduce_f64(MATH_PASS, x, MATH_TWO_THIRDS_F64);
    return math_log_sum_f64(MATH_PASS, parts.f, parts.k);
}

static inline MATH_F64 math_log_f64_rare(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 scaled = MATH_MUL(x, MATH_CONST_F64(0x1p52));
    math_log_parts_f64 parts = math_log_reduce_f64(MATH_PASS, scaled, MATH_TWO_THIRDS_F64);
    MATH_F64 k = MATH_SUB(parts.k, MATH_CONST_F64(52.0));
    MATH_F64 result = math_log_sum_f64(MATH_PASS, parts.f, k);
    return math_log_ends_f64(MATH_PASS, x, result);
}

static inline MATH_F64 math_log_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 result = math_log_f64_fast(MATH_PASS, x);
    MATH_BOOL rare = math_log_f64_is_rare(MATH_PASS, x);
    MATH_RARE_F64(result, rare, math_log_f64_rare, x);
    return result;
}

/* k + (f + rest) * log2(e), with the product of f and its rounding error as two floats. */
static inline MATH_F64 math_log2_sum_f64(MATH_CONTEXT, MATH_F64 f, MATH_F64 k)
{
    MATH_F64 rest = math_log_rest_f64(MATH_PASS, f);
    MATH_F64 factor = MATH_CONST_F64(0x1.71547652b82fep0);
    MATH_F64 high = MATH_MUL(f, factor);
    MATH_F64 low = MATH_FMA_F64(f, factor, MATH_NEG(high));
    low = MATH_FMA_F64(f, MATH_CONST_F64(0x1.777d0ffda0d24p-56), low);
    low = MATH_FMA_F64(rest, factor, low);
    MATH_F64 sum = MATH_ADD(k, high);
    MATH_F64 lost = MATH_SUB(sum, k);
    lost = MATH_SUB(high, lost);
    low = MATH_ADD(low, lost);
    return MATH_ADD(sum, low);
}

static inline MATH_F64 math_log2_f64_fast(MATH_CONTEXT, MATH_F64 x)
{
    math_log_parts_f64 parts = math_log_reduce_f64(MATH_PASS, x, MATH_TWO_THIRDS_F64);
    return math_log2_sum_f64(MATH_PASS, parts.f, parts.k);
}

static inline MATH_BOOL math_log2_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    return math_log_f64_is_rare(MATH_PASS, x);
}

static inline MATH_F64 math_log2_f64_rare(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 scaled = MATH_MUL(x, MATH_CONST_F64(0x1p52));
    math_log_parts_f64 parts = math_log_reduce_f64(MATH_PASS, scaled, MATH_TWO_THIRDS_F64);
    MATH_F64 k = MATH_SUB(parts.k, MATH_CONST_F64(52.0));
    MATH_F64 result = math_log2_sum_f64(MATH_PASS, parts.f, k);
    return math_log_ends_f64(MATH_PASS, x, result);
}

static inline MATH_F64 math_log2_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 result = math_log2_f64_fast(MATH_PASS, x);
    MATH_BOOL rare = math_log2_f64_is_rare(MATH_PASS, x);
    MATH_RARE_F64(result, rare, math_log2_f64_rare, x);
    return result;
}

static inline MATH_F64 math_log1p_f64_fast(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 near = MATH_ADD(x, MATH_CONST_F64(1.0));
    MATH_U64 bias = MATH_CONST_U64(UINT64_C(0x3ff0000000000000) - MATH_TWO_THIRDS_F64);
    MATH_U64 above = MATH_ADD(MATH_BITS_F64(near), bias);
    MATH_U64 exponent = MATH_AND(above, MATH_CONST_U64(UINT64_C(0xfff0000000000000)));
    MATH_U64 opposite = MATH_SUB(MATH_CONST_U64(UINT64_C(0x7fe0000000000000)), exponent);
    MATH_F64 scale = MATH_FLOAT_F64(opposite);
    MATH_F64 offset = MATH_SUB(scale, MATH_CONST_F64(1.0));
    MATH_F64 f = MATH_FMA_F64(x, scale, offset);
    MATH_F64 whole = math_whole_f64(MATH_PASS, MATH_SHR_U64(exponent, 52));
    MATH_F64 k = MATH_SUB(whole, MATH_CONST_F64(0x1p52 + 1023.0));
    MATH_F64 result = math_log_sum_f64(MATH_PASS, f, k);
    MATH_BOOL zero = MATH_EQ(x, MATH_CONST_F64(0.0));
    return MATH_SELECT(zero, x, result);
}

static inline MATH_BOOL math_log1p_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    MATH_BOOL above = MATH_GT(x, MATH_CONST_F64(-1.0));
    MATH_BOOL below = MATH_LT(x, MATH_CONST_F64(0x1p1000));
    return MATH_NOT(MATH_BOTH(above, below));
}

static inline MATH_F64 math_log1p_f64_rare(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 near = MATH_ADD(x, MATH_CONST_F64(1.0));
    MATH_F64 result = math_log_f64_fast(MATH_PASS, near);
    return math_log_ends_f64(MATH_PASS, near, result);
}

static inline MATH_F64 math_log1p_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 result = math_log1p_f64_fast(MATH_PASS, x);
    MATH_BOOL rare = math_log1p_f64_is_rare(MATH_PASS, x);
    MATH_RARE_F64(result, rare, math_log1p_f64_rare, x);
    return result;
}

/* With e = exp(2|x|) - 1, tanh(|x|) = e / (e + 2); 1 for |x| of 22 and more. */
static inline MATH_F64 math_tanh_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_F64 most = MATH_CONST_F64(22.0);
    MATH_F64 held = MATH_SELECT(MATH_GT(size, most), most, size);
    MATH_F64 e = math_expm1_f64(MATH_PASS, MATH_ADD(held, held));
    MATH_F64 divisor = MATH_ADD(e, MATH_CONST_F64(2.0));
    return math_with_sign_f64(MATH_PASS, MATH_DIV(e, divisor), x);
}

static inline MATH_F64 math_erf_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_F64 one = MATH_CONST_F64(1.0);

    MATH_F64 six = MATH_CONST_F64(6.0);
    MATH_F64 held = MATH_SELECT(MATH_GT(size, six), six, size);
    MATH_F64 q = MATH_CONST_F64(0x1.b9ebd1d1bd14dp-36);
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.fcb3d7b69699bp-31));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.09fbce87a86acp-26));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.49e937997cfc9p-23));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.05b1c7e432db6p-20));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.f9e0fc10a0c77p-19));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.4775fbcdfbfd2p-18));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.5addb0c0ab341p-15));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.5f2caf60e3cb7p-12));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.5ce7691e2fd9ep-10));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.8d8ad93f97ed3p-9));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.bc93e640f36b7p-11));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(0x1.bddac218ea7a5p-6));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.2f4098cf422bcp-3));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.d648012f58e1ap-1));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.a0bd82fa99822p0));
    q = MATH_FMA_F64(q, held, MATH_CONST_F64(-0x1.a2b226c9f0039p-20));
    MATH_F64 tail = math_exp2_f64(MATH_PASS, q);
    MATH_F64 large = MATH_SUB(one, tail);

    MATH_F64 z = MATH_MUL(size, size);
    MATH_F64 s = MATH_CONST_F64(-0x1.ac1a4196e188cp-31);
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.d73d744d56748p-27));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.5c0bc3130e21dp-23));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.b9807f233887cp-20));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.f4ca5bb2856d7p-17));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.f9a2bb4bba0e4p-14));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.c02db03ff6859p-11));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.565bccf908894p-8));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.b82ce311f7069p-6));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.ce2f21a040b02p-4));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.812746b0379b5p-2));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.06eba8214db68p-3));
    MATH_F64 small = MATH_FMA_F64(s, size, size);

    MATH_BOOL below = MATH_LT(size, one);
    return math_with_sign_f64(MATH_PASS, MATH_SELECT(below, small, large), x);
}

static inline MATH_F64 math_rsqrt_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 root = MATH_SQRT_F64(x);
    return MATH_DIV(MATH_CONST_F64(1.0), root);
}

#endif
