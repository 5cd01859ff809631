/* Arithmetic on words, see words.h. */
#include "words.h"

#define WORD_BITS 32u
#define EXPONENT_SHIFT 20u         /* of the high word */
#define HIDDEN_BIT 0x00100000u     /* of the significand, in the high word */
#define FRACTION_MASK 0x000fffffu  /* of the high word */
#define MAGNITUDE_MASK 0x7fffffffu /* of the high word */
#define SIGN_BIT 0x80000000u       /* of the high word */
#define INFINITY_HIGH 0x7ff00000u  /* its low word is 0 */
#define EXPONENT_BIAS 1023

static hal_ir_value shl(hal_ir_builder *b, hal_ir_value x, uint32_t count)
{
    return hal_ir_shl(b, x, hal_ir_u32(b, count));
}

static hal_ir_value shr(hal_ir_builder *b, hal_ir_value x, uint32_t count)
{
    return hal_ir_shr(b, x, hal_ir_u32(b, count));
}

static hal_ir_value bit_of(hal_ir_builder *b, hal_ir_value condition)
{
    return hal_ir_cast(b, HAL_TYPE_U32, condition);
}

static hal_ir_value is_zero(hal_ir_builder *b, hal_ir_value x)
{
    return hal_ir_eq(b, x, hal_ir_u32(b, 0));
}

/* The biased exponent as stored: 0 of subnormal numbers. */
static hal_ir_value stored_exponent(hal_ir_builder *b, ops_f64_words x)
{
    return shr(b, hal_ir_and(b, x.high, hal_ir_u32(b, MAGNITUDE_MASK)), EXPONENT_SHIFT);
}

hal_ir_value ops_f64_class(hal_ir_builder *b, ops_f64_words x)
{
    const hal_ir_value stored = stored_exponent(b, x);
    const hal_ir_value high = hal_ir_and(b, x.high, hal_ir_u32(b, FRACTION_MASK));
    const hal_ir_value has_no_fraction = is_zero(b, hal_ir_or(b, high, x.low));
    const hal_ir_value largest = hal_ir_eq(b, stored, hal_ir_u32(b, OPS_F64_INFINITY));
    const hal_ir_value is_nan = hal_ir_and(b, largest, hal_ir_not(b, has_no_fraction));
    const hal_ir_value exponent = hal_ir_max(b, stored, hal_ir_u32(b, 1));
    const hal_ir_value is_number_zero = hal_ir_and(b, is_zero(b, stored), has_no_fraction);
    const hal_ir_value number = hal_ir_select(b, is_nan, hal_ir_u32(b, OPS_F64_NAN), exponent);
    return hal_ir_select(b, is_number_zero, hal_ir_u32(b, 0), number);
}

hal_ir_value ops_f64_exponent(hal_ir_builder *b, ops_f64_words x)
{
    return hal_ir_max(b, stored_exponent(b, x), hal_ir_u32(b, 1));
}

hal_ir_value ops_f64_sign_mask(hal_ir_builder *b, ops_f64_words x)
{
    return hal_ir_neg(b, shr(b, x.high, 31));
}

ops_f64_words ops_f64_significand(hal_ir_builder *b, ops_f64_words x, hal_ir_value count)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), hidden = hal_ir_u32(b, HIDDEN_BIT);
    const hal_ir_value is_subnormal = is_zero(b, stored_exponent(b, x));
    hal_ir_value high = hal_ir_and(b, x.high, hal_ir_u32(b, FRACTION_MASK));
    high = hal_ir_or(b, high, hal_ir_select(b, is_subnormal, zero, hidden));
    const hal_ir_value down = hal_ir_sub(b, hal_ir_u32(b, WORD_BITS), count);
    const hal_ir_value carried = hal_ir_shr(b, x.low, down);
    high = hal_ir_or(b, hal_ir_shl(b, high, count), carried);
    return (ops_f64_words){hal_ir_shl(b, x.low, count), high};
}

