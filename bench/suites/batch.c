/* The length of a first batch: bursts of small dependent kernels and a wait, where the queue
 * submits its first batch after 8, 16, ... commands (hal_queue_set_batch). A short first batch
 * starts an idle device early and costs one more driver call. */
#include <stdio.h>
#include <string.h>

#include "harness/bench.h"
#include "suites/step_kernel.h"
#include "suites/suites.h"

/* The row's own time is that of HAL_QUEUE_BATCH_FIRST; the others are its peers. */
static const uint32_t firsts[] = {HAL_QUEUE_BATCH_FIRST, 4, 8, 16, 64, 128, 256, 1024};
enum { FIRSTS = sizeof firsts / sizeof firsts[0] };

typedef struct burst {
    bench_state *bench;
    hal_kernel *kernel;
    hal_buffer *buffers[2];
    int64_t length;
    uint32_t first;
} burst;

static void run_burst(void *user, int calls)
{
    burst *b = user;
    hal_queue *queue = b->bench->queue;
    const uint32_t grid[3] = {STEP_WORDS / STEP_GROUP, 1, 1};
    hal_queue_set_batch(queue, b->first, 0);
    for (int call = 0; call < calls; call++) {
        for (int64_t i = 0; i < b->length; i++) {
            const hal_range ranges[2] = {{b->buffers[i % 2], 0, HAL_WHOLE},
                                         {b->buffers[(i + 1) % 2], 0, HAL_WHOLE}};
            bench_ok(b->bench, hal_queue_dispatch(queue, b->kernel, grid, ranges, 2, NULL, 0),
                     "hal_queue_dispatch");
        }
        bench_ok(b->bench, hal_queue_wait(queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    }
}

/* Compares a burst of each first length with the host. */
static bool check_burst(burst *b)
{
    bench_state *bench = b->bench;
    for (int f = 0; f < FIRSTS; f++) {
        uint32_t got[STEP_WORDS], want[STEP_WORDS];
        step_kernel_expect(want, b->length);
        b->first = firsts[f];
        const hal_range begin = {b->buffers[0], 0, HAL_WHOLE};
        if (!bench_ok(bench, hal_queue_fill(bench->queue, begin, 0), "hal_queue_fill")) {
            return false;
        }
        run_burst(b, 1);
        if (!bench_ok(bench,
                      hal_queue_read(bench->queue, b->buffers[b->length % 2], 0, sizeof got, got),
                      "hal_queue_read") ||
            memcmp(got, want, sizeof got) != 0) {
            return bench_fail(bench, "a burst of %lld kernels, %u in the first batch, is wrong",
                              (long long)b->length, b->first);
        }
    }
    return true;
}

static void add_row(burst *b)
{
    bench_state *bench = b->bench;
    burst bursts[FIRSTS];
    measured competitors[FIRSTS];
    for (int f = 0; f < FIRSTS; f++) {
        bursts[f] = *b;
        bursts[f].first = firsts[f];
        competitors[f] = (measured){.function = run_burst, .user = &bursts[f]};
    }
    measure_alternating(competitors, FIRSTS, bench->options.seconds);
    char name[64];
    snprintf(name, sizeof name, "burst of %lld kernels and a wait", (long long)b->length);
    bench_row *row = bench->failed ? NULL : bench_add(bench, name, HAL_TYPE_U32);
    if (!row) {
        return;
    }
    row->time = competitors[0].time;
    for (int f = 1; f < FIRSTS; f++) {
        snprintf(name, sizeof name, "first_%u", firsts[f]);
        bench_add_peer(row, name, &competitors[f].time);
    }
    bench_rate(row, 0.0, 0.0);
}

void suite_batch(bench_state *bench)
{
    static const int64_t lengths[] = {2, 8, 32, 128, 512, 2048};
    burst b = {.bench = bench, .kernel = step_kernel_make(bench)};
    bool well = b.kernel != NULL;
    for (int i = 0; i < 2 && well; i++) {
        well = bench_ok(
            bench,
            hal_buffer_create(bench->device, HAL_MEMORY_DEVICE, STEP_WORDS * 4, &b.buffers[i]),
            "a buffer");
    }
    const int own = (int)(sizeof lengths / sizeof lengths[0]);
    const int count = bench->options.size_count ? bench->options.size_count : own;
    for (int i = 0; i < count && well && !bench->failed; i++) {
        b.length = bench->options.size_count ? bench->options.sizes[i][0] : lengths[i];
        if (check_burst(&b)) {
            add_row(&b);
        }
    }
    hal_queue_set_batch(bench->queue, 0, 0);
    hal_kernel_release(b.kernel);
    hal_buffer_release(b.buffers[0]);
    hal_buffer_release(b.buffers[1]);
}
