/* raw.c: which APIs this build can call by itself; raw.h says who calls it. */
#include "raw.h"

#include <stdio.h>
#include <string.h>

static const raw_api *const known[] = {
#ifdef BENCH_OPENCL
    &raw_opencl,
#endif
#ifdef BENCH_VULKAN
    &raw_vulkan,
#endif
    &raw_cuda,
};

const raw_api *raw_find(const char *plugin)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i]->plugin, plugin) == 0) {
            return known[i];
        }
    }
    return NULL;
}

bool raw_fail(raw_device *device, const char *call, int code)
{
    if (!device->failed) {
        device->failed = true;
        snprintf(device->message, sizeof device->message, "%s by itself: %s gives %d",
                 device->api->plugin, call, code);
    }
    return false;
}
