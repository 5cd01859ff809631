/* The plan cache, see plan_cache.h. */
#include "plan_cache.h"

#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

typedef struct cache_entry {
    uint64_t hash[2];
    ops_recorded_plan *plan; /* null: a free slot */
    uint64_t was_found;      /* since the last eviction */
} cache_entry;

struct ops_plan_cache {
    cache_entry *entries; /* open addressing, at most half full */
    uint32_t count, capacity;
};

static cache_entry *cache_slot(cache_entry *entries, uint32_t capacity, const uint64_t hash[2])
{
    uint32_t i = (uint32_t)hash[0] & (capacity - 1);
    while (entries[i].plan && (entries[i].hash[0] != hash[0] || entries[i].hash[1] != hash[1])) {
        i = (i + 1) & (capacity - 1);
    }
    return &entries[i];
}

static bool cache_rehash(ops_plan_cache *cache, uint32_t capacity)
{
    cache_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries) {
        return false;
    }
    for (uint32_t i = 0; i < cache->capacity; i++) {
        if (cache->entries[i].plan) {
            *cache_slot(entries, capacity, cache->entries[i].hash) = cache->entries[i];
        }
    }
    free(cache->entries);
    cache->entries = entries;
    cache->capacity = capacity;
    return true;
}

/* Evicts what was not found lately, or everything when that is less than a quarter. */
static void cache_evict(ops_plan_cache *cache)
{
    uint32_t stale = 0;
    for (uint32_t i = 0; i < cache->capacity; i++) {
        stale += cache->entries[i].plan && !cache->entries[i].was_found;
    }
    const int evicts_all = stale < cache->count / 4;
    for (uint32_t i = 0; i < cache->capacity; i++) {
        cache_entry *entry = &cache->entries[i];
        if (entry->plan && (evicts_all || !entry->was_found)) {
            ops_recorded_plan_destroy(entry->plan);
            entry->plan = NULL;
            cache->count--;
        }
        entry->was_found = 0;
    }
}

static bool cache_reserve(ops_plan_cache *cache)
{
    if (cache->count == OPS_PLAN_CACHE_ENTRIES) {
        cache_evict(cache);
        /* Removals leave gaps in the probe sequences of what stays. */
        return cache_rehash(cache, cache->capacity);
    }
    return 2 * (cache->count + 1) <= cache->capacity ||
           cache_rehash(cache, cache->capacity ? 2 * cache->capacity : 256);
}

ops_plan_cache *ops_plan_cache_create(void)
{
    return calloc(1, sizeof(ops_plan_cache));
}

void ops_plan_cache_destroy(ops_plan_cache *cache)
{
    if (cache) {
        for (uint32_t i = 0; i < cache->capacity; i++) {
            ops_recorded_plan_destroy(cache->entries[i].plan);
        }
        free(cache->entries);
        free(cache);
    }
}

ops_recorded_plan *ops_plan_cache_find(ops_plan_cache *cache, const ops_cache_key *key,
                                       uint64_t hash[2])
{
    ops_cache_key_hash(key, hash);
    if (!cache->capacity) {
        return NULL;
    }
    cache_entry *entry = cache_slot(cache->entries, cache->capacity, hash);
    entry->was_found = entry->plan != NULL;
    return entry->plan;
}

void ops_plan_cache_insert(ops_plan_cache *cache, const uint64_t hash[2], ops_recorded_plan *plan)
{
    if (!plan) {
        return;
    }
    if (!cache_reserve(cache)) {
        ops_recorded_plan_destroy(plan);
        return;
    }
    cache_entry *entry = cache_slot(cache->entries, cache->capacity, hash);
    cache->count += !entry->plan;
    ops_recorded_plan_destroy(entry->plan);
    *entry = (cache_entry){.hash = {hash[0], hash[1]}, .plan = plan};
}
