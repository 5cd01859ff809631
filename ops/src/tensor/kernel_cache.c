/* The kernels of a context, see kernel_cache.h. */
#include "kernel_cache.h"

#include "compile_policy.h"
#include "context.h"

#include <xxhash.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The entry with the key, or the free one where it belongs. */
static ops_entry *cache_slot(ops_entry *entries, uint32_t capacity, const uint64_t key[2])
{
    uint32_t i = (uint32_t)key[0] & (capacity - 1);
    while (entries[i].key[1] && (entries[i].key[0] != key[0] || entries[i].key[1] != key[1])) {
        i = (i + 1) & (capacity - 1);
    }
    return &entries[i];
}

static hal_status cache_grow(ops_kernel_cache *cache)
{
    uint32_t capacity = cache->capacity ? 2 * cache->capacity : 64;
    ops_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "The host has no %zu bytes for %u kernels of an op context",
                              capacity * sizeof *entries, capacity);
    }
    for (uint32_t i = 0; i < cache->capacity; i++) {
        const ops_entry *entry = &cache->entries[i];
        if (entry->key[1]) {
            *cache_slot(entries, capacity, entry->key) = *entry;
        }
    }
    free(cache->entries);
    cache->entries = entries;
    cache->capacity = capacity;
    cache->hand = 0;
    return HAL_OK;
}

/* Frees a slot and moves up entries that would no longer be found past it. */
static void cache_remove(ops_kernel_cache *cache, uint32_t slot)
{
    const uint32_t mask = cache->capacity - 1;
    hal_kernel_release(cache->entries[slot].kernel);
    for (uint32_t next = (slot + 1) & mask; cache->entries[next].key[1]; next = (next + 1) & mask) {
        const uint32_t home = (uint32_t)cache->entries[next].key[0] & mask;
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            cache->entries[slot] = cache->entries[next];
            slot = next;
        }
    }
    memset(&cache->entries[slot], 0, sizeof cache->entries[slot]);
    cache->count--;
}

