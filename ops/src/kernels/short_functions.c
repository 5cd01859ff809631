/* Functions with fewer operations, see short_functions.h. All are polynomials without branches, so
 * that every device gives the same bits. Their coefficients, from the highest power on, have the
 * least greatest relative error on the interval named, found by weighted least squares. */
#include "short_functions.h"

#include <math.h>

/* 1.5 * 2^23 rounds what is added to an integer, whose low bits stay readable. */
#define MAGIC 0x1.8p23f

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

static hal_ir_value polynomial(hal_ir_builder *b, hal_ir_value x, const float *factors,
                               uint32_t count)
{
    hal_ir_value sum = hal_ir_f32(b, factors[0]);
    for (uint32_t i = 1; i < count; i++) {
        sum = hal_ir_fma(b, sum, x, hal_ir_f32(b, factors[i]));
    }
    return sum;
}

/* p * 2^n for t = MAGIC + 127 + n and n in [-127, 127]; 0 for -127. */
static hal_ir_value scale(hal_ir_builder *b, hal_ir_value p, hal_ir_value t)
{
    hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, t);
    bits = hal_ir_shl(b, bits, hal_ir_u32(b, 23));
    return hal_ir_mul(b, p, hal_ir_bitcast(b, HAL_TYPE_F32, bits));
}

/* p * 2^n in two steps, for t = MAGIC + 254 + n and n in [-252, 254]. */
static hal_ir_value scale_twice(hal_ir_builder *b, hal_ir_value p, hal_ir_value t)
{
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, t);
    const hal_ir_value half = hal_ir_shr(b, bits, hal_ir_u32(b, 1));
    hal_ir_value factors[2] = {half, hal_ir_sub(b, bits, half)};
    for (uint32_t i = 0; i < 2; i++) {
        factors[i] = hal_ir_shl(b, factors[i], hal_ir_u32(b, 23));
        p = hal_ir_mul(b, p, hal_ir_bitcast(b, HAL_TYPE_F32, factors[i]));
    }
    return p;
}

/* 2^r on [-1/2, 1/2]; errors 2^-13.7, 2^-18.5, 2^-23.6. */
static const float power_3[] = {0x1.c3f68cp-5f, 0x1.f0df9ap-3f, 0x1.62f324p-1f, 0x1.fff68cp-1f};
static const float power_4[] = {0x1.39975ap-7f, 0x1.ca154ap-5f, 0x1.ec06e2p-3f, 0x1.62e0dap-1f,
                                0x1.ffffe8p-1f};
static const float power_5[] = {0x1.5c0870p-10f, 0x1.3d0ce6p-7f, 0x1.c6b6e8p-5f,
                                0x1.ebf916p-3f,  0x1.62e428p-1f, 0x1.000002p0f};

/* The result is infinite from 12 on, and 0 or a denormal below -18, in every narrow type but BF16,
 * which has the range of f32. */
static hal_ir_value exp_rounded(hal_ir_builder *b, hal_type type, hal_ir_value x)
{
    const bool is_wide = type == HAL_TYPE_BF16;
    const float low = is_wide ? -104.0f : -18.0f, high = is_wide ? 89.0f : 12.0f;
    x = hal_ir_max(b, x, hal_ir_f32(b, low));
    x = hal_ir_min(b, x, hal_ir_f32(b, high));
    const hal_ir_value factor = hal_ir_f32(b, 0x1.715476p0f);
    const hal_ir_value magic = hal_ir_f32(b, MAGIC + (is_wide ? 254.0f : 127.0f));
    const hal_ir_value t = hal_ir_fma(b, x, factor, magic);
    const hal_ir_value n = hal_ir_sub(b, t, magic);
    const hal_ir_value r = hal_ir_fma(b, x, factor, hal_ir_neg(b, n));
    return is_wide ? scale_twice(b, polynomial(b, r, power_3, COUNT(power_3)), t)
                   : scale(b, polynomial(b, r, power_4, COUNT(power_4)), t);
}

