/* Copies by several threads, see copy_team.h. */
#include "copy_team.h"

#include "platform.h"
#include "cancel.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* Bytes of a transfer for each member, the caller included: starting a helper takes as long as
 * copying 200 KiB, and it begins to copy some 50 us later. */
#define MEMBER_BYTES (UINT64_C(1) << 20)

#define BLOCK (UINT64_C(128) << 10)

/* More helpers gain little for less than LARGE bytes, and more than MAX_HELPERS for any. */
#define LARGE (UINT64_C(32) << 20)
enum { FEW_HELPERS = 3, MAX_HELPERS = HAL_COPY_TEAM_HELPERS };

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

static hal_team_copy *copy_at(hal_copy_team *team, uint32_t number)
{
    return &team->copies[number % HAL_COPY_TEAM_COPIES];
}

/* Takes a block of a copy and copies it; false without one. The caller holds the lock. */
static bool block_copy(hal_copy_team *team, hal_team_copy *copy)
{
    const uint64_t start = copy->taken, left = copy->bytes - start;
    const uint64_t length = left < BLOCK ? left : BLOCK;
    if (length == 0) {
        return false;
    }
    copy->taken += length;
    atomic_fetch_add(&copy->busy, 1);
    pthread_mutex_unlock(&team->lock);
    memcpy(copy->target + start, copy->source + start, length);
    pthread_mutex_lock(&team->lock);
    if (atomic_fetch_sub(&copy->busy, 1) == 1) {
        pthread_cond_signal(&team->done);
    }
    return true;
}

/* Returns when another copy is added, or the team ends. A short while without sleeping: the next
 * copy comes a few microseconds later, and waking up takes 50. The caller holds the lock. */
static void post_await(hal_copy_team *team, uint32_t seen)
{
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < SPINS && atomic_load(&team->posted) == seen; i++) {
        pause_thread();
    }
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->posted) == seen) {
        pthread_cond_wait(&team->added, &team->lock);
    }
}

static void *helper_run(void *user)
{
    hal_copy_team *team = user;
    pthread_mutex_lock(&team->lock);
    while (!team->ends) {
        const uint32_t posted = atomic_load(&team->posted);
        int copied = 0;
        for (uint32_t i = team->finished; i != posted && !copied; i++) {
            copied = block_copy(team, copy_at(team, i));
        }
        if (!copied) {
            post_await(team, posted);
        }
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* Starts helpers, which take no signals. */
static void helpers_start(hal_copy_team *team, uint32_t count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (team->helper_count < count &&
           pthread_create(&team->helpers[team->helper_count], NULL, helper_run, team) == 0) {
        team->helper_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void team_destroy(hal_copy_team *team)
{
    pthread_cond_destroy(&team->added);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
}

void hal_copy_team_begin(hal_copy_team *team, uint64_t bytes)
{
    uint64_t helpers = bytes < 2 * MEMBER_BYTES ? 0 : bytes / MEMBER_BYTES - 1;
    const uint64_t most = bytes < LARGE ? FEW_HELPERS : MAX_HELPERS;
    helpers = helpers < most ? helpers : most;
    const uint32_t others = helpers > 0 ? hal_processor_count() - 1 : 0;
    helpers = helpers < others ? helpers : others;
    memset(team, 0, sizeof *team);
    if (helpers > 0) {
        pthread_mutex_init(&team->lock, NULL);
        pthread_cond_init(&team->added, NULL);
        pthread_cond_init(&team->done, NULL);
        helpers_start(team, (uint32_t)helpers);
        if (team->helper_count == 0) {
            team_destroy(team);
        }
    }
}

void hal_copy_team_add(hal_copy_team *team, void *target, const void *source, uint64_t bytes)
{
    hal_team_copy *copy = copy_at(team, atomic_load(&team->posted));
    if (team->helper_count > 0) {
        pthread_mutex_lock(&team->lock);
    }
    copy->target = target;
    copy->source = source;
    copy->bytes = bytes;
    copy->taken = 0;
    atomic_fetch_add(&team->posted, 1);
    if (team->helper_count > 0) {
        pthread_cond_broadcast(&team->added);
        pthread_mutex_unlock(&team->lock);
    }
}

void hal_copy_team_finish(hal_copy_team *team)
{
    HAL_UNCANCELLED;
    hal_team_copy *copy = copy_at(team, team->finished);
    if (team->helper_count == 0) {
        memcpy(copy->target, copy->source, copy->bytes);
        team->finished++;
        return;
    }
    pthread_mutex_lock(&team->lock);
    while (block_copy(team, copy)) {
    }
    if (atomic_load(&copy->busy) > 0) {
        pthread_mutex_unlock(&team->lock);
        for (int i = 0; i < SPINS && atomic_load(&copy->busy) > 0; i++) {
            pause_thread();
        }
        pthread_mutex_lock(&team->lock);
    }
    while (atomic_load(&copy->busy) > 0) {
        pthread_cond_wait(&team->done, &team->lock);
    }
    team->finished++;
    pthread_mutex_unlock(&team->lock);
}

void hal_copy_team_copy(hal_copy_team *team, void *target, const void *source, uint64_t bytes)
{
    hal_copy_team_add(team, target, source, bytes);
    hal_copy_team_finish(team);
}

void hal_copy_team_end(hal_copy_team *team)
{
    HAL_UNCANCELLED;
    if (team->helper_count == 0) {
        return;
    }
    while (team->finished != atomic_load(&team->posted)) {
        hal_copy_team_finish(team);
    }
    pthread_mutex_lock(&team->lock);
    team->ends = 1;
    atomic_fetch_add(&team->posted, 1);
    pthread_cond_broadcast(&team->added);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->helper_count; i++) {
        pthread_join(team->helpers[i], NULL);
    }
    team_destroy(team);
}
