/* Division and remainder, square roots, high products. */
#ifndef PLUGINS_VULKAN_LOWER_DIVIDE_H
#define PLUGINS_VULKAN_LOWER_DIVIDE_H

#include "lower/types.h"

uint32_t lower_divide_integer(lower *l, const hal_ir_record *record);
uint32_t lower_divide_float(lower *l, hal_type type, uint32_t a, uint32_t b);
uint32_t lower_square_root(lower *l, hal_type type, uint32_t a);
uint32_t lower_remainder_float(lower *l, hal_type type, uint32_t a, uint32_t b);
uint32_t lower_multiply_high(lower *l, hal_type type, uint32_t a, uint32_t b);

#endif