/* x times a polynomial in x^2 on [0, limit^2], that is mapped to [-1, 1]; beyond the limit the
 * result is rounded to 1. Errors 2^-14.1 and 2^-11.8. */
static hal_ir_value tanh_rounded(hal_ir_builder *b, hal_type type, hal_ir_value x)
{
    static const float wide[] = {-0x1.32622ap-4f, 0x1.7daf7cp-4f, 0x1.dd5b7ap-5f,  -0x1.d8e42ap-5f,
                                 -0x1.5758e2p-4f, 0x1.94c36cp-4f, -0x1.4233e6p-4f, 0x1.db7b02p-4f,
                                 -0x1.7524e8p-3f, 0x1.8d7476p-2f};
    static const float fine[] = {0x1.4c3b20p-2f, -0x1.5ef334p-2f, -0x1.9659a8p-1f, 0x1.8e422ap-1f,
                                 0x1.baaa04p-1f, -0x1.946e22p-1f, -0x1.ac9084p-2f, 0x1.4f8518p-2f,
                                 0x1.52c5fcp-3f, -0x1.1ae862p-3f, 0x1.a3d550p-5f,  -0x1.355264p-4f,
                                 0x1.bceaccp-4f, -0x1.34405ap-3f, 0x1.39decap-2f};
    const bool is_wide = type == HAL_TYPE_BF16;
    const float limit = is_wide ? 3.6f : 4.6f;
    x = hal_ir_max(b, x, hal_ir_f32(b, -limit));
    x = hal_ir_min(b, x, hal_ir_f32(b, limit));
    const hal_ir_value factor = hal_ir_f32(b, is_wide ? 0x1.3c0ca4p-3f : 0x1.832544p-4f);
    const hal_ir_value place = hal_ir_fma(b, hal_ir_mul(b, x, x), factor, hal_ir_f32(b, -1.0f));
    return hal_ir_mul(b, x,
                      is_wide ? polynomial(b, place, wide, COUNT(wide))
                              : polynomial(b, place, fine, COUNT(fine)));
}

/* The normal distribution's tail at |x| as a power of two, whose exponent is a polynomial on
 * [0, 5.8] that falls beyond; relative error 2^-13.3, absolute error 10^-7. */
static hal_ir_value gelu_rounded(hal_ir_builder *b, hal_ir_value x)
{
    static const float tail[] = {-0x1.7abecap-21f, 0x1.a094c2p-17f, -0x1.b96a48p-15f,
                                 -0x1.e9111ep-12f, 0x1.eb02fap-8f,  -0x1.b0683ap-5f,
                                 -0x1.d62312p-2f,  -0x1.26af80p0f,  -0x1.fffffap-1f};
    hal_ir_value exponent = polynomial(b, hal_ir_abs(b, x), tail, COUNT(tail));
    exponent = hal_ir_max(b, exponent, hal_ir_f32(b, -127.0f));
    const hal_ir_value magic = hal_ir_f32(b, MAGIC + 127.0f);
    const hal_ir_value t = hal_ir_add(b, exponent, magic);
    const hal_ir_value r = hal_ir_sub(b, exponent, hal_ir_sub(b, t, magic));
    const hal_ir_value below = scale(b, polynomial(b, r, power_5, COUNT(power_5)), t);
    const hal_ir_value above = hal_ir_sub(b, hal_ir_f32(b, 1.0f), below);
    const hal_ir_value is_below = hal_ir_lt(b, x, hal_ir_f32(b, 0.0f));
    return hal_ir_mul(b, x, hal_ir_select(b, is_below, below, above));
}

/* 1 / x on [1, 2]: the quadratic polynomial of the least relative error, 1 / 99, which each step of
 * Newton's method squares. */
