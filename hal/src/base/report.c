/* hal_status_set, for libraries on top of hal; hal itself calls hal_fail. */
#include "status.h"

#include <hal/hal.h>

#include <stdarg.h>
#include <stdio.h>

hal_status hal_status_set(hal_status status, const char *format, ...)
{
    char text[HAL_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return hal_fail(status, "%s", text);
}
