/* Conversions between types. */
#ifndef PLUGINS_CUDA_LOWER_CONVERT_H
#define PLUGINS_CUDA_LOWER_CONVERT_H

#include "lower/text.h"

/* Lowers one record; false for records of other families. */
bool cuda_lower_convert(cuda_lowering *l, uint32_t index);

/* Packs one or two f32 into a word as f16 or bf16; a `high` of kind CUDA_TEXT is absent. Unpacks
 * element 0 or 1 of a word as f32. */
void cuda_pack_halves(cuda_lowering *l, hal_type type, cuda_operand word, cuda_operand low,
                      cuda_operand high);
void cuda_unpack_half(cuda_lowering *l, hal_type type, cuda_operand result, cuda_operand word,
                      uint32_t element);

#endif