static hal_ir_value reciprocal(hal_ir_builder *b, hal_ir_value x, uint32_t steps)
{
    static const float factors[] = {32.0f / 99.0f, -144.0f / 99.0f, 210.0f / 99.0f};
    hal_ir_value y = polynomial(b, x, factors, COUNT(factors));
    for (uint32_t i = 0; i < steps; i++) {
        const hal_ir_value rest = hal_ir_fma(b, hal_ir_neg(b, x), y, hal_ir_f32(b, 1.0f));
        y = hal_ir_fma(b, y, rest, y);
    }
    return y;
}

/* With t = exp(-|x|): 1 / (1 + t), or t / (1 + t) where x is negative, as OPS_SIGMOID. */
static hal_ir_value sigmoid_rounded(hal_ir_builder *b, hal_type type, hal_ir_value x)
{
    const hal_ir_value one = hal_ir_f32(b, 1.0f);
    const hal_ir_value t = exp_rounded(b, type, hal_ir_neg(b, hal_ir_abs(b, x)));
    const hal_ir_value is_below = hal_ir_lt(b, x, hal_ir_f32(b, 0.0f));
    const hal_ir_value inverse =
        reciprocal(b, hal_ir_add(b, one, t), type == HAL_TYPE_BF16 ? 1 : 2);
    return hal_ir_mul(b, hal_ir_select(b, is_below, t, one), inverse);
}

bool ops_expands(const hal_device_info *info, uint32_t opcode)
{
    return !(info->math_f32 >> hal_ir_math_index(opcode) & 1);
}

/* Whether `function` has another form for results that are rounded to `type`. */
static bool unary_is_short(const hal_device_info *info, ops_unary_function function, hal_type type)
{
    const uint32_t opcode = function == OPS_EXP || function == OPS_SIGMOID ? HAL_IR_EXP
                            : function == OPS_TANH                         ? HAL_IR_TANH
                            : function == OPS_GELU                         ? HAL_IR_ERF
                                                                           : 0;
    return opcode && hal_type_is_narrow_float(type) && ops_expands(info, opcode);
}

hal_ir_value ops_unary_rounded(hal_ir_builder *b, const hal_device_info *info,
                               ops_unary_function function, hal_type type, hal_ir_value x)
{
    if (!unary_is_short(info, function, type) || hal_ir_type_of(b, x) != HAL_TYPE_F32) {
        return ops_unary_value(b, function, x);
    }
    return function == OPS_EXP       ? exp_rounded(b, type, x)
           : function == OPS_SIGMOID ? sigmoid_rounded(b, type, x)
           : function == OPS_TANH    ? tanh_rounded(b, type, x)
                                     : gelu_rounded(b, x);
}

hal_ir_value ops_exp_below(hal_ir_builder *b, hal_ir_value x, bool is_narrow)
{
    /* e^r on [-log(2) / 2, log(2) / 2], as in hal/ir_math_f32.h. */
    static const float powers[] = {
        0x1.695414p-10f, 0x1.123b04p-7f, 0x1.555a22p-5f, 0x1.55549p-3f, 0x1.fffffap-2f, 1.0f, 1.0f};
    const hal_ir_value held = hal_ir_max(b, x, hal_ir_f32(b, is_narrow ? -88.1f : -104.0f));
    const hal_ir_value factor = hal_ir_f32(b, 0x1.715476p0f);
    const hal_ir_value magic = hal_ir_f32(b, MAGIC + (is_narrow ? 127.0f : 254.0f));
    const hal_ir_value t = hal_ir_fma(b, held, factor, magic);
    const hal_ir_value n = hal_ir_sub(b, t, magic);
    if (is_narrow) {
        const hal_ir_value part = hal_ir_fma(b, held, factor, hal_ir_neg(b, n));
        return scale(b, polynomial(b, part, power_5, COUNT(power_5)), t);
    }
    hal_ir_value r = hal_ir_fma(b, n, hal_ir_f32(b, -0x1.62e43p-1f), held);
    r = hal_ir_fma(b, n, hal_ir_f32(b, 0x1.05c61p-29f), r);
    return scale_twice(b, polynomial(b, r, powers, COUNT(powers)), t);
}
