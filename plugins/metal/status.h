/* Failures of the driver, with a message. */
#ifndef PLUGINS_METAL_STATUS_H
#define PLUGINS_METAL_STATUS_H

#include "driver.h"

#include <kit/host.h>

/* The failure of commands that ended with an error: DEVICE_LOST with its name. */
hal_status metal_fail_commands(const char *device, const metal_error *error);

#endif
