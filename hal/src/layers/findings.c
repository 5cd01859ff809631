/* Counts the findings of layers once per place. */
#include "findings.h"

#include "base/fork.h"
#include "base/map.h"

#include <hal/hal.h>
#include <pthread.h>
#include <stdatomic.h>

#define MAX_PLACES 4096 /* findings at further places are neither counted nor logged */

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(places_lock, HAL_FORK_LEAF)
static hal_map places; /* hashes of logged places; values have no meaning */
static _Atomic uint64_t findings;

bool hal_finding_is_new(uint64_t place)
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
