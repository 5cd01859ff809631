/* The compile cache on disk. Entries are separated by plugin, build, driver and architecture. Load
 * and store are entries of the host table, see hal/plugin.h. */
#ifndef HAL_SRC_PLUGIN_CACHE_H
#define HAL_SRC_PLUGIN_CACHE_H

#include <hal/plugin.h>
#include <stdbool.h>

/* The device for which a thread creates an object: the part of the key that plugins do not
 * choose. */
typedef struct hal_cache_scope {
    const char *device_id; /* hal_device_info.id */
    char identity[256];    /* plugin, build, driver and architecture */
} hal_cache_scope;

/* Sets the thread's scope; null disables the cache. Returns the previous scope, which the caller
 * restores. */
const hal_cache_scope *hal_cache_enter(const hal_cache_scope *scope);

/* Whether there is a folder for entries. Threads: any. */
bool hal_cache_is_on(void);

/* How many entries the thread has loaded. */
uint64_t hal_cache_count_hits(void);

/* Loads an entry of the thread's scope into memory, which the host's `release` frees. Threads: any.
 * Errors, all without a message: NOT_FOUND, OUT_OF_MEMORY, INVALID_ARGUMENT. */
hal_status hal_cache_load(const char *device_id, const uint64_t key[2], void **data,
                          uint64_t *bytes);

/* Loads an entry of the thread's scope from another folder, which is only read. Threads: any.
 * Errors, all without a message: NOT_FOUND, OUT_OF_MEMORY. */
hal_status hal_cache_load_from(const char *folder, const uint64_t key[2], void **data,
                               uint64_t *bytes);

/* Stores an entry, in place of one with the same key. Threads and processes: any.
 * Errors, all without a message: NOT_FOUND without a folder, IO, INVALID_ARGUMENT. */
hal_status hal_cache_store(const char *device_id, const uint64_t key[2], const void *data,
                           uint64_t bytes);

#endif
