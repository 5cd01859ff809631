/* ir_math_trig_f32.h: sin, cos, tan and atan in f32, in the macros that ir_math.h documents, and
 * included by it. */
#ifndef HAL_IR_MATH_TRIG_F32_H
#define HAL_IR_MATH_TRIG_F32_H

/* Below the first an angle is its own remainder; below the second, three parts of pi/2 reduce it;
 * from there on it takes a hundred bits of 2/pi. */
#define MATH_NEAR_ANGLES_F32  0x1.9p-1f
#define MATH_SMALL_ANGLES_F32 0x1p17f

/* |x| = (quadrant + 4 j) * pi/2 + r with |r| < 0.79; the quadrant is in the low 2 bits, and
 * above it anything. */
typedef struct math_angle_f32 {
    MATH_F32 r;
    MATH_U32 quadrant;
} math_angle_f32;

/* For |x| < 2^17. pi/2 comes in three parts, each rounded down so that zero keeps its sign; the
 * first subtraction is exact, whatever n is, since its result is below 1 and a multiple of
 * 2^-23. */
static inline math_angle_f32 math_angle_small_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_F32 magic = MATH_CONST_F32(0x1.8p23f);
    MATH_F32 t = MATH_FMA_F32(size, MATH_CONST_F32(0x1.45f306p-1f), magic);
    MATH_F32 n = MATH_SUB(t, magic);
    MATH_F32 r = MATH_FMA_F32(n, MATH_CONST_F32(-0x1.921fb4p0f), size);
    r = MATH_FMA_F32(n, MATH_CONST_F32(-0x1.4442dp-24f), r);
    math_angle_f32 angle;
    angle.r = MATH_FMA_F32(n, MATH_CONST_F32(-0x1.84698ap-48f), r);
    angle.quadrant = MATH_BITS_F32(t);
    return angle;
}

/* Word number index + first of 2/pi in binary, after one word of zeros: its bits that multiply a
 * float into whole turns are skipped by the choice of index, 0 to 4. */
