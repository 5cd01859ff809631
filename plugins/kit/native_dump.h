/* HAL_DUMP=native: what a plugin hands to its driver, in the log (HAL_LOG=info). */
#ifndef KIT_NATIVE_DUMP_H
#define KIT_NATIVE_DUMP_H

#include <hal/plugin.h>
#include <stdbool.h>

/* Whether the process asks for it; then the log has a heading. One that runs set-uid cannot ask.
 * Threads: any. */
bool kit_native_dump_begin(const hal_host *host, const char *kernel, const char *device);

/* The code line by line, as the log's lines are short. Threads: any. */
void kit_native_dump_text(const hal_host *host, const char *code);

#endif
