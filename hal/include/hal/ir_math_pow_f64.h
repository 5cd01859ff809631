/* ir_math_pow_f64.h: pow in f64, in the macros that ir_math.h documents, and included by it. */
#ifndef HAL_IR_MATH_POW_F64_H
#define HAL_IR_MATH_POW_F64_H

typedef struct math_pair_f64 {
    MATH_F64 high;
    MATH_F64 low;
} math_pair_f64;

/* a + b with what rounding loses, for |a| >= |b| or a = 0; low is added to the loss. */
static inline math_pair_f64 math_sum_f64(MATH_CONTEXT, MATH_F64 a, MATH_F64 b, MATH_F64 low)
{
    math_pair_f64 sum;
    sum.high = MATH_ADD(a, b);
    MATH_F64 lost = MATH_SUB(sum.high, a);
    lost = MATH_SUB(b, lost);
    sum.low = MATH_ADD(low, lost);
    return sum;
}

/* (a + a_low) * (b + b_low). */
static inline math_pair_f64 math_product_f64(MATH_CONTEXT, math_pair_f64 a, math_pair_f64 b)
{
    math_pair_f64 product;
    product.high = MATH_MUL(a.high, b.high);
    product.low = MATH_FMA_F64(a.high, b.high, MATH_NEG(product.high));
    product.low = MATH_FMA_F64(a.high, b.low, product.low);
    product.low = MATH_FMA_F64(a.low, b.high, product.low);
    return product;
}

/* s = f / (2 + f) with its rounding error. */
static inline math_pair_f64 math_pow_ratio_f64(MATH_CONTEXT, MATH_F64 f)
{
    MATH_F64 two = MATH_CONST_F64(2.0);
    MATH_F64 divisor = MATH_ADD(f, two);
    MATH_F64 divisor_low = MATH_SUB(divisor, two);
    divisor_low = MATH_SUB(f, divisor_low);
    MATH_F64 inverse = MATH_DIV(MATH_CONST_F64(1.0), divisor);
    math_pair_f64 s;
    s.high = MATH_MUL(f, inverse);
    MATH_F64 minus = MATH_NEG(s.high);
    MATH_F64 rest = MATH_FMA_F64(minus, divisor, f);
    rest = MATH_FMA_F64(minus, divisor_low, rest);
    s.low = MATH_MUL(rest, inverse);
    return s;
}

/* y * log2(x) for positive normal x, as in f32: log2(1 + f) = s (2 log2(e) + s^2 tail(s^2)). The
 * exponent has 11 bits before the point, so the cubic term is carried in pairs as well, and the
 * tail's first coefficient is one. */
static inline math_pair_f64 math_pow_exponent_f64(MATH_CONTEXT, MATH_F64 x, MATH_F64 y,
                                                  MATH_F64 shift)
{
    math_log_parts_f64 parts = math_log_reduce_f64(MATH_PASS, x, MATH_ROOT_HALF_F64);
    MATH_F64 k = MATH_ADD(parts.k, shift);
    math_pair_f64 s = math_pow_ratio_f64(MATH_PASS, parts.f);
    math_pair_f64 z = math_product_f64(MATH_PASS, s, s);

    MATH_F64 p = MATH_CONST_F64(0x1.60393b0349eadp-3);
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.593b5b992501dp-3));
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.8a061d2950ae6p-3));
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.c68f050b3a655p-3));
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.0c9a84fff9721p-2));
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.484b13d735f4p-2));
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.a61762a7ae41dp-2));
    p = MATH_FMA_F64(p, z.high, MATH_CONST_F64(0x1.2776c50ef9bfep-1));
    p = MATH_MUL(p, z.high);
    MATH_F64 first = MATH_CONST_F64(0x1.ec709dc3a03fdp-1);
    MATH_F64 first_low = MATH_CONST_F64(0x1.d27f05548af0cp-55);
    math_pair_f64 tail = math_sum_f64(MATH_PASS, first, p, first_low);
    math_pair_f64 cube = math_product_f64(MATH_PASS, z, s);
    tail = math_product_f64(MATH_PASS, tail, cube);

    math_pair_f64 factor;
    factor.high = MATH_CONST_F64(0x1.71547652b82fep1);
    factor.low = MATH_CONST_F64(0x1.777d0ffda0d24p-55);
    math_pair_f64 main = math_product_f64(MATH_PASS, s, factor);
    MATH_F64 low = MATH_ADD(main.low, tail.low);
    math_pair_f64 sum = math_sum_f64(MATH_PASS, main.high, tail.high, low);
    sum = math_sum_f64(MATH_PASS, k, sum.high, sum.low);
    sum = math_sum_f64(MATH_PASS, sum.high, sum.low, MATH_CONST_F64(0.0));

    math_pair_f64 product;
    product.high = MATH_MUL(sum.high, y);
    product.low = MATH_FMA_F64(sum.high, y, MATH_NEG(product.high));
    product.low = MATH_FMA_F64(sum.low, y, product.low);
    return product;
}

