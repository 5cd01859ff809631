/* The services of the host, see kit/host.h. */
#include "host.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 3072 }; /* a compiler's log is in some */

static const hal_host *the_host;

void kit_set_host(const hal_host *host)
{
    the_host = host;
}

const hal_host *kit_host(void)
{
    return the_host;
}

hal_status kit_fail(hal_status status, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return the_host ? the_host->fail(status, message) : status;
}
