/* The ranks of a local communicator. */
#include "harness/ranks.h"

#include <stdio.h>

enum { DEFAULT_RANKS = 2 };

static void *member_run(void *argument)
{
    bench_rank *self = argument;
    bench_ranks *all = self->all;
    uint64_t seen = 0;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        while (all->turn == seen && !all->ended) {
            pthread_cond_wait(&all->changed, &all->lock);
        }
        if (all->ended) {
            break;
        }
        seen = all->turn;
        pthread_mutex_unlock(&all->lock);
        all->work(self, all->calls);
        pthread_mutex_lock(&all->lock);
        all->busy--;
        pthread_cond_broadcast(&all->changed);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* The devices of the ranks; with --spread up to --ranks of the plugin's, or all of them. */
static bool ranks_open_devices(bench_ranks *all)
{
    const bench_options *options = &all->bench->options;
    const uint32_t most = options->ranks > 0 ? options->ranks : RANKS_MAX;
    char selection[96];
    hal_status status = HAL_OK;
    all->ranks = options->ranks > 0 ? options->ranks : DEFAULT_RANKS;
    for (uint32_t r = 0; r < all->ranks && !options->spread; r++) {
        all->devices[r] = all->bench->device;
    }
    if (!options->spread) {
        return true;
    }
    for (all->ranks = 0; all->ranks < most && status == HAL_OK; all->ranks += status == HAL_OK) {
        snprintf(selection, sizeof selection, "%s:%u",
                 hal_device_get_plugin_name(all->bench->device), all->ranks);
        status = hal_device_open(selection, &all->devices[all->ranks]);
    }
    if (status != HAL_OK && status != HAL_ERROR_NOT_FOUND) {
        return bench_ok(all->bench, status, selection);
    }
    return all->ranks >= 2 || bench_fail(all->bench, "--spread: expected at least two devices");
}

static bool ranks_open_members(bench_ranks *all)
{
    hal_comm *comms[RANKS_MAX];
    bool well = ranks_open_devices(all);
    if (!well || !bench_ok(all->bench, hal_comm_create_local(all->devices, all->ranks, 0, comms),
                           "hal_comm_create_local")) {
        return false;
    }
    for (uint32_t r = 0; r < all->ranks; r++) {
        bench_rank *self = &all->members[r];
        *self = (bench_rank){.all = all, .rank = r, .device = all->devices[r], .comm = comms[r]};
        well =
            well && bench_ok(all->bench, hal_queue_create(self->device, &self->queue), "a queue");
    }
    return well;
}

bool ranks_open(bench_state *bench, bench_ranks *made)
{
    *made = (bench_ranks){.bench = bench, .started = 1};
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    bool well = ranks_open_members(made);
    for (; made->started < made->ranks && well; made->started += well) {
        bench_rank *self = &made->members[made->started];
        well = pthread_create(&self->thread, NULL, member_run, self) == 0 ||
               bench_fail(bench, "no thread for rank %u", made->started);
    }
    return well;
}

void ranks_close(bench_ranks *all)
{
    pthread_mutex_lock(&all->lock);
    all->ended = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    for (uint32_t r = 0; r < all->ranks; r++) {
        if (r > 0 && r < all->started) {
            pthread_join(all->members[r].thread, NULL);
        }
        hal_queue_destroy(all->members[r].queue);
        hal_comm_destroy(all->members[r].comm);
        if (all->bench->options.spread) {
            hal_device_release(all->devices[r]);
        }
    }
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
}

void ranks_run(bench_ranks *all, rank_work work, int calls)
{
    pthread_mutex_lock(&all->lock);
    all->work = work;
    all->calls = calls;
    all->busy = all->ranks - 1;
    all->turn++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    work(&all->members[0], calls);
    pthread_mutex_lock(&all->lock);
    while (all->busy > 0) {
        pthread_cond_wait(&all->changed, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
}

void rank_fail(const bench_rank *self)
{
    bench_ranks *all = self->all;
    pthread_mutex_lock(&all->lock);
    bench_fail(all->bench, "rank %u: %s", self->rank, hal_status_message());
    pthread_mutex_unlock(&all->lock);
}
