/* Functions of complex numbers, see complex_functions.h. The formulas are Kahan's where a comment
 * does not say otherwise; `select` puts in what Annex G wants where they give NaN. */
#include "complex_functions.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

typedef hal_ir_builder *builder_ref;
typedef hal_ir_value value;

typedef struct complex_value {
    value re, im;
} complex_value;

#define PI 3.14159265358979323846
#define LN2 0.69314718055994530942

/* ---- Real parts that the functions share ---- */

static bool is_wide(builder_ref b, value x)
{
    return hal_ir_type_of(b, x) == HAL_TYPE_F64;
}

static value number(builder_ref b, value like, double constant)
{
    return hal_ir_number(b, hal_ir_type_of(b, like), constant);
}

static value math(builder_ref b, uint32_t opcode, value x)
{
    return hal_ir_math(b, opcode, x, HAL_IR_NONE, 0);
}

static value is_infinite(builder_ref b, value x)
{
    return hal_ir_eq(b, hal_ir_abs(b, x), number(b, x, (double)INFINITY));
}

static value is_finite(builder_ref b, value x)
{
    return hal_ir_lt(b, hal_ir_abs(b, x), number(b, x, (double)INFINITY));
}

static value is_nan(builder_ref b, value x)
{
    return hal_ir_ne(b, x, x);
}

static value is_zero(builder_ref b, value x)
{
    return hal_ir_eq(b, x, number(b, x, 0));
}

/* |x| with the sign of y. */
static value copy_sign(builder_ref b, value x, value y)
{
    const bool wide = is_wide(b, x);
    const hal_type bits = wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const value mask = wide ? hal_ir_u64(b, UINT64_C(1) << 63) : hal_ir_u32(b, 1u << 31);
    const value sign = hal_ir_and(b, hal_ir_bitcast(b, bits, y), mask);
    const value size = hal_ir_bitcast(b, bits, hal_ir_abs(b, x));
    return hal_ir_bitcast(b, hal_ir_type_of(b, x), hal_ir_or(b, size, sign));
}

static value constant_signed(builder_ref b, double constant, value y)
{
    return copy_sign(b, number(b, y, constant), y);
}

/* |x| and |y| in order; a NaN in both if either is NaN. */
static void sort_sizes(builder_ref b, complex_value z, value *most, value *least)
{
    const value width = hal_ir_abs(b, z.re), height = hal_ir_abs(b, z.im);
    *most = hal_ir_max(b, width, height);
    *least = hal_ir_min(b, width, height);
}

static value either_infinite(builder_ref b, complex_value z)
{
    return hal_ir_or(b, is_infinite(b, z.re), is_infinite(b, z.im));
}

/* The larger size times sqrt(1 + ratio^2). */
static value modulus(builder_ref b, complex_value z)
{
    value most, least;
    sort_sizes(b, z, &most, &least);
    const value one = number(b, most, 1);
    const value ratio = hal_ir_div(b, least, hal_ir_select(b, is_zero(b, most), one, most));
    const value size = hal_ir_mul(b, most, hal_ir_sqrt(b, hal_ir_fma(b, ratio, ratio, one)));
    return hal_ir_select(b, either_infinite(b, z), number(b, most, (double)INFINITY), size);
}

static value angle(builder_ref b, complex_value z)
{
    return ops_binary_value(b, OPS_ATAN2, z.im, z.re);
}

/* x + y = sum + rest exactly, for any two numbers (Knuth's two-sum). */
static value add_exactly(builder_ref b, value x, value y, value *rest)
{
    const value sum = hal_ir_add(b, x, y), part = hal_ir_sub(b, sum, x);
    const value other = hal_ir_sub(b, x, hal_ir_sub(b, sum, part));
    *rest = hal_ir_add(b, *rest, hal_ir_add(b, other, hal_ir_sub(b, y, part)));
    return sum;
}

