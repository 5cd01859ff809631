/* The version of the loaded library. */
#include <hal/hal.h>

#define WORDS_OF(number) #number
#define WORDS(number) WORDS_OF(number)

const char *hal_version(void)
{
    return WORDS(HAL_VERSION_MAJOR) "." WORDS(HAL_VERSION_MINOR) "." WORDS(HAL_VERSION_PATCH);
}
