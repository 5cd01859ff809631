/* contract.c: rows of docs/contract.md, which CMake writes to contract.inc. Called as contract.h
 * says. */
#include "report/contract.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SENTENCES = 3, PATTERN_BYTES = 256 };

/* SENTENCE(number, sentence, cases): the cells of a row; backticks are around patterns of cases. */
#define SENTENCE(number, sentence, cases) {number, sentence, cases},
static const struct {
    const char *number, *sentence, *cases;
} rows[] = {
#include "contract.inc"
};

/* Whether a cell has a pattern for the name. */
static int cell_names(const char *cases, const char *case_name)
{
    const char *begin = cases[0] == '`' ? cases : NULL; /* else there is no case, with the reason */
    for (; begin != NULL; begin = strchr(begin, '`')) {
        char pattern[PATTERN_BYTES];
        const char *end = strchr(++begin, '`');
        if (!end) {
            return 0;
        }
        snprintf(pattern, sizeof pattern, "%.*s", (int)(end - begin), begin);
        if (fnmatch(pattern, case_name, 0) == 0) {
            return 1;
        }
        begin = end + 1;
    }
    return 0;
}

void contract_sentences(const char *case_name, char *text, size_t bytes)
{
    size_t used = 0;
    int count = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (count < MOST_SENTENCES && used < bytes && cell_names(rows[i].cases, case_name)) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%s: %s", count++ > 0 ? " " : "",
                                     rows[i].number, rows[i].sentence);
        }
    }
}

void contract_numbers(const char *case_name, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (used < bytes && cell_names(rows[i].cases, case_name)) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "",
                                     rows[i].number);
        }
    }
}
