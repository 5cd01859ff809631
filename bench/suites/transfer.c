/* Copies from the device to that of --to: by hal_queue_transfer, through the host in pieces, and
 * with --raw by the driver's own call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench.h"
#include "peers/raw/transfer.h"
#include "suites/suites.h"

#define PIECE ((uint64_t)16 << 20) /* staged at a time, as hal does it */

typedef struct transfer {
    bench_state *bench;
    hal_device *there;
    hal_queue *queue; /* of it */
    hal_buffer *source, *target;
    uint64_t bytes;
    void *piece;
    raw_transfer *raw; /* null without --raw */
} transfer;

static bool make(transfer *t)
{
    bench_state *bench = t->bench;
    t->piece = malloc(PIECE);
    return (t->piece || bench_fail(bench, "out of memory")) &&
           bench_ok(bench,
                    hal_buffer_create(bench->device, HAL_MEMORY_DEVICE, t->bytes, &t->source),
                    "a buffer to copy from") &&
           bench_ok(bench, hal_buffer_create(t->there, HAL_MEMORY_DEVICE, t->bytes, &t->target),
                    "a buffer to copy to");
}

static void finish(transfer *t)
{
    bench_ok(t->bench, hal_queue_wait(t->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static void run_hal(void *user, int calls)
{
    transfer *t = user;
    for (int i = 0; i < calls && !t->bench->failed; i++) {
        bench_ok(
            t->bench,
            hal_queue_transfer(t->bench->queue, t->source, 0, t->queue, t->target, 0, t->bytes),
            "hal_queue_transfer");
    }
    finish(t);
}

/* Checks that all bytes arrive. */
static bool check(transfer *t)
{
    bench_state *bench = t->bench;
    float *sent = malloc(t->bytes), *seen = calloc(1, t->bytes);
    bool well = (sent && seen) || bench_fail(bench, "out of memory");
    if (well) {
        bench_random(HAL_TYPE_F32, sent, t->bytes / sizeof *sent, 31);
        well = bench_ok(bench, hal_queue_write(bench->queue, t->source, 0, sent, t->bytes),
                        "hal_queue_write");
    }
    if (well) {
        run_hal(t, 1);
        well = !bench->failed &&
               bench_ok(bench, hal_queue_read(t->queue, t->target, 0, t->bytes, seen),
                        "hal_queue_read") &&
               (memcmp(sent, seen, t->bytes) == 0 ||
                bench_fail(bench, "hal_queue_transfer: what arrived is not what was sent"));
    }
    free(sent);
    free(seen);
    return well;
}

/* Copies through the host, as between devices without peer access. */
static void run_staged(void *user, int calls)
{
    transfer *t = user;
    for (int i = 0; i < calls && !t->bench->failed; i++) {
        for (uint64_t done = 0; done < t->bytes; done += PIECE) {
            const uint64_t length = t->bytes - done < PIECE ? t->bytes - done : PIECE;
            bench_ok(t->bench, hal_queue_read(t->bench->queue, t->source, done, length, t->piece),
                     "hal_queue_read");
            bench_ok(t->bench, hal_queue_write(t->queue, t->target, done, t->piece, length),
                     "hal_queue_write");
        }
    }
    finish(t);
}

static void measure(transfer *t)
{
    static const char *const names[] = {"", "staged", "raw", "raw_by_target"};
    const measured all[4] = {{.function = run_hal, .user = t},
                             {.function = run_staged, .user = t},
                             {.function = raw_transfer_run, .user = t->raw},
                             {.function = raw_transfer_run_by_target, .user = t->raw}};
    bench_state *bench = t->bench;
    measured competitors[4];
    const int count = t->raw ? 4 : 2;
    memcpy(competitors, all, sizeof competitors);
    measure_alternating(competitors, count, bench->options.seconds);
    if (t->raw && raw_transfer_failure(t->raw)) {
        bench_fail(bench, "%s", raw_transfer_failure(t->raw));
    }
    bench_row *row = bench->failed ? NULL : bench_add(bench, "transfer", HAL_TYPE_NONE);
    if (!row) {
        return;
    }
    snprintf(row->name, sizeof row->name, "transfer of %llu bytes", (unsigned long long)t->bytes);
    row->m = (int64_t)t->bytes;
    row->time = competitors[0].time;
    for (int i = 1; i < count; i++) {
        bench_add_peer(row, names[i], &competitors[i].time);
    }
    bench_rate(row, 0.0, (double)t->bytes);
}

static void run_case(transfer *t, uint64_t bytes)
{
    bench_state *bench = t->bench;
    const char *plugin = hal_device_get_plugin_name(bench->device);
    char message[256];
    t->bytes = (bytes + 3) / 4 * 4;
    bool well = make(t) && check(t);
    if (well && bench->raw && strcmp(plugin, hal_device_get_plugin_name(t->there)) == 0) {
        t->raw = raw_transfer_open(plugin, bench->info, hal_device_get_info(t->there), t->bytes,
                                   message, sizeof message);
        well = t->raw || bench_fail(bench, "%s", message);
    }
    if (well) {
        measure(t);
    }
    raw_transfer_close(t->raw);
    hal_buffer_release(t->source);
    hal_buffer_release(t->target);
    free(t->piece);
    t->raw = NULL;
    t->source = t->target = NULL;
    t->piece = NULL;
}

void suite_transfer(bench_state *bench)
{
    static const int64_t usual[] = {4096, 1 << 20, 16 << 20, 256 << 20};
    const int count = bench->options.size_count > 0 ? bench->options.size_count : 4;
    transfer t = {.bench = bench};
    const bool well =
        bench_ok(bench, hal_device_open(bench->options.to, &t.there), "the device of --to") &&
        bench_ok(bench, hal_queue_create(t.there, &t.queue), "a queue");
    for (int i = 0; i < count && well && !bench->failed; i++) {
        run_case(&t,
                 (uint64_t)(bench->options.size_count > 0 ? bench->options.sizes[i][0] : usual[i]));
    }
    hal_queue_destroy(t.queue);
    hal_device_release(t.there);
}
