/* Copies by several threads, see copy_workers.h. */
#include "copy_workers.h"

#include "platform.h"
#include "cancel.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* Bytes of a transfer for each worker, the caller included: starting a helper takes as long as
 * copying 200 KiB, and it begins to copy some 50 us later. */
#define MEMBER_BYTES (UINT64_C(1) << 20)

#define BLOCK (UINT64_C(128) << 10)

/* More helpers gain little for less than LARGE bytes, and more than MAX_HELPERS for any. */
#define LARGE (UINT64_C(32) << 20)
enum { FEW_HELPERS = 3, MAX_HELPERS = HAL_COPY_WORKERS_HELPERS };

/* Pauses of the processor before a member sleeps, about 100 us. */
enum { SPINS = 2000 };

static void pause_thread(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static hal_worker_copy *copy_at(hal_copy_workers *workers, uint32_t number)
{
    return &workers->copies[number % HAL_COPY_WORKERS_COPIES];
}

/* Takes a block of a copy and copies it; false without one. The caller holds the lock. */
static bool block_copy(hal_copy_workers *workers, hal_worker_copy *copy)
{
    const uint64_t start = copy->taken, left = copy->bytes - start;
    const uint64_t length = left < BLOCK ? left : BLOCK;
    if (length == 0) {
        return false;
    }
    copy->taken += length;
    atomic_fetch_add(&copy->busy, 1);
    pthread_mutex_unlock(&workers->lock);
    memcpy(copy->target + start, copy->source + start, length);
    pthread_mutex_lock(&workers->lock);
    if (atomic_fetch_sub(&copy->busy, 1) == 1) {
        pthread_cond_signal(&workers->done);
    }
    return true;
}

/* Returns when another copy is added, or the workers end. A short while without sleeping: the next
 * copy comes a few microseconds later, and waking up takes 50. The caller holds the lock. */
static void post_await(hal_copy_workers *workers, uint32_t seen)
{
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < SPINS && atomic_load(&workers->posted) == seen; i++) {
        pause_thread();
    }
    pthread_mutex_lock(&workers->lock);
    while (atomic_load(&workers->posted) == seen) {
        pthread_cond_wait(&workers->added, &workers->lock);
    }
}

static void *helper_run(void *user)
{
    hal_copy_workers *workers = user;
    pthread_mutex_lock(&workers->lock);
    while (!workers->ends) {
        const uint32_t posted = atomic_load(&workers->posted);
        bool copied = false;
        for (uint32_t i = workers->finished; i != posted && !copied; i++) {
            copied = block_copy(workers, copy_at(workers, i));
        }
        if (!copied) {
            post_await(workers, posted);
        }
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Starts helpers, which take no signals. */
static void helpers_start(hal_copy_workers *workers, uint32_t count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (workers->helper_count < count && pthread_create(&workers->helpers[workers->helper_count],
                                                           NULL, helper_run, workers) == 0) {
        workers->helper_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void workers_destroy(hal_copy_workers *workers)
{
    pthread_cond_destroy(&workers->added);
    pthread_cond_destroy(&workers->done);
    pthread_mutex_destroy(&workers->lock);
}

void hal_copy_workers_begin(hal_copy_workers *workers, uint64_t bytes)
{
    uint64_t helpers = bytes < 2 * MEMBER_BYTES ? 0 : bytes / MEMBER_BYTES - 1;
    const uint64_t most = bytes < LARGE ? FEW_HELPERS : MAX_HELPERS;
    helpers = helpers < most ? helpers : most;
    const uint32_t others = helpers > 0 ? hal_processor_count() - 1 : 0;
    helpers = helpers < others ? helpers : others;
    memset(workers, 0, sizeof *workers);
    if (helpers > 0) {
        pthread_mutex_init(&workers->lock, NULL);
        pthread_cond_init(&workers->added, NULL);
        pthread_cond_init(&workers->done, NULL);
        helpers_start(workers, (uint32_t)helpers);
        if (workers->helper_count == 0) {
            workers_destroy(workers);
        }
    }
}

void hal_copy_workers_add(hal_copy_workers *workers, void *target, const void *source,
                          uint64_t bytes)
{
    hal_worker_copy *copy = copy_at(workers, atomic_load(&workers->posted));
    if (workers->helper_count > 0) {
        pthread_mutex_lock(&workers->lock);
    }
    copy->target = target;
    copy->source = source;
    copy->bytes = bytes;
    copy->taken = 0;
    atomic_fetch_add(&workers->posted, 1);
    if (workers->helper_count > 0) {
        pthread_cond_broadcast(&workers->added);
        pthread_mutex_unlock(&workers->lock);
    }
}

/* Copies blocks with the helpers, then waits for theirs: the copy is finished. */
static void copy_await(hal_copy_workers *workers, hal_worker_copy *copy)
{
    HAL_UNCANCELLED;
    pthread_mutex_lock(&workers->lock);
    while (block_copy(workers, copy)) {
    }
    if (atomic_load(&copy->busy) > 0) {
        pthread_mutex_unlock(&workers->lock);
        for (int i = 0; i < SPINS && atomic_load(&copy->busy) > 0; i++) {
            pause_thread();
        }
        pthread_mutex_lock(&workers->lock);
    }
    while (atomic_load(&copy->busy) > 0) {
        pthread_cond_wait(&workers->done, &workers->lock);
    }
    workers->finished++;
    pthread_mutex_unlock(&workers->lock);
}

/* Switching cancellation off takes as long as copying 4 KiB, so only what waits does it. */
void hal_copy_workers_finish(hal_copy_workers *workers)
{
    hal_worker_copy *copy = copy_at(workers, workers->finished);
    if (workers->helper_count > 0) {
        copy_await(workers, copy);
    } else {
        memcpy(copy->target, copy->source, copy->bytes);
        workers->finished++;
    }
}

void hal_copy_workers_copy(hal_copy_workers *workers, void *target, const void *source,
                           uint64_t bytes)
{
    hal_copy_workers_add(workers, target, source, bytes);
    hal_copy_workers_finish(workers);
}

static void helpers_end(hal_copy_workers *workers)
{
    HAL_UNCANCELLED;
    while (workers->finished != atomic_load(&workers->posted)) {
        hal_copy_workers_finish(workers);
    }
    pthread_mutex_lock(&workers->lock);
    workers->ends = true;
    atomic_fetch_add(&workers->posted, 1);
    pthread_cond_broadcast(&workers->added);
    pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0; i < workers->helper_count; i++) {
        pthread_join(workers->helpers[i], NULL);
    }
    workers_destroy(workers);
}

void hal_copy_workers_end(hal_copy_workers *workers)
{
    if (workers->helper_count > 0) {
        helpers_end(workers);
    }
}
