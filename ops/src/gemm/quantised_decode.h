/* The numbers of quantised weights as floats. */
#ifndef OPS_SRC_GEMM_QUANTISED_DECODE_H
#define OPS_SRC_GEMM_QUANTISED_DECODE_H

#include <ops/quantised.h>
#include <stdbool.h>

/* The bits of an element; what is subtracted of signed integers that were moved to the range of
 * unsigned ones by an XOR with it, or 0. */
uint32_t ops_quantised_bits(uint32_t format);
uint32_t ops_quantised_half(uint32_t format);

/* Whether a format's elements are floats. */
static inline bool ops_quantised_is_float(uint32_t format)
{
    return format >= OPS_QUANTISED_E4M3;
}

/* Whether elements of a type may hold a format. */
bool ops_quantised_takes_type(uint32_t format, hal_type type);

/* The float whose bits begin at `bit` of a word; other bits may be set. `has_denormals`: the device
 * has HAL_EXACT_DENORMALS, and takes half of the operations. */
hal_ir_value ops_quantised_float(hal_ir_builder *b, uint32_t format, bool has_denormals,
                                 hal_ir_value word, uint32_t bit);

/* Two numbers, rounded to F16 or BF16, as a word of both, the first one in the low half. */
hal_ir_value ops_quantised_pair(hal_ir_builder *b, hal_type type, const hal_ir_value pair[2]);

/* 2^(x - 127), NaN for 255: the scales of microscaling formats. */
hal_ir_value ops_quantised_exponent(hal_ir_builder *b, hal_ir_value x);

#endif
