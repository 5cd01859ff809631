/* Kernels by their keys, see kernel_table.h. */
#include "kernel_table.h"

#include <stdlib.h>
#include <xxhash.h>

/* The entry with the key, or the free one where it belongs. */
static ops_entry *table_slot(ops_entry *entries, uint32_t capacity, const uint64_t key[2])
{
    uint32_t i = (uint32_t)key[0] & (capacity - 1);
    while (entries[i].key[1] && (entries[i].key[0] != key[0] || entries[i].key[1] != key[1])) {
        i = (i + 1) & (capacity - 1);
    }
    return &entries[i];
}

static hal_status table_grow(ops_kernel_table *table)
{
    uint32_t capacity = table->capacity ? 2 * table->capacity : 64;
    ops_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "The host has no %zu bytes for %u kernels of an op context",
                              capacity * sizeof *entries, capacity);
    }
    for (uint32_t i = 0; i < table->capacity; i++) {
        const ops_entry *entry = &table->entries[i];
        if (entry->key[1]) {
            *table_slot(entries, capacity, entry->key) = *entry;
        }
    }
    free(table->entries);
    table->entries = entries;
    table->capacity = capacity;
    table->hand = 0;
    return HAL_OK;
}

/* Frees a slot and moves up entries that would no longer be found past it. */
static void table_remove(ops_kernel_table *table, uint32_t slot)
{
    const uint32_t mask = table->capacity - 1;
    hal_kernel_release(table->entries[slot].kernel);
    for (uint32_t next = (slot + 1) & mask; table->entries[next].key[1]; next = (next + 1) & mask) {
        const uint32_t home = (uint32_t)table->entries[next].key[0] & mask;
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            table->entries[slot] = table->entries[next];
            slot = next;
        }
    }
    memset(&table->entries[slot], 0, sizeof table->entries[slot]);
    table->count--;
}

/* Second chance: an entry that was used since the hand passed it is passed once more. */
static void table_evict(ops_kernel_table *table)
{
    for (;;) {
        const uint32_t slot = table->hand;
        ops_entry *entry = &table->entries[slot];
        table->hand = (slot + 1) & (table->capacity - 1);
        if (entry->key[1] && !entry->was_used) {
            table_remove(table, slot);
            return;
        }
        entry->was_used = 0;
    }
}

hal_status ops_kernel_table_init(ops_kernel_table *table)
{
    *table = (ops_kernel_table){.entries = NULL};
    return table_grow(table);
}

void ops_kernel_table_deinit(ops_kernel_table *table)
{
    for (uint32_t i = 0; i < table->capacity; i++) {
        hal_kernel_release(table->entries[i].kernel);
    }
    free(table->entries);
    table->entries = NULL;
    table->capacity = table->count = 0;
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

void ops_cache_key_append_beyond(ops_cache_key *key, const void *bytes, size_t size)
{
    for (const uint8_t *from = bytes; size > 0;) {
        ops_cache_key_fold(key);
        const uint32_t room = OPS_CACHE_KEY_BYTES - key->size;
        const uint32_t part = size < room ? (uint32_t)size : room;
        memcpy(key->bytes + key->size, from, part);
        key->size += part;
        from += part;
        size -= part;
    }
}

ops_entry *ops_kernel_table_slot(const ops_kernel_table *table, const uint64_t hash[2])
{
    return table_slot(table->entries, table->capacity, hash);
}

hal_status ops_kernel_table_insert(ops_kernel_table *table, const uint64_t hash[2],
                                   hal_kernel *kernel, uint64_t workspace_bytes, ops_entry **entry)
{
    table->insertions++;
    if (table->count == OPS_CACHE_KERNELS) {
        table_evict(table);
    }
    if (2 * (table->count + 1) > table->capacity) {
        hal_status status = table_grow(table);
        if (status != HAL_OK) {
            hal_kernel_release(kernel);
            return status;
        }
    }
    *entry = table_slot(table->entries, table->capacity, hash);
    **entry = (ops_entry){{hash[0], hash[1]}, kernel, workspace_bytes, 0};
    table->count++;
    return HAL_OK;
}