/* start + twice + re^2 + im^2, of exact sums and squares: the error is that of the last addition,
 * and the square of the roundoff where the terms cancel. */
static value square_sum(builder_ref b, value start, value twice, complex_value z)
{
    value rest = number(b, start, 0);
    value sum = add_exactly(b, start, twice, &rest);
    const value parts[2] = {z.re, z.im};
    for (uint32_t i = 0; i < 2; i++) {
        const value square = hal_ir_mul(b, parts[i], parts[i]);
        const value lost = hal_ir_fma(b, parts[i], parts[i], hal_ir_neg(b, square));
        sum = add_exactly(b, sum, square, &rest);
        rest = hal_ir_add(b, rest, lost);
    }
    return hal_ir_add(b, sum, rest);
}

/* log |w|. Near 1 nothing is lost by log1p(beyond_one) / 2, where beyond_one = |w|^2 - 1. Far from
 * it: log(most) + log1p(ratio^2) / 2. */
static value log_modulus(builder_ref b, complex_value w, value beyond_one)
{
    value most, least;
    sort_sizes(b, w, &most, &least);
    const value one = number(b, most, 1), half = number(b, most, 0.5);
    const value ratio = hal_ir_div(b, least, hal_ir_select(b, is_zero(b, most), one, most));
    const value rest = math(b, HAL_IR_LOG1P, hal_ir_mul(b, ratio, ratio));
    const value far = hal_ir_fma(b, half, rest, math(b, HAL_IR_LOG, most));
    const value near = hal_ir_mul(b, half, math(b, HAL_IR_LOG1P, beyond_one));
    const value is_near =
        hal_ir_and(b, hal_ir_le(b, half, most), hal_ir_le(b, most, number(b, most, 2)));
    const value size = hal_ir_select(b, is_near, near, far);
    return hal_ir_select(b, either_infinite(b, w), number(b, most, (double)INFINITY), size);
}

static value inverse_sinh(builder_ref b, value x)
{
    const value size = hal_ir_abs(b, x), one = number(b, x, 1);
    const value large = hal_ir_lt(b, number(b, x, 1e8), size);
    const value safe = hal_ir_select(b, large, one, size);
    const value square = hal_ir_mul(b, safe, safe);
    const value root = hal_ir_sqrt(b, hal_ir_add(b, one, square));
    const value part = hal_ir_div(b, square, hal_ir_add(b, one, root));
    const value small = math(b, HAL_IR_LOG1P, hal_ir_add(b, safe, part));
    const value far = hal_ir_add(b, math(b, HAL_IR_LOG, size), number(b, x, LN2));
    return copy_sign(b, hal_ir_select(b, large, far, small), x);
}

/* ---- Exponentials ---- */

/* exp(x) v, without an overflow or underflow between: beyond 87 or 708 by halves. */
static value grown(builder_ref b, value x, value v)
{
    const value limit = number(b, x, is_wide(b, x) ? 708 : 87);
    const value is_far = hal_ir_lt(b, limit, hal_ir_abs(b, x));
    const value half = math(b, HAL_IR_EXP, hal_ir_mul(b, x, number(b, x, 0.5)));
    const value far = hal_ir_mul(b, hal_ir_mul(b, half, v), half);
    return hal_ir_select(b, is_far, far, hal_ir_mul(b, math(b, HAL_IR_EXP, x), v));
}

static complex_value exponential(builder_ref b, complex_value z)
{
    const value zero = number(b, z.re, 0), infinity = number(b, z.re, (double)INFINITY);
    const value no_angle = hal_ir_not(b, is_finite(b, z.im));
    const value ends = hal_ir_and(b, no_angle, is_infinite(b, z.re));
    const value shrinks = hal_ir_and(b, ends, hal_ir_lt(b, z.re, zero));
    complex_value e = {grown(b, z.re, math(b, HAL_IR_COS, z.im)),
                       grown(b, z.re, math(b, HAL_IR_SIN, z.im))};
    e.re = hal_ir_select(b, ends, hal_ir_select(b, shrinks, zero, infinity), e.re);
    e.im = hal_ir_select(b, shrinks, zero, e.im);
    e.im = hal_ir_select(b, is_zero(b, z.im), z.im, e.im);
    return e;
}

