/* ir_math_trig_f64.h: sin, cos, tan and atan in f64, in the macros that ir_math.h documents, and
 * included by it. Where nothing is said, the way is that of ir_math_trig_f32.h. */
#ifndef HAL_IR_MATH_TRIG_F64_H
#define HAL_IR_MATH_TRIG_F64_H

/* Below, three parts of pi/2 reduce an angle; from there on it takes a hundred bits of 2/pi. */
#define MATH_SMALL_ANGLES_F64 0x1p22

typedef struct math_angle_f64 {
    MATH_F64 r;
    MATH_U64 quadrant;
} math_angle_f64;

/* For |x| < 2^22. */
static inline math_angle_f64 math_angle_small_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_F64 magic = MATH_CONST_F64(0x1.8p52);
    MATH_F64 t = MATH_FMA_F64(size, MATH_CONST_F64(0x1.45f306dc9c883p-1), magic);
    MATH_F64 n = MATH_SUB(t, magic);
    MATH_F64 r = MATH_FMA_F64(n, MATH_CONST_F64(-0x1.921fb54442d18p0), size);
    r = MATH_FMA_F64(n, MATH_CONST_F64(-0x1.1a62633145c06p-54), r);
    math_angle_f64 angle;
    angle.r = MATH_FMA_F64(n, MATH_CONST_F64(-0x1.c1cd129024e09p-107), r);
    angle.quadrant = MATH_BITS_F64(t);
    return angle;
}

/* Four words of 2/pi from word number index on, after one word of zeros; index is 0 to 16. */
typedef struct math_words_u64 {
    MATH_U64 a, b, c, d;
} math_words_u64;

static inline math_words_u64 math_two_over_pi_f64(MATH_CONTEXT, MATH_U64 index)
{
    static const uint64_t words[20] = {
        UINT64_C(0x0000000000000000), UINT64_C(0xa2f9836e4e441529), UINT64_C(0xfc2757d1f534ddc0),
        UINT64_C(0xdb6295993c439041), UINT64_C(0xfe5163abdebbc561), UINT64_C(0xb7246e3a424dd2e0),
        UINT64_C(0x06492eea09d1921c), UINT64_C(0xfe1deb1cb129a73e), UINT64_C(0xe88235f52ebb4484),
        UINT64_C(0xe99c7026b45f7e41), UINT64_C(0x3991d639835339f4), UINT64_C(0x9c845f8bbdf9283b),
        UINT64_C(0x1ff897ffde05980f), UINT64_C(0xef2f118b5a0a6d1f), UINT64_C(0x6d367ecf27cb09b7),
        UINT64_C(0x4f463f669e5fea2d), UINT64_C(0x7527bac7ebe5f17b), UINT64_C(0x3d0739f78a5292ea),
        UINT64_C(0x6bfb5fb11f8d5d08), UINT64_C(0x56033046fc7b6bab)};
    MATH_U64 candidate[20];
    for (int i = 0; i < 20; i++) {
        candidate[i] = MATH_CONST_U64(words[i]);
    }
    math_words_u64 found = {candidate[16], candidate[17], candidate[18], candidate[19]};
    for (int i = 15; i >= 0; i--) {
        MATH_BOOL here = MATH_EQ(index, MATH_CONST_U64(i));
        found.a = MATH_SELECT(here, candidate[i], found.a);
        found.b = MATH_SELECT(here, candidate[i + 1], found.b);
        found.c = MATH_SELECT(here, candidate[i + 2], found.c);
        found.d = MATH_SELECT(here, candidate[i + 3], found.d);
    }
    return found;
}

static inline MATH_U64 math_funnel_u64(MATH_CONTEXT, MATH_U64 high, MATH_U64 low, MATH_U64 shift)
{
    MATH_U64 rest = MATH_SUB(MATH_CONST_U64(63), shift);
    MATH_U64 lower = MATH_SHR_U64(low, 1);
    lower = MATH_SHR_BY_U64(lower, rest);
    MATH_U64 upper = MATH_SHL_BY_U64(high, shift);
    return MATH_OR(upper, lower);
}

/* A whole number below 2^52, given by its bits. */
static inline MATH_F64 math_from_bits_f64(MATH_CONTEXT, MATH_U64 bits)
{
    MATH_F64 whole = math_whole_f64(MATH_PASS, bits);
    return MATH_SUB(whole, MATH_CONST_F64(0x1p52));
}

/* The angle of high:low / 2^126 quadrants, modulo 4. A double may come as close as 2^-61 to a
 * whole quadrant, so three pieces of 52, 52 and 23 bits are taken. */
