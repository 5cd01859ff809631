/* The APIs that this build can call. */
#include "peers/raw/apis.h"

#include <stdio.h>
#include <stdlib.h>
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

raw_device *raw_open(const raw_api *api, const hal_device_info *info, char *message, size_t bytes)
{
    raw_device *device = calloc(1, api->device_bytes);
    if (!device) {
        snprintf(message, bytes, "out of memory");
        return NULL;
    }
    device->api = api;
    if (!api->open(device, info, message, bytes)) {
        free(device);
        return NULL;
    }
    if (!api->make(device)) {
        snprintf(message, bytes, "%s", device->message);
        api->close(device);
        return NULL;
    }
    return device;
}
