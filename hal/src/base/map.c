/* Hash table with open addressing and linear probing, see map.h. */
#include "map.h"

#include "mix.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64u

static uint32_t home_entry(const hal_map *map, uint64_t key)
{
    return (uint32_t)(hal_mix(key) >> 32) & (map->capacity - 1);
}

/* Index of the first entry of the key with `value`, or with any value if that is null; else of the
 * free entry at the end of the search. */
static uint32_t entry_index(const hal_map *map, uint64_t key, const void *value)
{
    const uint32_t mask = map->capacity - 1;
    uint32_t i = home_entry(map, key);
    while (map->entries[i].value &&
           (map->entries[i].key != key || (value && map->entries[i].value != value))) {
        i = (i + 1) & mask;
    }
    return i;
}

static void entry_append(hal_map *map, uint64_t key, void *value)
{
    const uint32_t mask = map->capacity - 1;
    uint32_t i = home_entry(map, key);
    while (map->entries[i].value) {
        i = (i + 1) & mask;
    }
    map->entries[i] = (struct hal_map_entry){key, value};
}

static void entry_remove(hal_map *map, uint32_t hole)
{
    const uint32_t mask = map->capacity - 1;
    /* Moves later entries into the hole, so that searches do not stop at it. */
    for (uint32_t i = (hole + 1) & mask; map->entries[i].value; i = (i + 1) & mask) {
        const uint32_t home = home_entry(map, map->entries[i].key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (struct hal_map_entry){0};
    map->count--;
}

static bool map_reserve(hal_map *map, uint32_t count)
{
    if (4 * (uint64_t)count <= 3 * (uint64_t)map->capacity) {
        return true;
    }
    const uint64_t capacity = map->capacity ? 2 * (uint64_t)map->capacity : FIRST_CAPACITY;
    hal_map larger = {.count = map->count, .capacity = (uint32_t)capacity};
    larger.entries = capacity <= UINT32_MAX ? calloc(capacity, sizeof *larger.entries) : NULL;
    if (!larger.entries) {
        return false;
    }
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].value) {
            entry_append(&larger, map->entries[i].key, map->entries[i].value);
        }
    }
    free(map->entries);
    *map = larger;
    return true;
}

void *hal_map_find(const hal_map *map, uint64_t key, hal_map_match match, const void *wanted)
{
    if (map->capacity == 0) {
        return NULL;
    }
    const uint32_t mask = map->capacity - 1;
    uint32_t i = home_entry(map, key);
    while (map->entries[i].value &&
           (map->entries[i].key != key || (match && !match(map->entries[i].value, wanted)))) {
        i = (i + 1) & mask;
    }
    return map->entries[i].value;
}

bool hal_map_add(hal_map *map, uint64_t key, void *value)
{
    if (!map_reserve(map, map->count + 1)) {
        return false;
    }
    entry_append(map, key, value);
    map->count++;
    return true;
}

bool hal_map_remove(hal_map *map, uint64_t key, const void *value)
{
    const uint32_t i = map->capacity ? entry_index(map, key, value) : 0;
    if (!map->capacity || !map->entries[i].value) {
        return false;
    }
    entry_remove(map, i);
    return true;
}

bool hal_map_put(hal_map *map, uint64_t key, void *value)
{
    struct hal_map_entry *entry =
        map->capacity ? &map->entries[entry_index(map, key, NULL)] : NULL;
    if (entry && entry->value) {
        entry->value = value;
        return true;
    }
    return hal_map_add(map, key, value);
}

void *hal_map_take(hal_map *map, uint64_t key)
{
    void *value = hal_map_get(map, key);
    if (value) {
        hal_map_remove(map, key, value);
    }
    return value;
}

void hal_map_free(hal_map *map)
{
    free(map->entries);
    memset(map, 0, sizeof *map);
}