/* Second chance: an entry that was used since the hand passed it is passed once more. */
static void cache_evict(ops_kernel_cache *cache)
{
    for (;;) {
        const uint32_t slot = cache->hand;
        ops_entry *entry = &cache->entries[slot];
        cache->hand = (slot + 1) & (cache->capacity - 1);
        if (entry->key[1] && !entry->was_used) {
            cache_remove(cache, slot);
            return;
        }
        entry->was_used = 0;
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

hal_status ops_kernel_cache_init(ops_kernel_cache *cache)
{
    *cache = (ops_kernel_cache){NULL, 0, 0, 0, 0};
    return cache_grow(cache);
}

void ops_kernel_cache_deinit(ops_kernel_cache *cache)
{
    for (uint32_t i = 0; i < cache->capacity; i++) {
        hal_kernel_release(cache->entries[i].kernel);
    }
    free(cache->entries);
    cache->entries = NULL;
    cache->capacity = cache->count = 0;
}

void ops_cache_key_hash(const ops_cache_key *key, uint64_t hash[2])
{
    const XXH128_hash_t made = XXH3_128bits(key->bytes, key->size);
    hash[0] = made.low64;
    hash[1] = made.high64 | 1; /* never that of a free slot */
}

void ops_cache_key_fold(ops_cache_key *key)
{
    uint64_t hash[2];
    ops_cache_key_hash(key, hash);
    memcpy(key->bytes, hash, sizeof hash);
    key->size = sizeof hash;
}

ops_entry *ops_cache_find(ops_context *context, const ops_cache_key *key, uint64_t hash[2])
{
    const ops_kernel_cache *cache = &context->kernels;
    ops_cache_key_hash(key, hash);
    ops_entry *entry = cache_slot(cache->entries, cache->capacity, hash);
    if (!entry->key[1]) {
        return NULL;
    }
    entry->was_used = 1;
    return entry;
}

hal_status ops_cache_insert(ops_context *context, const uint64_t hash[2], hal_kernel *kernel,
                            uint64_t workspace_bytes, ops_entry **entry)
{
    ops_kernel_cache *cache = &context->kernels;
    cache->insertions++;
    if (cache->count == OPS_CACHE_KERNELS) {
        cache_evict(cache);
    }
    if (2 * (cache->count + 1) > cache->capacity) {
        hal_status status = cache_grow(cache);
        if (status != HAL_OK) {
            hal_kernel_release(kernel);
            return status;
        }
    }
    *entry = cache_slot(cache->entries, cache->capacity, hash);
    **entry = (ops_entry){{hash[0], hash[1]}, kernel, workspace_bytes, 0};
    cache->count++;
    return HAL_OK;
}

/* Builds the IR of a kernel; compiles it where `ir` is null. */
static hal_status kernel_build(hal_device *device, const hal_kernel_recipe *recipe,
                               const char *name, ops_kernel_emit emit, const void *user,
                               hal_ir_kernel **ir, hal_kernel **kernel)
{
    hal_ir_builder *builder;
    hal_status status = hal_ir_builder_create(name, &builder);
    if (status == HAL_OK) {
        emit(builder, user);
        status = ir ? hal_ir_builder_finish(builder, ir)
                    : hal_kernel_create_built(device, builder, recipe, kernel);
        hal_ir_builder_destroy(builder);
    }
    return status;
}

/* A key has all that the kernel depends on, but for the device and the code of this library. */
static hal_kernel_recipe recipe_of(const uint64_t key[2])
{
    return (hal_kernel_recipe){.hash = {key[0], key[1]},
                               .code = (const void *)(uintptr_t)ops_cache_get};
}

/* Finds a kernel that an earlier process built, or leaves *kernel null. */
static hal_status cache_recall(ops_context *context, const uint64_t key[2], hal_kernel **kernel)
{
    const hal_kernel_recipe recipe = recipe_of(key);
    const uint64_t begin = now_ns();
    const hal_status status = hal_kernel_recall(context->device, &recipe, kernel);
    if (*kernel) {
        ops_compile_policy_add_time(context->compile_policy, now_ns() - begin);
    }
    return status;
}

/* Compiles kernels of deferred plans together and inserts them, the first one last. */
static hal_status cache_compile_pending(ops_context *context, const ops_pending_kernel *taken,
                                        uint32_t count, ops_entry **entry)
{
    const hal_ir_kernel *irs[OPS_PENDING_KERNELS];
    hal_kernel *kernels[OPS_PENDING_KERNELS];
    for (uint32_t i = 0; i < count; i++) {
        irs[i] = taken[i].ir;
    }
    const uint64_t begin = now_ns();
    hal_status status = hal_kernel_create_all(context->device, irs, count, kernels);
    ops_compile_policy_add_time(context->compile_policy, (now_ns() - begin) / count);
    status = kernels[0] ? HAL_OK : status;
    for (uint32_t i = count; i-- > 0;) {
        hal_ir_kernel_destroy(taken[i].ir);
        ops_entry *known =
            cache_slot(context->kernels.entries, context->kernels.capacity, taken[i].kernel);
        if (!kernels[i] || status || known->key[1]) { /* known: plans may share a kernel */
            hal_kernel_release(kernels[i]);
            *entry = known;
        } else {
            status = ops_cache_insert(context, taken[i].kernel, kernels[i], 0, entry);
        }
    }
    return status;
}

hal_status ops_cache_get(ops_context *context, const ops_cache_key *key, const char *name,
                         ops_kernel_emit emit, const void *user, ops_entry **entry)
{
    uint64_t hash[2];
    ops_pending_kernel taken[OPS_PENDING_KERNELS];
    *entry = ops_cache_find(context, key, hash);
    if (*entry) {
        return HAL_OK;
    }
    hal_kernel *kernel = NULL;
    hal_status status = cache_recall(context, hash, &kernel);
    if (status != HAL_OK || kernel) {
        return status != HAL_OK ? status : ops_cache_insert(context, hash, kernel, 0, entry);
    }
    if (context->compile_policy->keeps_missing) {
        hal_ir_kernel *ir;
        status = kernel_build(context->device, NULL, name, emit, user, &ir, NULL);
        if (status == HAL_OK) {
            ops_compile_policy_keep(context->compile_policy, hash, ir);
        }
        return status != HAL_OK ? status : ops_compile_policy_refuse(context->compile_policy);
    }
    const uint32_t count = ops_compile_policy_take(context->compile_policy, hash, taken);
    if (count > 0) {
        return cache_compile_pending(context, taken, count, entry);
    }
    const hal_kernel_recipe recipe = recipe_of(hash);
    const uint64_t begin = now_ns();
    status = kernel_build(context->device, &recipe, name, emit, user, NULL, &kernel);
    ops_compile_policy_add_time(context->compile_policy, now_ns() - begin);
    return status != HAL_OK ? status : ops_cache_insert(context, hash, kernel, 0, entry);
}