static inline math_angle_f64 math_angle_of_turns_f64(MATH_CONTEXT, MATH_U64 high, MATH_U64 low)
{
    MATH_U64 fraction = math_funnel_u64(MATH_PASS, high, low, MATH_CONST_U64(2));
    MATH_U64 fraction_low = MATH_SHL_U64(low, 2);
    MATH_U64 up = MATH_SHR_U64(fraction, 63);
    MATH_U64 quadrant = MATH_SHR_U64(high, 62);

    MATH_U64 mask = MATH_SUB(MATH_CONST_U64(0), up);
    fraction = MATH_XOR(fraction, mask);
    fraction_low = MATH_XOR(fraction_low, mask);
    MATH_U64 first = MATH_SHR_U64(fraction, 11);
    MATH_U64 second = MATH_SHL_U64(fraction, 53);
    second = MATH_SHR_U64(second, 12);
    MATH_U64 third = MATH_SHR_U64(fraction_low, 23);
    second = MATH_OR(second, third);
    third = MATH_AND(fraction_low, MATH_CONST_U64(0x7fffff));

    MATH_F64 f = math_from_bits_f64(MATH_PASS, first);
    MATH_F64 g = math_from_bits_f64(MATH_PASS, second);
    MATH_F64 h = math_from_bits_f64(MATH_PASS, third);
    g = MATH_FMA_F64(h, MATH_CONST_F64(0x1p-23), g);
    MATH_F64 tail = MATH_MUL(f, MATH_CONST_F64(0x1.1a62633145c07p-107));
    tail = MATH_FMA_F64(g, MATH_CONST_F64(0x1.921fb54442d18p-105), tail);
    MATH_F64 r = MATH_FMA_F64(f, MATH_CONST_F64(0x1.921fb54442d18p-53), tail);
    MATH_U64 sign = MATH_SHL_U64(up, 63);
    MATH_U64 bits = MATH_BITS_F64(r);
    math_angle_f64 angle;
    angle.r = MATH_FLOAT_F64(MATH_XOR(bits, sign));
    angle.quadrant = MATH_ADD(quadrant, up);
    return angle;
}

/* For |x| >= 2^22, infinities and NaN: the mantissa times 192 bits of 2/pi, modulo 2^192, of which
 * the upper 128 are kept, with 2 bits before the point. */
static inline math_angle_f64 math_angle_large_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_U64 bits = MATH_BITS_F64(size);
    MATH_U64 mantissa = MATH_AND(bits, MATH_CONST_U64(UINT64_C(0x000fffffffffffff)));
    mantissa = MATH_OR(mantissa, MATH_CONST_U64(UINT64_C(0x0010000000000000)));
    MATH_U64 exponent = MATH_SHR_U64(bits, 52);
    MATH_U64 place = MATH_SUB(exponent, MATH_CONST_U64(1013));
    MATH_U64 index = MATH_SHR_U64(place, 6);
    MATH_U64 shift = MATH_AND(place, MATH_CONST_U64(63));

    math_words_u64 words = math_two_over_pi_f64(MATH_PASS, index);
    MATH_U64 a = math_funnel_u64(MATH_PASS, words.a, words.b, shift);
    MATH_U64 b = math_funnel_u64(MATH_PASS, words.b, words.c, shift);
    MATH_U64 c = math_funnel_u64(MATH_PASS, words.c, words.d, shift);

    MATH_U64 carried = MATH_MULHI_U64(mantissa, c);
    MATH_U64 low = MATH_MUL(mantissa, b);
    low = MATH_ADD(low, carried);
    MATH_BOOL over = MATH_LT(low, carried);
    MATH_U64 one = MATH_CONST_U64(1);
    MATH_U64 carry = MATH_SELECT(over, one, MATH_CONST_U64(0));
    MATH_U64 middle = MATH_MULHI_U64(mantissa, b);
    MATH_U64 high = MATH_MUL(mantissa, a);
    high = MATH_ADD(high, middle);
    high = MATH_ADD(high, carry);

    math_angle_f64 angle = math_angle_of_turns_f64(MATH_PASS, high, low);
    MATH_BOOL finite = MATH_LT(size, MATH_CONST_F64((double)INFINITY));
    angle.r = MATH_SELECT(finite, angle.r, MATH_CONST_F64((double)NAN));
    return angle;
}

static inline MATH_BOOL math_angle_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 size = MATH_ABS_F64(x);
    return MATH_NOT(MATH_LT(size, MATH_CONST_F64(MATH_SMALL_ANGLES_F64)));
}

