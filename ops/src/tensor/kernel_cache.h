/* The kernels of a context, found by all that decides what they look like. */
#ifndef OPS_SRC_TENSOR_KERNEL_CACHE_H
#define OPS_SRC_TENSOR_KERNEL_CACHE_H

#include <ops/tensor.h>

#include <string.h>

/* Which family a key belongs to: the first word of every key. */
enum {
    OPS_FAMILY_POINTWISE = 1,
    OPS_FAMILY_ROWS,
    OPS_FAMILY_GEMM,
    OPS_FAMILY_NATIVE_GEMM,
    OPS_FAMILY_GATHER,
    OPS_FAMILY_ONE_HOT,
    OPS_FAMILY_IOTA,
    OPS_FAMILY_COPY,
    OPS_FAMILY_FILL,
    OPS_FAMILY_RANDOM,
    OPS_FAMILY_BILINEAR,
    OPS_FAMILY_EXACT_IOTA
};

/* Everything that the text of a kernel depends on, as bytes; equal keys share a kernel. A key
 * begins with its family and appends structures: the deciding fields of plans. Such a structure is
 * zero-initialised and has no padding (OPS_KEY_STRUCTURES_BEGIN), and a count precedes an array. A
 * key has no limit: full bytes are replaced by their hash. */
#define OPS_CACHE_KEY_BYTES 2048u
typedef struct ops_cache_key {
    uint32_t size;
    uint8_t bytes[OPS_CACHE_KEY_BYTES];
} ops_cache_key;

/* Between these two lines, padding in a structure is a compile error. */
#define OPS_KEY_STRUCTURES_BEGIN \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wpadded\"")
#define OPS_KEY_STRUCTURES_END _Pragma("GCC diagnostic pop")

/* Replaces the bytes of a key by their hash. */
void ops_cache_key_fold(ops_cache_key *key);

/* Appends at most OPS_CACHE_KEY_BYTES - 16 bytes. */
static inline void ops_cache_key_append(ops_cache_key *key, const void *bytes, size_t size)
{
    if (key->size + size > OPS_CACHE_KEY_BYTES) {
        ops_cache_key_fold(key);
    }
    memcpy(key->bytes + key->size, bytes, size);
    key->size += (uint32_t)size;
}

static inline void ops_cache_key_begin(ops_cache_key *key, uint32_t family)
{
    key->size = 0;
    ops_cache_key_append(key, &family, sizeof family);
}

void ops_cache_key_hash(const ops_cache_key *key, uint64_t hash[2]);

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
    uint64_t insertions; /* after which entries may have moved or gone */
    uint32_t hand;       /* of the clock: the next slot that eviction looks at */
} ops_kernel_cache;

hal_status ops_kernel_cache_init(ops_kernel_cache *cache);
void ops_kernel_cache_deinit(ops_kernel_cache *cache);

/* The entry of a key, or null. `hash` receives the key's hash. */
ops_entry *ops_cache_find(ops_context *context, const ops_cache_key *key, uint64_t hash[2]);

/* Inserts a kernel; its reference passes to the cache, also on failure. The entry is valid until
 * the next insertion. Errors: OUT_OF_MEMORY. */
hal_status ops_cache_insert(ops_context *context, const uint64_t hash[2], hal_kernel *kernel,
                            uint64_t workspace_bytes, ops_entry **entry);

/* Adds the kernel's bindings, scalars and operations to a builder. */
typedef void (*ops_kernel_emit)(hal_ir_builder *builder, const void *user);

/* Finds the kernel of a key; builds it with `emit`, compiles and inserts it where there is none.
 * Errors: those of the builder, the compiler and ops_cache_insert; NOT_FOUND, without a
 * message, where the compile policy keeps missing kernels. */
hal_status ops_cache_get(ops_context *context, const ops_cache_key *key, const char *name,
                         ops_kernel_emit emit, const void *user, ops_entry **entry);

#endif
