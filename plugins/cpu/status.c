/* The services of the host, and failures with a message. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static const hal_host *the_host;

void cpu_set_host(const hal_host *host)
{
    the_host = host;
}

const hal_host *cpu_host(void)
{
    return the_host;
}

hal_status cpu_fail(hal_status status, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return the_host ? the_host->fail(status, message) : status;
}
