/* Networks of dense layers with ReLU: inference and training steps, with arrays and as a graph,
 * the inference also with a kernel for each operation and with levels of Strassen's algorithm,
 * with --ranks training by several ranks, and through --join what pytorch/dense.py and
 * pytorch/ddp.py measured. */
#include <stdio.h>
#include <string.h>

#include "suites/dense/network.h"
#include "suites/dense/levels.h"
#include "suites/dense/ranks.h"
#include "suites/dense/steps.h"
#include "harness/interrupt.h"
#include "suites/suites.h"

/* Calls `use` for each cell that the options select. */
static void cells_each(const bench_options *options, void *user,
                       void (*use)(void *user, const dense_cell *cell))
{
    static const int layers[] = {1, 8};
    static const int64_t batches[] = {1, 8, 64, 512, 4096};
    static const int64_t hiddens[] = {64, 256, 1024, 2048, 4096, 8192};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16};
    for (int i = 0; i < 2 * 2 * 2 * 5 * 6; i++) {
        dense_cell cell = {.is_training = i / 120 % 2 != 0,
                           .layers = layers[i / 30 % 2],
                           .batch = batches[i / 6 % 5],
                           .hidden = hiddens[i % 6],
                           .type = types[i / 60 % 2],
                           .precision = options->precision};
        if (cell.type != HAL_TYPE_F32 && cell.precision == HAL_GEMM_STRICT) {
            cell.precision = HAL_GEMM_FAST; /* as others multiply bf16 */
        }
        snprintf(cell.name, sizeof cell.name, "dense%s %s %s L%d B%lld H%lld",
                 cell.is_training ? " training" : "", hal_type_name(cell.type),
                 bench_precision_name(cell.precision), cell.layers, (long long)cell.batch,
                 (long long)cell.hidden);
        const bool has_type =
            !options->types || bench_lists(options->types, hal_type_name(cell.type));
        const bool has_ranks = options->ranks > 0 || options->spread; /* they train */
        if (has_type && (cell.is_training || !has_ranks) &&
            bench_name_passes(cell.name, options->filter)) {
            use(user, &cell);
        }
    }
}

static void cell_print(void *user, const dense_cell *cell)
{
    int *count = user;
    printf("%s  {\"case\": \"%s\", \"layers\": %d, \"batch\": %lld, \"hidden\": %lld, "
           "\"type\": \"%s\", \"precision\": \"%s\", \"training\": %s}",
           (*count)++ > 0 ? ",\n" : "", cell->name, cell->layers, (long long)cell->batch,
           (long long)cell->hidden, hal_type_name(cell->type),
           bench_precision_name(cell->precision), cell->is_training ? "true" : "false");
}

bool dense_list(const bench_options *options)
{
    bench_options one = *options;
    int count = 0;
    printf("{\"rate\": %g, \"cells\": [\n", DENSE_RATE);
    for (int i = 0; bench_select_precision(&one, i); i++) {
        cells_each(&one, &count, cell_print);
    }
    printf("\n]}\n");
    return true;
}

/* Rows, and columns of the first one, of an inference. */
enum { MODES = 2, STAGES = 3, LEVELS_LEAST_BATCH = 64 };

/* What is measured of a cell, in turns. */
typedef struct cell_runs {
    dense_steps steps[MODES + 1]; /* arrays, graph, unfused */
    dense_levels levels[HAL_GEMM_MAX_LEVELS];
    uint32_t level_count;
} cell_runs;