/* Up to re = 1: expm1(re) cos(im) - 2 sin(im / 2)^2, in which nothing is lost near 0. */
static complex_value exponential_minus_1(builder_ref b, complex_value z)
{
    const value one = number(b, z.re, 1);
    const complex_value e = exponential(b, z);
    const value sine = math(b, HAL_IR_SIN, hal_ir_mul(b, z.im, number(b, z.re, 0.5)));
    const value twice = hal_ir_mul(b, hal_ir_add(b, sine, sine), sine);
    const value change = math(b, HAL_IR_EXPM1, z.re);
    value near = hal_ir_sub(b, hal_ir_mul(b, change, math(b, HAL_IR_COS, z.im)), twice);
    near = hal_ir_add(b, near, number(b, near, 0)); /* 0 of -0 */
    const value is_near = hal_ir_and(b, hal_ir_lt(b, z.re, one), is_finite(b, z.im));
    return (complex_value){hal_ir_select(b, is_near, near, hal_ir_sub(b, e.re, one)), e.im};
}

static complex_value hyperbolic_sine(builder_ref b, complex_value z)
{
    const value sine = math(b, HAL_IR_SIN, z.im), cosine = math(b, HAL_IR_COS, z.im);
    const value size = hal_ir_abs(b, z.re), half = number(b, z.re, 0.5);
    const value is_far = hal_ir_lt(b, number(b, z.re, 40), size);
    const value no_angle = hal_ir_not(b, is_finite(b, z.im));
    const value is_end = hal_ir_or(b, is_zero(b, z.re), is_infinite(b, z.re));
    complex_value s = {hal_ir_mul(b, ops_unary_value(b, OPS_SINH, z.re), cosine),
                       hal_ir_mul(b, ops_unary_value(b, OPS_COSH, z.re), sine)};
    s.re = hal_ir_select(
        b, is_far, grown(b, size, hal_ir_mul(b, constant_signed(b, 0.5, z.re), cosine)), s.re);
    s.im = hal_ir_select(b, is_far, grown(b, size, hal_ir_mul(b, half, sine)), s.im);
    s.re = hal_ir_select(b, hal_ir_and(b, no_angle, is_end), z.re, s.re);
    s.im = hal_ir_select(b, is_zero(b, z.im), z.im, s.im);
    return s;
}

static complex_value hyperbolic_cosine(builder_ref b, complex_value z)
{
    const value sine = math(b, HAL_IR_SIN, z.im), cosine = math(b, HAL_IR_COS, z.im);
    const value size = hal_ir_abs(b, z.re), half = number(b, z.re, 0.5);
    const value is_far = hal_ir_lt(b, number(b, z.re, 40), size);
    const value no_angle = hal_ir_not(b, is_finite(b, z.im));
    complex_value c = {hal_ir_mul(b, ops_unary_value(b, OPS_COSH, z.re), cosine),
                       hal_ir_mul(b, ops_unary_value(b, OPS_SINH, z.re), sine)};
    c.re = hal_ir_select(b, is_far, grown(b, size, hal_ir_mul(b, half, cosine)), c.re);
    c.im = hal_ir_select(b, is_far,
                         grown(b, size, hal_ir_mul(b, constant_signed(b, 0.5, z.re), sine)), c.im);
    c.re = hal_ir_select(b, hal_ir_and(b, no_angle, is_infinite(b, z.re)), size, c.re);
    /* Real for a real z, and for an imaginary one. */
    const value zero = hal_ir_mul(b, constant_signed(b, 1, z.re), z.im);
    c.im = hal_ir_select(b, is_zero(b, z.im), zero, c.im);
    const value start = hal_ir_and(b, no_angle, is_zero(b, z.re));
    c.im = hal_ir_select(b, start, number(b, z.re, 0), c.im);
    return c;
}

