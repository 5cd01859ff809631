/* Collectives of --ranks ranks on the device, or of one rank on each device of the plugin with
 * --spread, each on its own thread, next to the copies through memory that such a collective needs
 * at least, and with --raw next to NCCL's own calls. Called by main.c. */
#include <hal/group.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "raw_collectives.h"

#define SLOT ((uint64_t)2 << 20) /* bytes copied at a time, as hal does it */

enum { MOST_RANKS = 64, DEFAULT_RANKS = 2 };

struct crew;

/* A rank and its thread. */
typedef struct member {
    struct crew *crew;
    uint32_t rank;
    pthread_t thread;
    hal_device *device;
    hal_queue *queue;
    hal_group *group;
    hal_buffer *send, *recv;
    char *host_send, *host_recv, *slot;
} member;

/* All ranks; the first one works on the thread that measures. */
typedef struct crew {
    bench_state *bench;
    uint32_t ranks;
    hal_device *devices[MOST_RANKS]; /* with --spread references of the crew's */
    raw_collectives *raw;            /* null without --raw */
    hal_collective what;
    uint64_t count; /* elements of f32 */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn; /* of work that was started */
    uint32_t busy; /* ranks that have not ended it */
    bool ended;
    void (*work)(member *self, int calls);
    int calls;
    member members[MOST_RANKS];
} crew;

typedef struct kind {
    const char *name;
    uint32_t kind;
    int send_all, recv_all; /* 1: the buffer has a part for each rank */
} kind;

static const kind kinds[] = {
    {"all_reduce", HAL_ALL_REDUCE, 0, 0},
    {"all_gather", HAL_ALL_GATHER, 0, 1},
    {"reduce_scatter", HAL_REDUCE_SCATTER, 1, 0},
    {"broadcast", HAL_BROADCAST, 0, 0},
    {"reduce", HAL_REDUCE, 0, 0},
    {"all_to_all", HAL_ALL_TO_ALL, 1, 1},
    {"exchange", HAL_EXCHANGE, 0, 0},
};