static inline MATH_U32 math_two_over_pi_f32(MATH_CONTEXT, MATH_U32 index, int first)
{
    static const uint32_t words[8] = {0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                      0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    MATH_U32 word = MATH_CONST_U32(words[first + 4]);
    for (int i = 3; i >= 0; i--) {
        MATH_U32 candidate = MATH_CONST_U32(words[first + i]);
        MATH_BOOL here = MATH_EQ(index, MATH_CONST_U32(i));
        word = MATH_SELECT(here, candidate, word);
    }
    return word;
}

/* The upper 32 bits of high:low shifted left by shift, 0 to 31. */
static inline MATH_U32 math_funnel_u32(MATH_CONTEXT, MATH_U32 high, MATH_U32 low, MATH_U32 shift)
{
    MATH_U32 rest = MATH_SUB(MATH_CONST_U32(31), shift);
    MATH_U32 lower = MATH_SHR_U32(low, 1);
    lower = MATH_SHR_BY_U32(lower, rest);
    MATH_U32 upper = MATH_SHL_BY_U32(high, shift);
    return MATH_OR(upper, lower);
}

/* The angle of a remainder in quadrants: high:low / 2^62 modulo 4. Its distance to the nearest
 * whole quadrant is taken in two pieces of 24 and 31 bits, and multiplied by pi/2 in such an order
 * that only the last step rounds in earnest. */
static inline math_angle_f32 math_angle_of_turns_f32(MATH_CONTEXT, MATH_U32 high, MATH_U32 low)
{
    MATH_U32 fraction = math_funnel_u32(MATH_PASS, high, low, MATH_CONST_U32(2));
    MATH_U32 fraction_low = MATH_SHL_U32(low, 2);
    MATH_U32 up = MATH_SHR_U32(fraction, 31);
    MATH_U32 quadrant = MATH_SHR_U32(high, 30);

    MATH_U32 mask = MATH_SUB(MATH_CONST_U32(0), up);
    fraction = MATH_XOR(fraction, mask);
    fraction_low = MATH_XOR(fraction_low, mask);
    MATH_U32 first = MATH_SHR_U32(fraction, 7);
    MATH_U32 second = MATH_SHL_U32(fraction, 25);
    second = MATH_SHR_U32(second, 1);
    fraction_low = MATH_SHR_U32(fraction_low, 8);
    second = MATH_OR(second, fraction_low);

    MATH_F32 f = MATH_F32_FROM_I32(MATH_I32_FROM_U32(first));
    MATH_F32 g = MATH_F32_FROM_I32(MATH_I32_FROM_U32(second));
    MATH_F32 tail = MATH_MUL(f, MATH_CONST_F32(-0x1.777a5cp-50f));
    tail = MATH_FMA_F32(g, MATH_CONST_F32(0x1.921fb6p-56f), tail);
    MATH_F32 r = MATH_FMA_F32(f, MATH_CONST_F32(0x1.921fb6p-25f), tail);
    MATH_U32 sign = MATH_SHL_U32(up, 31);
    MATH_U32 bits = MATH_BITS_F32(r);
    math_angle_f32 angle;
    angle.r = MATH_FLOAT_F32(MATH_XOR(bits, sign));
    angle.quadrant = MATH_ADD(quadrant, up);
    return angle;
}

/* For |x| >= 2^17, infinities and NaN: |x| = mantissa * 2^e times 96 bits of 2/pi, modulo 2^96,
 * gives the remainder in quadrants, with 2 bits before the point and 94 after it. */
static inline math_angle_f32 math_angle_large_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_U32 bits = MATH_BITS_F32(size);
    MATH_U32 mantissa = MATH_AND(bits, MATH_CONST_U32(0x007fffff));
    mantissa = MATH_OR(mantissa, MATH_CONST_U32(0x00800000));
    MATH_U32 exponent = MATH_SHR_U32(bits, 23);
    MATH_U32 place = MATH_SUB(exponent, MATH_CONST_U32(120));
    MATH_U32 index = MATH_SHR_U32(place, 5);
    MATH_U32 shift = MATH_AND(place, MATH_CONST_U32(31));

    MATH_U32 a = math_two_over_pi_f32(MATH_PASS, index, 0);
    MATH_U32 b = math_two_over_pi_f32(MATH_PASS, index, 1);
    MATH_U32 c = math_two_over_pi_f32(MATH_PASS, index, 2);
    MATH_U32 d = math_two_over_pi_f32(MATH_PASS, index, 3);
    a = math_funnel_u32(MATH_PASS, a, b, shift);
    b = math_funnel_u32(MATH_PASS, b, c, shift);
    c = math_funnel_u32(MATH_PASS, c, d, shift);

    MATH_U32 carried = MATH_MULHI_U32(mantissa, c);
    MATH_U32 low = MATH_MUL(mantissa, b);
    low = MATH_ADD(low, carried);
    MATH_BOOL over = MATH_LT(low, carried);
    MATH_U32 one = MATH_CONST_U32(1);
    MATH_U32 carry = MATH_SELECT(over, one, MATH_CONST_U32(0));
    MATH_U32 middle = MATH_MULHI_U32(mantissa, b);
    MATH_U32 high = MATH_MUL(mantissa, a);
    high = MATH_ADD(high, middle);
    high = MATH_ADD(high, carry);

    math_angle_f32 angle = math_angle_of_turns_f32(MATH_PASS, high, low);
    MATH_BOOL finite = MATH_LT(size, MATH_CONST_F32(INFINITY));
    angle.r = MATH_SELECT(finite, angle.r, MATH_CONST_F32(NAN));
    return angle;
}

static inline MATH_BOOL math_angle_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    return MATH_NOT(MATH_LT(size, MATH_CONST_F32(MATH_SMALL_ANGLES_F32)));
}

/* sin(r) and cos(r) for |r| < 0.79, z being its square. */
static inline MATH_F32 math_sin_polynomial_f32(MATH_CONTEXT, MATH_F32 r, MATH_F32 z)
{
    MATH_F32 s = MATH_CONST_F32(-0x1.992352p-13f);
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(0x1.1106d4p-7f));
    s = MATH_FMA_F32(s, z, MATH_CONST_F32(-0x1.555544p-3f));
    MATH_F32 cube = MATH_MUL(z, r);
    return MATH_FMA_F32(s, cube, r);
}

static inline MATH_F32 math_cos_polynomial_f32(MATH_CONTEXT, MATH_F32 z)
{
    MATH_F32 c = MATH_CONST_F32(0x1.99e244p-16f);
    c = MATH_FMA_F32(c, z, MATH_CONST_F32(-0x1.6c0c1cp-10f));
    c = MATH_FMA_F32(c, z, MATH_CONST_F32(0x1.55554ap-5f));
    c = MATH_FMA_F32(c, z, MATH_CONST_F32(-0.5f));
    return MATH_FMA_F32(c, z, MATH_CONST_F32(1.0f));
}

