/* The version of the loaded library. */
#include <hal/hal.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *hal_version(void)
{
    return TEXT(HAL_VERSION_MAJOR) "." TEXT(HAL_VERSION_MINOR) "." TEXT(HAL_VERSION_PATCH);
}
