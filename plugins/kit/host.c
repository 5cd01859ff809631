/* The services of the host, see kit/host.h. */
#include "host.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 3072 }; /* a compiler's log is in some */

/* A key, not thread-local data: a plugin that is opened late finds little static storage left. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t current;

static void key_create(void)
{
    pthread_key_create(&current, NULL);
}

const hal_host *kit_host(void)
{
    pthread_once(&once, key_create);
    return pthread_getspecific(current);
}

/* Without memory for the thread's value, messages are lost. */
void kit_host_enter(const hal_host *host)
{
    if (kit_host() != host) {
        pthread_setspecific(current, host);
    }
}

hal_status kit_fail(hal_status status, const char *format, ...)
{
    const hal_host *host = kit_host();
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return host ? host->fail(host, status, message) : status;
}

void kit_log(uint32_t level, const char *line)
{
    const hal_host *host = kit_host();
    if (host) {
        host->log(host, level, line);
    }
}
