/* Conversions of values, see cast.h. Narrow floats are values of F32, so that a conversion of F64
 * or of a 32- or 64-bit integer to them would round two times: to F32, then at the store. The first
 * rounding is to odd here, which leaves the second one the result of one rounding.
 *
 * Source: S. Boldo, G. Melquiond, "Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms
 * Using Rounding to Odd", IEEE Transactions on Computers, 2008. */
#include "cast.h"

#include "tensor/indexing.h"

/* The F32 neighbour of x with an odd significand, where x is not an F32. */
static hal_ir_value f64_to_odd_f32(hal_ir_builder *b, hal_ir_value x)
{
    hal_ir_value nearest = hal_ir_cast(b, HAL_TYPE_F32, x);
    hal_ir_value size = hal_ir_abs(b, x);
    hal_ir_value rounded = hal_ir_abs(b, hal_ir_cast(b, HAL_TYPE_F64, nearest));
    hal_ir_value one = hal_ir_u32(b, 1), zero = hal_ir_u32(b, 0);
    hal_ir_value is_above = hal_ir_lt(b, size, rounded), is_below = hal_ir_lt(b, rounded, size);
    hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, nearest);
    bits = hal_ir_sub(b, bits, hal_ir_select(b, is_above, one, zero));
    hal_ir_value is_inexact = hal_ir_or(b, is_above, is_below); /* false for NaN */
    bits = hal_ir_or(b, bits, hal_ir_select(b, is_inexact, one, zero));
    return hal_ir_bitcast(b, HAL_TYPE_F32, bits);
}

/* The low bits of an integer of this size that F32 may drop: the rest has at most 24 bits, and its
 * last bit is below the half of BF16's last place. The others end by 2^16. */
static hal_ir_value dropped_bits(hal_ir_builder *b, hal_type type, hal_ir_value size)
{
    hal_ir_value mask = hal_ir_number(b, type, 0);
    const uint32_t steps = type == HAL_TYPE_U64 ? 5 : 1;
    for (uint32_t i = 0; i < steps; i++) {
        const double limit = (double)(UINT64_C(1) << (24 + 8 * i));
        const double bits = (double)((UINT64_C(1) << (8 + 8 * i)) - 1);
        hal_ir_value is_less = hal_ir_lt(b, size, hal_ir_number(b, type, limit));
        mask = hal_ir_select(b, is_less, mask, hal_ir_number(b, type, bits));
    }
    return mask;
}

/* An integer whose F32 is exact, and rounds to a narrow float as x does. Clearing low bits of two's
 * complement rounds down; setting the last bit that is kept makes that rounding to odd. */
static hal_ir_value integer_to_odd(hal_ir_builder *b, hal_ir_value x)
{
    const hal_type from = hal_ir_type_of(b, x);
    const hal_type type = hal_type_size(from) == 8 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    hal_ir_value bits = from == type ? x : hal_ir_bitcast(b, type, x), size = bits;
    if (from != type) {
        const uint32_t sign_bit = 8 * hal_type_size(from) - 1;
        hal_ir_value sign = hal_ir_shr(b, x, hal_ir_number(b, from, sign_bit));
        size = hal_ir_xor(b, bits, hal_ir_bitcast(b, type, sign));
    }
    hal_ir_value mask = dropped_bits(b, type, size), zero = hal_ir_number(b, type, 0);
    hal_ir_value last = hal_ir_add(b, mask, hal_ir_number(b, type, 1));
    hal_ir_value is_exact = hal_ir_eq(b, hal_ir_and(b, bits, mask), zero);
    bits = hal_ir_or(b, bits, hal_ir_select(b, is_exact, zero, last));
    bits = hal_ir_and(b, bits, hal_ir_unary(b, HAL_IR_NOT, mask));
    return from == type ? bits : hal_ir_bitcast(b, from, bits);
}

/* A cast to a small integer saturates at that type's limits, as one to a large integer does. */
hal_ir_value ops_cast_value(hal_ir_builder *b, hal_type storage, hal_ir_value x)
{
    const hal_type to = hal_type_of_value(storage), from = hal_ir_type_of(b, x);
    if (from == to) {
        return x;
    }
    if (hal_type_is_narrow_float(storage)) {
        if (from == HAL_TYPE_F64) {
            return f64_to_odd_f32(b, x);
        }
        x = hal_type_is_integer(from) ? integer_to_odd(b, x) : x;
    }
    hal_ir_value value = hal_ir_cast(b, to, x);
    if (hal_type_is_float(from) && hal_type_is_integer(storage) && storage != to) {
        int bits = 8 * (int)hal_type_size(storage), is_signed = hal_type_is_signed(storage);
        double high = (double)((1 << (bits - is_signed)) - 1);
        value = hal_ir_min(b, value, hal_ir_number(b, to, high));
        value = hal_ir_max(b, value, hal_ir_number(b, to, is_signed ? -high - 1 : 0));
    }
    return value;
}
