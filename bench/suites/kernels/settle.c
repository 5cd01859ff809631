/* Shapes that return: the calls until the kernels are made that they settle on, and what a call
 * takes then, next to contexts with special and with general kernels alone. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/interrupt.h"
#include "suites/kernels/kernels.h"

#define MOST_CALLS 100000u
#define SECONDS 1.0       /* until a special kernel has to pay, at least after the last new one */
#define ALONE_SECONDS 0.1 /* of special and of general kernels alone */

typedef struct settle_run {
    bench_state *bench;
    const kernels_case *what;
    kernels_draw draw;
    double *seconds;     /* of each call */
    uint32_t calls, last; /* the call that made a kernel last, from 1 on */
    uint64_t made;
} settle_run;

static uint64_t kernels_made(ops_context *ops)
{
    ops_array_statistics statistics = {.size = sizeof statistics};
    return ops_context_get_statistics(ops, &statistics) == HAL_OK ? statistics.made : 0;
}

/* One call, with its wait; what it makes is released. */
static bool call_once(settle_run *run, double *seconds)
{
    kernels_draw *draw = &run->draw;
    draw->result_count = 0;
    if (ops_scope_begin(draw->ops) != HAL_OK) {
        return false;
    }
    const double start = measure_now();
    const bool well = run->what->compute(draw) &&
                      ops_array_evaluate(draw->results, draw->result_count) == HAL_OK &&
                      hal_queue_wait(run->bench->queue, HAL_WAIT_FOREVER) == HAL_OK;
    *seconds = measure_now() - start;
    for (uint32_t i = 0; i < draw->result_count; i++) {
        ops_array_release(draw->results[i]);
    }
    ops_scope_end(draw->ops);
    return well;
}

/* Repeats the shape for some time, and for three calls without a new kernel. */
static bool call_often(settle_run *run, double seconds)
{
    const double begin = measure_now();
    bool well = true, goes_on = true;
    run->calls = run->last = 0;
    run->made = 0;
    while (well && goes_on) {
        well = call_once(run, &run->seconds[run->calls++]);
        const uint64_t made = kernels_made(run->draw.ops);
        run->last = made != run->made ? run->calls : run->last;
        run->made = made;
        goes_on = run->calls < MOST_CALLS &&
                  (measure_now() - begin < seconds || run->calls < 3 + run->last);
    }
    return well;
}

/* Draws shape `number` in a new context and repeats it; `time` receives the calls after the last
 * new kernel, first[] the first two calls in milliseconds. */
static bool settle(settle_run *run, uint64_t seed, uint32_t number, ops_kernel_choice choice,
                   measurement *time, double first[2])
{
    bench_state *bench = run->bench;
    uint64_t random = bench_seed(seed);
    const int64_t largest = run->draw.largest;
    run->draw = (kernels_draw){.bench = bench, .random = &random, .largest = largest};
    if (!bench_ok(bench, ops_context_create(bench->queue, &run->draw.ops), "a context")) {
        return false;
    }
    ops_context_set_kernels(run->draw.ops, choice);
    bool well = ops_scope_begin(run->draw.ops) == HAL_OK;
    for (uint32_t i = 0; well && i <= number; i++) {
        run->draw.input_count = 0;
        well = run->what->prepare(&run->draw);
    }
    well = well && hal_queue_wait(bench->queue, HAL_WAIT_FOREVER) == HAL_OK &&
           call_often(run, choice == OPS_KERNELS_AUTO ? SECONDS : ALONE_SECONDS);
    ops_scope_end(run->draw.ops);
    ops_context_destroy(run->draw.ops);
    if (bench_ok(bench, well ? HAL_OK : HAL_ERROR_INTERNAL, run->what->name)) {
        first[0] = 1e3 * run->seconds[0];
        first[1] = 1e3 * run->seconds[1];
        measure_summarise(time, run->seconds + run->last, (int)(run->calls - run->last), 1);
    }
    return well;
}

static bool add_shape(settle_run *run, uint64_t seed, uint32_t number)
{
    measurement settled, special, general;
    double first[2], ignored[2];
    if (!settle(run, seed, number, OPS_KERNELS_AUTO, &settled, first)) {
        return false;
    }
    const uint32_t last = run->last;
    const uint64_t made = run->made;
    if (!settle(run, seed, number, OPS_KERNELS_SPECIAL, &special, ignored) ||
        !settle(run, seed, number, OPS_KERNELS_GENERAL, &general, ignored)) {
        return false;
    }
    char name[96];
    snprintf(name, sizeof name, "%s, shape %u", run->what->name, number + 1);
    bench_row *row = bench_add(run->bench, name, HAL_TYPE_NONE);
    if (row) {
        row->time = settled;
        row->first_ms = first[0];
        row->second_ms = first[1];
        bench_add_peer(row, "special", &special);
        bench_add_peer(row, "general", &general);
        bench_rate(row, 0, 0);
        snprintf(row->how, sizeof row->how, "%llu kernels, the last at call %u",
                 (unsigned long long)made, last);
        bench_note(run->bench,
                   "%s: %s; us of the first call %.0f, the second %.0f, settled %.1f, special "
                   "kernels %.1f, general ones %.1f",
                   name, row->how, 1e3 * first[0], 1e3 * first[1], settled.median_us,
                   special.median_us, general.median_us);
    }
    return row != NULL;
}

void kernels_settle(bench_state *bench, const kernels_case *what, uint64_t seed, int64_t largest)
{
    settle_run run = {.bench = bench, .what = what, .draw.largest = largest};
    run.seconds = malloc(MOST_CALLS * sizeof *run.seconds);
    bool well = run.seconds || bench_fail(bench, "out of memory");
    for (uint32_t i = 0; well && i < bench->options.settle && !interrupt_was_asked(); i++) {
        well = add_shape(&run, seed, i);
    }
    free(run.seconds);
}
