/* Fused multiply-add from additions and products of f64.
 *
 * A sum that is rounded again is first rounded to odd: if it is inexact and its last bit is even,
 * it is replaced by the neighbour on the side of the error. The second rounding then sees on which
 * side of a tie the exact sum is. */
#include "rewrite.h"

/* A rounded sum or product and its error; high + low is exact. */
typedef struct pair {
    hal_ir_value high, low;
} pair;

/* Bits of f64: fraction and sign; sign; infinity. */
#define FRACTION_AND_SIGN INT64_C(0x800fffffffffffff)
#define SIGN INT64_MIN
#define INFINITE INT64_C(0x7ff0000000000000)
enum { BIAS = 1023, TOP = 2047, FRACTION = 52, FAR = 120 };

static pair add_exactly(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    const hal_ir_value sum = hal_ir_add(b, x, y);
    const hal_ir_value part_y = hal_ir_sub(b, sum, x);
    const hal_ir_value part_x = hal_ir_sub(b, sum, part_y);
    const hal_ir_value error_x = hal_ir_sub(b, x, part_x);
    const hal_ir_value error_y = hal_ir_sub(b, y, part_y);
    return (pair){sum, hal_ir_add(b, error_x, error_y)};
}

/* The error of infinities and NaN is NaN: both comparisons are false. */
static hal_ir_value add_to_odd(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    const hal_ir_value zero = hal_ir_f64(b, 0), one = hal_ir_u64(b, 1);
    const pair sum = add_exactly(b, x, y);
    const hal_ir_value above = hal_ir_gt(b, sum.low, zero);
    const hal_ir_value below = hal_ir_lt(b, sum.low, zero);
    const hal_ir_value inexact = hal_ir_or(b, above, below);
    const hal_ir_value positive = hal_ir_gt(b, sum.high, zero);
    const hal_ir_value outwards = hal_ir_eq(b, above, positive);
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U64, sum.high);
    const hal_ir_value outer = hal_ir_add(b, bits, one);
    const hal_ir_value inner = hal_ir_sub(b, bits, one);
    const hal_ir_value neighbour = hal_ir_select(b, outwards, outer, inner);
    const hal_ir_value even = hal_ir_ne(b, hal_ir_and(b, bits, one), one);
    const hal_ir_value moved = hal_ir_and(b, inexact, even);
    return hal_ir_bitcast(b, HAL_TYPE_F64, hal_ir_select(b, moved, neighbour, bits));
}

/* Products of f32 are exact in f64. */
hal_ir_value hal_ir_lower_fma(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, hal_ir_value z)
{
    const hal_ir_value wide_x = hal_ir_cast(b, HAL_TYPE_F64, x);
    const hal_ir_value wide_y = hal_ir_cast(b, HAL_TYPE_F64, y);
    const hal_ir_value product = hal_ir_mul(b, wide_x, wide_y);
    const hal_ir_value sum = add_to_odd(b, product, hal_ir_cast(b, HAL_TYPE_F64, z));
    return hal_ir_cast(b, HAL_TYPE_F32, sum);
}

/* Two halves of a fraction (Dekker 1971): their products are exact. */
static pair split(hal_ir_builder *b, hal_ir_value x)
{
    const hal_ir_value scaled = hal_ir_mul(b, x, hal_ir_f64(b, 0x1p27 + 1));
    const hal_ir_value high = hal_ir_sub(b, scaled, hal_ir_sub(b, scaled, x));
    return (pair){high, hal_ir_sub(b, x, high)};
}

static pair multiply_exactly(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    const hal_ir_value product = hal_ir_mul(b, x, y);
    const pair of_x = split(b, x), of_y = split(b, y);
    hal_ir_value error = hal_ir_sub(b, hal_ir_mul(b, of_x.high, of_y.high), product);
    error = hal_ir_add(b, error, hal_ir_mul(b, of_x.high, of_y.low));
    error = hal_ir_add(b, error, hal_ir_mul(b, of_x.low, of_y.high));
    return (pair){product, hal_ir_add(b, error, hal_ir_mul(b, of_x.low, of_y.low))};
}

/* x * y + z of numbers near 1, without overflow and underflow: the errors of the product and of its
 * sum with z are added to odd, then rounded once. */
static hal_ir_value fuse(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, hal_ir_value z)
{
    const pair product = multiply_exactly(b, x, y);
    const pair low = add_exactly(b, z, product.low);
    const pair high = add_exactly(b, product.high, low.high);
    return hal_ir_add(b, high.high, add_to_odd(b, low.low, high.low));
}

