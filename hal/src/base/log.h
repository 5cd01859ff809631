/* The log: quiet unless HAL_LOG or hal_log_set_callback asks. Called by every source of hal. */
#ifndef HAL_SRC_BASE_LOG_H
#define HAL_SRC_BASE_LOG_H

#include <hal/plugin.h>
#include <stdarg.h>

/* Whether lines of a level go anywhere: asked before a costly line is made. Threads: any. */
int hal_log_wants(uint32_t level);

/* Lets errors through, whatever HAL_LOG says. Threads: any. */
void hal_log_show_errors(void);

/* Writes a line when its level is wanted. Threads: any. */
void hal_log(uint32_t level, const char *format, ...) HAL_PRINTF(2, 3);

/* Writes text of any length, whatever the level: what HAL_DUMP asked for. Threads: any. */
void hal_log_dump(const char *text);

#endif
