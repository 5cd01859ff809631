/* The plan cache: from the key of a fusion plan to the commands that it recorded. */
#ifndef OPS_SRC_ARRAY_PLAN_CACHE_H
#define OPS_SRC_ARRAY_PLAN_CACHE_H

#include "tensor/plan_recorder.h"

#define OPS_PLAN_CACHE_ENTRIES 8192u

typedef struct ops_plan_cache ops_plan_cache;

/* Null without memory. */
ops_plan_cache *ops_plan_cache_create(void);
void ops_plan_cache_destroy(ops_plan_cache *cache);

/* The plan of a key, or null. `hash` gets the key's hash. */
ops_recorded_plan *ops_plan_cache_find(ops_plan_cache *cache, const ops_cache_key *key,
                                       uint64_t hash[2]);

/* Inserts or replaces the plan of a hash; null is ignored. The cache owns the plan, and destroys it
 * at once where it has no memory for it. A full cache evicts the plans that were not found since
 * the last eviction. */
void ops_plan_cache_insert(ops_plan_cache *cache, const uint64_t hash[2], ops_recorded_plan *plan);

#endif