/* With t = tan(im), s = sinh(re), beta = 1 + t^2: (beta rho s + i t) / (1 + beta s^2), where rho =
 * sqrt(1 + s^2). Beyond `limit`, where this rounds to +-1: the imaginary part alone. */
static complex_value hyperbolic_tangent(builder_ref b, complex_value z)
{
    const bool wide = is_wide(b, z.re);
    const value one = number(b, z.re, 1), zero = number(b, z.re, 0);
    const value size = hal_ir_abs(b, z.re);
    const value is_far = hal_ir_lt(b, number(b, z.re, wide ? 22 : 11), size);
    const value t = math(b, HAL_IR_TAN, z.im);
    const value s = ops_unary_value(b, OPS_SINH, hal_ir_select(b, is_far, one, z.re));
    const value beta = hal_ir_fma(b, t, t, one);
    const value rho = hal_ir_sqrt(b, hal_ir_fma(b, s, s, one));
    const value scaled = hal_ir_mul(b, beta, s);
    const value divisor = hal_ir_fma(b, scaled, s, one);
    const value decay = math(b, HAL_IR_EXP, hal_ir_mul(b, size, number(b, z.re, -2)));
    const value waves = hal_ir_mul(b, math(b, HAL_IR_SIN, z.im), math(b, HAL_IR_COS, z.im));
    const value no_angle = hal_ir_not(b, is_finite(b, z.im));
    value far = hal_ir_mul(b, hal_ir_mul(b, number(b, z.re, 4), waves), decay);
    far = hal_ir_select(b, hal_ir_and(b, no_angle, is_infinite(b, z.re)), zero, far);
    complex_value r = {hal_ir_div(b, hal_ir_mul(b, scaled, rho), divisor),
                       hal_ir_div(b, t, divisor)};
    const value far_re = hal_ir_select(b, hal_ir_or(b, is_infinite(b, z.re), is_finite(b, z.im)),
                                       constant_signed(b, 1, z.re), r.re);
    r.re = hal_ir_select(b, is_far, far_re, r.re);
    r.im = hal_ir_select(b, is_far, far, r.im);
    r.re = hal_ir_select(b, is_zero(b, z.re), z.re, r.re);
    r.im = hal_ir_select(b, is_zero(b, z.im), z.im, r.im);
    return r;
}

/* ---- Roots and logarithms ---- */

/* t = sqrt((|re| + |z|) / 2), and |im| / (2 t). z is scaled by an even power of two where the sum
 * would overflow, or lose digits to denormals. */
static complex_value square_root(builder_ref b, complex_value z)
{
    const bool wide = is_wide(b, z.re);
    const double low = wide ? DBL_MIN * 0x1p106 : (double)FLT_MIN * 0x1p48;
    const double raise = wide ? 0x1p108 : 0x1p50, lower = wide ? 0x1p-54 : 0x1p-25;
    const value one = number(b, z.re, 1), zero = number(b, z.re, 0);
    value most, least;
    sort_sizes(b, z, &most, &least);
    const value is_large = hal_ir_lt(b, number(b, z.re, wide ? DBL_MAX / 8 : FLT_MAX / 8), most);
    const value is_small = hal_ir_lt(b, most, number(b, z.re, low));
    value scale = hal_ir_select(b, is_small, number(b, z.re, raise), one);
    scale = hal_ir_select(b, is_large, number(b, z.re, 0.0625), scale);
    value back = hal_ir_select(b, is_small, number(b, z.re, lower), one);
    back = hal_ir_select(b, is_large, number(b, z.re, 4), back);
    const complex_value w = {hal_ir_mul(b, z.re, scale), hal_ir_mul(b, z.im, scale)};
    const value sum = hal_ir_add(b, hal_ir_abs(b, w.re), modulus(b, w));
    const value t = hal_ir_sqrt(b, hal_ir_mul(b, sum, number(b, z.re, 0.5)));
    const value other = hal_ir_div(b, hal_ir_abs(b, w.im), hal_ir_add(b, t, t));
    const value is_left = hal_ir_lt(b, z.re, zero);
    complex_value root = {hal_ir_mul(b, hal_ir_select(b, is_left, other, t), back),
                          hal_ir_mul(b, hal_ir_select(b, is_left, t, other), back)};
    root.im = copy_sign(b, root.im, z.im);
    const value is_end = is_infinite(b, z.im);
    root.re = hal_ir_select(b, is_end, hal_ir_abs(b, z.im), root.re);
    root.im = hal_ir_select(b, is_end, z.im, root.im);
    const value is_origin = is_zero(b, most);
    root.re = hal_ir_select(b, is_origin, zero, root.re);
    root.im = hal_ir_select(b, is_origin, z.im, root.im);
    return root;
}