/* 2^(high + low); beyond 1100 low may be anything and does not count. */
static inline MATH_F64 math_pow_power_f64(MATH_CONTEXT, math_pair_f64 exponent)
{
    MATH_F64 size = MATH_ABS_F64(exponent.high);
    MATH_BOOL fits = MATH_LT(size, MATH_CONST_F64(1100.0));
    MATH_F64 low = MATH_SELECT(fits, exponent.low, MATH_CONST_F64(0.0));
    MATH_F64 held = math_clamp_f64(MATH_PASS, exponent.high, -1100.0, 1100.0);
    MATH_F64 magic = MATH_CONST_F64(0x1.8p52 + 2046.0);
    MATH_F64 t = MATH_ADD(held, magic);
    MATH_F64 n = MATH_SUB(t, magic);
    MATH_F64 r = MATH_SUB(held, n);
    r = MATH_ADD(r, low);
    MATH_F64 p = math_exp2_polynomial_f64(MATH_PASS, r);
    return math_scale_f64(MATH_PASS, p, MATH_BITS_F64(t));
}

static inline MATH_F64 math_pow_f64_fast(MATH_CONTEXT, MATH_F64 x, MATH_F64 y)
{
    MATH_F64 none = MATH_CONST_F64(0.0);
    math_pair_f64 exponent = math_pow_exponent_f64(MATH_PASS, x, y, none);
    return math_pow_power_f64(MATH_PASS, exponent);
}

static inline MATH_BOOL math_pow_f64_is_rare(MATH_CONTEXT, MATH_F64 x, MATH_F64 y)
{
    MATH_BOOL rare = math_log_f64_is_rare(MATH_PASS, x);
    MATH_F64 size = MATH_ABS_F64(y);
    MATH_BOOL finite = MATH_LT(size, MATH_CONST_F64((double)INFINITY));
    return MATH_EITHER(rare, MATH_NOT(finite));
}

/* The special cases of C's pow, as in f32. */
static inline MATH_F64 math_pow_f64_rare(MATH_CONTEXT, MATH_F64 x, MATH_F64 y)
{
    MATH_F64 zero = MATH_CONST_F64(0.0);
    MATH_F64 one = MATH_CONST_F64(1.0);
    MATH_F64 infinity = MATH_CONST_F64((double)INFINITY);
    MATH_F64 nan = MATH_CONST_F64((double)NAN);
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_F64 y_size = MATH_ABS_F64(y);

    MATH_BOOL denormal = MATH_LT(size, MATH_CONST_F64(0x1p-1022));
    MATH_F64 scaled = MATH_MUL(size, MATH_CONST_F64(0x1p52));
    scaled = MATH_SELECT(denormal, scaled, size);
    MATH_F64 shift = MATH_SELECT(denormal, MATH_CONST_F64(-52.0), zero);
    math_pair_f64 exponent = math_pow_exponent_f64(MATH_PASS, scaled, y, shift);
    MATH_F64 result = math_pow_power_f64(MATH_PASS, exponent);

    MATH_BOOL small = MATH_LT(size, one);
    MATH_BOOL falling = MATH_LT(y, zero);
    MATH_F64 when_small = MATH_SELECT(falling, infinity, zero);
    MATH_F64 when_large = MATH_SELECT(falling, zero, infinity);
    MATH_F64 end = MATH_SELECT(small, when_small, when_large);
    MATH_BOOL unit = MATH_EQ(size, one);
    end = MATH_SELECT(unit, one, end);
    MATH_BOOL ends = MATH_EQ(y_size, infinity);
    result = MATH_SELECT(ends, end, result);
    ends = MATH_EQ(size, zero);
    result = MATH_SELECT(ends, end, result);
    ends = MATH_EQ(size, infinity);
    result = MATH_SELECT(ends, end, result);

    MATH_BOOL whole = MATH_EQ(MATH_RINT_F64(y), y);
    MATH_F64 half = MATH_MUL(y, MATH_CONST_F64(0.5));
    MATH_BOOL odd = MATH_NE(MATH_RINT_F64(half), half);
    odd = MATH_BOTH(odd, whole);
    MATH_F64 sign_of = MATH_SELECT(odd, x, one);
    result = math_with_sign_f64(MATH_PASS, result, sign_of);
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

static inline MATH_F64 math_pow_f64(MATH_CONTEXT, MATH_F64 x, MATH_F64 y)
{
    MATH_F64 result = math_pow_f64_fast(MATH_PASS, x, y);
    MATH_BOOL rare = math_pow_f64_is_rare(MATH_PASS, x, y);
    MATH_RARE2_F64(result, rare, math_pow_f64_rare, x, y);
    return result;
}

#endif
