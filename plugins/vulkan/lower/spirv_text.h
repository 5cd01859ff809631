/* A module as text, for HAL_DUMP=native: in the assembler's language, with numbers (!1) where the
 * specification has names, so that spirv-as reads it back to the same words. */
#ifndef PLUGINS_VULKAN_LOWER_SPIRV_TEXT_H
#define PLUGINS_VULKAN_LOWER_SPIRV_TEXT_H

#include <stdint.h>

/* Calls `line` with the line of each instruction, which is valid during the call. Instructions that
 * the lowering does not write have the name OpUnknown. */
void spirv_text(const uint32_t *words, uint32_t word_count,
                void (*line)(void *context, const char *text), void *context);

#endif