static complex_value logarithm(builder_ref b, complex_value z, double factor)
{
    const value beyond = square_sum(b, number(b, z.re, -1), number(b, z.re, 0), z);
    complex_value l = {log_modulus(b, z, beyond), angle(b, z)};
    if (factor != 1) {
        l.re = hal_ir_mul(b, l.re, number(b, z.re, factor));
        l.im = hal_ir_mul(b, l.im, number(b, z.re, factor));
    }
    return l;
}

/* |1 + z|^2 - 1 = 2 re + re^2 + im^2. */
static complex_value logarithm_1(builder_ref b, complex_value z)
{
    const value twice = hal_ir_add(b, z.re, z.re);
    const value beyond = square_sum(b, number(b, z.re, 0), twice, z);
    const complex_value w = {hal_ir_add(b, z.re, number(b, z.re, 1)), z.im};
    return (complex_value){log_modulus(b, w, beyond), angle(b, w)};
}

/* z / |z|, scaled by 2 or 1/2 so that |z| neither overflows nor has few digits. */
static complex_value direction(builder_ref b, complex_value z)
{
    value most, least;
    sort_sizes(b, z, &most, &least);
    const value one = number(b, most, 1), zero = number(b, most, 0);
    const value scale =
        hal_ir_select(b, hal_ir_lt(b, one, most), number(b, most, 0.5), number(b, most, 2));
    const complex_value w = {hal_ir_mul(b, z.re, scale), hal_ir_mul(b, z.im, scale)};
    const value size = modulus(b, w), is_origin = is_zero(b, most);
    return (complex_value){hal_ir_select(b, is_origin, zero, hal_ir_div(b, w.re, size)),
                           hal_ir_select(b, is_origin, zero, hal_ir_div(b, w.im, size))};
}

/* ---- Inverse functions ---- */

/* sqrt(1 - z) and sqrt(1 + z). */
static void side_roots(builder_ref b, complex_value z, complex_value *below, complex_value *above)
{
    const value one = number(b, z.re, 1);
    *below = square_root(b, (complex_value){hal_ir_sub(b, one, z.re), hal_ir_neg(b, z.im)});
    *above = square_root(b, (complex_value){hal_ir_add(b, one, z.re), z.im});
}

/* im(conj(x) y) */
static value cross(builder_ref b, complex_value x, complex_value y)
{
    return hal_ir_sub(b, hal_ir_mul(b, x.re, y.im), hal_ir_mul(b, x.im, y.re));
}

