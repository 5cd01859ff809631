/* Descriptors that the library opens are closed at exec, also those of the cache and the trace.
 * devices: cpu template example_c */
#include "process.h"

#include <fcntl.h>
#include <unistd.h>

enum { MOST = 1024 };

int main(void)
{
    bool was_open[MOST];
    for (int i = 0; i < MOST; i++) {
        was_open[i] = fcntl(i, F_GETFD) >= 0;
    }
    char folder[] = "/tmp/process-descriptors-XXXXXX", path[64];
    if (!mkdtemp(folder)) {
        return PROCESS_SKIP;
    }
    snprintf(path, sizeof path, "%s/trace", folder);
    setenv("HAL_TRACE", path, 1);
    process_device opened = process_open();
    process_work(&opened, 0, 1000);
    int found = 0;
    for (int i = 0; i < MOST; i++) {
        const int flags = fcntl(i, F_GETFD);
        if (flags >= 0 && !was_open[i]) {
            found++;
            if (!(flags & FD_CLOEXEC)) {
                process_fail("descriptor %d would be inherited by a program that is started", i);
            }
        }
    }
    if (found == 0) {
        process_fail("no descriptor was opened, not even that of the trace");
    }
    process_close(&opened);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0 || process_end();
}