/* The low word of (high, low) shifted right by 0 to 31. */
static hal_ir_value funnel(hal_ir_builder *b, hal_ir_value low, hal_ir_value high,
                           hal_ir_value count)
{
    const hal_ir_value up = hal_ir_sub(b, hal_ir_u32(b, WORD_BITS - 1), count);
    const hal_ir_value from_high = hal_ir_shl(b, shl(b, high, 1), up);
    return hal_ir_or(b, hal_ir_shr(b, low, count), from_high);
}

ops_f64_words ops_words_shift_right(hal_ir_builder *b, ops_f64_words x, hal_ir_value count)
{
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value is_none = hal_ir_ge(b, count, hal_ir_u32(b, 2 * WORD_BITS));
    const hal_ir_value is_word = hal_ir_ge(b, count, hal_ir_u32(b, WORD_BITS));
    hal_ir_value low = hal_ir_select(b, is_word, x.high, x.low);
    hal_ir_value high = hal_ir_select(b, is_word, zero, x.high);
    const hal_ir_value rest = hal_ir_and(b, count, hal_ir_u32(b, WORD_BITS - 1));
    low = funnel(b, low, high, rest);
    high = hal_ir_shr(b, high, rest);
    low = hal_ir_select(b, is_none, zero, low);
    return (ops_f64_words){low, hal_ir_select(b, is_none, zero, high)};
}

/* x + y + *carry, which becomes the carry of the sum: 0 or 1. */
static hal_ir_value add_carry(hal_ir_builder *b, hal_ir_value x, hal_ir_value y,
                              hal_ir_value *carry)
{
    const hal_ir_value sum = hal_ir_add(b, x, y);
    const hal_ir_value first = hal_ir_lt(b, sum, x);
    const hal_ir_value all = hal_ir_add(b, sum, *carry);
    const hal_ir_value second = hal_ir_lt(b, all, sum);
    *carry = bit_of(b, hal_ir_or(b, first, second));
    return all;
}

/* x + y, with its carry: 0 or 1. */
static hal_ir_value add_two(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, hal_ir_value *carry)
{
    const hal_ir_value sum = hal_ir_add(b, x, y);
    *carry = bit_of(b, hal_ir_lt(b, sum, x));
    return sum;
}

ops_u128 ops_f64_multiply(hal_ir_builder *b, ops_f64_words x, ops_f64_words y)
{
    const hal_ir_value three = hal_ir_u32(b, 3);
    const ops_f64_words p = ops_f64_significand(b, x, three);
    const ops_f64_words q = ops_f64_significand(b, y, three);
    const hal_ir_value cross_low = hal_ir_mul(b, p.low, q.high);
    const hal_ir_value cross_high = hal_ir_mulhi(b, p.low, q.high);
    const hal_ir_value other_low = hal_ir_mul(b, p.high, q.low);
    const hal_ir_value other_high = hal_ir_mulhi(b, p.high, q.low);
    ops_u128 product;
    hal_ir_value carry;
    product.limb[0] = hal_ir_mul(b, p.low, q.low);
    product.limb[1] = hal_ir_mulhi(b, p.low, q.low);
    product.limb[2] = hal_ir_mul(b, p.high, q.high);
    product.limb[3] = hal_ir_mulhi(b, p.high, q.high);
    /* High words have 24 bits, so that the high halves of the cross products have as many. */
    hal_ir_value upper = hal_ir_add(b, cross_high, other_high);
    product.limb[1] = add_two(b, product.limb[1], cross_low, &carry);
    upper = hal_ir_add(b, upper, carry);
    product.limb[1] = add_two(b, product.limb[1], other_low, &carry);
    upper = hal_ir_add(b, upper, carry);
    product.limb[2] = add_two(b, product.limb[2], upper, &carry);
    product.limb[3] = hal_ir_add(b, product.limb[3], carry);
    return product;
}

ops_u128 ops_u128_add_signed(hal_ir_builder *b, ops_u128 x, ops_u128 y, hal_ir_value mask)
{
    hal_ir_value carry = hal_ir_and(b, mask, hal_ir_u32(b, 1));
    for (uint32_t i = 0; i < 4; i++) {
        x.limb[i] = add_carry(b, x.limb[i], hal_ir_xor(b, y.limb[i], mask), &carry);
    }
    return x;
}

