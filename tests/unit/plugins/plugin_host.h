/* plugin_host.h: services of a host for a plugin under test; what a call failed with is in
 * `message`. Included by the tests of plugins and lowerings. */
#ifndef TESTS_UNIT_PLUGINS_PLUGIN_HOST_H
#define TESTS_UNIT_PLUGINS_PLUGIN_HOST_H

#include "unit.h"
#include <hal/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static char message[1024];

static inline void *host_allocate(uint64_t bytes, uint64_t alignment)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static inline void host_log(uint32_t level, const char *text)
{
}

static inline hal_status host_fail(hal_status status, const char *text)
{
    snprintf(message, sizeof message, "%s", text);
    return status;
}

#endif
