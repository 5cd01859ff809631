/* The services of the host, and failures with a message. */
#include "template_plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const hal_host *the_host;

void template_set_host(const hal_host *host)
{
    the_host = host;
}

const hal_host *template_host(void)
{
    return the_host;
}

hal_status template_fail(hal_status status, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return the_host->fail(status, message);
}

void *template_new(uint64_t bytes, const char *what)
{
    void *made = the_host->allocate(bytes, _Alignof(max_align_t));
    if (!made) {
        template_fail(HAL_ERROR_OUT_OF_MEMORY, "template: no host memory for a %s", what);
        return NULL;
    }
    return memset(made, 0, bytes);
}