static complex_value inverse_cosine(builder_ref b, complex_value z)
{
    complex_value below, above;
    side_roots(b, z, &below, &above);
    const value half = ops_binary_value(b, OPS_ATAN2, below.re, above.re);
    complex_value r = {hal_ir_add(b, half, half), inverse_sinh(b, cross(b, above, below))};
    const value both = hal_ir_and(b, is_infinite(b, z.re), is_infinite(b, z.im));
    const value corner = hal_ir_select(b, hal_ir_lt(b, z.re, number(b, z.re, 0)),
                                       number(b, z.re, 0.75 * PI), number(b, z.re, 0.25 * PI));
    r.re = hal_ir_select(b, both, corner, r.re);
    r.re = hal_ir_select(b, is_zero(b, z.re), number(b, z.re, PI / 2), r.re);
    r.re = hal_ir_select(b, is_nan(b, z.re), z.re, r.re);
    r.im = hal_ir_select(b, either_infinite(b, z),
                         hal_ir_neg(b, constant_signed(b, (double)INFINITY, z.im)), r.im);
    return r;
}

static complex_value inverse_hyperbolic_cosine(builder_ref b, complex_value z)
{
    const complex_value r = inverse_cosine(b, z);
    return (complex_value){hal_ir_abs(b, r.im), copy_sign(b, r.re, z.im)};
}

/* As -i asin(iz). */
static complex_value inverse_hyperbolic_sine(builder_ref b, complex_value z)
{
    complex_value below, above;
    side_roots(b, (complex_value){hal_ir_neg(b, z.im), z.re}, &below, &above);
    const value width =
        hal_ir_sub(b, hal_ir_mul(b, below.re, above.re), hal_ir_mul(b, below.im, above.im));
    complex_value r = {inverse_sinh(b, cross(b, below, above)),
                       ops_binary_value(b, OPS_ATAN2, z.im, width)};
    const value is_right = is_infinite(b, z.re), is_up = is_infinite(b, z.im);
    r.re = hal_ir_select(b, hal_ir_or(b, is_right, is_up),
                         constant_signed(b, (double)INFINITY, z.re), r.re);
    const value end = hal_ir_select(b, is_right, constant_signed(b, PI / 4, z.im),
                                    constant_signed(b, PI / 2, z.im));
    r.im = hal_ir_select(b, is_up, end, r.im);
    const value is_flat =
        hal_ir_or(b, is_zero(b, z.im), hal_ir_and(b, is_right, is_finite(b, z.im)));
    r.im = hal_ir_select(b, is_flat, constant_signed(b, 0, z.im), r.im);
    r.im = hal_ir_select(b, hal_ir_and(b, is_nan(b, z.re), hal_ir_not(b, is_zero(b, z.im))), z.re,
                         r.im);
    return r;
}

/* With d = (1 - |re|)^2 + im^2: log1p(4 |re| / d) / 4, atan2(2 im, (1 - re) (1 + re) - im^2) / 2.
 * Far from 0 these are re / |z|^2 and pi / 2; close to 1 the logarithm is that of 2 / sqrt(d). */
