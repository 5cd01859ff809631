/* Failures with a message. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

hal_status cpu_fail(hal_status status, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    const hal_host *host = kit_host();
    return host ? host->fail(host, status, message) : status;
}
