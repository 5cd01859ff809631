/* Arithmetic, bits, comparisons and selection. */
#ifndef PLUGINS_VULKAN_LOWER_ARITHMETIC_H
#define PLUGINS_VULKAN_LOWER_ARITHMETIC_H

#include "lower/types.h"

uint32_t lower_arithmetic(lower *l, const hal_ir_record *record);
/* ADD, MIN or MAX of two results of one type. */
uint32_t lower_combine(lower *l, uint32_t opcode, hal_type type, uint32_t a, uint32_t b);

#endif
