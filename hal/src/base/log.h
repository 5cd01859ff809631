/* The log, which HAL_LOG or hal_log_set_callback enables. */
#ifndef HAL_SRC_BASE_LOG_H
#define HAL_SRC_BASE_LOG_H

#include <hal/plugin.h>
#include <stdarg.h>

/* INVALID_ARGUMENT if HAL_LOG has a value that is no level. Threads: any. */
hal_status hal_log_check_variable(void);

/* Enables errors, whatever HAL_LOG is. Threads: any. */
void hal_log_show_errors(void);

/* Writes a line if its level is enabled. Threads: any. */
void hal_log(uint32_t level, const char *format, ...) HAL_PRINTF(2, 3);

/* Writes text of any length, whatever the level, for HAL_DUMP. Threads: any. */
void hal_log_dump(const char *text);

#endif