static hal_ir_value exponent_of(hal_ir_builder *b, hal_ir_value bits)
{
    const hal_ir_value moved = hal_ir_shr(b, bits, hal_ir_i64(b, FRACTION));
    return hal_ir_and(b, moved, hal_ir_i64(b, TOP));
}

static hal_ir_value with_exponent(hal_ir_builder *b, hal_ir_value bits, hal_ir_value exponent)
{
    const hal_ir_value placed = hal_ir_shl(b, exponent, hal_ir_i64(b, FRACTION));
    return hal_ir_or(b, hal_ir_and(b, bits, hal_ir_i64(b, FRACTION_AND_SIGN)), placed);
}

static hal_ir_value is_one_of(hal_ir_builder *b, hal_ir_value x, int64_t one, int64_t other)
{
    const hal_ir_value first = hal_ir_eq(b, x, hal_ir_i64(b, one));
    return hal_ir_or(b, first, hal_ir_eq(b, x, hal_ir_i64(b, other)));
}

/* x * 2^by: infinity above the range, zero below it. */
static hal_ir_value scaled(hal_ir_builder *b, hal_ir_value x, hal_ir_value by)
{
    const hal_ir_value zero = hal_ir_i64(b, 0), bits = hal_ir_bitcast(b, HAL_TYPE_I64, x);
    const hal_ir_value sign = hal_ir_and(b, bits, hal_ir_i64(b, SIGN));
    const hal_ir_value old = exponent_of(b, bits), exponent = hal_ir_add(b, old, by);
    const hal_ir_value above = hal_ir_ge(b, exponent, hal_ir_i64(b, TOP));
    const hal_ir_value below = hal_ir_le(b, exponent, zero);
    const hal_ir_value infinity = hal_ir_or(b, sign, hal_ir_i64(b, INFINITE));
    hal_ir_value result = with_exponent(b, bits, exponent);
    result = hal_ir_select(b, above, infinity, result);
    result = hal_ir_select(b, below, sign, result);
    result = hal_ir_select(b, hal_ir_eq(b, old, zero), bits, result); /* x is zero */
    return hal_ir_bitcast(b, HAL_TYPE_F64, result);
}

/* Computes with x and y scaled to exponent 0 and z scaled by as much. A much larger z is the
 * result; a much smaller z only decides ties, so its exponent is limited. Zeros, infinities and NaN
 * need no rounding. */
hal_ir_value hal_ir_lower_fma_f64(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, hal_ir_value z)
{
    const hal_ir_value zero = hal_ir_i64(b, 0), one = hal_ir_i64(b, BIAS);
    const hal_ir_value bits_x = hal_ir_bitcast(b, HAL_TYPE_I64, x);
    const hal_ir_value bits_y = hal_ir_bitcast(b, HAL_TYPE_I64, y);
    const hal_ir_value bits_z = hal_ir_bitcast(b, HAL_TYPE_I64, z);
    const hal_ir_value of_x = exponent_of(b, bits_x), of_y = exponent_of(b, bits_y);
    const hal_ir_value of_z = exponent_of(b, bits_z);
    const hal_ir_value special =
        hal_ir_or(b, is_one_of(b, of_x, 0, TOP), is_one_of(b, of_y, 0, TOP));
    const hal_ir_value moved = hal_ir_sub(b, hal_ir_add(b, of_x, of_y), hal_ir_i64(b, 2 * BIAS));
    const hal_ir_value near_z = hal_ir_sub(b, of_z, moved); /* its exponent next to the product */
    const hal_ir_value large = hal_ir_gt(b, near_z, hal_ir_i64(b, BIAS + FAR));
    const hal_ir_value small = hal_ir_max(b, near_z, hal_ir_i64(b, BIAS - FAR));
    const hal_ir_value no_z = hal_ir_eq(b, of_z, zero);
    const hal_ir_value placed_z = hal_ir_select(b, no_z, hal_ir_and(b, bits_z, hal_ir_i64(b, SIGN)),
                                                with_exponent(b, bits_z, small));
    const hal_ir_value fused =
        fuse(b, hal_ir_bitcast(b, HAL_TYPE_F64, with_exponent(b, bits_x, one)),
             hal_ir_bitcast(b, HAL_TYPE_F64, with_exponent(b, bits_y, one)),
             hal_ir_bitcast(b, HAL_TYPE_F64, placed_z));
    const hal_ir_value plain = hal_ir_add(b, hal_ir_mul(b, x, y), z);
    const hal_ir_value is_z = hal_ir_or(b, hal_ir_and(b, large, hal_ir_not(b, no_z)),
                                        hal_ir_eq(b, of_z, hal_ir_i64(b, TOP)));
    const hal_ir_value result = hal_ir_select(b, is_z, z, scaled(b, fused, moved));
    return hal_ir_select(b, special, plain, result);
}