/* sin(r) where the quadrant is even, else cos(r), with the sign that bit 1 of the quadrant asks
 * for, changed once more by the highest bit of sign. */
static inline MATH_F32 math_wave_f32(MATH_CONTEXT, MATH_F32 r, MATH_U32 quadrant, MATH_U32 sign)
{
    MATH_F32 z = math_square_f32(MATH_PASS, r);
    MATH_F32 s = math_sin_polynomial_f32(MATH_PASS, r, z);
    MATH_F32 c = math_cos_polynomial_f32(MATH_PASS, z);
    MATH_U32 odd = MATH_AND(quadrant, MATH_CONST_U32(1));
    MATH_BOOL is_even = MATH_EQ(odd, MATH_CONST_U32(0));
    MATH_U32 bits = MATH_BITS_F32(MATH_SELECT(is_even, s, c));
    MATH_U32 turned = MATH_SHL_U32(quadrant, 30);
    turned = MATH_XOR(turned, sign);
    turned = MATH_AND(turned, MATH_CONST_U32(0x80000000));
    return MATH_FLOAT_F32(MATH_XOR(bits, turned));
}

static inline MATH_F32 math_sin_f32_fast(MATH_CONTEXT, MATH_F32 x)
{
    math_angle_f32 angle = math_angle_small_f32(MATH_PASS, x);
    return math_wave_f32(MATH_PASS, angle.r, angle.quadrant, MATH_BITS_F32(x));
}

static inline MATH_F32 math_sin_f32_near(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_F32 z = math_square_f32(MATH_PASS, size);
    MATH_F32 s = math_sin_polynomial_f32(MATH_PASS, size, z);
    return math_with_sign_f32(MATH_PASS, s, x);
}

static inline MATH_BOOL math_sin_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    return math_angle_f32_is_rare(MATH_PASS, x);
}

static inline MATH_F32 math_sin_f32_rare(MATH_CONTEXT, MATH_F32 x)
{
    math_angle_f32 angle = math_angle_large_f32(MATH_PASS, x);
    return math_wave_f32(MATH_PASS, angle.r, angle.quadrant, MATH_BITS_F32(x));
}

static inline MATH_F32 math_sin_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 result = math_sin_f32_fast(MATH_PASS, x);
    MATH_BOOL rare = math_sin_f32_is_rare(MATH_PASS, x);
    MATH_RARE_F32(result, rare, math_sin_f32_rare, x);
    return result;
}

/* cos(x) = sin(|x| + pi/2). */
static inline MATH_F32 math_cos_f32_fast(MATH_CONTEXT, MATH_F32 x)
{
    math_angle_f32 angle = math_angle_small_f32(MATH_PASS, x);
    MATH_U32 next = MATH_ADD(angle.quadrant, MATH_CONST_U32(1));
    return math_wave_f32(MATH_PASS, angle.r, next, MATH_CONST_U32(0));
}

static inline MATH_F32 math_cos_f32_near(MATH_CONTEXT, MATH_F32 x)
{
    return math_cos_polynomial_f32(MATH_PASS, math_square_f32(MATH_PASS, x));
}

static inline MATH_BOOL math_cos_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    return math_angle_f32_is_rare(MATH_PASS, x);
}

static inline MATH_F32 math_cos_f32_rare(MATH_CONTEXT, MATH_F32 x)
{
    math_angle_f32 angle = math_angle_large_f32(MATH_PASS, x);
    MATH_U32 next = MATH_ADD(angle.quadrant, MATH_CONST_U32(1));
    return math_wave_f32(MATH_PASS, angle.r, next, MATH_CONST_U32(0));
}

static inline MATH_F32 math_cos_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 result = math_cos_f32_fast(MATH_PASS, x);
    MATH_BOOL rare = math_cos_f32_is_rare(MATH_PASS, x);
    MATH_RARE_F32(result, rare, math_cos_f32_rare, x);
    return result;
}

/* tan(r) for |r| < 0.79. */
static inline MATH_F32 math_tan_polynomial_f32(MATH_CONTEXT, MATH_F32 r)
{
    MATH_F32 z = math_square_f32(MATH_PASS, r);
    MATH_F32 t = MATH_CONST_F32(0x1.23f766p-8f);
    t = MATH_FMA_F32(t, z, MATH_CONST_F32(-0x1.1fd8fep-14f));
    t = MATH_FMA_F32(t, z, MATH_CONST_F32(0x1.671f52p-7f));
    t = MATH_FMA_F32(t, z, MATH_CONST_F32(0x1.5be8e4p-6f));
    t = MATH_FMA_F32(t, z, MATH_CONST_F32(0x1.baef2p-5f));
    t = MATH_FMA_F32(t, z, MATH_CONST_F32(0x1.110d2p-3f));
    t = MATH_FMA_F32(t, z, MATH_CONST_F32(0x1.555562p-2f));
    MATH_F32 cube = MATH_MUL(z, r);
    return MATH_FMA_F32(t, cube, r);
}

