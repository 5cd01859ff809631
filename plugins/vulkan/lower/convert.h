/* Conversions. */
#ifndef PLUGINS_VULKAN_LOWER_CONVERT_H
#define PLUGINS_VULKAN_LOWER_CONVERT_H

#include "lower/types.h"

/* `encode` returns the memory form of a type below 32 bits, in the
 * low bits of a word with zeros above; `encode_pair` those of two values of 16 bits, in one word;
 * `decode` reads the low bits of a word and ignores the others, `decode_high` those of the upper
 * half; `narrow` rounds. */
uint32_t lower_cast(lower *l, hal_type from, hal_type to, uint32_t value);
uint32_t lower_encode(lower *l, hal_type type, uint32_t value);
uint32_t lower_encode_pair(lower *l, hal_type type, uint32_t low, uint32_t high);
uint32_t lower_decode(lower *l, hal_type type, uint32_t word);
uint32_t lower_decode_high(lower *l, hal_type type, uint32_t word);
uint32_t lower_narrow(lower *l, hal_type type, uint32_t value);

#endif
