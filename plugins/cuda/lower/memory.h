/* Loads, stores and atomic operations. */
#ifndef PLUGINS_CUDA_LOWER_MEMORY_H
#define PLUGINS_CUDA_LOWER_MEMORY_H

#include "lower/text.h"

/* Lowers one record; false for records of other families. */
bool cuda_lower_memory(cuda_lowering *l, uint32_t index);

#endif