static complex_value inverse_hyperbolic_tangent(builder_ref b, complex_value z)
{
    const bool wide = is_wide(b, z.re);
    const value one = number(b, z.re, 1), half = number(b, z.re, 0.5);
    value most, least;
    sort_sizes(b, z, &most, &least);
    const value is_far = hal_ir_lt(b, number(b, z.re, wide ? 0x1p54 : 0x1p26), most);
    const complex_value w = {hal_ir_select(b, is_far, half, hal_ir_abs(b, z.re)),
                             hal_ir_select(b, is_far, half, z.im)};
    const complex_value gap = {hal_ir_sub(b, one, w.re), w.im};
    const value height = hal_ir_mul(b, w.im, w.im);
    const value divisor = hal_ir_fma(b, gap.re, gap.re, height);
    const value quotient = hal_ir_div(b, hal_ir_mul(b, number(b, z.re, 4), w.re), divisor);
    value size = hal_ir_mul(b, number(b, z.re, 0.25), math(b, HAL_IR_LOG1P, quotient));
    sort_sizes(b, gap, &most, &least);
    const value is_close = hal_ir_lt(b, most, number(b, z.re, wide ? 0x1p-53 : 0x1p-24));
    const value close = hal_ir_sub(b, number(b, z.re, LN2), math(b, HAL_IR_LOG, modulus(b, gap)));
    size = hal_ir_select(b, is_close, hal_ir_mul(b, half, close), size);
    const value length = modulus(b, z);
    const value far = hal_ir_div(b, hal_ir_div(b, hal_ir_abs(b, z.re), length), length);
    size = hal_ir_select(b, is_far, far, size);
    size = hal_ir_select(b, either_infinite(b, z), number(b, z.re, 0), size);
    const value width = hal_ir_sub(b, hal_ir_mul(b, gap.re, hal_ir_add(b, one, w.re)), height);
    value turn = ops_binary_value(b, OPS_ATAN2, hal_ir_add(b, w.im, w.im), width);
    turn = hal_ir_select(b, is_far, constant_signed(b, PI / 2, z.im), hal_ir_mul(b, half, turn));
    turn = hal_ir_select(b, is_infinite(b, z.im), constant_signed(b, PI / 2, z.im), turn);
    turn = hal_ir_select(b, is_nan(b, z.im), z.im, turn);
    complex_value r = {copy_sign(b, size, z.re), turn};
    r.re = hal_ir_select(b, is_zero(b, z.re), z.re, r.re);
    return r;
}

/* ---- Divisors ---- */

/* A power of two near 1 / |z|. */
static value scale_of(builder_ref b, complex_value z)
{
    const bool wide = is_wide(b, z.re);
    const int limit = wide ? 1020 : 124;
    value most, least;
    sort_sizes(b, z, &most, &least);
    value bounded = hal_ir_max(b, most, number(b, most, ldexp(1, -limit)));
    bounded = hal_ir_min(b, bounded, number(b, most, ldexp(1, limit)));
    /* The bits of the exponent alone are a power of two; those of its inverse are twice the bias
     * less. */
    const hal_type type = wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const value mask = wide ? hal_ir_u64(b, UINT64_C(0x7ff) << 52) : hal_ir_u32(b, 0xffu << 23);
    const value twice = wide ? hal_ir_u64(b, UINT64_C(2046) << 52) : hal_ir_u32(b, 254u << 23);
    const value exponent = hal_ir_and(b, hal_ir_bitcast(b, type, bounded), mask);
    return hal_ir_bitcast(b, hal_ir_type_of(b, most), hal_ir_sub(b, twice, exponent));
}

/* x / z = (x before) inverse(z) after. For a small z the scale comes before, so that no digits are
 * lost to denormals, for a large one after; 4 or 1/2 of it keeps what is between from overflow. */
static complex_value scale_parts(builder_ref b, complex_value z)
{
    const value scale = scale_of(b, z), one = number(b, scale, 1);
    const value is_small = hal_ir_lt(b, one, scale);
    const value before = hal_ir_mul(b, scale, number(b, scale, 0.25));
    return (complex_value){hal_ir_select(b, is_small, before, one),
                           hal_ir_select(b, is_small, one, hal_ir_add(b, scale, scale))};
}

static complex_value inverse(builder_ref b, complex_value z)
{
    const value scale = scale_of(b, z), zero = number(b, z.re, 0), one = number(b, z.re, 1);
    const complex_value w = {hal_ir_mul(b, z.re, scale), hal_ir_mul(b, z.im, scale)};
    const value square = hal_ir_fma(b, w.re, w.re, hal_ir_mul(b, w.im, w.im));
    const value factor =
        hal_ir_select(b, hal_ir_lt(b, one, scale), number(b, z.re, 0.25), number(b, z.re, 2));
    const value divisor = hal_ir_mul(b, square, factor);
    complex_value r = {hal_ir_div(b, w.re, divisor), hal_ir_neg(b, hal_ir_div(b, w.im, divisor))};
    const value is_origin = hal_ir_and(b, is_zero(b, z.re), is_zero(b, z.im));
    r.re = hal_ir_select(b, is_origin, constant_signed(b, (double)INFINITY, z.re), r.re);
    r.im = hal_ir_select(b, is_origin, zero, r.im);
    const value ends = either_infinite(b, z);
    r.re = hal_ir_select(b, ends, zero, r.re);
    r.im = hal_ir_select(b, ends, zero, r.im);
    return r;
}

