/* Collectives of --ranks ranks on the device, or of one rank on each device of the plugin with
 * --spread, each on its own thread, next to the copies through memory that such a collective needs
 * at least, and with --raw next to NCCL's own calls. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/ranks.h"
#include "peers/raw/collectives.h"
#include "suites/suites.h"

#define SLOT ((uint64_t)2 << 20) /* bytes copied at a time, as hal does it */

/* The memory of a rank. */
typedef struct part {
    hal_buffer *send, *recv;
    char *host_send, *host_recv, *slot;
} part;

typedef struct collectives {
    bench_state *bench;
    bench_ranks all;
    part parts[RANKS_MAX];
    raw_collectives *raw; /* null without --raw */
    hal_collective what;
    uint64_t count; /* elements of f32 */
} collectives;

typedef struct kind {
    const char *name;
    uint32_t kind;
    int recv_all; /* 1: recv has a part for each rank */
} kind;

static const kind kinds[] = {
    {"all_reduce", HAL_COLLECTIVE_ALL_REDUCE, 0},
    {"all_gather", HAL_COLLECTIVE_ALL_GATHER, 1},
    {"reduce_scatter", HAL_COLLECTIVE_REDUCE_SCATTER, 0},
    {"broadcast", HAL_COLLECTIVE_BROADCAST, 0},
    {"reduce", HAL_COLLECTIVE_REDUCE, 0},
    {"all_to_all", HAL_COLLECTIVE_ALL_TO_ALL, 1},
    {"exchange", HAL_COLLECTIVE_EXCHANGE, 0},
};

/* The collectives of the ranks. */
static collectives *run_of(const bench_ranks *all)
{
    return (collectives *)((char *)all - offsetof(collectives, all));
}

