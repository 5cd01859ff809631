/* MATRIX_MULTIPLY by cooperative matrices. */
#ifndef PLUGINS_VULKAN_LOWER_MATRIX_H
#define PLUGINS_VULKAN_LOWER_MATRIX_H

#include "lower/types.h"

void lower_matrix_multiply(lower *l, uint32_t index);

#endif
