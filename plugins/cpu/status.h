/* Failures with a message. */
#ifndef PLUGINS_CPU_STATUS_H
#define PLUGINS_CPU_STATUS_H

#include <hal/plugin.h>
#include <kit/host.h>

hal_status cpu_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

#endif
