/* suite_dispatch.c: what a command costs that does nothing: many recorded and flushed together,
 * alone with a wait, as a kept graph; and small transfers. Called by main.c. */
#include <string.h>

#include "bench.h"

#define GRAPH_COMMANDS 1000

typedef struct dispatches {
    bench_state *bench;
    hal_kernel *empty, *bound;
    hal_graph *graph;
    hal_buffer *x, *y;
} dispatches;

static bool make(bench_state *bench, dispatches *made);
static hal_kernel *make_kernel(bench_state *bench, bool with_bindings);
static void record(dispatches *d, bool with_bindings);
static void run_empty(void *user, int calls);
static void run_bound(void *user, int calls);
static void run_alone(void *user, int calls);
static void run_graph(void *user, int calls);
static void run_write(void *user, int calls);
static void run_read(void *user, int calls);
static void add(bench_state *bench, const char *name, measure_function function, dispatches *d,
                double commands);

void suite_dispatch(bench_state *bench)
{
    dispatches d = {.bench = bench};
    if (make(bench, &d)) {
        add(bench, "empty kernel, many in a flush", run_empty, &d, 1.0);
        add(bench, "empty kernel with 2 bindings, many in a flush", run_bound, &d, 1.0);
        add(bench, "empty kernel alone, flush and wait", run_alone, &d, 1.0);
        add(bench, "empty kernel in a graph of 1000", run_graph, &d, GRAPH_COMMANDS);
        add(bench, "write of 4 bytes, many in a flush", run_write, &d, 1.0);
        add(bench, "read of 4 bytes", run_read, &d, 1.0);
    }
    hal_graph_destroy(d.graph);
    hal_kernel_release(d.empty);
    hal_kernel_release(d.bound);
    hal_buffer_release(d.x);
    hal_buffer_release(d.y);
}

static bool make(bench_state *bench, dispatches *made)
{
    made->empty = make_kernel(bench, false);
    made->bound = make_kernel(bench, true);
    if (made->empty == NULL || made->bound == NULL ||
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

static void run_write(void *user, int calls)
{
    dispatches *d = user;
    for (int i = 0; i < calls; i++) {
        bench_ok(d->bench, hal_queue_write(d->bench->queue, d->x, 4 * (uint64_t)(i % 1024), &i, 4),
                 "hal_queue_write");
    }
    finish(d);
}

static void run_read(void *user, int calls)
{
    dispatches *d = user;
    for (int i = 0; i < calls; i++) {
        uint32_t word;
        bench_ok(d->bench, hal_queue_read(d->bench->queue, d->x, 0, &word, 4), "hal_queue_read");
    }
}

/* Times are those of one command. */
static void add(bench_state *bench, const char *name, measure_function function, dispatches *d,
                double commands)
{
    measured one = {.function = function, .user = d};
    measure_alternating(&one, 1, bench->options.seconds);
    bench_row *row = bench->failed ? NULL : bench_add(bench, name, HAL_TYPE_NONE);
    if (row != NULL) {
        row->time = one.time;
        row->time.median_us /= commands;
        row->time.min_us /= commands;
        row->time.spread_us /= commands;
    }
}
