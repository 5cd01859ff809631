/* Promise 26: under floating-point traps, work whose operands and results are finite raises
 * nothing.
 * run: open   (the traps are set before the device is opened) */
#include "process.h"

#include <fenv.h>
#include <string.h>

int main(int argc, char **argv)
{
    enum { TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };
    const int64_t sizes[] = {1, 7, 1000, process_large_count()};
    const bool at_open = argc > 1 && strcmp(argv[1], "open") == 0;
    setenv("HAL_CACHE_DIR", "off", 1);
    if (at_open && feenableexcept(TRAPS) < 0) {
        return PROCESS_SKIP; /* the processor has no traps */
    }
    process_device opened = process_open();
    if (feenableexcept(TRAPS) < 0) {
        return PROCESS_SKIP;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int k = 0; k < PROCESS_WORKS; k++) {
            if (!process_has_work(k)) {
                continue;
            }
            printf("%s of %d\n", process_work_name(k), (int)sizes[i]); /* the last one raised */
            fflush(stdout);
            process_work(&opened, k, sizes[i]);
        }
    }
    if ((fegetexcept() & TRAPS) != TRAPS) {
        process_fail("the traps were changed");
    }
    process_close(&opened);
    return process_end();
}
