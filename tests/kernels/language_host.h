/* language_host.h: hal's services as a lowering needs them: memory, and a failure's sentence. */
#ifndef TESTS_KERNELS_LANGUAGE_HOST_H
#define TESTS_KERNELS_LANGUAGE_HOST_H

#include <hal/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static char language_message[1024];

static void host_free(const hal_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static void *language_allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    (void)host;
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static hal_status language_fail(const hal_host *host, hal_status status, const char *message)
{
    (void)host;
    snprintf(language_message, sizeof language_message, "%s", message);
    return status;
}

static const hal_host language_host = {.size = sizeof(hal_host),
                                       .abi = HAL_PLUGIN_ABI,
                                       .allocate = language_allocate,
                                       .release = host_free,
                                       .fail = language_fail};

#endif
