/* Variables of the environment, listed in README.md, and violations of Metal's rules. */
#include "standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void standin_violation(char message[256], const char *format, ...)
{
    char sentence[256];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    fprintf(stderr, "metal stand-in: %s\n", sentence);
    if (standin_setting("METAL_STANDIN_STRICT", 0)) {
        abort();
    }
    if (message && message[0] == 0) {
        memcpy(message, sentence, sizeof sentence);
    }
}

uint64_t standin_setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 0) : otherwise;
}

bool standin_is_discrete(void)
{
    return standin_setting("METAL_STANDIN_DISCRETE", 0) != 0;
}

double standin_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