static inline MATH_F64 math_sin_polynomial_f64(MATH_CONTEXT, MATH_F64 r)
{
    MATH_F64 z = MATH_MUL(r, r);
    MATH_F64 s = MATH_CONST_F64(0x1.5d829aaa316d4p-33);
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.ae5e2d63d4374p-26));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.71de352e8224p-19));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.a01a019bbbf77p-13));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(0x1.111111110f5bcp-7));
    s = MATH_FMA_F64(s, z, MATH_CONST_F64(-0x1.5555555555547p-3));
    MATH_F64 cube = MATH_MUL(z, r);
    return MATH_FMA_F64(s, cube, r);
}

static inline MATH_F64 math_cos_polynomial_f64(MATH_CONTEXT, MATH_F64 r)
{
    MATH_F64 z = MATH_MUL(r, r);
    MATH_F64 c = MATH_CONST_F64(-0x1.8f9855d12e93ep-37);
    c = MATH_FMA_F64(c, z, MATH_CONST_F64(0x1.1ee9c0b37d065p-29));
    c = MATH_FMA_F64(c, z, MATH_CONST_F64(-0x1.27e4f7ca1299ap-22));
    c = MATH_FMA_F64(c, z, MATH_CONST_F64(0x1.a01a019c58e9bp-16));
    c = MATH_FMA_F64(c, z, MATH_CONST_F64(-0x1.6c16c16c14decp-10));
    c = MATH_FMA_F64(c, z, MATH_CONST_F64(0x1.555555555554ap-5));
    c = MATH_FMA_F64(c, z, MATH_CONST_F64(-0.5));
    return MATH_FMA_F64(c, z, MATH_CONST_F64(1.0));
}

static inline MATH_BOOL math_is_even_u64(MATH_CONTEXT, MATH_U64 quadrant)
{
    MATH_U64 odd = MATH_AND(quadrant, MATH_CONST_U64(1));
    return MATH_EQ(odd, MATH_CONST_U64(0));
}

static inline MATH_F64 math_wave_f64(MATH_CONTEXT, MATH_F64 r, MATH_U64 quadrant, MATH_U64 sign)
{
    MATH_F64 s = math_sin_polynomial_f64(MATH_PASS, r);
    MATH_F64 c = math_cos_polynomial_f64(MATH_PASS, r);
    MATH_BOOL is_even = math_is_even_u64(MATH_PASS, quadrant);
    MATH_U64 bits = MATH_BITS_F64(MATH_SELECT(is_even, s, c));
    MATH_U64 turned = MATH_SHL_U64(quadrant, 62);
    turned = MATH_XOR(turned, sign);
    turned = MATH_AND(turned, MATH_CONST_U64(UINT64_C(0x8000000000000000)));
    return MATH_FLOAT_F64(MATH_XOR(bits, turned));
}

static inline MATH_F64 math_sin_f64_fast(MATH_CONTEXT, MATH_F64 x)
{
    math_angle_f64 angle = math_angle_small_f64(MATH_PASS, x);
    return math_wave_f64(MATH_PASS, angle.r, angle.quadrant, MATH_BITS_F64(x));
}

static inline MATH_BOOL math_sin_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    return math_angle_f64_is_rare(MATH_PASS, x);
}

static inline MATH_F64 math_sin_f64_rare(MATH_CONTEXT, MATH_F64 x)
{
    math_angle_f64 angle = math_angle_large_f64(MATH_PASS, x);
    return math_wave_f64(MATH_PASS, angle.r, angle.quadrant, MATH_BITS_F64(x));
}

static inline MATH_F64 math_sin_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 result = math_sin_f64_fast(MATH_PASS, x);
    MATH_BOOL rare = math_sin_f64_is_rare(MATH_PASS, x);
    MATH_RARE_F64(result, rare, math_sin_f64_rare, x);
    return result;
}

static inline MATH_F64 math_cos_f64_fast(MATH_CONTEXT, MATH_F64 x)
{
    math_angle_f64 angle = math_angle_small_f64(MATH_PASS, x);
    MATH_U64 next = MATH_ADD(angle.quadrant, MATH_CONST_U64(1));
    return math_wave_f64(MATH_PASS, angle.r, next, MATH_CONST_U64(0));
}

static inline MATH_BOOL math_cos_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    return math_angle_f64_is_rare(MATH_PASS, x);
}

static inline MATH_F64 math_cos_f64_rare(MATH_CONTEXT, MATH_F64 x)
{
    math_angle_f64 angle = math_angle_large_f64(MATH_PASS, x);
    MATH_U64 next = MATH_ADD(angle.quadrant, MATH_CONST_U64(1));
    return math_wave_f64(MATH_PASS, angle.r, next, MATH_CONST_U64(0));
}

