/* The kernels of a context, found by all that decides what they look like. */
#ifndef OPS_SRC_TENSOR_KERNEL_CACHE_H
#define OPS_SRC_TENSOR_KERNEL_CACHE_H

#include "context.h"

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

/* The same for the kernel of one shape. *entry is null where the compile policy has the general
 * kernel of the class compute this call, which moves `bytes`; the caller then plans that one. */
hal_status ops_cache_get_special(ops_context *context, const ops_cache_key *key, const char *name,
                                 ops_kernel_emit emit, const void *user, uint64_t bytes,
                                 ops_entry **entry);

#endif
