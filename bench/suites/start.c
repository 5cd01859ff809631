/* The time of first results: child processes that open the device, multiply, and run a fused
 * chain, with empty caches, with the driver's caches alone, and with hal's too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/bench.h"
#include "harness/caches.h"
#include "suites/suites.h"

#define PASSES 9
#define COLD_PASSES 3

/* Microseconds. */
enum {
    OPENED,       /* hal_device_open */
    MADE,         /* the first ops_gemm: kernels are compiled, the work is recorded */
    FIRST_RESULT, /* until the first product is on the host, MADE included */
    AGAIN,        /* the same product once more */
    CHAIN,        /* a fused chain, from its recording to its result */
    TIMES
};
static const char *const names[TIMES] = {"device opened", "kernel of a product made",
                                         "first product, since the device is open",
                                         "second product", "first fused chain"};

typedef struct first_work {
    bench_state bench;
    ops_tensor a, b, c, x, y;
    ops_expression *chain;
    float *numbers;
} first_work;

enum { SIZE = 256 };

/* Runs this program as a child process. */
static bool run_pass(bench_state *bench, const char *folder, const char *hal_cache,
                     double times[TIMES])
{
    char program[4096] = "", command[5000], device[128];
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 || strchr(program, '\'')) {
        return bench_fail(bench, "cannot tell what program this is");
    }
    snprintf(device, sizeof device, "%s:%u", hal_device_get_plugin_name(bench->device),
             hal_device_get_index(bench->device));
    snprintf(command, sizeof command, "exec '%s' start --once --device %s --threads %d", program,
             device, bench->options.threads);
    caches_use_folder(folder, hal_cache);
    FILE *pipe = popen(command, "r");
    if (!pipe) {
        return bench_fail(bench, "cannot run %s", program);
    }
    int read = 0;
    while (read < TIMES && fscanf(pipe, "%lf", &times[read]) == 1) {
        read++;
    }
    const int status = pclose(pipe);
    return (read == TIMES && status == 0) ||
           bench_fail(bench, "a pass ended with status %d after %d times", status, read);
}

/* With `keep`, all passes share a cache folder, which an extra first pass fills. */
static void run_passes(bench_state *bench, const char *what, int passes, bool keep,
                       const char *hal_cache)
{
    double samples[TIMES][PASSES], times[TIMES];
    char folder[64] = "";
    for (int pass = keep ? -1 : 0; pass < passes && !bench->failed; pass++) {
        if (folder[0] == 0 && !caches_make_folder(folder)) {
            bench_fail(bench, "no folder for caches in /tmp");
            return;
        }
        const bool well = run_pass(bench, folder, hal_cache, times);
        for (int i = 0; i < TIMES && well && pass >= 0; i++) {
            samples[i][pass] = 1e-6 * times[i];
        }
        if (!keep) {
            caches_remove(folder);
            folder[0] = 0;
        }
    }
    if (keep) {
        caches_remove(folder);
    }
    for (int i = 0; i < TIMES && !bench->failed; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s: %s", what, names[i]);
        bench_row *row = bench_add(bench, name, HAL_TYPE_NONE);
        if (row) {
            measure_summarise(&row->time, samples[i], passes, 1);
        }
    }
}

static double since(double start)
{
    return 1e6 * (measure_now() - start);
}

/* Ones times twos: every element of the result is known. *made: seconds of the first ops_gemm. */
static bool product(first_work *w, double *made)
{
    bench_state *bench = &w->bench;
    const int64_t shape[2] = {SIZE, SIZE};
    const size_t count = (size_t)SIZE * SIZE;
    ops_tensor *const inputs[2] = {&w->a, &w->b};
    for (int i = 0; i < 2; i++) {
        for (size_t n = 0; n < count; n++) {
            w->numbers[n] = (float)(i + 1);
        }
        if (!bench_ok(
                bench,
                ops_tensor_from_host(bench->ops, HAL_TYPE_F32, 2, shape, w->numbers, inputs[i]),
                "a matrix")) {
            return false;
        }
    }
    if (!bench_ok(bench, ops_tensor_create(bench->ops, HAL_TYPE_F32, 2, shape, &w->c),
                  "a matrix")) {
        return false;
    }
    const double start = measure_now();
    if (!bench_ok(bench, ops_gemm(bench->ops, NULL, &w->a, &w->b, &w->c), "ops_gemm")) {
        return false;
    }
    *made = measure_now() - start;
    if (!bench_ok(bench, ops_tensor_read(bench->ops, &w->c, sizeof(float) * count, w->numbers),
                  "a result")) {
        return false;
    }
    for (size_t n = 0; n < count; n++) {
        if (w->numbers[n] != 2.0f * SIZE) {
            return bench_fail(bench, "element %zu of the first product is %g instead of %g", n,
                              (double)w->numbers[n], 2.0 * SIZE);
        }
    }
    return true;
}

