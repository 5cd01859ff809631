/* The hash table of hal: 64-bit keys to pointers.
 *
 * A key is an address (hal_map_key) or a hash. If hashes may collide, values contain the whole key,
 * and a function compares it:
 *
 *     hal_map kernels = {0};
 *     kernel = hal_map_find(&kernels, hash, kernel_has_source, source); null: not found
 *     hal_map_add(&kernels, hash, kernel);                                next to equal hashes
 *     hal_map_remove(&kernels, hash, kernel);
 *     hal_map_free(&kernels);                                             does not free values
 *
 * If each key has one value, use hal_map_get, hal_map_put and hal_map_take. */
#ifndef HAL_SRC_BASE_MAP_H
#define HAL_SRC_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Open addressing, at most three quarters full. Begins as {0}. Threads: one at a time. */
typedef struct hal_map {
    struct hal_map_entry {
        uint64_t key;
        void *value; /* null: a free entry */
    } *entries;
    uint32_t count;
    uint32_t capacity; /* 0 or a power of two */
} hal_map;

/* Whether a value of a key is the wanted one. */
typedef bool (*hal_map_match)(const void *value, const void *wanted);

static inline uint64_t hal_map_key(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

/* The first value of a key that `match` accepts, or null. A null `match` accepts all. */
void *hal_map_find(const hal_map *map, uint64_t key, hal_map_match match, const void *wanted);

/* Adds a value, which is not null, to those of the key. Returns 0, without a change, if memory is
 * out. */
bool hal_map_add(hal_map *map, uint64_t key, void *value);

/* Removes one value of a key. Returns whether the key had it. */
bool hal_map_remove(hal_map *map, uint64_t key, const void *value);

/* The value of a key; null if it has none. */
static inline void *hal_map_get(const hal_map *map, uint64_t key)
{
    return hal_map_find(map, key, 0, 0);
}

/* Sets the value of a key, which is not null. Returns 0, without a change, if memory is out. */
bool hal_map_put(hal_map *map, uint64_t key, void *value);

/* Removes a key. Returns its value; null if it had none. */
void *hal_map_take(hal_map *map, uint64_t key);

void hal_map_free(hal_map *map);

#endif
