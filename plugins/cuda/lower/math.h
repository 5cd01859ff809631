/* Functions that PTX has no instruction for. */
#ifndef PLUGINS_CUDA_LOWER_MATH_H
#define PLUGINS_CUDA_LOWER_MATH_H

#include "lower/text.h"

/* Lowers one record; false for records of other families. */
bool cuda_lower_math(cuda_lowering *l, uint32_t index);

/* The remainder of floats, as C fmod. */
void cuda_lower_remainder(cuda_lowering *l, uint32_t index);

#endif
