/* docs/ir.md has each row of the tables of opcodes and types, and no other. */
#include "unit.h"
#include <hal/ir_build.h>
#include <hal/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the first columns of the page's tables name. */
typedef struct page_rows {
    int opcodes[HAL_IR_OPCODE_COUNT];
    int types[HAL_TYPE_COUNT];
} page_rows;

static const struct {
    const char *name; /* as on the page */
    uint32_t since;
} opcodes[HAL_IR_OPCODE_COUNT] = {
#define ROW(NAME, number, since, ...) [number] = {#NAME, since},
    HAL_IR_OPCODE_TABLE(ROW)
#undef ROW
};

/* The opcode that a word names, 0 for another word. A newer one is followed by its version. */
static uint32_t opcode_of(const char *word, const char *next)
{
    char version[16];
    for (uint32_t i = 1; i < HAL_IR_OPCODE_COUNT; i++) {
        if (opcodes[i].name && strcmp(opcodes[i].name, word) == 0) {
            snprintf(version, sizeof version, "(%u.%u)", HAL_PLUGIN_ABI_MAJOR, opcodes[i].since);
            if (opcodes[i].since > 0 && (!next || strcmp(next, version) != 0)) {
                fail_msg("docs/ir.md: %s: expected %s after it", word, version);
            }
            return i;
        }
    }
    return 0;
}

/* A word of a first column: an opcode in capitals, or a type in backquotes. */
static void count_word(page_rows *rows, const char *word, const char *next)
{
    if (word[0] >= 'A' && word[0] <= 'Z') {
        const uint32_t opcode = opcode_of(word, next);
        if (opcode == 0) {
            fail_msg("docs/ir.md: expected the name of an opcode, got %s", word);
        }
        rows->opcodes[opcode]++;
    }
    for (hal_type type = HAL_TYPE_BOOL; word[0] == '`' && type < HAL_TYPE_COUNT; type++) {
        char quoted[16];
        snprintf(quoted, sizeof quoted, "`%s`", hal_type_name(type));
        rows->types[type] += strcmp(quoted, word) == 0;
    }
}

/* Reads the first column of the tables whose header begins with "opcode" or "type". */
static void read_page(page_rows *rows)
{
    FILE *file = fopen(IR_PAGE, "r");
    char line[1024];
    int inside = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] != '|') {
            inside = 0;
        } else if (strncmp(line, "| opcode |", 10) == 0 || strncmp(line, "| type |", 8) == 0) {
            inside = 1;
        } else if (inside && line[1] == ' ') {
            *strchr(line + 1, '|') = 0;
            char *place = NULL, *word = strtok_r(line + 1, " ", &place);
            while (word) {
                char *next = strtok_r(NULL, " ", &place);
                count_word(rows, word, next);
                word = next;
            }
        }
    }
    fclose(file);
}

TEST(each_opcode_and_type_has_one_row)
{
    page_rows rows = {0};
    read_page(&rows);
    for (uint32_t i = 1; i < HAL_IR_OPCODE_COUNT; i++) {
        if (opcodes[i].name && rows.opcodes[i] != 1) {
            fail_msg("docs/ir.md: %s: expected 1 row, got %d", opcodes[i].name, rows.opcodes[i]);
        }
    }
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (rows.types[type] != 1) {
            fail_msg("docs/ir.md: %s: expected 1 row, got %d", hal_type_name(type),
                     rows.types[type]);
        }
    }
}

UNIT_MAIN(NULL, NULL)
