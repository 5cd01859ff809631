/* Status names and the per-thread message of the last failure. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[HAL_MESSAGE_BYTES];

const char *hal_status_name(hal_status status)
{
    static const char *const names[HAL_STATUS_COUNT] = {
        [HAL_OK] = "HAL_OK",
        [HAL_ERROR_INVALID_ARGUMENT] = "HAL_ERROR_INVALID_ARGUMENT",
        [HAL_ERROR_INVALID_IR] = "HAL_ERROR_INVALID_IR",
        [HAL_ERROR_INVALID_STATE] = "HAL_ERROR_INVALID_STATE",
        [HAL_ERROR_UNSUPPORTED] = "HAL_ERROR_UNSUPPORTED",
        [HAL_ERROR_OUT_OF_MEMORY] = "HAL_ERROR_OUT_OF_MEMORY",
        [HAL_ERROR_NOT_FOUND] = "HAL_ERROR_NOT_FOUND",
        [HAL_ERROR_LIBRARY_MISSING] = "HAL_ERROR_LIBRARY_MISSING",
        [HAL_ERROR_DRIVER_MISSING] = "HAL_ERROR_DRIVER_MISSING",
        [HAL_ERROR_NO_DEVICE] = "HAL_ERROR_NO_DEVICE",
        [HAL_ERROR_TOO_OLD] = "HAL_ERROR_TOO_OLD",
        [HAL_ERROR_TOO_NEW] = "HAL_ERROR_TOO_NEW",
        [HAL_ERROR_BAD_PLUGIN] = "HAL_ERROR_BAD_PLUGIN",
        [HAL_ERROR_COMPILE] = "HAL_ERROR_COMPILE",
        [HAL_ERROR_TIMEOUT] = "HAL_ERROR_TIMEOUT",
        [HAL_ERROR_DEVICE_LOST] = "HAL_ERROR_DEVICE_LOST",
        [HAL_ERROR_IO] = "HAL_ERROR_IO",
        [HAL_ERROR_INTERNAL] = "HAL_ERROR_INTERNAL",
    };
    if (status < 0 || status >= HAL_STATUS_COUNT) {
        return "HAL_STATUS_?";
    }
    return names[status];
}

const char *hal_status_message(void)
{
    return message;
}

hal_status hal_fail(hal_status status, const char *format, ...)
{
    /* Into another buffer: an argument may be the message itself. */
    char text[HAL_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    if (length < 0) {
        snprintf(text, sizeof text, "%s (its message could not be formatted)",
                 hal_status_name(status));
    } else if ((size_t)length >= sizeof text) {
        memcpy(text + sizeof text - 4, "...", 4);
    }
    memcpy(message, text, strlen(text) + 1);
    return status;
}

void hal_message_save(hal_saved_message *saved)
{
    memcpy(saved->text, message, strlen(message) + 1);
}

void hal_message_restore(const hal_saved_message *saved)
{
    memcpy(message, saved->text, strlen(saved->text) + 1);
}
