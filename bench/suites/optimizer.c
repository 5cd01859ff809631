/* An optimizer: a step of Adam over 150 tensors, computed by one call, and by a call for each. */
#include <inttypes.h>
#include <math.h>
#include <ops/array.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench.h"
#include "suites/suites.h"

enum { TENSORS = 150, LEAST = 10 };

enum { PARAMETERS, GRADIENTS, FIRST_MOMENTS, SECOND_MOMENTS, KINDS };

typedef struct optimizer {
    bench_state *bench;
    bool is_joined;
    int64_t lengths[TENSORS], total;
    ops_array *of[KINDS][TENSORS];
} optimizer;

/* The next state of a tensor in `next`, in the order of the kinds without the gradient. */
static void update(const optimizer *o, int i, ops_array *next[3])
{
    ops_array *g = o->of[GRADIENTS][i];
    next[1] = ops_add(ops_array_binary_scalar(OPS_MUL, o->of[FIRST_MOMENTS][i], 0.9),
                      ops_array_binary_scalar(OPS_MUL, g, 0.1));
    next[2] = ops_add(ops_array_binary_scalar(OPS_MUL, o->of[SECOND_MOMENTS][i], 0.999),
                      ops_array_binary_scalar(OPS_MUL, ops_square(g), 0.001));
    ops_array *root = ops_array_binary_scalar(OPS_ADD, ops_sqrt(next[2]), 1e-8);
    next[0] = ops_sub(o->of[PARAMETERS][i],
                      ops_div(ops_array_binary_scalar(OPS_MUL, next[1], 1e-3), root));
}

static void run_step(optimizer *o)
{
    static const int kinds[3] = {PARAMETERS, FIRST_MOMENTS, SECOND_MOMENTS};
    bench_state *bench = o->bench;
    ops_array *all[3 * TENSORS];
    bool well = bench_ok(bench, ops_scope_begin(bench->ops), "ops_scope_begin");
    for (int i = 0; i < TENSORS && well; i++) {
        ops_array **next = all + 3 * i;
        update(o, i, next);
        for (int k = 0; k < 3 && well; k++) {
            well = next[k] || bench_fail(bench, "%s", hal_status_message());
            ops_array_release(o->of[kinds[k]][i]);
            o->of[kinds[k]][i] = ops_array_keep(next[k]);
        }
        if (well && !o->is_joined) {
            bench_ok(bench, ops_array_evaluate(next, 3), "ops_array_evaluate");
        }
    }
    if (well && o->is_joined) {
        bench_ok(bench, ops_array_evaluate(all, 3 * TENSORS), "ops_array_evaluate");
    }
    bench_ok(bench, ops_scope_end(bench->ops), "ops_scope_end");
}

static void run_steps(void *user, int calls)
{
    optimizer *o = user;
    for (int call = 0; call < calls && !o->bench->failed; call++) {
        run_step(o);
        bench_ok(o->bench, hal_queue_wait(o->bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    }
}

static bool optimizer_open(optimizer *o, bench_state *bench, double most, bool is_joined)
{
    *o = (optimizer){.bench = bench, .is_joined = is_joined};
    bool well = true;
    for (int i = 0; i < TENSORS && well; i++) {
        /* 47 and 150 have no common divisor: all sizes, in no order. */
        const double place = i * 47 % TENSORS / (TENSORS - 1.0);
        o->lengths[i] = llround(LEAST * pow(most / LEAST, place));
        o->total += o->lengths[i];
        for (uint64_t k = 0; k < KINDS && well; k++) {
            o->of[k][i] = ops_array_keep(
                ops_array_uniform(bench->ops, HAL_TYPE_F32, 1, &o->lengths[i],
                                  (ops_random_key){k, (uint64_t)i}, k < FIRST_MOMENTS ? -1 : 0, 1));
            well = o->of[k][i] || bench_fail(bench, "%s", hal_status_message());
        }
    }
    return well;
}

static void optimizer_close(optimizer *o)
{
    for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < TENSORS; i++) {
            ops_array_release(o->of[k][i]);
        }
    }
}

/* Both ways have the same bits. */
static bool check(optimizer o[2], int64_t most)
{
    bench_state *bench = o->bench;
    float *got[2] = {malloc((size_t)most * sizeof(float)), malloc((size_t)most * sizeof(float))};
    bool well = (got[0] && got[1]) || bench_fail(bench, "no memory");
    for (int k = 0; k < 2 && well; k++) {
        run_steps(&o[k], 2);
    }
    for (int i = 0; i < TENSORS && well && !bench->failed; i++) {
        const uint64_t bytes = (uint64_t)o->lengths[i] * sizeof(float);
        for (int k = 0; k < 2 && well; k++) {
            well = bench_ok(bench, ops_array_read(o[k].of[PARAMETERS][i], bytes, got[k]),
                            "ops_array_read");
        }
        well = well && (memcmp(got[0], got[1], bytes) == 0 ||
                        bench_fail(bench, "tensor %d differs when it is joined", i));
    }
    free(got[0]);
    free(got[1]);
    return well && !bench->failed;
}

static void add_row(bench_state *bench, int64_t most)
{
    optimizer o[2];
    bool well = optimizer_open(&o[0], bench, (double)most, true);
    well = optimizer_open(&o[1], bench, (double)most, false) && well;
    if (well && check(o, most)) {
        measured competitors[2] = {{.function = run_steps, .user = &o[0]},
                                   {.function = run_steps, .user = &o[1]}};
        measure_alternating(competitors, 2, bench->options.seconds);
        char name[64];
        snprintf(name, sizeof name, "Adam over %d tensors to %" PRId64, TENSORS, most);
        bench_row *row = bench->failed ? NULL : bench_add(bench, name, HAL_TYPE_F32);
        if (row) {
            row->time = competitors[0].time;
            bench_add_peer(row, "apart", &competitors[1].time);
            bench_rate(row, 0.0, 7.0 * sizeof(float) * (double)o->total);
        }
    }
    optimizer_close(&o[0]);
    optimizer_close(&o[1]);
}

void suite_optimizer(bench_state *bench)
{
    static const int64_t own[] = {1000, 30000, 1000000};
    const int count = bench->options.size_count ? bench->options.size_count : 3;
    for (int i = 0; i < count && !bench->failed; i++) {
        const int64_t most = bench->options.size_count ? bench->options.sizes[i][0] : own[i];
        if (most >= LEAST || !bench_fail(bench, "--sizes: expected at least %d elements", LEAST)) {
            add_row(bench, most);
        }
    }
}
