/* The numbers of quantised weights, see quantised_decode.h: arithmetic without tables. */
#include "quantised_decode.h"

#include <math.h>

typedef struct float_format {
    uint8_t bits, mantissa, bias;
    uint8_t first_special; /* magnitude of the first one that is no number; 0: there is none */
    uint8_t has_infinity;
} float_format;

static const float_format float_formats[] = {
    [OPS_QUANTISED_E4M3] = {.bits = 8, .mantissa = 3, .bias = 7, .first_special = 0x7f},
    [OPS_QUANTISED_E5M2] = {8, 2, 15, .first_special = 0x7c, .has_infinity = 1},
    [OPS_QUANTISED_E2M1] = {.bits = 4, .mantissa = 1, .bias = 1}};

uint32_t ops_quantised_bits(uint32_t format)
{
    return format == OPS_QUANTISED_I4 || format == OPS_QUANTISED_U4 || format == OPS_QUANTISED_E2M1
               ? 4
               : 8;
}

uint32_t ops_quantised_half(uint32_t format)
{
    return format == OPS_QUANTISED_I8 ? 128 : format == OPS_QUANTISED_I4 ? 8 : 0;
}

bool ops_quantised_takes_type(uint32_t format, hal_type type)
{
    const hal_type usual = format == OPS_QUANTISED_I8 ? HAL_TYPE_I8 : HAL_TYPE_U8;
    return type == usual || (type == HAL_TYPE_F8_E4M3 && format == OPS_QUANTISED_E4M3);
}

/* What is no number: NaN, or an infinity or NaN by the mantissa in `high`. */
static hal_ir_value special_bits(hal_ir_builder *b, const float_format *f, hal_ir_value high)
{
    return f->has_infinity ? hal_ir_or(b, high, hal_ir_u32(b, 0x7f800000u))
                           : hal_ir_u32(b, 0x7fc00000u);
}

/* Exponent and mantissa in the low bits of those of F32, times a power of two: subnormal numbers
 * are subnormal ones of F32 before. */
static hal_ir_value float_by_product(hal_ir_builder *b, const float_format *f, hal_ir_value word,
                                     uint32_t bit)
{
    const uint32_t up = 32u - f->bits - bit, down = 9u + f->mantissa - f->bits;
    const uint32_t mask = ((1u << (f->bits - 1u)) - 1u) << (23u - f->mantissa);
    hal_ir_value top = up ? hal_ir_shl(b, word, hal_ir_u32(b, up)) : word;
    hal_ir_value size = hal_ir_and(b, hal_ir_shr(b, top, hal_ir_u32(b, down)), hal_ir_u32(b, mask));
    hal_ir_value sign = hal_ir_and(b, top, hal_ir_u32(b, 0x80000000u));
    hal_ir_value x = hal_ir_bitcast(b, HAL_TYPE_F32, hal_ir_or(b, size, sign));
    x = hal_ir_mul(b, x, hal_ir_f32(b, ldexpf(1.0f, 127 - f->bias)));
    if (!f->first_special) {
        return x;
    }
    const uint32_t first = (uint32_t)f->first_special << (23u - f->mantissa);
    hal_ir_value special = special_bits(b, f, size);
    special = f->has_infinity ? hal_ir_or(b, special, sign) : special;
    return hal_ir_select(b, hal_ir_ge(b, size, hal_ir_u32(b, first)),
                         hal_ir_bitcast(b, HAL_TYPE_F32, special), x);
}

/* Subnormal numbers get the exponent 1, and lose the leading one that it gives them again: no
 * subnormal number of F32 occurs, which a device may not have. */