ops_u128 ops_u128_shift_right(hal_ir_builder *b, ops_u128 x, hal_ir_value count)
{
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value shift = hal_ir_min(b, count, hal_ir_u32(b, 4 * WORD_BITS - 1));
    for (uint32_t words = 2; words > 0; words /= 2) {
        const hal_ir_value bits = hal_ir_and(b, shift, hal_ir_u32(b, words * WORD_BITS));
        const hal_ir_value moves = hal_ir_ne(b, bits, zero);
        for (uint32_t i = 0; i < 4; i++) {
            const hal_ir_value from = i + words < 4 ? x.limb[i + words] : zero;
            x.limb[i] = hal_ir_select(b, moves, from, x.limb[i]);
        }
    }
    const hal_ir_value rest = hal_ir_and(b, shift, hal_ir_u32(b, WORD_BITS - 1));
    for (uint32_t i = 0; i < 3; i++) {
        x.limb[i] = funnel(b, x.limb[i], x.limb[i + 1], rest);
    }
    x.limb[3] = hal_ir_shr(b, x.limb[3], rest);
    return x;
}

/* -x where `mask` has all bits. */
static ops_u128 negate(hal_ir_builder *b, ops_u128 x, hal_ir_value mask)
{
    const hal_ir_value zero = hal_ir_u32(b, 0);
    return ops_u128_add_signed(b, (ops_u128){{zero, zero, zero, zero}}, x, mask);
}

/* The zeros above the highest bit of x, 0 to 32. */
static hal_ir_value leading_zeros(hal_ir_builder *b, hal_ir_value x)
{
    for (uint32_t count = 1; count < WORD_BITS; count *= 2) {
        x = hal_ir_or(b, x, shr(b, x, count));
    }
    return hal_ir_popcount(b, hal_ir_not(b, x));
}

/* Shifts x left until its highest bit is one, unless it is 0, and returns by how much. */
static hal_ir_value normalise(hal_ir_builder *b, ops_u128 *x)
{
    hal_ir_value zeros = hal_ir_u32(b, 0);
    for (uint32_t round = 0; round < 3; round++) {
        const hal_ir_value moves = is_zero(b, x->limb[3]);
        for (uint32_t i = 4; i-- > 0;) {
            const hal_ir_value below = i > 0 ? x->limb[i - 1] : hal_ir_u32(b, 0);
            x->limb[i] = hal_ir_select(b, moves, below, x->limb[i]);
        }
        zeros = hal_ir_add(b, zeros, shl(b, bit_of(b, moves), 5));
    }
    const hal_ir_value count = leading_zeros(b, x->limb[3]);
    const hal_ir_value up = hal_ir_and(b, count, hal_ir_u32(b, WORD_BITS - 1));
    const hal_ir_value down = hal_ir_sub(b, hal_ir_u32(b, WORD_BITS - 1), up);
    for (uint32_t i = 4; i-- > 0;) {
        x->limb[i] = hal_ir_shl(b, x->limb[i], up);
        if (i > 0) {
            const hal_ir_value below = hal_ir_shr(b, shr(b, x->limb[i - 1], 1), down);
            x->limb[i] = hal_ir_or(b, x->limb[i], below);
        }
    }
    return hal_ir_add(b, zeros, count);
}

/* The two highest limbs shifted right by `count`, with a lowest bit that also says whether what was
 * shifted out, or `rest`, has bits. */
