/* Findings of the validate layer, counted and logged once per place. */
#include "validate_state.h"

#include "plugin/host.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/map.h"
#include "base/status.h"

#include <hal/hal.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MAX_PLACES 4096 /* findings at further places are neither counted nor logged */

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(places_lock, HAL_FORK_LEAF)
static hal_map places; /* hashes of logged places; values have no meaning */
static _Atomic uint64_t findings;

/* Counts the place the first time; again if memory is out. */
static bool place_is_new(uint64_t place)
{
    pthread_mutex_lock(&places_lock);
    const bool new = !hal_map_get(&places, place) && atomic_load(&findings) < MAX_PLACES;
    if (new) {
        hal_map_put(&places, place, &places);
        atomic_fetch_add(&findings, 1);
    }
    pthread_mutex_unlock(&places_lock);
    return new;
}

uint64_t hal_validate_get_finding_count(void)
{
    return atomic_load(&findings);
}

hal_status hal_validate_found(hal_status status, const char *place, const char *format, ...)
{
    char sentence[HAL_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const uint64_t key =
        XXH3_64bits_withSeed(place, strlen(place), XXH3_64bits(format, strlen(format)));
    if (place_is_new(key)) {
        hal_log(HAL_LOG_ERROR, "validate: %s: %s", place, sentence);
    }
    return status == HAL_OK ? HAL_OK : hal_fail(status, "%s: %s", place, sentence);
}

void hal_validate_plugin_finding(const char *message)
{
    const uint64_t key = XXH3_64bits(message, strlen(message));
    if (place_is_new(key)) {
        hal_log(HAL_LOG_ERROR, "validate: %s", message);
    }
}
