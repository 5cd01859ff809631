/* Numbers of F64 and integers of 128 bits as words of 32 bits in kernels, for devices that have
 * neither 64-bit type. */
#ifndef OPS_SRC_GEMM_EXACT_WORDS_H
#define OPS_SRC_GEMM_EXACT_WORDS_H

#include <hal/ir_build.h>

/* The bits of a number of F64; U32. */
typedef struct ops_f64_words {
    hal_ir_value low, high;
} ops_f64_words;

/* The limbs of an integer, the least significant first; U32. */
typedef struct ops_u128 {
    hal_ir_value limb[4];
} ops_u128;

/* What ops_f64_class returns of an infinity, and of a NaN. */
enum { OPS_F64_INFINITY = 2047, OPS_F64_NAN = 4095 };

/* 0 of a zero, else the biased exponent, at least 1, or one of the two above. */
hal_ir_value ops_f64_class(hal_ir_builder *b, ops_f64_words x);

/* The biased exponent of a number, at least 1. */
hal_ir_value ops_f64_exponent(hal_ir_builder *b, ops_f64_words x);

/* The significand, of 53 bits at most, shifted left by `count`, 1 to 11: low and high word. */
ops_f64_words ops_f64_significand(hal_ir_builder *b, ops_f64_words x, hal_ir_value count);

/* Both words of x shifted right by `count`, any U32. */
ops_f64_words ops_words_shift_right(hal_ir_builder *b, ops_f64_words x, hal_ir_value count);

/* 0, or all bits where a number is negative. */
hal_ir_value ops_f64_sign_mask(hal_ir_builder *b, ops_f64_words x);

/* 2^6 times the product of two significands. */
ops_u128 ops_f64_multiply(hal_ir_builder *b, ops_f64_words x, ops_f64_words y);

/* x + y, or x - y in two's complement where `mask` has all bits; else it is 0. */
ops_u128 ops_u128_add_signed(hal_ir_builder *b, ops_u128 x, ops_u128 y, hal_ir_value mask);

/* x, below 2^127, shifted right by `count`, any U32. */
ops_u128 ops_u128_shift_right(hal_ir_builder *b, ops_u128 x, hal_ir_value count);

/* x 2^exponent, of x in two's complement and an exponent of I32, rounded once to nearest even, to
 * subnormal numbers too; beyond the range an infinity, of 0 always +0. */
ops_f64_words ops_u128_round(hal_ir_builder *b, ops_u128 x, hal_ir_value exponent);

#endif
