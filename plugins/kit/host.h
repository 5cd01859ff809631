/* The services of the host, which all files of a plugin use, and failures with a message. */
#ifndef PLUGINS_KIT_HOST_H
#define PLUGINS_KIT_HOST_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the host, for kit_plugin_query. Threads: one, before all others. */
void kit_set_host(const hal_host *host);
const hal_host *kit_host(void);

/* Gives the host a message of up to 3,071 bytes. Returns the status. Threads: any. */
hal_status kit_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
