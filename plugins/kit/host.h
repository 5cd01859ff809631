/* The services of the host, which all files of a plugin use, and failures with a message. */
#ifndef PLUGINS_KIT_HOST_H
#define PLUGINS_KIT_HOST_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The host of the instance whose entry runs on this thread. Null on a thread of the plugin: what it
 * tells of a queue or device goes to the `host` of that object. */
const hal_host *kit_host(void);

/* Sets the host of this thread, for the guard and for a plugin's threads. Threads: any. */
void kit_host_enter(const hal_host *host);

/* Gives the host a message of up to 3,071 bytes. Returns the status. Threads: any. */
hal_status kit_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

/* Writes a line to the program's log. Threads: any. */
void kit_log(uint32_t level, const char *line);

#ifdef __cplusplus
}
#endif
#endif