/* sigmoid(relu(x * y + x)) of the product and itself. */
static bool fused_chain(first_work *w)
{
    bench_state *bench = &w->bench;
    const int64_t count = SIZE * SIZE;
    hal_ir_builder *b = NULL;
    if (!bench_ok(bench, hal_ir_builder_create_fragment("chain", &b), "a fragment")) {
        return false;
    }
    const hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32), y = hal_ir_input(b, 1, HAL_TYPE_F32);
    const hal_ir_value r = ops_unary_value(b, OPS_RELU, hal_ir_fma(b, x, y, x));
    hal_ir_output(b, 0, ops_unary_value(b, OPS_SIGMOID, r));
    ops_tensor inputs[2];
    if (!bench_ok(bench, ops_expression_create(b, &w->chain), "an expression") ||
        !bench_ok(bench, ops_tensor_reshape(&w->c, 1, &count, &inputs[0]), "a view") ||
        !bench_ok(bench, ops_tensor_create(bench->ops, HAL_TYPE_F32, 1, &count, &w->y),
                  "a tensor")) {
        return false;
    }
    inputs[1] = inputs[0];
    if (!bench_ok(bench, ops_pointwise(bench->ops, w->chain, inputs, 2, &w->y, 1),
                  "ops_pointwise") ||
        !bench_ok(bench,
                  ops_tensor_read(bench->ops, &w->y, sizeof(float) * SIZE * SIZE, w->numbers),
                  "a result")) {
        return false;
    }
    return w->numbers[0] == 1.0f ||
           bench_fail(bench, "the first chain gives %g instead of 1", (double)w->numbers[0]);
}

static bool work(first_work *w, double *times)
{
    bench_state *bench = &w->bench;
    double start = measure_now();
    if (!bench_ok(bench, hal_device_open(bench->options.device, &bench->device), "the device")) {
        return false;
    }
    times[OPENED] = since(start);
    start = measure_now();
    double made = 0.0;
    if (!bench_ok(bench, hal_queue_create(bench->device, &bench->queue), "a queue") ||
        !bench_ok(bench, ops_context_create(bench->queue, &bench->ops), "a context") ||
        !product(w, &made)) {
        return false;
    }
    times[MADE] = 1e6 * made;
    times[FIRST_RESULT] = since(start);
    start = measure_now();
    if (!bench_ok(bench, ops_gemm(bench->ops, NULL, &w->a, &w->b, &w->c), "ops_gemm") ||
        !bench_ok(bench,
                  ops_tensor_read(bench->ops, &w->c, sizeof(float) * SIZE * SIZE, w->numbers),
                  "a result")) {
        return false;
    }
    times[AGAIN] = since(start);
    start = measure_now();
    if (!fused_chain(w)) {
        return false;
    }
    times[CHAIN] = since(start);
    return true;
}

static void release(first_work *w)
{
    ops_tensor_release(&w->a);
    ops_tensor_release(&w->b);
    ops_tensor_release(&w->c);
    ops_tensor_release(&w->y);
    ops_expression_destroy(w->chain);
    ops_context_destroy(w->bench.ops);
    hal_queue_destroy(w->bench.queue);
    hal_device_release(w->bench.device);
    free(w->numbers);
}

void suite_start(bench_state *bench)
{
    run_passes(bench, "cold", COLD_PASSES, false, NULL);
    run_passes(bench, "driver's cache", PASSES, true, "off");
    run_passes(bench, "warm", PASSES, true, NULL);
}

bool start_once(const bench_options *options)
{
    double times[TIMES];
    first_work w = {.bench = {.options = *options}};
    w.numbers = malloc(sizeof *w.numbers * SIZE * SIZE);
    bool well = w.numbers && work(&w, times);
    release(&w);
    for (int i = 0; i < TIMES && well; i++) {
        printf("%.3f%c", times[i], i + 1 < TIMES ? ' ' : '\n');
    }
    return well;
}
