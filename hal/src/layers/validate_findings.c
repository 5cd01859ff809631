/* Findings of the validate layer, logged once per place. */
#include "validate_state.h"

#include "findings.h"
#include "plugin/host.h"
#include "base/log.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

hal_status hal_validate_found(hal_status status, const char *place, const char *format, ...)
{
    char sentence[HAL_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const uint64_t key =
        XXH3_64bits_withSeed(place, strlen(place), XXH3_64bits(format, strlen(format)));
    if (hal_finding_is_new(key)) {
        hal_log(HAL_LOG_ERROR, "validate: %s: %s", place, sentence);
    }
    return status == HAL_OK ? HAL_OK : hal_fail(status, "%s: %s", place, sentence);
}

void hal_validate_plugin_finding(const char *message)
{
    const uint64_t key = XXH3_64bits(message, strlen(message));
    if (hal_finding_is_new(key)) {
        hal_log(HAL_LOG_ERROR, "validate: %s", message);
    }
}
