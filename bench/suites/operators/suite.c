/* Operators of networks and of data (convolution, pooling, normalisation, order, scattering) next
 * to what pytorch/operators.py measured. hal-conformance checks their results, by the same
 * calls. */
#include <stdlib.h>

#include "harness/interrupt.h"
#include "suites/operators/operators.h"
#include "suites/suites.h"

typedef struct cell_run {
    bench_state *bench;
    const operator_cell *cell;
    ops_array *inputs[OPERATOR_INPUTS];
} cell_run;

static void calls_run(void *user, int calls)
{
    const cell_run *run = user;
    for (int i = 0; i < calls && !run->bench->failed; i++) {
        ops_scope_begin(run->bench->ops);
        ops_array *result = run->cell->kind->apply(run->cell, run->inputs);
        if (!result) {
            bench_fail(run->bench, "%s: %s", run->cell->name, hal_status_message());
        } else {
            bench_ok(run->bench, ops_array_evaluate(&result, 1), run->cell->name);
        }
        ops_scope_end(run->bench->ops);
    }
    bench_ok(run->bench, hal_queue_wait(run->bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static void cell_add(bench_state *bench, const operator_cell *cell)
{
    cell_run run = {.bench = bench, .cell = cell};
    const bool failed_before = bench->failed;
    bench->failed = false;
    if (cell->kind->create(bench, cell, run.inputs) && !bench->failed) {
        measured one = {.function = calls_run, .user = &run};
        const double start = measure_now();
        calls_run(&run, 1);
        const double first = measure_now() - start;
        measure_alternating(&one, 1, bench->options.seconds);
        bench_row *row = bench->failed ? NULL : bench_add(bench, cell->name, cell->type);
        if (row) {
            row->time = one.time;
            row->first_ms = 1e3 * first;
            bench_rate(row, cell->kind->flops ? cell->kind->flops(cell) : 0.0,
                       cell->kind->bytes(cell));
        }
    }
    for (int i = 0; i < OPERATOR_INPUTS; i++) {
        ops_array_release(run.inputs[i]);
    }
    bench->failed |= failed_before;
}

bool operators_list(const bench_options *options)
{
    const uint64_t seed = bench_seed_of(options);
    operator_cell *cells = NULL;
    const int count = operator_cells_create(options, seed, &cells);
    if (count >= 0) {
        operator_cells_print(cells, count, seed);
    }
    free(cells);
    return count >= 0;
}

void suite_operators(bench_state *bench)
{
    const uint64_t seed = bench_seed_of(&bench->options);
    operator_cell *cells = NULL;
    bench_select_precision(&bench->options, 0);
    const int count = operator_cells_create(&bench->options, seed, &cells);
    if (count < 0) {
        bench_fail(bench, "out of memory");
    }
    interrupt_watch();
    for (int i = 0; i < count && !interrupt_was_asked(); i++) {
        cell_add(bench, &cells[i]);
    }
    free(cells);
    bench_note(bench, "Random cells: --seed %llu", (unsigned long long)seed);
}
