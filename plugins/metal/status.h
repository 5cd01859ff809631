/* The services of the host, and failures with a message. */
#ifndef PLUGINS_METAL_STATUS_H
#define PLUGINS_METAL_STATUS_H

#include "driver.h"

#include <hal/plugin.h>

void metal_set_host(const hal_host *host);
const hal_host *metal_host(void);
hal_status metal_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
/* The failure of commands that ended with an error: DEVICE_LOST with its name. */
hal_status metal_fail_commands(const char *device, const metal_error *error);

#endif
