/* Memory of the host, and failures with a message. */
#include "example_c.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hal_status example_fail(hal_status status, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return kit_host()->fail(kit_host(), status, message);
}

void *example_new(uint64_t bytes, const char *what)
{
    void *made = kit_host()->allocate(kit_host(), bytes, _Alignof(max_align_t));
    if (!made) {
        example_fail(HAL_ERROR_OUT_OF_MEMORY, "example_c: no host memory for a %s", what);
        return NULL;
    }
    return memset(made, 0, bytes);
}

void example_release(void *memory)
{
    kit_host()->release(kit_host(), memory);
}