static void *member_run(void *argument)
{
    member *self = argument;
    crew *all = self->crew;
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

/* Lets all ranks work and waits for them. */
static void crew_run(crew *all, void (*work)(member *self, int calls), int calls)
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

/* A failure ends the group, so no rank waits for another one. */
static void member_collectives(member *self, int calls)
{
    crew *all = self->crew;
    hal_collective what = all->what;
    hal_status status = HAL_OK;
    if (what.kind == HAL_EXCHANGE) {
        what.root = (self->rank ^ 1u) < all->ranks ? self->rank ^ 1u : self->rank;
    }
    for (int i = 0; i < calls && status == HAL_OK; i++) {
        status = hal_queue_collective(self->queue, self->group, &what,
                                      (hal_range){self->send, 0, HAL_WHOLE},
                                      (hal_range){self->recv, 0, HAL_WHOLE}, all->count);
    }
    if (status == HAL_OK) {
        status = hal_queue_wait(self->queue, HAL_WAIT_FOREVER);
    }
    if (status != HAL_OK) {
        fprintf(stderr, "hal-bench: rank %u: %s\n", self->rank, hal_status_message());
        pthread_mutex_lock(&all->lock);
        all->bench->failed = true;
        pthread_mutex_unlock(&all->lock);
    }
}

static void copy_in_pieces(char *target, const char *source, char *slot, uint64_t bytes, int out)
{
    for (uint64_t done = 0; done < bytes; done += SLOT) {
        const uint64_t length = bytes - done < SLOT ? bytes - done : SLOT;
        memcpy(out ? slot : target + done, out ? source + done : slot, length);
    }
}

/* What a rank publishes and receives, by memcpy between its memory and a slot. */
static void member_copies(member *self, int calls)
{
    const crew *all = self->crew;
    const uint64_t bytes = all->count * sizeof(float), others = all->ranks - 1;
    const bool is_root = self->rank == 0;
    uint64_t out = bytes, in = bytes;
    switch (all->what.kind) {
    case HAL_ALL_REDUCE:
        in = 2 * bytes * others / all->ranks;
        break;
    case HAL_ALL_GATHER:
        in = bytes * others;
        break;
    case HAL_REDUCE_SCATTER:
    case HAL_ALL_TO_ALL:
        out = in = bytes * others;
        break;
    case HAL_BROADCAST:
        out = is_root ? bytes : 0;
        in = is_root ? 0 : bytes;
        break;
    case HAL_REDUCE:
        out = is_root ? 0 : bytes;
        in = is_root ? bytes * others : 0;
        break;
    default:
        break;
    }
    for (int i = 0; i < calls; i++) {
        copy_in_pieces(self->host_recv, self->host_send, self->slot, out, 1);
        copy_in_pieces(self->host_recv, self->host_send, self->slot, in, 0);
    }
}

static void run_hal(void *user, int calls)
{
    crew_run(user, member_collectives, calls);
}

static void run_copies(void *user, int calls)
{
    crew_run(user, member_copies, calls);
}

static void members_release_buffers(crew *all)
{
    for (uint32_t r = 0; r < all->ranks; r++) {
        member *self = &all->members[r];
        hal_buffer_release(self->send);
        hal_buffer_release(self->recv);
        free(self->host_send);
        free(self->host_recv);
        free(self->slot);
        self->send = self->recv = NULL;
        self->host_send = self->host_recv = self->slot = NULL;
    }
}

/* Send and recv of the largest kind; every element of rank r is r + 1. */
static bool members_make_buffers(crew *all)
{
    const uint64_t count = all->count * all->ranks, bytes = 2 * count * sizeof(float);
    bool well = true;
    for (uint32_t r = 0; r < all->ranks && well; r++) {
        member *self = &all->members[r];
        self->host_send = calloc(1, bytes);
        self->host_recv = calloc(1, bytes);
        self->slot = calloc(1, SLOT);
        well = (self->host_send != NULL && self->host_recv != NULL && self->slot != NULL) ||
               bench_fail(all->bench, "out of memory");
        for (uint64_t i = 0; well && i < count; i++) {
            ((float *)self->host_send)[i] = (float)(r + 1);
        }
        well = well &&
               bench_ok(all->bench,
                        hal_buffer_create(self->device, HAL_MEMORY_DEVICE, count * sizeof(float),
                                          &self->send),
                        "a buffer to send") &&
               bench_ok(all->bench,
                        hal_buffer_create(self->device, HAL_MEMORY_DEVICE, count * sizeof(float),
                                          &self->recv),
                        "a buffer to receive") &&
               bench_ok(all->bench,
                        hal_queue_write(self->queue, self->send, 0, self->host_send,
                                        count * sizeof(float)),
                        "hal_queue_write");
    }
    return well;
}

/* Checks the last element that the last rank has received. */
static bool result_check(crew *all, const kind *of)
{
    member *last = &all->members[of->kind == HAL_REDUCE ? 0 : all->ranks - 1];
    const uint64_t elements = all->count * (of->recv_all ? all->ranks : 1);
    const float ranks = (float)all->ranks, sum = ranks * (ranks + 1) / 2;
    const uint32_t peer = (last->rank ^ 1u) < all->ranks ? last->rank ^ 1u : last->rank;
    const float expected = of->kind == HAL_EXCHANGE    ? (float)(peer + 1)
                           : of->kind == HAL_BROADCAST ? 1.0f
                           : of->recv_all              ? ranks
                                                       : sum;
    float seen = 0;
    run_hal(all, 1);
    return !all->bench->failed &&
           bench_ok(all->bench,
                    hal_queue_read(last->queue, last->recv, (elements - 1) * sizeof seen,
                                   sizeof seen, &seen),
                    "hal_queue_read") &&
           (seen == expected || bench_fail(all->bench, "%s: got %g instead of %g", of->name,
                                           (double)seen, (double)expected));
}

static void measure_kind(crew *all, const kind *of)
{
    bench_state *bench = all->bench;
    measured competitors[] = {{.function = run_hal, .user = all},
                              {.function = run_copies, .user = all},
                              {.function = raw_collectives_run, .user = all->raw}};
    all->what = (hal_collective){
        .kind = of->kind, .type = HAL_TYPE_F32, .any_order = bench->options.any_order};
    if (!result_check(all, of)) {
        return;
    }
    if (all->raw != NULL) {
        raw_collectives_choose(all->raw, of->kind, all->count);
    }
    measure_alternating(competitors, all->raw != NULL ? 3 : 2, bench->options.seconds);
    if (all->raw != NULL && raw_collectives_failure(all->raw) != NULL) {
        bench_fail(bench, "%s", raw_collectives_failure(all->raw));
    }
    bench_row *row = bench->failed ? NULL : bench_add(bench, "collectives", HAL_TYPE_F32);
    if (row == NULL) {
        return;
    }
    const uint64_t bytes = all->count * sizeof(float);
    snprintf(row->name, sizeof row->name, "%s of %llu bytes, %u ranks", of->name,
             (unsigned long long)bytes, all->ranks);
    row->m = (int64_t)bytes;
    row->time = competitors[0].time;
    bench_add_peer(row, "copies", &competitors[1].time);
    if (all->raw != NULL) {
        bench_add_peer(row, "raw", &competitors[2].time);
    }
    bench_rate(row, 0.0, (double)bytes);
}

/* The devices of the ranks; with --spread up to --ranks of the plugin's, or all of them. */
static bool crew_open_devices(crew *all)
{
    const bench_options *options = &all->bench->options;
    const uint32_t most = options->ranks > 0 ? options->ranks : MOST_RANKS;
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

static bool crew_open(crew *all)
{
    hal_device **devices = all->devices;
    hal_group *groups[MOST_RANKS];
    bool well = crew_open_devices(all);
    if (!well || !bench_ok(all->bench, hal_group_create_local(devices, all->ranks, 0, groups),
                           "hal_group_create_local")) {
        return false;
    }
    for (uint32_t r = 0; r < all->ranks; r++) {
        member *self = &all->members[r];
        *self = (member){.crew = all, .rank = r, .device = devices[r], .group = groups[r]};
        well =
            well && bench_ok(all->bench, hal_queue_create(self->device, &self->queue), "a queue");
    }
    return well;
}

static bool crew_open_raw(crew *all)
{
    char message[256];
    if (!all->bench->options.raw) {
        return true;
    }
    all->raw = raw_collectives_open(
        all->devices, all->ranks, all->count * all->ranks * sizeof(float), message, sizeof message);
    return all->raw != NULL || bench_fail(all->bench, "%s", message);
}

void suite_collectives(bench_state *bench)
{
    static const int64_t usual[] = {4, 4096, 64 << 10, 1 << 20, 16 << 20};
    const int sizes = bench->options.size_count > 0 ? bench->options.size_count : 5;
    crew *all = calloc(1, sizeof *all);
    uint32_t started = 1;
    if (all == NULL) {
        bench_fail(bench, "out of memory");
        return;
    }
    all->bench = bench;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    bool well = crew_open(all);
    for (; started < all->ranks && well; started += well) {
        member *self = &all->members[started];
        well = pthread_create(&self->thread, NULL, member_run, self) == 0 ||
               bench_fail(bench, "no thread for rank %u", started);
    }
    for (int s = 0; s < sizes && well && !bench->failed; s++) {
        const int64_t bytes = bench->options.size_count > 0 ? bench->options.sizes[s][0] : usual[s];
        all->count = ((uint64_t)bytes + 3) / 4;
        well = members_make_buffers(all) && crew_open_raw(all);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds && well && !bench->failed; k++) {
            measure_kind(all, &kinds[k]);
        }
        raw_collectives_close(all->raw);
        all->raw = NULL;
        members_release_buffers(all);
    }
    pthread_mutex_lock(&all->lock);
    all->ended = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    for (uint32_t r = 0; r < all->ranks; r++) {
        if (r > 0 && r < started) {
            pthread_join(all->members[r].thread, NULL);
        }
        hal_queue_destroy(all->members[r].queue);
        hal_group_destroy(all->members[r].group);
        if (bench->options.spread) {
            hal_device_release(all->devices[r]);
        }
    }
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
