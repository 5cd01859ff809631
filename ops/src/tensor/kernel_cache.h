/* The kernels of a context, found by all that decides what they look like. Used by every family. */
#ifndef OPS_SRC_TENSOR_KERNEL_CACHE_H
#define OPS_SRC_TENSOR_KERNEL_CACHE_H

#include <ops/tensor.h>

/* Which family a key belongs to: the first word of every key. */
enum {
    OPS_FAMILY_POINTWISE = 1,
    OPS_FAMILY_REDUCE,
    OPS_FAMILY_SOFTMAX,
    OPS_FAMILY_GEMM,
    OPS_FAMILY_NATIVE_GEMM,
    OPS_FAMILY_GATHER,
    OPS_FAMILY_ONE_HOT,
    OPS_FAMILY_IOTA,
    OPS_FAMILY_COPY,
    OPS_FAMILY_FILL,
    OPS_FAMILY_RANDOM
};

/* All that decides what a kernel looks like; equal keys share a kernel. A key has no limit: full
 * words are replaced by their hash, and so all that was appended counts. */
#define OPS_CACHE_KEY_WORDS 256u
typedef struct ops_cache_key {
    uint32_t count;
    uint64_t words[OPS_CACHE_KEY_WORDS];
} ops_cache_key;

/* Replaces the words by two of their hash. */
void ops_cache_key_fold(ops_cache_key *key);

static inline void ops_cache_key_append(ops_cache_key *key, uint64_t word)
{
    if (key->count == OPS_CACHE_KEY_WORDS) {
        ops_cache_key_fold(key);
    }
    key->words[key->count++] = word;
}

/* A kernel that was made for a key. A null kernel is a product that the plugin declined. */
typedef struct ops_entry {
    uint64_t key[2];
    hal_kernel *kernel;
    uint64_t workspace_bytes;
    uint32_t was_used; /* since it was inserted, or the hand last passed it */
} ops_entry;

/* Kernels that a context keeps. For one more, the first entry is evicted that was not used since
 * the clock's hand last passed it, so that a program of ever new shapes does not grow. */
#define OPS_CACHE_KERNELS 4096u

typedef struct ops_kernel_cache {
    ops_entry *entries; /* open addressing; a free slot has the key {0, 0} */
    uint32_t capacity;  /* a power of two */
    uint32_t count;
    uint32_t hand; /* of the clock: the next slot that eviction looks at */
} ops_kernel_cache;

hal_status ops_kernel_cache_init(ops_kernel_cache *cache);
void ops_kernel_cache_deinit(ops_kernel_cache *cache);

/* The entry of a key, or null yet. `hash` gets the key's hash. */
ops_entry *ops_cache_find(ops_context *context, const ops_cache_key *key, uint64_t hash[2]);

/* Keeps a kernel, whose reference passes to the cache in any case.
 * Errors: OUT_OF_MEMORY. The entry is valid until the next insertion. */
hal_status ops_cache_insert(ops_context *context, const uint64_t hash[2], hal_kernel *kernel,
                            uint64_t workspace_bytes, ops_entry **entry);

/* Finishes a builder, destroys it, makes the kernel and keeps it under the key's hash. */
hal_status ops_cache_build(ops_context *context, const uint64_t hash[2], hal_ir_builder *builder,
                           ops_entry **entry);

#endif
