/* Overhead of empty and tiny kernels (many in a batch, alone with a wait, in a graph), of small
 * transfers and allocations; with --raw compared with the driver's own calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench.h"
#include "suites/step_kernel.h"
#include "suites/suites.h"
#include "peers/raw/raw.h"

#define GRAPH_COMMANDS RAW_GRAPH_COMMANDS

typedef struct dispatches {
    bench_state *bench;
    hal_kernel *empty, *bound, *step;
    hal_graph *graph;
    hal_buffer *x, *y;
    unsigned turn; /* which of x and y the next step reads */
    hal_buffer *data;
    size_t bytes; /* of it that are written or read */
    char *host;
} dispatches;

static hal_kernel *make_kernel(bench_state *bench, bool with_bindings)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (!bench_ok(bench, hal_ir_builder_create(with_bindings ? "bound" : "empty", &b),
                  "a builder")) {
        return NULL;
    }
    if (with_bindings) {
        hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
        hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    }
    if (bench_ok(bench, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
        bench_ok(bench, hal_kernel_create(bench->device, ir, &kernel), "hal_kernel_create");
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static void record(dispatches *d, bool with_bindings)
{
    const uint32_t grid[3] = {1, 1, 1};
    const hal_range ranges[2] = {{d->x, 0, HAL_WHOLE}, {d->y, 0, HAL_WHOLE}};
    bench_ok(d->bench,
             hal_queue_dispatch(d->bench->queue, with_bindings ? d->bound : d->empty, grid, ranges,
                                with_bindings ? 2 : 0, NULL, 0),
             "hal_queue_dispatch");
}

static bool make(bench_state *bench, dispatches *made)
{
    made->empty = make_kernel(bench, false);
    made->bound = make_kernel(bench, true);
    made->step = step_kernel_make(bench);
    if (!made->empty || !made->bound || !made->step ||
        !bench_ok(bench, hal_buffer_create(bench->device, HAL_MEMORY_DEVICE, 4096, &made->x),
                  "a buffer") ||
        !bench_ok(bench, hal_buffer_create(bench->device, HAL_MEMORY_DEVICE, 4096, &made->y),
                  "a buffer") ||
        !bench_ok(bench, hal_graph_begin(bench->queue), "hal_graph_begin")) {
        return false;
    }
    for (int i = 0; i < GRAPH_COMMANDS; i++) {
        record(made, false);
    }
    return bench_ok(bench, hal_graph_end(bench->queue, NULL, 0, &made->graph), "hal_graph_end");
}

/* Adds a row with the time of one command. raw[1] is the stream-ordered variant. */
static void add(dispatches *d, const char *name, measure_function function, double commands,
                const measure_function raw[2])
{
    static const char *const names[] = {"raw", "raw_ordered"};
    bench_state *bench = d->bench;
    measured competitors[3] = {{.function = function, .user = d}};
    const char *competitor_names[3] = {""};
    int count = 1;
    for (int i = 0; i < 2; i++) {
        if (raw[i]) {
            competitor_names[count] = names[i];
            competitors[count++] = (measured){.function = raw[i], .user = bench->raw};
        }
    }
    measure_alternating(competitors, count, bench->options.seconds);
    if (bench->raw && bench->raw->failed) {
        bench_fail(bench, "%s", bench->raw->message);
    }
    bench_row *row = bench->failed ? NULL : bench_add(bench, name, HAL_TYPE_NONE);
    if (!row) {
        return;
    }
    row->time = measure_divide(&competitors[0].time, commands);
    for (int i = 1; i < count; i++) {
        const measurement time = measure_divide(&competitors[i].time, commands);
        bench_add_peer(row, competitor_names[i], &time);
    }
    bench_rate(row, 0.0, 0.0);
}

static void finish(dispatches *d)
{
    bench_ok(d->bench, hal_queue_wait(d->bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static void run_empty(void *user, int calls)
{
    for (int i = 0; i < calls; i++) {
        record(user, false);
    }
    finish(user);
}

static void run_bound(void *user, int calls)
{
    for (int i = 0; i < calls; i++) {
        record(user, true);
    }
    finish(user);
}

static void record_steps(dispatches *d, int calls)
{
    const uint32_t grid[3] = {STEP_WORDS / STEP_GROUP, 1, 1};
    for (int i = 0; i < calls; i++, d->turn ^= 1) {
        const hal_range ranges[2] = {{d->turn ? d->y : d->x, 0, HAL_WHOLE},
                                     {d->turn ? d->x : d->y, 0, HAL_WHOLE}};
        bench_ok(d->bench, hal_queue_dispatch(d->bench->queue, d->step, grid, ranges, 2, NULL, 0),
                 "hal_queue_dispatch");
    }
}

/* Compares the steps of hal and of the driver's own calls with the host. */
static bool check_steps(dispatches *d)
{
    enum { STEPS = 1001 };
    bench_state *bench = d->bench;
    uint32_t got[STEP_WORDS], want[STEP_WORDS];
    const hal_range begin = {d->turn ? d->y : d->x, 0, HAL_WHOLE};
    step_kernel_expect(want, STEPS);
    if (!bench_ok(bench, hal_queue_fill(bench->queue, begin, 0), "hal_queue_fill")) {
        return false;
    }
    record_steps(d, STEPS);
    if (!bench_ok(bench, hal_queue_read(bench->queue, d->turn ? d->y : d->x, 0, sizeof got, got),
                  "hal_queue_read") ||
        memcmp(got, want, sizeof got) != 0) {
        return bench_fail(bench, "%d steps are wrong", STEPS);
    }
    if (bench->raw && (!bench->raw->api->step_words(bench->raw, STEPS, got) ||
                       memcmp(got, want, sizeof got) != 0)) {
        return bench_fail(bench, "%d steps by the driver's own calls are wrong: %s", STEPS,
                          bench->raw->message);
    }
    return true;
}

static void run_step(void *user, int calls)
{
    record_steps(user, calls);
    finish(user);
}

static void run_alone(void *user, int calls)
{
    for (int i = 0; i < calls; i++) {
        record(user, false);
        finish(user);
    }
}

static void run_graph(void *user, int calls)
{
    dispatches *d = user;
    for (int i = 0; i < calls; i++) {
        bench_ok(d->bench, hal_graph_launch(d->bench->queue, d->graph, NULL, 0),
                 "hal_graph_launch");
    }
    finish(d);
}

static void run_allocate(void *user, int calls)
{
    dispatches *d = user;
    for (int i = 0; i < calls; i++) {
        hal_buffer *made = NULL;
        bench_ok(d->bench,
                 hal_buffer_create(d->bench->device, HAL_MEMORY_DEVICE, RAW_ALLOCATION, &made),
                 "hal_buffer_create");
        hal_buffer_release(made);
    }
}

static void run_write(void *user, int calls)
{
    dispatches *d = user;
    for (int i = 0; i < calls; i++) {
        bench_ok(d->bench, hal_queue_write(d->bench->queue, d->data, 0, d->host, d->bytes),
                 "hal_queue_write");
    }
    finish(d);
}

static void run_read(void *user, int calls)
{
    dispatches *d = user;
    for (int i = 0; i < calls; i++) {
        bench_ok(d->bench, hal_queue_read(d->bench->queue, d->data, 0, d->bytes, d->host),
                 "hal_queue_read");
    }
}

/* Copies between ordinary memory of the program and the device. */
static void add_transfers(dispatches *d)
{
    enum { MOST = 256 << 20 };
    static const size_t sizes[] = {4,       4096,     65536,    262144, 1000003,
                                   4 << 20, 16777213, 64 << 20, MOST};
    raw_device *raw = d->bench->raw;
    d->host = malloc(MOST);
    if (!d->host ||
        !bench_ok(d->bench, hal_buffer_create(d->bench->device, HAL_MEMORY_DEVICE, MOST, &d->data),
                  "a buffer")) {
        free(d->host);
        return;
    }
    memset(d->host, 1, MOST); /* memory that was not written yet is one page of zeros */
    const bool compared = raw && raw->api->write && raw->api->make_copy(raw, MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !d->bench->failed; i++) {
        char name[64];
        d->bytes = sizes[i];
        if (compared) {
            raw->host = d->host;
            raw->host_bytes = d->bytes;
        }
        snprintf(name, sizeof name, "write of %zu bytes, many in a flush", d->bytes);
        add(d, name, run_write, 1.0,
            (const measure_function[]){compared ? raw->api->write : NULL, NULL});
        snprintf(name, sizeof name, "read of %zu bytes", d->bytes);
        add(d, name, run_read, 1.0,
            (const measure_function[]){compared ? raw->api->read : NULL, NULL});
    }
    hal_buffer_release(d->data);
    free(d->host);
}

void suite_dispatch(bench_state *bench)
{
    static const raw_api none = {0};
    const raw_api *raw = !bench->raw ? &none : bench->raw->api;
    dispatches d = {.bench = bench};
    if (make(bench, &d)) {
        add(&d, "empty kernel, many in a flush", run_empty, 1.0,
            (const measure_function[]){raw->empty, NULL});
        add(&d, "empty kernel with 2 bindings, many in a flush", run_bound, 1.0,
            (const measure_function[]){raw->bound, NULL});
        if (check_steps(&d)) {
            add(&d, "kernel of 1024 words on what the one before gave, many in a flush", run_step,
                1.0, (const measure_function[]){raw->step, NULL});
        }
        add(&d, "empty kernel alone, flush and wait", run_alone, 1.0,
            (const measure_function[]){raw->alone, NULL});
        add(&d, "empty kernel in a graph of 1000", run_graph, GRAPH_COMMANDS,
            (const measure_function[]){raw->graph, NULL});
        add(&d, "4 MiB made and released", run_allocate, 1.0,
            (const measure_function[]){raw->allocate, raw->allocate_ordered});
        add_transfers(&d);
    }
    hal_graph_destroy(d.graph);
    hal_kernel_release(d.empty);
    hal_kernel_release(d.bound);
    hal_kernel_release(d.step);
    hal_buffer_release(d.x);
    hal_buffer_release(d.y);
}
