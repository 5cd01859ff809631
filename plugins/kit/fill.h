/* The pattern of a fill, which is in the scalars of its command. */
#ifndef PLUGINS_KIT_FILL_H
#define PLUGINS_KIT_FILL_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pattern of up to 16 bytes, repeated to 16. */
typedef struct kit_fill {
    uint32_t words[4];
    uint32_t bytes; /* of the pattern */
} kit_fill;

/* Patterns have 1, 2, 4, 8 or 16 bytes. For fills of at least a byte. */
static inline kit_fill kit_fill_read(const hal_batch *batch, const hal_command *command)
{
    kit_fill fill = {.bytes = command->scalar_bytes};
    const uint8_t *bytes = batch->scalars + command->scalar_first;
    uint8_t all[16];
    for (uint32_t i = 0; i < sizeof all; i++) {
        all[i] = bytes[i % command->scalar_bytes];
    }
    memcpy(fill.words, all, sizeof all);
    return fill;
}

/* Whether the pattern is words[0] repeated. */
static inline bool kit_fill_is_word(const kit_fill *fill)
{
    return fill->words[0] == fill->words[1] && fill->words[0] == fill->words[2] &&
           fill->words[0] == fill->words[3];
}

#ifdef __cplusplus
}
#endif
#endif
