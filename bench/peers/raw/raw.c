/* What the APIs share. */
#include "peers/raw/raw.h"

#include <stdio.h>

bool raw_fail(raw_device *device, const char *call, int code)
{
    if (!device->failed) {
        device->failed = true;
        snprintf(device->message, sizeof device->message, "%s: %s: expected success, got %d",
                 device->api->plugin, call, code);
    }
    return false;
}
