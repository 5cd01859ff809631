/* Dumps of native code, see native_dump.h. */
#include "native_dump.h"

#include "environment.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1024 }; /* as much as the log takes */

bool kit_native_dump_begin(const hal_host *host, const char *kernel, const char *device)
{
    const char *wanted = secure_getenv("HAL_DUMP");
    char line[LINE_BYTES];
    if (!wanted || !strstr(wanted, "native")) {
        return false;
    }
    snprintf(line, sizeof line, "kernel %s for %s:", kernel, device);
    host->log(host, HAL_LOG_INFO, line);
    return true;
}

void kit_native_dump_text(const hal_host *host, const char *code)
{
    char line[LINE_BYTES];
    while (*code != '\0') {
        const size_t length = strcspn(code, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, code);
        host->log(host, HAL_LOG_INFO, line);
        code += length + (code[length] == '\n');
    }
}