/* ---- The table ---- */

/* f(iz) = i g(z) for a pair of functions: g(z) = -i f(iz). */
static complex_value turned(builder_ref b, complex_value z,
                            complex_value (*function)(builder_ref, complex_value))
{
    const complex_value r = function(b, (complex_value){hal_ir_neg(b, z.im), z.re});
    return (complex_value){r.im, hal_ir_neg(b, r.re)};
}

static complex_value inverse_function(builder_ref b, uint32_t function, complex_value z)
{
    switch (function) {
    case OPS_COMPLEX_ASIN:
        return turned(b, z, inverse_hyperbolic_sine);
    case OPS_COMPLEX_ACOS:
        return inverse_cosine(b, z);
    case OPS_COMPLEX_ATAN:
        return turned(b, z, inverse_hyperbolic_tangent);
    case OPS_COMPLEX_ASINH:
        return inverse_hyperbolic_sine(b, z);
    case OPS_COMPLEX_ACOSH:
        return inverse_hyperbolic_cosine(b, z);
    case OPS_COMPLEX_ATANH:
        return inverse_hyperbolic_tangent(b, z);
    case OPS_COMPLEX_SCALE:
        return scale_parts(b, z);
    default:
        return inverse(b, z);
    }
}

static complex_value function_value(builder_ref b, uint32_t function, complex_value z)
{
    switch (function) {
    case OPS_COMPLEX_ABS:
        return (complex_value){modulus(b, z), number(b, z.re, 0)};
    case OPS_COMPLEX_ANGLE:
        return (complex_value){angle(b, z), number(b, z.re, 0)};
    case OPS_COMPLEX_CONJ:
        return (complex_value){z.re, hal_ir_neg(b, z.im)};
    case OPS_COMPLEX_SIGN:
        return direction(b, z);
    case OPS_COMPLEX_SQRT:
        return square_root(b, z);
    case OPS_COMPLEX_EXP:
        return exponential(b, z);
    case OPS_COMPLEX_EXPM1:
        return exponential_minus_1(b, z);
    case OPS_COMPLEX_LOG:
        return logarithm(b, z, 1);
    case OPS_COMPLEX_LOG2:
        return logarithm(b, z, 1 / LN2);
    case OPS_COMPLEX_LOG10:
        return logarithm(b, z, 0.43429448190325182765);
    case OPS_COMPLEX_LOG1P:
        return logarithm_1(b, z);
    case OPS_COMPLEX_SIN:
        return turned(b, z, hyperbolic_sine);
    case OPS_COMPLEX_COS:
        return hyperbolic_cosine(b, (complex_value){hal_ir_neg(b, z.im), z.re});
    case OPS_COMPLEX_TAN:
        return turned(b, z, hyperbolic_tangent);
    case OPS_COMPLEX_SINH:
        return hyperbolic_sine(b, z);
    case OPS_COMPLEX_COSH:
        return hyperbolic_cosine(b, z);
    case OPS_COMPLEX_TANH:
        return hyperbolic_tangent(b, z);
    default:
        return inverse_function(b, function, z);
    }
}

void ops_complex_values(hal_ir_builder *builder, uint32_t function, hal_ir_value x, hal_ir_value y,
                        hal_ir_value parts[2])
{
    const complex_value r = function_value(builder, function, (complex_value){x, y});
    parts[0] = r.re;
    parts[1] = r.im;
}