static ops_f64_words shift_sticky(hal_ir_builder *b, ops_f64_words x, hal_ir_value count,
                                  hal_ir_value rest)
{
    const hal_ir_value is_word = hal_ir_ge(b, count, hal_ir_u32(b, WORD_BITS));
    const hal_ir_value bits = hal_ir_and(b, count, hal_ir_u32(b, WORD_BITS - 1));
    const hal_ir_value mask =
        hal_ir_sub(b, hal_ir_shl(b, hal_ir_u32(b, 1), bits), hal_ir_u32(b, 1));
    const hal_ir_value cut = hal_ir_select(b, is_word, x.high, x.low);
    hal_ir_value lost = hal_ir_and(b, cut, mask);
    lost = hal_ir_or(b, lost, hal_ir_select(b, is_word, x.low, hal_ir_u32(b, 0)));
    const hal_ir_value sticky = hal_ir_not(b, is_zero(b, hal_ir_or(b, lost, rest)));
    ops_f64_words shifted = ops_words_shift_right(b, x, count);
    shifted.low = hal_ir_or(b, shifted.low, bit_of(b, sticky));
    return shifted;
}

/* Bits 11 and up of 64, rounded, with the exponent less 1 in their place. */
static ops_f64_words round_words(hal_ir_builder *b, ops_f64_words x, hal_ir_value exponent)
{
    enum { DROPPED = 11 };
    ops_f64_words y;
    y.low = hal_ir_or(b, shr(b, x.low, DROPPED), shl(b, x.high, WORD_BITS - DROPPED));
    y.high = hal_ir_add(b, shr(b, x.high, DROPPED), shl(b, exponent, EXPONENT_SHIFT));
    const hal_ir_value below = hal_ir_and(b, x.low, hal_ir_u32(b, (1u << DROPPED) - 1));
    const hal_ir_value odd = hal_ir_and(b, y.low, hal_ir_u32(b, 1));
    /* Above a half, or a half and odd: below + odd exceeds it. */
    const hal_ir_value up =
        hal_ir_gt(b, hal_ir_add(b, below, odd), hal_ir_u32(b, 1u << (DROPPED - 1)));
    hal_ir_value carry;
    y.low = add_two(b, y.low, bit_of(b, up), &carry);
    y.high = hal_ir_add(b, y.high, carry);
    return y;
}

ops_f64_words ops_u128_round(hal_ir_builder *b, ops_u128 x, hal_ir_value exponent)
{
    enum { HIGHEST = 127, LARGEST = 2047, MOST_SHIFT = 54 };
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_i32(b, 1);
    const hal_ir_value mask = hal_ir_neg(b, shr(b, x.limb[3], 31));
    x = negate(b, x, mask);
    const hal_ir_value zeros = hal_ir_cast(b, HAL_TYPE_I32, normalise(b, &x));
    const hal_ir_value is_none = is_zero(b, x.limb[3]);
    /* The biased exponent of the highest bit; below 1 the result is subnormal. */
    const hal_ir_value top = hal_ir_add(b, exponent, hal_ir_i32(b, HIGHEST + EXPONENT_BIAS));
    const hal_ir_value biased = hal_ir_sub(b, top, zeros);
    hal_ir_value shift = hal_ir_max(b, hal_ir_sub(b, one, biased), hal_ir_i32(b, 0));
    shift = hal_ir_min(b, shift, hal_ir_i32(b, MOST_SHIFT));
    const hal_ir_value rest = hal_ir_or(b, x.limb[0], x.limb[1]);
    ops_f64_words y = {x.limb[2], x.limb[3]};
    y = shift_sticky(b, y, hal_ir_cast(b, HAL_TYPE_U32, shift), rest);
    hal_ir_value stored = hal_ir_max(b, biased, one);
    stored = hal_ir_min(b, stored, hal_ir_i32(b, LARGEST));
    y = round_words(b, y, hal_ir_cast(b, HAL_TYPE_U32, hal_ir_sub(b, stored, one)));
    const hal_ir_value infinity = hal_ir_u32(b, INFINITY_HIGH);
    const hal_ir_value is_large = hal_ir_ge(b, y.high, infinity);
    y.low = hal_ir_select(b, hal_ir_or(b, is_large, is_none), zero, y.low);
    y.high = hal_ir_select(b, is_large, infinity, y.high);
    const hal_ir_value sign = hal_ir_and(b, mask, hal_ir_u32(b, SIGN_BIT));
    y.high = hal_ir_select(b, is_none, zero, hal_ir_or(b, y.high, sign));
    return y;
}
