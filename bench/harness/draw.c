/* Lists of words and random sequences, see bench.h. hal-warm has this file of the harness too. */
#include <stdio.h>
#include <string.h>

#include "harness/bench.h"

bool bench_name_passes(const char *name, const char *filter)
{
    bool is = !filter;
    for (; !is && *filter != 0; filter += strcspn(filter, ","), filter += *filter == ',') {
        char word[96];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(filter, ","), filter);
        is = strstr(name, word) != NULL;
    }
    return is;
}

bool bench_lists(const char *list, const char *word)
{
    while (*list != 0) {
        const size_t length = strcspn(list, ",");
        if (strlen(word) == length && strncmp(list, word, length) == 0) {
            return true;
        }
        list += length + (list[length] == ',');
    }
    return false;
}

uint64_t bench_seed(uint64_t seed)
{
    return seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

uint64_t bench_word(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
