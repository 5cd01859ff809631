/* The kernels of a device: one object per hash, shared by reference, destroyed when no work uses it
 * any more. */
#ifndef HAL_SRC_CORE_KERNEL_CACHE_H
#define HAL_SRC_CORE_KERNEL_CACHE_H

#include "kernel_ahead.h"

typedef struct hal_kernel_cache hal_kernel_cache;

/* Returns an empty cache, null without host memory. */
hal_kernel_cache *hal_kernel_cache_create(hal_device *device);

/* Destroys the kernels that are left; no work may use them. Null is allowed. */
void hal_kernel_cache_destroy(hal_kernel_cache *cache);

/* Returns a new reference to the kernel that was created from IR of this hash, else null.
 * Threads: any. */
hal_kernel *hal_kernel_cache_find_source(hal_kernel_cache *cache, const uint64_t source[2]);

/* Lets hal_kernel_cache_find_source find the kernel by the hash of its IR. Threads: any. */
void hal_kernel_cache_add_source(hal_kernel_cache *cache, hal_kernel *kernel,
                                 const uint64_t source[2]);

/* Returns a reference to the kernel of this key, which is compiled if there is none; without a key
 * the kernel is not shared. A thread that
 * requests a kernel while another one compiles it waits. A failure is not cached. Threads: any.
 * Errors: OUT_OF_MEMORY, those of the plugin. */
hal_status hal_kernel_cache_get(hal_kernel_cache *cache, const uint64_t key[2],
                                const hal_kernel_source *source, hal_kernel **kernel);

/* The same without a wait: the kernel is compiled by a thread in the background, or the first one
 * that waits for it, and its error comes from hal_kernel_cache_await. `key`: null for a kernel that
 * is not shared. Takes `ahead`. Threads: any. Errors: OUT_OF_MEMORY. */
hal_status hal_kernel_cache_get_ahead(hal_kernel_cache *cache, const uint64_t key[2],
                                      hal_kernel_ahead *ahead, hal_kernel **kernel);

/* The most threads that compile in the background. */
uint32_t hal_kernel_cache_get_threads(const hal_kernel_cache *cache);

/* Returns when the kernel is compiled. Threads: any. Errors: those of its compilation. */
hal_status hal_kernel_cache_await(hal_kernel *kernel);

/* Compiles the kernel where no thread has begun it. Threads: any. */
void hal_kernel_cache_help(hal_kernel *kernel);

/* Joins threads that found no more kernels to compile. Threads: any. */
void hal_kernel_cache_join(hal_kernel_cache *cache);

/* Nanoseconds that the compilation took, at least 1; 0 while it has not ended. Threads: any. */
uint64_t hal_kernel_cache_compile_ns(const hal_kernel *kernel);

/* For a command whose kernel has no handle: lets the batch wait for it, or returns the handle if
 * there is one by now. A kernel that could not be compiled is compiled once more.
 * Errors: OUT_OF_MEMORY, those of that compilation. */
hal_status hal_kernel_cache_note_pending(hal_kernel *kernel, hal_recording *recording,
                                         hal_plugin_kernel **handle);

/* Waits for the kernels of a batch and puts their handles into its commands.
 * Errors: those of the compilations. */
hal_status hal_kernel_cache_resolve(hal_kernel_cache *cache, hal_recording *recording);

/* Destroys released kernels whose work is complete. Threads: any. */
void hal_kernel_cache_sweep(hal_kernel_cache *cache);

/* Internal references: hal_kernel_retain and hal_kernel_release without the hooks, which count the
 * program's references. Threads: any. */
hal_kernel *hal_kernel_ref(hal_kernel *kernel);
void hal_kernel_unref(hal_kernel *kernel);

#endif
