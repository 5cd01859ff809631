/* Arithmetic, bits, comparisons and selection. */
#ifndef PLUGINS_CUDA_LOWER_ARITHMETIC_H
#define PLUGINS_CUDA_LOWER_ARITHMETIC_H

#include "lower/text.h"

/* Lowers one record; false for records of other families. */
bool cuda_lower_arithmetic(cuda_lowering *l, uint32_t index);

/* The minimum or maximum of two floats, NaN where either is NaN. */
void cuda_lower_extreme(cuda_lowering *l, hal_type type, bool minimum, cuda_operand result,
                        cuda_operand a, cuda_operand b);

#endif
