/* See fixed_sum.h. */
#include "fixed_sum.h"

enum {
    SIGNIFICAND_BITS = 23,
    MEMBER_SHIFT = 38, /* a significand of 24 bits ends below 2^62 */
    UNIT = 188,        /* 126 + 62, see ops_fixed_value */
    PLUS_INFINITY = 1,
    MINUS_INFINITY = 2,
    NOT_A_NUMBER = 4
};

#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
#define QUIET 0x7fc00000u
#define HIDDEN 0x800000u
#define NAN_KEY 0xfffffffeu

static hal_ir_value magnitude_of(hal_ir_builder *b, hal_ir_value bits)
{
    return hal_ir_and(b, bits, hal_ir_u32(b, SIGN - 1));
}

/* The exponent as in the bits; that of denormals is 1, as their unit is that of the least normal
 * numbers. */
static hal_ir_value exponent_of(hal_ir_builder *b, hal_ir_value magnitude)
{
    const hal_ir_value field = hal_ir_shr(b, magnitude, hal_ir_u32(b, SIGNIFICAND_BITS));
    return hal_ir_max(b, field, hal_ir_u32(b, 1));
}

hal_ir_value ops_fixed_class(hal_ir_builder *b, hal_ir_value x)
{
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x), one = hal_ir_u32(b, 1);
    const hal_ir_value magnitude = magnitude_of(b, bits);
    const hal_ir_value zero = hal_ir_sub(b, one, hal_ir_shr(b, bits, hal_ir_u32(b, 31)));
    return hal_ir_select(b, hal_ir_eq(b, magnitude, hal_ir_u32(b, 0)), zero,
                         hal_ir_add(b, exponent_of(b, magnitude), one));
}

hal_ir_value ops_fixed_member(hal_ir_builder *b, hal_ir_value x, hal_ir_value set_class,
                              hal_ir_value guard)
{
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x);
    const hal_ir_value magnitude = magnitude_of(b, bits), hidden = hal_ir_u32(b, HIDDEN);
    hal_ir_value significand = hal_ir_and(b, magnitude, hal_ir_u32(b, HIDDEN - 1));
    significand = hal_ir_select(b, hal_ir_lt(b, magnitude, hidden), significand,
                                hal_ir_or(b, significand, hidden));
    /* guard + E - e places to the right, the last one with rounding: E = class - 1, guard >= 1. */
    hal_ir_value places = hal_ir_add(b, set_class, guard);
    places = hal_ir_sub(b, places, hal_ir_add(b, exponent_of(b, magnitude), hal_ir_u32(b, 2)));
    places = hal_ir_cast(b, HAL_TYPE_U64, hal_ir_min(b, places, hal_ir_u32(b, 63)));
    const hal_ir_value one = hal_ir_u64(b, 1);
    hal_ir_value member = hal_ir_cast(b, HAL_TYPE_U64, significand);
    member = hal_ir_shr(b, hal_ir_shl(b, member, hal_ir_u64(b, MEMBER_SHIFT)), places);
    member = hal_ir_shr(b, hal_ir_add(b, member, one), one);
    return hal_ir_select(b, hal_ir_le(b, hal_ir_u32(b, SIGN), bits), hal_ir_neg(b, member), member);
}

hal_ir_value ops_fixed_special(hal_ir_builder *b, hal_ir_value x)
{
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x);
    const hal_ir_value infinite = hal_ir_u32(b, INFINITE), none = hal_ir_u64(b, 0);
    const hal_ir_value is_nan = hal_ir_lt(b, infinite, magnitude_of(b, bits));
    hal_ir_value special = hal_ir_select(b, is_nan, hal_ir_u64(b, NOT_A_NUMBER), none);
    special = hal_ir_select(b, hal_ir_eq(b, bits, infinite), hal_ir_u64(b, PLUS_INFINITY), special);
    return hal_ir_select(b, hal_ir_eq(b, bits, hal_ir_u32(b, INFINITE | SIGN)),
                         hal_ir_u64(b, MINUS_INFINITY), special);
}

/* A U64 as the bits of an F32: to nearest even, or where is_odd cut and its last bit set if that
 * has left something. */
static hal_ir_value rounded(hal_ir_builder *b, hal_ir_value sum, bool is_odd)
{
    const hal_ir_value nearest = hal_ir_cast(b, HAL_TYPE_F32, sum), one = hal_ir_u32(b, 1);
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, nearest);
    if (!is_odd) {
        return bits;
    }
    const hal_ir_value back = hal_ir_cast(b, HAL_TYPE_U64, nearest);
    const hal_ir_value cut =
        hal_ir_select(b, hal_ir_lt(b, sum, back), hal_ir_sub(b, bits, one), bits);
    return hal_ir_select(b, hal_ir_ne(b, sum, back), hal_ir_or(b, cut, one), bits);
}

