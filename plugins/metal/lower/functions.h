/* The functions that Metal's library lacks or defines otherwise. */
#ifndef PLUGINS_METAL_LOWER_FUNCTIONS_H
#define PLUGINS_METAL_LOWER_FUNCTIONS_H

#include <kit/text.h>
#include <stdbool.h>

/* The functions for what a kernel uses, bits. */
enum {
    METAL_WIDE_VECTORS = 1,
    METAL_BF16_VECTORS = 2,
    METAL_MULTIPLY_HIGH = 4,
    METAL_REMAINDER = 8,
    METAL_EXCHANGE_EQUAL = 16,
    METAL_SUBGROUPS = 32,
    METAL_MATRICES = 64
};
void metal_lower_functions(uint32_t used, bool has_slow_half, kit_text *text);
void metal_lower_slow_half(kit_text *text);

#endif