/* A failure ends the communicator, so no rank waits for another one. */
static void member_collectives(bench_rank *self, int calls)
{
    const collectives *run = run_of(self->all);
    const part *own = self->user;
    hal_collective what = run->what;
    hal_status status = HAL_OK;
    if (what.kind == HAL_COLLECTIVE_EXCHANGE) {
        what.root = (self->rank ^ 1u) < run->all.ranks ? self->rank ^ 1u : self->rank;
    }
    for (int i = 0; i < calls && status == HAL_OK; i++) {
        status = hal_queue_collective(self->queue, self->comm, &what,
                                      (hal_range){own->send, 0, HAL_WHOLE},
                                      (hal_range){own->recv, 0, HAL_WHOLE}, run->count);
    }
    if (status == HAL_OK) {
        status = hal_queue_wait(self->queue, HAL_WAIT_FOREVER);
    }
    if (status != HAL_OK) {
        rank_fail(self);
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
static void member_copies(bench_rank *self, int calls)
{
    const collectives *run = run_of(self->all);
    const part *own = self->user;
    const uint64_t bytes = run->count * sizeof(float), others = run->all.ranks - 1;
    const bool is_root = self->rank == 0;
    uint64_t out = bytes, in = bytes;
    switch (run->what.kind) {
    case HAL_COLLECTIVE_ALL_REDUCE:
        in = 2 * bytes * others / run->all.ranks;
        break;
    case HAL_COLLECTIVE_ALL_GATHER:
        in = bytes * others;
        break;
    case HAL_COLLECTIVE_REDUCE_SCATTER:
    case HAL_COLLECTIVE_ALL_TO_ALL:
        out = in = bytes * others;
        break;
    case HAL_COLLECTIVE_BROADCAST:
        out = is_root ? bytes : 0;
        in = is_root ? 0 : bytes;
        break;
    case HAL_COLLECTIVE_REDUCE:
        out = is_root ? 0 : bytes;
        in = is_root ? bytes * others : 0;
        break;
    default:
        break;
    }
    for (int i = 0; i < calls; i++) {
        copy_in_pieces(own->host_recv, own->host_send, own->slot, out, 1);
        copy_in_pieces(own->host_recv, own->host_send, own->slot, in, 0);
    }
}

static void run_hal(void *user, int calls)
{
    ranks_run(&((collectives *)user)->all, member_collectives, calls);
}

static void run_copies(void *user, int calls)
{
    ranks_run(&((collectives *)user)->all, member_copies, calls);
}

static void parts_release(collectives *run)
{
    for (uint32_t r = 0; r < run->all.ranks; r++) {
        part *own = &run->parts[r];
        hal_buffer_release(own->send);
        hal_buffer_release(own->recv);
        free(own->host_send);
        free(own->host_recv);
        free(own->slot);
        own->send = own->recv = NULL;
        own->host_send = own->host_recv = own->slot = NULL;
    }
}

/* Send and recv of the largest kind; every element of rank r is r + 1. */
static bool parts_make(collectives *run)
{
    const uint64_t count = run->count * run->all.ranks, bytes = 2 * count * sizeof(float);
    bool well = true;
    for (uint32_t r = 0; r < run->all.ranks && well; r++) {
        const bench_rank *self = &run->all.members[r];
        part *own = &run->parts[r];
        own->host_send = calloc(1, bytes);
        own->host_recv = calloc(1, bytes);
        own->slot = calloc(1, SLOT);
        well = (own->host_send && own->host_recv && own->slot) ||
               bench_fail(run->bench, "out of memory");
        for (uint64_t i = 0; well && i < count; i++) {
            ((float *)own->host_send)[i] = (float)(r + 1);
        }
        well = well &&
               bench_ok(run->bench,
                        hal_buffer_create(self->device, HAL_MEMORY_DEVICE, count * sizeof(float),
                                          &own->send),
                        "a buffer to send") &&
               bench_ok(run->bench,
                        hal_buffer_create(self->device, HAL_MEMORY_DEVICE, count * sizeof(float),
                                          &own->recv),
                        "a buffer to receive") &&
               bench_ok(run->bench,
                        hal_queue_write(self->queue, own->send, 0, own->host_send,
                                        count * sizeof(float)),
                        "hal_queue_write");
    }
    return well;
}

/* Checks the last element that the last rank has received. */
static bool result_check(collectives *run, const kind *of)
{
    const uint32_t reader = of->kind == HAL_COLLECTIVE_REDUCE ? 0 : run->all.ranks - 1;
    bench_rank *last = &run->all.members[reader];
    const uint64_t elements = run->count * (of->recv_all ? run->all.ranks : 1);
    const float ranks = (float)run->all.ranks, sum = ranks * (ranks + 1) / 2;
    const uint32_t peer = (last->rank ^ 1u) < run->all.ranks ? last->rank ^ 1u : last->rank;
    const float expected = of->kind == HAL_COLLECTIVE_EXCHANGE    ? (float)(peer + 1)
                           : of->kind == HAL_COLLECTIVE_BROADCAST ? 1.0f
                           : of->recv_all                         ? ranks
                                                                  : sum;
    float seen = 0;
    run_hal(run, 1);
    return !run->bench->failed &&
           bench_ok(run->bench,
                    hal_queue_read(last->queue, run->parts[reader].recv,
                                   (elements - 1) * sizeof seen, sizeof seen, &seen),
                    "hal_queue_read") &&
           (seen == expected || bench_fail(run->bench, "%s: got %g instead of %g", of->name,
                                           (double)seen, (double)expected));
}

static void measure_kind(collectives *run, const kind *of)
{
    bench_state *bench = run->bench;
    measured competitors[] = {{.function = run_hal, .user = run},
                              {.function = run_copies, .user = run},
                              {.function = raw_collectives_run, .user = run->raw}};
    run->what = (hal_collective){
        .kind = of->kind, .type = HAL_TYPE_F32, .any_order = bench->options.any_order};
    if (!result_check(run, of)) {
        return;
    }
    if (run->raw) {
        raw_collectives_choose(run->raw, of->kind, run->count);
    }
    measure_alternating(competitors, run->raw ? 3 : 2, bench->options.seconds);
    if (run->raw && raw_collectives_failure(run->raw)) {
        bench_fail(bench, "%s", raw_collectives_failure(run->raw));
    }
    bench_row *row = bench->failed ? NULL : bench_add(bench, "collectives", HAL_TYPE_F32);
    if (!row) {
        return;
    }
    const uint64_t bytes = run->count * sizeof(float);
    snprintf(row->name, sizeof row->name, "%s of %llu bytes, %u ranks", of->name,
             (unsigned long long)bytes, run->all.ranks);
    row->m = (int64_t)bytes;
    row->time = competitors[0].time;
    bench_add_peer(row, "copies", &competitors[1].time);
    if (run->raw) {
        bench_add_peer(row, "raw", &competitors[2].time);
    }
    bench_rate(row, 0.0, (double)bytes);
}

static bool raw_open_all(collectives *run)
{
    char message[256];
    if (!run->bench->options.raw) {
        return true;
    }
    run->raw =
        raw_collectives_open(run->all.devices, run->all.ranks,
                             run->count * run->all.ranks * sizeof(float), message, sizeof message);
    return run->raw || bench_fail(run->bench, "%s", message);
}

void suite_collectives(bench_state *bench)
{
    static const int64_t usual[] = {4, 4096, 64 << 10, 1 << 20, 16 << 20};
    const int sizes = bench->options.size_count > 0 ? bench->options.size_count : 5;
    collectives *run = calloc(1, sizeof *run);
    if (!run) {
        bench_fail(bench, "out of memory");
        return;
    }
    run->bench = bench;
    bool well = ranks_open(bench, &run->all);
    for (uint32_t r = 0; r < run->all.ranks; r++) {
        run->all.members[r].user = &run->parts[r];
    }
    for (int s = 0; s < sizes && well && !bench->failed; s++) {
        const int64_t bytes = bench->options.size_count > 0 ? bench->options.sizes[s][0] : usual[s];
        run->count = ((uint64_t)bytes + 3) / 4;
        well = parts_make(run) && raw_open_all(run);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds && well && !bench->failed; k++) {
            measure_kind(run, &kinds[k]);
        }
        raw_collectives_close(run->raw);
        run->raw = NULL;
        parts_release(run);
    }
    ranks_close(&run->all);
    free(run);
}
