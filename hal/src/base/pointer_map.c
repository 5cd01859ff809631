/* Tables of addresses, see pointer_map.h. */
#include "pointer_map.h"

#include <stdlib.h>
#include <string.h>

struct hal_pointer_entry {
    const void *key;
    void *value;
};

static uint32_t home_of(const hal_pointer_map *map, const void *key)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) & (map->capacity - 1);
}

/* The place of a key, or the free one where it would go. */
static uint32_t find(const hal_pointer_map *map, const void *key)
{
    uint32_t i = home_of(map, key);
    while (map->entries[i].key && map->entries[i].key != key) {
        i = (i + 1) & (map->capacity - 1);
    }
    return i;
}

static int grow(hal_pointer_map *map)
{
    const uint64_t capacity = map->capacity ? 2 * (uint64_t)map->capacity : 64;
    hal_pointer_map larger = {.capacity = (uint32_t)capacity};
    larger.entries = capacity <= UINT32_MAX ? calloc(capacity, sizeof *larger.entries) : NULL;
    if (!larger.entries) {
        return 0;
    }
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].key) {
            larger.entries[find(&larger, map->entries[i].key)] = map->entries[i];
        }
    }
    larger.count = map->count;
    free(map->entries);
    *map = larger;
    return 1;
}

void *hal_pointer_map_get(const hal_pointer_map *map, const void *key)
{
    return map->capacity ? map->entries[find(map, key)].value : NULL;
}

int hal_pointer_map_put(hal_pointer_map *map, const void *key, void *value)
{
    if (4 * ((uint64_t)map->count + 1) > 3 * (uint64_t)map->capacity && !grow(map)) {
        return 0;
    }
    struct hal_pointer_entry *entry = &map->entries[find(map, key)];
    map->count += entry->key == NULL;
    entry->key = key;
    entry->value = value;
    return 1;
}

void *hal_pointer_map_take(hal_pointer_map *map, const void *key)
{
    uint32_t hole = map->capacity ? find(map, key) : 0;
    if (!map->capacity || !map->entries[hole].key) {
        return NULL;
    }
    void *value = map->entries[hole].value;
    const uint32_t mask = map->capacity - 1;
    /* What lies behind moves up where it may, so that no search stops at the hole. */
    for (uint32_t i = (hole + 1) & mask; map->entries[i].key; i = (i + 1) & mask) {
        const uint32_t home = home_of(map, map->entries[i].key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (struct hal_pointer_entry){0};
    map->count--;
    return value;
}

void hal_pointer_map_free(hal_pointer_map *map)
{
    free(map->entries);
    memset(map, 0, sizeof *map);
}
