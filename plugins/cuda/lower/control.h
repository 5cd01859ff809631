/* Blocks of the control flow, and barriers. */
#ifndef PLUGINS_CUDA_LOWER_CONTROL_H
#define PLUGINS_CUDA_LOWER_CONTROL_H

#include "lower/text.h"

/* Lowers one record; false for records of other families. */
bool cuda_lower_control(cuda_lowering *l, uint32_t index);

#endif