/* tan(r) where the quadrant is even, else -1 / tan(r), with the sign of x. */
static inline MATH_F32 math_slope_f32(MATH_CONTEXT, math_angle_f32 angle, MATH_F32 x)
{
    MATH_F32 t = math_tan_polynomial_f32(MATH_PASS, angle.r);
    MATH_F32 inverse = MATH_DIV(MATH_CONST_F32(-1.0f), t);
    MATH_U32 odd = MATH_AND(angle.quadrant, MATH_CONST_U32(1));
    MATH_BOOL is_even = MATH_EQ(odd, MATH_CONST_U32(0));
    MATH_U32 bits = MATH_BITS_F32(MATH_SELECT(is_even, t, inverse));
    MATH_U32 sign = MATH_BITS_F32(x);
    sign = MATH_AND(sign, MATH_CONST_U32(0x80000000));
    return MATH_FLOAT_F32(MATH_XOR(bits, sign));
}

static inline MATH_F32 math_tan_f32_fast(MATH_CONTEXT, MATH_F32 x)
{
    return math_slope_f32(MATH_PASS, math_angle_small_f32(MATH_PASS, x), x);
}

static inline MATH_F32 math_tan_f32_near(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 t = math_tan_polynomial_f32(MATH_PASS, MATH_ABS_F32(x));
    return math_with_sign_f32(MATH_PASS, t, x);
}

static inline MATH_BOOL math_tan_f32_is_rare(MATH_CONTEXT, MATH_F32 x)
{
    return math_angle_f32_is_rare(MATH_PASS, x);
}

static inline MATH_F32 math_tan_f32_rare(MATH_CONTEXT, MATH_F32 x)
{
    return math_slope_f32(MATH_PASS, math_angle_large_f32(MATH_PASS, x), x);
}

static inline MATH_F32 math_tan_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 result = math_tan_f32_fast(MATH_PASS, x);
    MATH_BOOL rare = math_tan_f32_is_rare(MATH_PASS, x);
    MATH_RARE_F32(result, rare, math_tan_f32_rare, x);
    return result;
}

/* atan(q) for q of -1 to 1. */
static inline MATH_F32 math_atan_small_f32(MATH_CONTEXT, MATH_F32 q)
{
    MATH_F32 z = math_square_f32(MATH_PASS, q);
    MATH_F32 p = MATH_CONST_F32(-0x1.d5a1aap-10f);
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(0x1.6551e2p-7f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(-0x1.fe7d24p-6f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(0x1.da9c2ep-5f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(-0x1.5825f2p-4f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(0x1.c0946cp-4f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(-0x1.24211ap-3f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(0x1.9991ecp-3f));
    p = MATH_FMA_F32(p, z, MATH_CONST_F32(-0x1.55553ep-2f));
    MATH_F32 cube = MATH_MUL(z, q);
    return MATH_FMA_F32(p, cube, q);
}

/* Right where |x| < 1: no quotient, and nothing to add. */
static inline MATH_F32 math_atan_f32_near(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 small = math_atan_small_f32(MATH_PASS, MATH_ABS_F32(x));
    return math_with_sign_f32(MATH_PASS, small, x);
}

/* Above 1, atan(|x|) = pi/2 + atan(-1 / |x|). */
static inline MATH_F32 math_atan_f32(MATH_CONTEXT, MATH_F32 x)
{
    MATH_F32 size = MATH_ABS_F32(x);
    MATH_F32 one = MATH_CONST_F32(1.0f);
    MATH_BOOL above = MATH_GT(size, one);
    MATH_F32 over = MATH_SELECT(above, MATH_CONST_F32(-1.0f), size);
    MATH_F32 under = MATH_SELECT(above, size, one);
    MATH_F32 zero = MATH_CONST_F32(0.0f);
    MATH_F32 base = MATH_SELECT(above, MATH_CONST_F32(0x1.921fb6p0f), zero);
    MATH_F32 q = MATH_DIV(over, under);
    MATH_F32 p = math_atan_small_f32(MATH_PASS, q);
    p = MATH_ADD(p, base);
    return math_with_sign_f32(MATH_PASS, p, x);
}

#endif
