/* The kernel cache of a device. Its lock guards the tables and lists: kernels are compiled, and
 * plugins asked about their work, without it. */
#include "kernel_cache.h"

#include "fingerprint.h"

#include "base/cancel.h"
#include "base/clock.h"
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
    hal_jobs jobs; /* kernels that are compiled in the background */
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

/* Passes the caller's reference to a kernel on, or releases it after an error. Returns `status`. */
static hal_status kernel_give(hal_status status, hal_kernel *kernel, hal_kernel **result)
{
    if (status == HAL_OK) {
        *result = kernel;
    } else {
        hal_kernel_unref(kernel);
    }
    return status;
}

/* Compiles a kernel and tells the threads that wait for it. */
static hal_status kernel_complete(hal_kernel_cache *cache, hal_kernel *kernel,
                                  const hal_kernel_source *source)
{
    const uint64_t begin = hal_clock_ns();
    const hal_status status = hal_kernel_compile(kernel, source);
    char *message = status == HAL_OK ? NULL : strdup(hal_status_message());
    pthread_mutex_lock(&cache->lock);
    kernel->is_complete = true;
    kernel->status = status;
    free(kernel->message);
    kernel->message = message;
    kernel->compile_ns = hal_clock_ns() - begin + 1;
    if (status != HAL_OK) {
        cache_remove(cache, kernel);
    }
    pthread_cond_broadcast(&cache->completed);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

/* Stores what a kernel that is there was built from. */
static void ahead_store(const hal_kernel_ahead *ahead, const hal_kernel *kernel)
{
    if (ahead->has_fingerprint) {
        hal_fingerprint_store(kernel->device, &ahead->fingerprint, ahead->ir, kernel->key);
    }
}

/* Of a kernel that is compiled ahead. The kernel exists until the job has ended. */
static void ahead_run(hal_job *job)
{
    hal_kernel_ahead *ahead = (hal_kernel_ahead *)job; /* its first member */
    hal_kernel *kernel = ahead->kernel;
    const hal_kernel_source source = hal_kernel_ahead_source(ahead);
    if (kernel_complete(kernel->device->kernels, kernel, &source) == HAL_OK) {
        ahead_store(ahead, kernel);
        hal_ir_kernel_destroy(ahead->ir);
        ahead->ir = NULL;
    }
}

static void kernel_destroy(hal_kernel *kernel)
{
    hal_kernel_ahead *ahead = kernel->ahead;
    hal_kernel_free(kernel);
    hal_kernel_ahead_destroy(ahead);
}

/* Whether no thread compiles the kernel and none will. */
static bool kernel_is_at_rest(hal_kernel_cache *cache, hal_kernel *kernel)
{
    return !kernel->ahead || hal_jobs_cancel(&cache->jobs, &kernel->ahead->job);
}

hal_kernel_cache *hal_kernel_cache_create(hal_device *device)
{
    hal_kernel_cache *cache = calloc(1, sizeof *cache);
    if (cache) {
        cache->device = device;
        pthread_mutex_init(&cache->lock, NULL);
        pthread_cond_init(&cache->completed, NULL);
        hal_jobs_init(&cache->jobs);
    }
    return cache;
}

void hal_kernel_cache_destroy(hal_kernel_cache *cache)
{
    if (!cache) {
        return;
    }
    hal_jobs_deinit(&cache->jobs);
    while (cache->retired) {
        hal_kernel *kernel = cache->retired;
        cache->retired = kernel->next;
        kernel_destroy(kernel);
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

/* Finds the kernel of a key, or makes one that is not compiled yet, and sets *is_new. `ahead`:
 * null, or the kernel's if it is new. Null, with a message, without host memory. */
static hal_kernel *kernel_find_or_make(hal_kernel_cache *cache, const uint64_t key[2],
                                       const hal_kernel_source *source, hal_kernel_ahead *ahead,
                                       bool *is_new)
{
    pthread_mutex_lock(&cache->lock);
    hal_kernel *kernel =
        key ? hal_kernel_ref(hal_map_find(&cache->by_key, key[0], has_key, key)) : NULL;
    *is_new = !kernel;
    if (!kernel && (kernel = hal_kernel_allocate(cache->device, source)) != NULL) {
        kernel->ahead = ahead;
        if (ahead) {
            ahead->kernel = kernel;
            ahead->job.run = ahead_run;
        }
        if (key) {
            /* Without memory for the entry the kernel is not shared. */
            memcpy(kernel->key, key, sizeof kernel->key);
            hal_map_add(&cache->by_key, key[0], kernel);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return kernel;
}

hal_status hal_kernel_cache_get(hal_kernel_cache *cache, const uint64_t key[2],
                                const hal_kernel_source *source, hal_kernel **kernel)
{
    bool is_new;
    hal_kernel *found = kernel_find_or_make(cache, key, source, NULL, &is_new);
    if (!found) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status =
        is_new ? kernel_complete(cache, found, source) : hal_kernel_cache_await(found);
    return kernel_give(status, found, kernel);
}

hal_status hal_kernel_cache_get_ahead(hal_kernel_cache *cache, const uint64_t key[2],
                                      hal_kernel_ahead *ahead, hal_kernel **kernel)
{
    bool is_new;
    const hal_kernel_source source = hal_kernel_ahead_source(ahead);
    *kernel = kernel_find_or_make(cache, key, &source, ahead, &is_new);
    if (*kernel && is_new) {
        hal_jobs_add(&cache->jobs, &ahead->job);
    } else {
        if (*kernel) { /* built from something else before */
            ahead_store(ahead, *kernel);
        }
        hal_kernel_ahead_destroy(ahead);
    }
    return *kernel ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

uint32_t hal_kernel_cache_get_threads(const hal_kernel_cache *cache)
{
    return hal_jobs_get_most(&cache->jobs);
}

hal_status hal_kernel_cache_await(hal_kernel *kernel)
{
    HAL_UNCANCELLED;
    hal_kernel_cache *cache = kernel->device->kernels;
    if (kernel->ahead) {
        hal_jobs_finish(&cache->jobs, &kernel->ahead->job);
    }
    pthread_mutex_lock(&cache->lock);
    while (!kernel->is_complete) {
        pthread_cond_wait(&cache->completed, &cache->lock);
    }
    const hal_status status =
        kernel->status == HAL_OK
            ? HAL_OK
            : hal_fail(kernel->status, "%s", kernel->message ? kernel->message : "no host memory");
    pthread_mutex_unlock(&cache->lock);
    return status;
}

void hal_kernel_cache_help(hal_kernel *kernel)
{
    HAL_UNCANCELLED;
    if (kernel->ahead) {
        hal_jobs_help(&kernel->device->kernels->jobs, &kernel->ahead->job);
    }
}

void hal_kernel_cache_join(hal_kernel_cache *cache)
{
    hal_jobs_join(&cache->jobs);
}

uint64_t hal_kernel_cache_compile_ns(const hal_kernel *kernel)
{
    return kernel->compile_ns;
}

hal_status hal_kernel_cache_note_pending(hal_kernel *kernel, hal_recording *recording,
                                         hal_plugin_kernel **handle)
{
    hal_kernel_cache *cache = kernel->device->kernels;
    pthread_mutex_lock(&cache->lock);
    const bool is_complete = kernel->is_complete;
    const bool has_failed = is_complete && kernel->status != HAL_OK && kernel->ahead;
    kernel->is_complete = is_complete && !has_failed; /* one thread compiles it again */
    if (has_failed) {
        kernel->compile_ns = 0;
    }
    pthread_mutex_unlock(&cache->lock);
    if (!is_complete) {
        return hal_recording_add_pending(recording, kernel);
    }
    if (has_failed) {
        hal_jobs_finish(&cache->jobs, &kernel->ahead->job); /* the thread that failed leaves it */
        hal_jobs_add(&cache->jobs, &kernel->ahead->job);
    }
    HAL_TRY(hal_kernel_cache_await(kernel));
    *handle = atomic_load_explicit(&kernel->handle, memory_order_acquire);
    return HAL_OK;
}

/* This thread compiles what no other has begun, then waits for the others. */
hal_status hal_kernel_cache_resolve(hal_kernel_cache *cache, hal_recording *recording)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < recording->pending_count; i++) {
        hal_kernel_cache_help(recording->pending[i].kernel);
    }
    for (uint32_t i = 0; i < recording->pending_count && status == HAL_OK; i++) {
        hal_kernel *kernel = recording->pending[i].kernel;
        status = hal_kernel_cache_await(kernel);
        recording->commands[recording->pending[i].command].kernel = atomic_load(&kernel->handle);
    }
    if (recording->pending_count > 0) {
        hal_jobs_join(&cache->jobs);
    }
    recording->pending_count = 0;
    return status;
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
        if (hal_fence_set_pending(&kernel->uses, true) == 0 && kernel_is_at_rest(cache, kernel)) {
            atomic_fetch_sub(&cache->retired_count, 1);
            kernel_destroy(kernel);
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
