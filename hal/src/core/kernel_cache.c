/* The kernel cache of a device. Its lock guards the tables and lists: kernels are compiled, and
 * plugins asked about their work, without it. */
#include "kernel_cache.h"

#include "base/cancel.h"
#include "base/map.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

struct hal_kernel_cache {
    hal_device *device;
    pthread_mutex_t lock;
    pthread_cond_t completed; /* a kernel has become complete */
    hal_map by_key;
    hal_map by_source;   /* the same kernels; spares legalising known IR again */
    hal_kernel *retired; /* released while work that uses them was in flight */
    _Atomic uint32_t retired_count;
};

static bool has_key(const void *kernel, const void *key)
{
    return memcmp(((const hal_kernel *)kernel)->key, key, sizeof(uint64_t[2])) == 0;
}

static bool has_source(const void *kernel, const void *source)
{
    return memcmp(((const hal_kernel *)kernel)->source, source, sizeof(uint64_t[2])) == 0;
}

/* The caller holds the lock. */
static void cache_remove(hal_kernel_cache *cache, hal_kernel *kernel)
{
    hal_map_remove(&cache->by_key, kernel->key[0], kernel);
    hal_map_remove(&cache->by_source, kernel->source[0], kernel);
}

/* Takes the caller's reference to the kernel. */
static hal_status kernel_wait(hal_kernel_cache *cache, hal_kernel *kernel, hal_kernel **result)
{
    HAL_UNCANCELLED;
    pthread_mutex_lock(&cache->lock);
    while (!kernel->is_complete) {
        pthread_cond_wait(&cache->completed, &cache->lock);
    }
    pthread_mutex_unlock(&cache->lock);
    if (kernel->status == HAL_OK) {
        *result = kernel;
        return HAL_OK;
    }
    const hal_status status =
        hal_fail(kernel->status, "%s", kernel->message ? kernel->message : "no host memory");
    hal_kernel_unref(kernel);
    return status;
}

/* Takes the caller's reference to the kernel. */
static hal_status kernel_complete(hal_kernel_cache *cache, hal_kernel *kernel,
                                  const hal_kernel_source *source, hal_kernel **result)
{
    const hal_status status = hal_kernel_compile(kernel, source);
    char *message = status == HAL_OK ? NULL : strdup(hal_status_message());
    pthread_mutex_lock(&cache->lock);
    kernel->is_complete = true;
    kernel->status = status;
    kernel->message = message;
    if (status != HAL_OK) {
        cache_remove(cache, kernel);
    }
    pthread_cond_broadcast(&cache->completed);
    pthread_mutex_unlock(&cache->lock);
    if (status == HAL_OK) {
        *result = kernel;
    } else {
        hal_kernel_unref(kernel);
    }
    return status;
}

hal_kernel_cache *hal_kernel_cache_create(hal_device *device)
{
    hal_kernel_cache *cache = calloc(1, sizeof *cache);
    if (cache) {
        cache->device = device;
        pthread_mutex_init(&cache->lock, NULL);
        pthread_cond_init(&cache->completed, NULL);
    }
    return cache;
}

void hal_kernel_cache_destroy(hal_kernel_cache *cache)
{
    if (!cache) {
        return;
    }
    while (cache->retired) {
        hal_kernel *kernel = cache->retired;
        cache->retired = kernel->next;
        hal_kernel_free(kernel);
    }
    hal_map_free(&cache->by_key);
    hal_map_free(&cache->by_source);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->completed);
    free(cache);
}

hal_kernel *hal_kernel_cache_find_source(hal_kernel_cache *cache, const uint64_t source[2])
{
    pthread_mutex_lock(&cache->lock);
    hal_kernel *kernel =
        hal_kernel_ref(hal_map_find(&cache->by_source, source[0], has_source, source));
    pthread_mutex_unlock(&cache->lock);
    return kernel;
}

void hal_kernel_cache_add_source(hal_kernel_cache *cache, hal_kernel *kernel,
                                 const uint64_t source[2])
{
    static const uint64_t unknown[2];
    pthread_mutex_lock(&cache->lock);
    if (has_source(kernel, unknown) && hal_map_add(&cache->by_source, source[0], kernel)) {
        memcpy(kernel->source, source, sizeof kernel->source);
    }
    pthread_mutex_unlock(&cache->lock);
}

hal_status hal_kernel_cache_get(hal_kernel_cache *cache, const uint64_t key[2],
                                const hal_kernel_source *source, hal_kernel **kernel)
{
    pthread_mutex_lock(&cache->lock);
    hal_kernel *found = hal_kernel_ref(hal_map_find(&cache->by_key, key[0], has_key, key));
    hal_kernel *made = found ? NULL : hal_kernel_allocate(cache->device, source);
    if (made) {
        /* Without memory for the entry the kernel is not shared. */
        memcpy(made->key, key, sizeof made->key);
        hal_map_add(&cache->by_key, key[0], made);
    }
    pthread_mutex_unlock(&cache->lock);
    if (found) {
        return kernel_wait(cache, found, kernel);
    }
    return made ? kernel_complete(cache, made, source, kernel) : HAL_ERROR_OUT_OF_MEMORY;
}

void hal_kernel_cache_sweep(hal_kernel_cache *cache)
{
    if (atomic_load_explicit(&cache->retired_count, memory_order_relaxed) == 0) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    hal_kernel *list = cache->retired;
    cache->retired = NULL;
    pthread_mutex_unlock(&cache->lock);
    while (list) {
        hal_kernel *kernel = list;
        list = kernel->next;
        if (hal_fence_set_pending(&kernel->uses, true) == 0) {
            atomic_fetch_sub(&cache->retired_count, 1);
            hal_kernel_free(kernel);
        } else {
            pthread_mutex_lock(&cache->lock);
            kernel->next = cache->retired;
            cache->retired = kernel;
            pthread_mutex_unlock(&cache->lock);
        }
    }
}

hal_kernel *hal_kernel_ref(hal_kernel *kernel)
{
    if (kernel) {
        atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
    }
    return kernel;
}

void hal_kernel_unref(hal_kernel *kernel)
{
    if (!kernel || hal_device_is_after_fork(kernel->device)) {
        return;
    }
    uint32_t count = atomic_load_explicit(&kernel->references, memory_order_relaxed);
    while (count > 1) {
        if (atomic_compare_exchange_weak_explicit(&kernel->references, &count, count - 1,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            return;
        }
    }
    hal_device *device = kernel->device;
    hal_kernel_cache *cache = device->kernels;
    pthread_mutex_lock(&cache->lock);
    const bool is_last = atomic_fetch_sub(&kernel->references, 1) == 1;
    if (is_last) {
        cache_remove(cache, kernel);
        kernel->next = cache->retired;
        cache->retired = kernel;
        atomic_fetch_add(&cache->retired_count, 1);
    }
    pthread_mutex_unlock(&cache->lock);
    if (is_last) {
        hal_kernel_cache_sweep(cache);
        hal_device_unref(device);
    }
}
