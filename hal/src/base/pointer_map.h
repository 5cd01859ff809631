/* A table from addresses to what is known of them: how layers recognise a plugin's objects. */
#ifndef HAL_SRC_BASE_POINTER_MAP_H
#define HAL_SRC_BASE_POINTER_MAP_H

#include <stdint.h>

/* Begins as {0}. Threads: one at a time, as are all calls. */
typedef struct hal_pointer_map {
    struct hal_pointer_entry *entries; /* open addressing; a null key is a free place */
    uint32_t count;
    uint32_t capacity; /* 0 or a power of two */
} hal_pointer_map;

/* The value of a key; null when it has none. */
void *hal_pointer_map_get(const hal_pointer_map *map, const void *key);

/* Gives a key, which is not null, a value. 0 when memory is out, and nothing has changed. */
int hal_pointer_map_put(hal_pointer_map *map, const void *key, void *value);

/* Takes a key out and gives the value that it had, or null. */
void *hal_pointer_map_take(hal_pointer_map *map, const void *key);

void hal_pointer_map_free(hal_pointer_map *map);

#endif