hal_ir_value ops_fixed_value(hal_ir_builder *b, hal_ir_value sum, hal_ir_value set_class,
                             hal_ir_value guard, bool is_narrow)
{
    const hal_ir_value none = hal_ir_u64(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value significand_bits = hal_ir_u32(b, SIGNIFICAND_BITS);
    const hal_ir_value is_negative = hal_ir_le(b, hal_ir_u64(b, UINT64_C(1) << 63), sum);
    const hal_ir_value size = hal_ir_select(b, is_negative, hal_ir_neg(b, sum), sum);
    const hal_ir_value bits = rounded(b, size, is_narrow);
    const hal_ir_value fraction = hal_ir_and(b, bits, hal_ir_u32(b, HIDDEN - 1));
    /* The exponent, and 188, so that it is not negative: of the sum by itself + E + guard. */
    hal_ir_value exponent = hal_ir_add(b, hal_ir_shr(b, bits, significand_bits), guard);
    exponent = hal_ir_add(b, exponent, hal_ir_sub(b, set_class, one));
    const hal_ir_value unit = hal_ir_u32(b, UNIT);
    hal_ir_value normal = hal_ir_shl(b, hal_ir_sub(b, exponent, unit), significand_bits);
    normal = hal_ir_or(b, normal, fraction);
    normal = hal_ir_select(b, hal_ir_lt(b, exponent, hal_ir_u32(b, UNIT + 255)), normal,
                           hal_ir_u32(b, INFINITE));
    /* A denormal sum is a multiple of the least one, so that no bit is lost. */
    hal_ir_value places = hal_ir_sub(b, hal_ir_u32(b, UNIT + 1), exponent);
    places = hal_ir_min(b, places, hal_ir_u32(b, 31));
    const hal_ir_value denormal =
        hal_ir_shr(b, hal_ir_or(b, fraction, hal_ir_u32(b, HIDDEN)), places);
    hal_ir_value value = hal_ir_select(b, hal_ir_lt(b, unit, exponent), normal, denormal);
    value = hal_ir_select(b, is_negative, hal_ir_or(b, value, hal_ir_u32(b, SIGN)), value);
    /* A sum of -0 only is -0. */
    const hal_ir_value zero = hal_ir_select(b, hal_ir_eq(b, set_class, hal_ir_u32(b, 0)),
                                            hal_ir_u32(b, SIGN), hal_ir_u32(b, 0));
    value = hal_ir_select(b, hal_ir_eq(b, size, none), zero, value);
    return hal_ir_bitcast(b, HAL_TYPE_F32, value);
}

hal_ir_value ops_fixed_special_value(hal_ir_builder *b, hal_ir_value x, hal_ir_value special)
{
    const hal_ir_value minus = hal_ir_u32(b, INFINITE | SIGN), plus = hal_ir_u32(b, INFINITE);
    hal_ir_value added = hal_ir_u32(b, QUIET);
    added = hal_ir_select(b, hal_ir_eq(b, special, hal_ir_u64(b, MINUS_INFINITY)), minus, added);
    added = hal_ir_select(b, hal_ir_eq(b, special, hal_ir_u64(b, PLUS_INFINITY)), plus, added);
    const hal_ir_value sum = hal_ir_add(b, x, hal_ir_bitcast(b, HAL_TYPE_F32, added));
    return hal_ir_select(b, hal_ir_eq(b, special, hal_ir_u64(b, 0)), x, sum);
}

hal_ir_value ops_order_key(hal_ir_builder *b, hal_ir_value x, bool is_descending)
{
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x), sign = hal_ir_u32(b, SIGN);
    const bool is_float = hal_ir_type_of(b, x) == HAL_TYPE_F32;
    hal_ir_value key = hal_ir_xor(b, bits, sign);
    if (is_float) {
        key = hal_ir_select(b, hal_ir_le(b, sign, bits), hal_ir_not(b, bits), key);
    }
    key = is_descending ? hal_ir_not(b, key) : key;
    const hal_ir_value is_nan = hal_ir_lt(b, hal_ir_u32(b, INFINITE), magnitude_of(b, bits));
    return is_float ? hal_ir_select(b, is_nan, hal_ir_u32(b, NAN_KEY), key) : key;
}

hal_ir_value ops_order_value(hal_ir_builder *b, hal_type type, hal_ir_value key, bool is_descending)
{
    const hal_ir_value sign = hal_ir_u32(b, SIGN);
    const hal_ir_value ascending = is_descending ? hal_ir_not(b, key) : key;
    hal_ir_value bits = hal_ir_xor(b, ascending, sign);
    if (type == HAL_TYPE_F32) {
        bits = hal_ir_select(b, hal_ir_le(b, sign, ascending), bits, hal_ir_not(b, ascending));
        bits =
            hal_ir_select(b, hal_ir_eq(b, key, hal_ir_u32(b, NAN_KEY)), hal_ir_u32(b, QUIET), bits);
    }
    return hal_ir_bitcast(b, type, bits);
}
