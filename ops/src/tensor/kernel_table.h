/* Kernels by their keys: a hash table with a bound. */
#ifndef OPS_SRC_TENSOR_KERNEL_TABLE_H
#define OPS_SRC_TENSOR_KERNEL_TABLE_H

#include <hal/hal.h>
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
    OPS_FAMILY_EXACT_IOTA,
    OPS_FAMILY_SCAN,
    OPS_FAMILY_SORT,
    OPS_FAMILY_MERGE,
    OPS_FAMILY_SCATTER,
    OPS_FAMILY_SEGMENTS,
    OPS_FAMILY_ATTENTION,
    OPS_FAMILY_SORT_DIGITS,
    OPS_FAMILY_SORT_COUNTS,
    OPS_FAMILY_SORT_KEYS,
    OPS_FAMILY_SORT_TOP,
    OPS_FAMILY_SORT_RADIX,
    OPS_FAMILY_SCATTER_IN_TURN,
    OPS_FAMILY_UNFOLD,
    OPS_FAMILY_DEPTHWISE,
    OPS_FAMILY_POOL,
    OPS_FAMILY_NATIVE_ATTENTION,
    OPS_FAMILY_LSTM,
    OPS_FAMILY_GRU,
    OPS_FAMILY_PLANES,
    OPS_FAMILY_DIRECT,
    OPS_FAMILY_EXACT_CLASSES,
    OPS_FAMILY_EXACT_PLANES,
    OPS_FAMILY_EXACT_FINISH,
    OPS_FAMILY_JOINED_COPIES,
    OPS_FAMILY_SCATTER_ATOMIC,
    OPS_FAMILY_SCATTER_FEW,
    OPS_FAMILY_POOL_GRADIENT,
    OPS_FAMILY_RESIZE,
    OPS_FAMILY_DEPTHWISE_WEIGHTS
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

/* Appends what is more than the key has room for. */
void ops_cache_key_append_beyond(ops_cache_key *key, const void *bytes, size_t size);

/* Appends bytes; of 0 bytes the address may be null. */
static inline void ops_cache_key_append(ops_cache_key *key, const void *bytes, size_t size)
{
    if (size > OPS_CACHE_KEY_BYTES - key->size) {
        ops_cache_key_append_beyond(key, bytes, size);
    } else if (size > 0) {
        memcpy(key->bytes + key->size, bytes, size);
        key->size += (uint32_t)size;
    }
}

static inline void ops_cache_key_begin(ops_cache_key *key, uint32_t family)
{
    key->size = 0;
    ops_cache_key_append(key, &family, sizeof family);
}

static inline void ops_cache_key_copy(const ops_cache_key *key, ops_cache_key *copy)
{
    memcpy(copy->bytes, key->bytes, key->size);
    copy->size = key->size;
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

typedef struct ops_kernel_table {
    ops_entry *entries; /* open addressing; a free slot has the key {0, 0} */
    uint32_t capacity;  /* a power of two */
    uint32_t count;
    uint64_t insertions; /* after which entries may have moved or gone */
    uint64_t natives;    /* insertions of the plugin's products, or that it has none */
    uint32_t hand;       /* of the clock: the next slot that eviction looks at */
} ops_kernel_table;

hal_status ops_kernel_table_init(ops_kernel_table *table);
void ops_kernel_table_deinit(ops_kernel_table *table);

/* The entry with the hash of a key, or the free one where it belongs. */
ops_entry *ops_kernel_table_slot(const ops_kernel_table *table, const uint64_t hash[2]);

/* As ops_cache_insert. */
hal_status ops_kernel_table_insert(ops_kernel_table *table, const uint64_t hash[2],
                                   hal_kernel *kernel, uint64_t workspace_bytes, ops_entry **entry);

#endif