static void levels_run(void *user, int calls)
{
    dense_levels *levels = user;
    bench_state *bench = levels->network->bench;
    for (int i = 0; i < calls && !bench->failed; i++) {
        dense_levels_record(levels);
    }
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* Whether a cell has levels as columns: the strict class says what they are compared with. */
static bool cell_has_levels(const dense_cell *cell)
{
    return !cell->is_training && cell->type == HAL_TYPE_F32 && cell->precision == HAL_GEMM_STRICT &&
           cell->batch >= LEVELS_LEAST_BATCH;
}

/* Adds a row for arrays and one for the graph. For inference the row of arrays has columns: three
 * kernels a layer, and one product a layer with levels. */
static void rows_add(dense_network *n, cell_runs *runs)
{
    static const char *const modes[MODES] = {"arrays", "graph"};
    static const char *const stages[STAGES] = {"unfused", "normwise1", "normwise2"};
    const dense_cell *cell = n->cell;
    const int count = MODES + (cell->is_training ? 0 : 1 + (int)runs->level_count);
    measured all[MODES + STAGES];
    for (int i = 0; i <= MODES; i++) {
        all[i] = (measured){.function = dense_steps_run, .user = &runs->steps[i]};
    }
    for (uint32_t i = 0; i < runs->level_count; i++) {
        all[MODES + 1 + i] = (measured){.function = levels_run, .user = &runs->levels[i]};
    }
    measure_alternating(all, count, n->bench->options.seconds);
    for (int i = 0; i < MODES && !n->bench->failed; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s, %s", cell->name, modes[i]);
        bench_row *row = bench_add(n->bench, name, cell->type);
        if (row) {
            row->m = cell->batch;
            row->n = row->k = cell->hidden;
            row->time = all[i].time;
            for (int j = MODES; j < count && i == 0; j++) {
                bench_add_peer(row, stages[j - MODES], &all[j].time);
            }
            bench_rate(row, dense_step_flops(cell), 0.0);
        }
    }
}

/* One step, compared with double precision. */
static bool step_check(dense_network *n, bool is_fused)
{
    ops_array *results[2 * DENSE_MAX_LAYERS];
    ops_context_set_fusion(n->bench->ops, is_fused);
    const uint32_t count = dense_step(n, results);
    ops_context_set_fusion(n->bench->ops, 1);
    const bool well = count > 0
                          ? dense_check(n, results)
                          : bench_fail(n->bench, "%s: %s", n->cell->name, hal_status_message());
    for (uint32_t i = 0; i < count; i++) {
        ops_array_release(results[i]);
    }
    return well;
}

static void cell_measure(void *user, const dense_cell *cell)
{
    bench_state *bench = user;
    const bool failed_before = bench->failed;
    if (interrupt_was_asked()) {
        return;
    }
    cell_runs runs = {.level_count = 0};
    dense_network n;
    bench->failed = false;
    bool well = dense_create(bench, cell, &n) &&
                bench_ok(bench, ops_prepare(bench->ops, dense_step_record, &n), "ops_prepare");
    well = well && step_check(&n, true) && (cell->is_training || step_check(&n, false));
    while (well && cell_has_levels(cell) && runs.level_count < HAL_GEMM_MAX_LEVELS) {
        dense_levels *levels = &runs.levels[runs.level_count++];
        well = dense_levels_create(&n, runs.level_count, levels) && dense_levels_check(levels);
    }
    ops_graph *graph = well ? dense_graph_create(&n) : NULL;
    if (graph) {
        runs.steps[0] = (dense_steps){.network = &n};
        runs.steps[1] = (dense_steps){.network = &n, .graph = graph};
        runs.steps[2] = (dense_steps){.network = &n, .is_unfused = true};
        rows_add(&n, &runs);
    }
    ops_graph_destroy(graph);
    for (uint32_t i = 0; i < runs.level_count; i++) {
        dense_levels_destroy(&runs.levels[i]);
    }
    dense_destroy(&n);
    bench->failed = bench->failed || failed_before;
}

static void cell_measure_ranks(void *user, const dense_cell *cell)
{
    dense_ranks *run = user;
    if (!interrupt_was_asked() && !dense_ranks_has_failed(run)) {
        dense_ranks_measure(run, cell);
    }
}

void suite_dense(bench_state *bench)
{
    const bool has_ranks = bench->options.ranks > 0 || bench->options.spread;
    interrupt_watch();
    dense_ranks *ranks = has_ranks ? dense_ranks_open(bench) : NULL;
    for (int i = 0; bench_select_precision(&bench->options, i); i++) {
        if (bench->options.levels) {
            bench_fail(bench,
                       "dense: --precision: expected strict, accurate, fast or normwise, got "
                       "normwise%u, which is a column of strict",
                       bench->options.levels);
            break;
        }
        if (!has_ranks) {
            cells_each(&bench->options, bench, cell_measure);
        } else if (ranks) {
            cells_each(&bench->options, ranks, cell_measure_ranks);
        }
    }
    dense_ranks_close(ranks);
}
