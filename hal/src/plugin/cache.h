/* The compile cache on disk: what plugins store there, kept apart by plugin, build, driver and
 * architecture. These two are entries of the host table, see hal/plugin.h. */
#ifndef HAL_SRC_PLUGIN_CACHE_H
#define HAL_SRC_PLUGIN_CACHE_H

#include <hal/plugin.h>

/* The device that a thread makes an object for: the part of the key that plugins do not choose. */
typedef struct hal_cache_scope {
    const char *device_id; /* hal_device_info.id */
    char identity[256];    /* plugin, build, driver and architecture */
} hal_cache_scope;

/* Plugins find the scope's entries on this thread until the next call; null: none. Returns the
 * scope before, which the caller restores. */
const hal_cache_scope *hal_cache_enter(const hal_cache_scope *scope);

/* Gives an entry in memory to be freed with the host's `release`. Only for the device that the
 * thread is making something for. Threads: any.
 * Errors, all without a message: NOT_FOUND, OUT_OF_MEMORY, INVALID_ARGUMENT. */
hal_status hal_cache_load(const char *device_id, const uint64_t key[2], void **data,
                          uint64_t *bytes);

/* Keeps an entry, in the place of one with the same key. Threads and processes: any.
 * Errors, all without a message: NOT_FOUND without a folder, IO, INVALID_ARGUMENT. */
hal_status hal_cache_store(const char *device_id, const uint64_t key[2], const void *data,
                           uint64_t bytes);

#endif
