/* Reductions and softmax over long and short axes, compared with memory-bound baselines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench.h"
#include "peers/bandwidth.h"
#include "suites/suites.h"

typedef struct reduction {
    bench_state *bench;
    int kind; /* ops_reduction, or OPS_REDUCTION_COUNT for softmax */
    uint32_t axis;
    ops_tensor x, y;
} reduction;

static const char *const names[OPS_REDUCTION_COUNT + 1] = {
    "sum", "mean", "max", "min", "argmax", "product", "argmin", "softmax"};

static void run_device(void *user, int calls)
{
    reduction *r = user;
    bench_state *bench = r->bench;
    for (int i = 0; i < calls && !bench->failed; i++) {
        const hal_status status =
            r->kind == OPS_REDUCTION_COUNT
                ? ops_softmax(bench->ops, r->axis, &r->x, &r->y)
                : ops_reduce(bench->ops, (ops_reduction)r->kind, r->axis, &r->x, NULL, &r->y);
        bench_ok(bench, status, names[r->kind]);
    }
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* The result of a line; for softmax its first element. */
static double reference(const reduction *r, const float *x, const int64_t shape[2], int64_t line,
                        double *size)
{
    const int64_t step = r->axis == 0 ? shape[1] : 1;
    const int64_t first = r->axis == 0 ? line : line * shape[1];
    double sum = 0.0, best = (double)x[first], exponentials = 0.0;
    int64_t place = 0;
    for (int64_t i = 0; i < shape[r->axis]; i++) {
        const double value = (double)x[first + i * step];
        sum += value;
        exponentials += exp(value);
        if (r->kind == OPS_REDUCE_SUM) {
            *size += fabs(value);
        }
        if (value > best) {
            best = value;
            place = i;
        }
    }
    switch (r->kind) {
    case OPS_REDUCE_SUM:
        return sum;
    case OPS_REDUCE_ARGMAX:
        return (double)place;
    case OPS_REDUCTION_COUNT:
        return exp((double)x[first]) / exponentials;
    default:
        return best;
    }
}

/* Checks some lines. */
static bool check(reduction *r, const float *x, const int64_t shape[2])
{
    const int64_t count = ops_tensor_get_element_count(&r->y), lines = shape[1 - r->axis];
    void *y = malloc((size_t)count * 4);
    bool well =
        y && bench_ok(r->bench, ops_tensor_read(r->bench->ops, &r->y, (uint64_t)count * 4, y),
                      "a result");
    for (int64_t s = 0; s < 5 && well; s++) {
        const int64_t line = (lines - 1) * s / 4;
        double size = 0.0;
        const double expected = reference(r, x, shape, line, &size);
        const int64_t at =
            r->kind == OPS_REDUCTION_COUNT ? (r->axis == 0 ? line : line * shape[1]) : line;
        const double value = bench_value(r->y.type, y, (size_t)at);
        const double gamma = (double)shape[r->axis] * 0x1p-24;
        well = fabs(value - expected) <= gamma * size + 1e-5 * fabs(expected) ||
               bench_fail(r->bench, "%s: line %lld is %.9g instead of %.9g", names[r->kind],
                          (long long)line, value, expected);
    }
    free(y);
    return well;
}

static void run_case(bench_state *bench, int kind, const int64_t shape[2], uint32_t axis,
                     baselines *all)
{
    const bool softmax = kind == OPS_REDUCTION_COUNT;
    const int64_t count = shape[0] * shape[1], lines = shape[1 - axis];
    float *x = malloc((size_t)count * sizeof *x);
    char name[96];
    reduction r = {.bench = bench, .kind = kind, .axis = axis};
    measured competitors[1 + BENCH_MAX_PEERS] = {{.function = run_device, .user = &r}};
    const int competitor_count = baselines_list(all, competitors);
    bool well = x || bench_fail(bench, "out of memory");
    if (well) {
        bench_random(HAL_TYPE_F32, x, (size_t)count, 21);
        well = bench_ok(bench, ops_tensor_from_host(bench->ops, HAL_TYPE_F32, 2, shape, x, &r.x),
                        "an input") &&
               bench_ok(bench,
                        ops_tensor_create(bench->ops,
                                          kind == OPS_REDUCE_ARGMAX ? (hal_type)HAL_TYPE_I32
                                                                    : (hal_type)HAL_TYPE_F32,
                                          softmax ? 2 : 1, softmax ? shape : &lines, &r.y),
                        "an output");
    }
    if (well) {
        run_device(&r, 1);
        well = !bench->failed && check(&r, x, shape);
    }
    free(x);
    snprintf(name, sizeof name, "%s of %lldx%lld over axis %u", names[kind], (long long)shape[0],
             (long long)shape[1], axis);
    bench_row *row = well ? bench_add(bench, name, HAL_TYPE_F32) : NULL;
    if (row) {
        measure_alternating(competitors, competitor_count, bench->options.seconds);
        row->m = shape[0];
        row->n = shape[1];
        row->time = competitors[0].time;
        baselines_add(all, competitors, competitor_count, row);
        bench_rate(row, 0.0, 4.0 * (double)(softmax ? 2 * count : count + lines));
    }
    ops_tensor_release(&r.x);
    ops_tensor_release(&r.y);
}

void suite_reduce(bench_state *bench)
{
    static const int64_t usual[][3] = {{1, 16777216, 1}, {4096, 4096, 1}, {16777216 / 64, 64, 1}};
    static const int kinds[] = {OPS_REDUCE_SUM, OPS_REDUCE_MAX, OPS_REDUCE_ARGMAX,
                                OPS_REDUCTION_COUNT};
    const int sizes = bench->options.size_count > 0 ? bench->options.size_count : 3;
    for (int s = 0; s < sizes; s++) {
        const int64_t *shape = bench->options.size_count > 0 ? bench->options.sizes[s] : usual[s];
        baselines all;
        const bool well = baselines_create(bench, shape[0] * shape[1], &all);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && well; k++) {
            for (uint32_t axis = 0; axis < 2; axis++) {
                if (shape[axis] > 1) {
                    run_case(bench, kinds[k], shape, axis, &all);
                }
            }
        }
        baselines_destroy(&all);
    }
}
