/* A module as text, as HAL_DUMP=native shows it: the assembler's, with numbers for what the
 * specification has names for (!1), so that spirv-as reads it back to the same words. */
#ifndef HALYARD_VULKAN_SPIRV_TEXT_H
#define HALYARD_VULKAN_SPIRV_TEXT_H

#include <stdint.h>

/* Calls `line` with each instruction's line, which is valid during the call. Instructions that the
 * lowering does not write have the name OpUnknown. */
void spirv_text(const uint32_t *words, uint32_t word_count,
                void (*line)(void *context, const char *text), void *context);

#endif