static hal_ir_value float_by_difference(hal_ir_builder *b, const float_format *f, hal_ir_value word,
                                        uint32_t bit)
{
    const uint32_t one = 1u << 23, sign = 1u << (f->bits - 1u);
    const float least = 1.0f / (float)(1u << (f->bias - 1u)); /* normal number */
    word = bit ? hal_ir_shr(b, word, hal_ir_u32(b, bit)) : word;
    hal_ir_value size = hal_ir_and(b, word, hal_ir_u32(b, sign - 1));
    hal_ir_value high = hal_ir_shl(b, size, hal_ir_u32(b, 23u - f->mantissa));
    hal_ir_value normal = hal_ir_add(b, high, hal_ir_u32(b, (127u - f->bias) * one));
    hal_ir_value raised = hal_ir_add(b, high, hal_ir_u32(b, (128u - f->bias) * one));
    hal_ir_value small =
        hal_ir_sub(b, hal_ir_bitcast(b, HAL_TYPE_F32, raised), hal_ir_f32(b, least));
    hal_ir_value is_small = hal_ir_lt(b, size, hal_ir_u32(b, 1u << f->mantissa));
    hal_ir_value bits = hal_ir_select(b, is_small, hal_ir_bitcast(b, HAL_TYPE_U32, small), normal);
    if (f->first_special) {
        hal_ir_value special = hal_ir_ge(b, size, hal_ir_u32(b, f->first_special));
        bits = hal_ir_select(b, special, special_bits(b, f, high), bits);
    }
    hal_ir_value negative = hal_ir_and(b, word, hal_ir_u32(b, sign));
    negative = hal_ir_shl(b, negative, hal_ir_u32(b, 32u - f->bits));
    return hal_ir_bitcast(b, HAL_TYPE_F32, hal_ir_or(b, bits, negative));
}

hal_ir_value ops_quantised_float(hal_ir_builder *b, uint32_t format, bool has_denormals,
                                 hal_ir_value word, uint32_t bit)
{
    const float_format *f = &float_formats[format];
    return has_denormals ? float_by_product(b, f, word, bit) : float_by_difference(b, f, word, bit);
}

hal_ir_value ops_quantised_exponent(hal_ir_builder *b, hal_ir_value x)
{
    hal_ir_value bits = hal_ir_shl(b, x, hal_ir_u32(b, 23));
    bits = hal_ir_select(b, hal_ir_eq(b, x, hal_ir_u32(b, 0)), hal_ir_u32(b, 0x00400000u), bits);
    bits = hal_ir_select(b, hal_ir_eq(b, x, hal_ir_u32(b, 255)), hal_ir_u32(b, 0x7fc00000u), bits);
    return hal_ir_bitcast(b, HAL_TYPE_F32, bits);
}

/* The bits of a number that F16 has. */
static hal_ir_value f16_bits(hal_ir_builder *b, hal_ir_value x)
{
    hal_ir_value all = hal_ir_bitcast(b, HAL_TYPE_U32, x);
    hal_ir_value size = hal_ir_and(b, all, hal_ir_u32(b, 0x7fffffffu));
    hal_ir_value normal =
        hal_ir_sub(b, hal_ir_shr(b, size, hal_ir_u32(b, 13)), hal_ir_u32(b, 112u << 10));
    hal_ir_value units = hal_ir_mul(b, hal_ir_bitcast(b, HAL_TYPE_F32, size),
                                    hal_ir_f32(b, 0x1p24f)); /* of the least number */
    hal_ir_value is_small = hal_ir_lt(b, size, hal_ir_u32(b, (127u - 14u) << 23));
    hal_ir_value bits = hal_ir_select(b, is_small, hal_ir_cast(b, HAL_TYPE_U32, units), normal);
    hal_ir_value is_nan = hal_ir_gt(b, size, hal_ir_u32(b, 0x7f800000u));
    hal_ir_value beyond = hal_ir_select(b, is_nan, hal_ir_u32(b, 0x7e00u), hal_ir_u32(b, 0x7c00u));
    bits = hal_ir_select(b, hal_ir_ge(b, size, hal_ir_u32(b, (127u + 16u) << 23)), beyond, bits);
    hal_ir_value sign = hal_ir_and(b, hal_ir_shr(b, all, hal_ir_u32(b, 16)), hal_ir_u32(b, 0x8000));
    return hal_ir_or(b, bits, sign);
}

hal_ir_value ops_quantised_pair(hal_ir_builder *b, hal_type type, const hal_ir_value pair[2])
{
    hal_ir_value halves[2];
    for (uint32_t i = 0; i < 2; i++) {
        hal_ir_value x = hal_ir_narrow(b, type, pair[i]);
        halves[i] = type == HAL_TYPE_F16
                        ? f16_bits(b, x)
                        : hal_ir_shr(b, hal_ir_bitcast(b, HAL_TYPE_U32, x), hal_ir_u32(b, 16));
    }
    return hal_ir_or(b, halves[0], hal_ir_shl(b, halves[1], hal_ir_u32(b, 16)));
}
