/* See position.h. */
#include "position.h"

#include "internal.h"
#include "base/fork.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept_positions {
    uint64_t hash[2];
    uint32_t count;
    hal_ir_position items[];
} kept_positions;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LEAF)

static hal_map kept_of; /* by hash[0] */

static bool positions_are_of(const void *value, const void *wanted)
{
    const kept_positions *kept = value;
    return memcmp(kept->hash, wanted, sizeof kept->hash) == 0;
}

void hal_ir_positions_keep(const hal_ir_kernel *kernel, const hal_ir_position *positions)
{
    uint64_t hash[2];
    hal_ir_hash(kernel, hash);
    pthread_mutex_lock(&lock);
    if (!hal_map_find(&kept_of, hash[0], positions_are_of, hash)) {
        const size_t bytes = kernel->record_count * sizeof *positions;
        kept_positions *kept = malloc(sizeof *kept + bytes);
        if (kept) {
            memcpy(kept->hash, hash, sizeof hash);
            kept->count = kernel->record_count;
            memcpy(kept->items, positions, bytes);
            if (!hal_map_add(&kept_of, hash[0], kept)) {
                free(kept);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

hal_ir_position hal_ir_position_find(const uint64_t hash[2], uint32_t record)
{
    hal_ir_position found = {NULL, 0};
    pthread_mutex_lock(&lock);
    const kept_positions *kept = hal_map_find(&kept_of, hash[0], positions_are_of, hash);
    if (kept && record < kept->count) {
        found = kept->items[record];
    }
    pthread_mutex_unlock(&lock);
    return found;
}
