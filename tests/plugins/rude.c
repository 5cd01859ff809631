/* Plugins that do when they are first asked for their devices what none may: RUDE says what, in the
 * order of plugins.cmake, from 1 on. Opened by hal-conformance in tests/conformance. */
#include <hal/plugin.h>
#include <stdlib.h>
#include <unistd.h>

enum { HANGS = 1, CRASHES, EXITS };

#define EXPORT __attribute__((visibility("default")))
EXPORT const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                           hal_plugin_instance **instance);

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    (void)instance;
    (void)host_abi;
    (void)host;
    if (RUDE == HANGS) {
        for (;;) {
            pause();
        }
    }
    if (RUDE == CRASHES) {
        abort();
    }
    exit(0);
}
