/* The services of the host; failures with a message. */
#ifndef PLUGINS_CPU_STATUS_H
#define PLUGINS_CPU_STATUS_H

#include <hal/plugin.h>

void cpu_set_host(const hal_host *host);
const hal_host *cpu_host(void);
hal_status cpu_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

#endif
