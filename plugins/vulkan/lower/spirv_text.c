/* Modules as text, from the table of instructions in lower/spirv.h. */
#include "lower/spirv_text.h"

#include "lower/spirv.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct instruction {
    uint32_t opcode;
    const char *name, *operands;
} instruction;

#define ROW(NAME, number, name, operands) {number, #name, operands},
static const instruction table[] = {SPV_INSTRUCTIONS(ROW)};
#undef ROW

enum { LINE_BYTES = 2048, HEADER_WORDS = 5 };

static const instruction *find(uint32_t opcode)
{
    static const instruction unknown = {0, "Unknown", "n"};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].opcode == opcode) {
            return &table[i];
        }
    }
    return &unknown;
}

/* Writes one instruction; the result comes in front, as in the assembler's language. */
static void write_line(char *line, const uint32_t *words, uint32_t count)
{
    const instruction *what = find(words[0] & 0xffff);
    const char *kind = what->operands;
    char operands[LINE_BYTES - 64] = "";
    size_t used = 0;
    uint32_t result = 0;
    for (uint32_t i = 1; i < count && used < sizeof operands - 300; i++) {
        char *at = operands + used;
        const size_t left = sizeof operands - used;
        if (*kind == 'r') {
            result = words[i];
        } else if (*kind == 's') {
            const char *text = (const char *)(words + i);
            used += (size_t)snprintf(at, left, " \"%.200s\"", text);
            i += (uint32_t)(strlen(text) / 4);
        } else {
            used += (size_t)snprintf(at, left, *kind == 'n' ? " !%u" : " %%%u", words[i]);
        }
        kind += kind[0] != 0 && kind[1] != 0;
    }
    if (result != 0) {
        snprintf(line, LINE_BYTES, "%%%u = Op%s%s", result, what->name, operands);
    } else {
        snprintf(line, LINE_BYTES, "Op%s%s", what->name, operands);
    }
}

void spirv_text(const uint32_t *words, uint32_t word_count,
                void (*line)(void *context, const char *text), void *context)
{
    char text[LINE_BYTES];
    uint32_t length = 0;
    for (uint32_t at = HEADER_WORDS; at < word_count; at += length) {
        length = words[at] >> 16;
        if (length == 0 || length > word_count - at) {
            return;
        }
        write_line(text, words + at, length);
        line(context, text);
    }
}
