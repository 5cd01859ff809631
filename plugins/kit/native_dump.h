/* HAL_DUMP=native: logs the code that a plugin passes to its driver (HAL_LOG=info). */
#ifndef PLUGINS_KIT_NATIVE_DUMP_H
#define PLUGINS_KIT_NATIVE_DUMP_H

#include <hal/plugin.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the process wants dumps; then the log gets a heading. Set-uid processes get none.
 * Threads: any. */
bool kit_native_dump_begin(const hal_host *host, const char *kernel, const char *device);

/* The code line by line, as the log's lines are short. Threads: any. */
void kit_native_dump_text(const hal_host *host, const char *code);

#ifdef __cplusplus
}
#endif

#endif
