/* The log, to standard error or the program's callback. */
#include "log.h"

#include "fork.h"
#include "status.h"
#include "cancel.h"

#include <hal/hal.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 2048

/* The enabled level plus 1; 0 before the variable is read. */
static _Atomic uint32_t enabled;

static atomic_bool errors_enabled; /* whatever the level */

static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(callback_lock, HAL_FORK_LEAF)
static hal_log_callback callback;
static void *callback_user;

static const char *const level_names[] = {"", "error", "warn", "info", "debug"};

/* 0 for an unset, empty or unknown one. */
static uint32_t variable_level(void)
{
    const char *value = getenv("HAL_LOG");
    for (uint32_t i = HAL_LOG_ERROR; value && i <= HAL_LOG_DEBUG; i++) {
        if (strcmp(value, level_names[i]) == 0) {
            return i;
        }
    }
    return 0;
}

static void line_write(uint32_t level, const char *message)
{
    HAL_UNCANCELLED;
    pthread_mutex_lock(&callback_lock);
    const hal_log_callback function = callback;
    void *user = callback_user;
    pthread_mutex_unlock(&callback_lock);
    if (function) {
        function(user, level, message);
    } else {
        const char *name = level_names[level <= HAL_LOG_DEBUG ? level : HAL_LOG_DEBUG];
        fprintf(stderr, "halyard %s: %s\n", name, message);
    }
}

static void line_format(uint32_t level, const char *format, va_list arguments)
{
    char line[LINE_BYTES];
    if (hal_log_is_enabled(level) && vsnprintf(line, sizeof line, format, arguments) >= 0) {
        line_write(level, line);
    }
}

int hal_log_is_enabled(hal_log_level level)
{
    uint32_t now = atomic_load_explicit(&enabled, memory_order_relaxed);
    if (now == 0) {
        now = variable_level() + 1;
        uint32_t unread = 0;
        if (!atomic_compare_exchange_strong(&enabled, &unread, now)) {
            now = unread;
        }
    }
    return level < now || (level == HAL_LOG_ERROR && atomic_load(&errors_enabled));
}

void hal_log_set_callback(hal_log_callback new_callback, void *user, hal_log_level level)
{
    pthread_mutex_lock(&callback_lock);
    callback = new_callback;
    callback_user = user;
    pthread_mutex_unlock(&callback_lock);
    if (level > HAL_LOG_DEBUG) {
        level = HAL_LOG_DEBUG;
    }
    atomic_store(&enabled, (level ? level : variable_level()) + 1);
}

hal_status hal_log_check_variable(void)
{
    const char *value = getenv("HAL_LOG");
    return !value || !value[0] || variable_level()
               ? HAL_OK
               : hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                          "HAL_LOG: expected error, warn, info or debug, got \"%s\"", value);
}

void hal_log_show_errors(void)
{
    atomic_store(&errors_enabled, true);
}

void hal_log(uint32_t level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line_format(level, format, arguments);
    va_end(arguments);
}

void hal_log_write(hal_log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line_format(level, format, arguments);
    va_end(arguments);
}

void hal_log_dump(const char *text)
{
    line_write(HAL_LOG_INFO, text);
}
