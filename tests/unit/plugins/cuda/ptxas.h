/* Texts of kernels: words in them, and NVIDIA's assembler, PTXAS, which is empty where it is not
 * installed. */
#ifndef TESTS_UNIT_PLUGINS_CUDA_PTXAS_H
#define TESTS_UNIT_PLUGINS_CUDA_PTXAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline uint32_t count_of(const char *text, const char *word)
{
    uint32_t count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

/* Whether the assembler takes the text with the options. `after`: what follows in the command, such
 * as a search of what it says. */
static inline bool ptxas_takes(const char *text, const char *options, const char *after)
{
    char path[] = "/tmp/halyard-ptx-XXXXXX", command[512];
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    snprintf(command, sizeof command, "%s %s -o /dev/null %s %s", PTXAS, options, path, after);
    const int result = system(command);
    unlink(path);
    return result == 0;
}

#endif