static inline MATH_F64 math_cos_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 result = math_cos_f64_fast(MATH_PASS, x);
    MATH_BOOL rare = math_cos_f64_is_rare(MATH_PASS, x);
    MATH_RARE_F64(result, rare, math_cos_f64_rare, x);
    return result;
}

/* sin(r) / cos(r) where the quadrant is even, else -cos(r) / sin(r), with the sign of x. */
static inline MATH_F64 math_slope_f64(MATH_CONTEXT, math_angle_f64 angle, MATH_F64 x)
{
    MATH_F64 s = math_sin_polynomial_f64(MATH_PASS, angle.r);
    MATH_F64 c = math_cos_polynomial_f64(MATH_PASS, angle.r);
    MATH_BOOL is_even = math_is_even_u64(MATH_PASS, angle.quadrant);
    MATH_F64 over = MATH_SELECT(is_even, s, MATH_NEG(c));
    MATH_F64 under = MATH_SELECT(is_even, c, s);
    MATH_U64 bits = MATH_BITS_F64(MATH_DIV(over, under));
    MATH_U64 sign = MATH_BITS_F64(x);
    sign = MATH_AND(sign, MATH_CONST_U64(UINT64_C(0x8000000000000000)));
    return MATH_FLOAT_F64(MATH_XOR(bits, sign));
}

static inline MATH_F64 math_tan_f64_fast(MATH_CONTEXT, MATH_F64 x)
{
    return math_slope_f64(MATH_PASS, math_angle_small_f64(MATH_PASS, x), x);
}

static inline MATH_BOOL math_tan_f64_is_rare(MATH_CONTEXT, MATH_F64 x)
{
    return math_angle_f64_is_rare(MATH_PASS, x);
}

static inline MATH_F64 math_tan_f64_rare(MATH_CONTEXT, MATH_F64 x)
{
    return math_slope_f64(MATH_PASS, math_angle_large_f64(MATH_PASS, x), x);
}

static inline MATH_F64 math_tan_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 result = math_tan_f64_fast(MATH_PASS, x);
    MATH_BOOL rare = math_tan_f64_is_rare(MATH_PASS, x);
    MATH_RARE_F64(result, rare, math_tan_f64_rare, x);
    return result;
}

/* base + atan(q) with |q| <= tan(pi/8): q is |x|, (|x| - 1) / (|x| + 1) or -1 / |x|, and base is 0,
 * pi/4 or pi/2, whose rounding error is base times a constant. */
static inline MATH_F64 math_atan_f64(MATH_CONTEXT, MATH_F64 x)
{
    MATH_F64 size = MATH_ABS_F64(x);
    MATH_F64 one = MATH_CONST_F64(1.0);
    MATH_BOOL middle = MATH_GT(size, MATH_CONST_F64(0x1.a827999fcef32p-2));
    MATH_BOOL large = MATH_GT(size, MATH_CONST_F64(0x1.3504f333f9de6p1));
    MATH_F64 over = MATH_SELECT(middle, MATH_SUB(size, one), size);
    over = MATH_SELECT(large, MATH_CONST_F64(-1.0), over);
    MATH_F64 under = MATH_SELECT(middle, MATH_ADD(size, one), one);
    under = MATH_SELECT(large, size, under);
    MATH_F64 base = MATH_CONST_F64(0.0);
    base = MATH_SELECT(middle, MATH_CONST_F64(0x1.921fb54442d18p-1), base);
    base = MATH_SELECT(large, MATH_CONST_F64(0x1.921fb54442d18p0), base);

    MATH_F64 q = MATH_DIV(over, under);
    MATH_F64 z = MATH_MUL(q, q);
    MATH_F64 p = MATH_CONST_F64(-0x1.256a844533c9bp-6);
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.37d5af5dcbec1p-5));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(-0x1.9cd2be1cb50fcp-5));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.df0f4afa8115fp-5));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(-0x1.10ebb84004142p-4));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.3b11191c6044dp-4));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(-0x1.745cf8dc8ac93p-4));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.c71c70e612776p-4));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(-0x1.24924922ad6dep-3));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(0x1.999999999586dp-3));
    p = MATH_FMA_F64(p, z, MATH_CONST_F64(-0x1.555555555553dp-2));
    MATH_F64 cube = MATH_MUL(z, q);
    MATH_F64 low = MATH_MUL(base, MATH_CONST_F64(0x1.678afae35cdd1p-55));
    p = MATH_FMA_F64(p, cube, low);
    p = MATH_ADD(p, q);
    p = MATH_ADD(p, base);
    return math_with_sign_f64(MATH_PASS, p, x);
}

#endif
