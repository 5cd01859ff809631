/* HAL_DUMP=native, see code_dump.h. */
#include "jit/encoder/code_dump.h"

#include "status.h"

#include <fcntl.h>
#include <kit/native_dump.h>
#include <stdio.h>
#include <unistd.h>

enum { BYTES_OF_LINE = 32 };

/* One write, so that lines of several threads do not mix. A file that belongs to someone else, or
 * is a link, is left alone. */
static void map_append(const char *kernel, const void *code, size_t bytes)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        return;
    }
    const int length = snprintf(line, sizeof(line), "%llx %zx halyard:%s\n",
                                (unsigned long long)(uintptr_t)code, bytes, kernel);
    if (write(file, line, (size_t)length) != length) {
        kit_log(HAL_LOG_WARN, "cpu: the map of code for perf cannot be written");
    }
    close(file);
}

void cpu_code_dump(const char *kernel, const char *lanes, const void *code, size_t bytes)
{
    const uint8_t *byte = code;
    char line[3 * BYTES_OF_LINE + 1];
    if (!kit_native_dump_begin(kit_host(), kernel, lanes)) {
        return;
    }
    for (size_t first = 0; first < bytes; first += BYTES_OF_LINE) {
        size_t length = 0;
        for (size_t i = first; i < bytes && i < first + BYTES_OF_LINE; i++) {
            length += (size_t)snprintf(line + length, sizeof(line) - length, "%02x ", byte[i]);
        }
        kit_native_dump_text(kit_host(), line);
    }
    map_append(kernel, code, bytes);
}
