/* Ordinary operations over many shapes and types, compared with copies of as many bytes, with a
 * second device, and through --join with what pytorch/grid.py measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/grid/data.h"
#include "harness/interrupt.h"
#include "peers/bandwidth.h"
#include "suites/suites.h"

/* Cells below are bound by other things than memory, and are not compared with copies. */
#define COPY_BYTES 16777216.0

/* Known times of copies; sizes that differ by less than an eighth share one. */
typedef struct copy_rates {
    bench_state *bench;
    struct {
        double bytes, gbps;
    } known[64];
    int count;
} copy_rates;

/* The fastest baseline that moves as many bytes; 0 after a failure. */
static double copy_rate(copy_rates *rates, double bytes)
{
    measured all[1 + BENCH_MAX_PEERS] = {{0}};
    baselines made;
    for (int i = 0; i < rates->count; i++) {
        if (fabs(bytes / rates->known[i].bytes - 1.0) < 0.125) {
            return rates->known[i].gbps;
        }
    }
    double fastest = 0.0;
    if (baselines_create(rates->bench, (int64_t)(bytes / 8.0), &made)) {
        bench_row row = {0};
        const int count = baselines_list(&made, all);
        for (int i = 1; i < count; i++) {
            measure_alternating(&all[i], 1, rates->bench->options.seconds);
        }
        baselines_add(&made, all, count, &row);
        for (int i = 0; i < row.peer_count; i++) {
            fastest = fmax(fastest, row.peers[i].gbps);
        }
    }
    baselines_destroy(&made);
    if (rates->count < (int)(sizeof rates->known / sizeof rates->known[0])) {
        rates->known[rates->count].bytes = bytes;
        rates->known[rates->count++].gbps = fastest;
    }
    return fastest;
}

/* The result, which the caller releases; null after a failure. */
static ops_array *operation_call(const grid_data *data)
{
    const grid_cell *cell = data->cell;
    ops_scope_begin(data->place->ops);
    ops_array *result = ops_array_keep(cell->operation->apply(data->x, data->y, cell->axis));
    ops_scope_end(data->place->ops);
    if (!result) {
        bench_fail(data->bench, "%s: %s", cell->name, hal_status_message());
    } else if (!bench_ok(data->bench, ops_array_evaluate(&result, 1), cell->name)) {
        ops_array_release(result);
        result = NULL;
    }
    return result;
}

static hal_status program_record(ops_context *context, void *user)
{
    (void)context;
    ops_array *result = operation_call(user);
    ops_array_release(result);
    return result ? HAL_OK : HAL_ERROR_INVALID_STATE;
}

static void transfer_call(const grid_data *data)
{
    const ops_tensor *memory = &data->memory;
    const uint64_t bytes = (uint64_t)memory->shape[0] * hal_type_size(memory->type);
    const hal_range device = {memory->buffer, 0, bytes}, mapped = {data->mapped, 0, bytes};
    hal_queue *queue = data->place->queue;
    hal_status status = HAL_OK;
    switch (data->cell->operation->kind) {
    case GRID_WRITE:
        status = hal_queue_write(queue, memory->buffer, 0, data->host, bytes);
        break;
    case GRID_READ:
        status = hal_queue_read(queue, memory->buffer, 0, bytes, data->host);
        break;
    case GRID_UPLOAD:
        status = hal_queue_copy(queue, mapped, device);
        break;
    default:
        status = hal_queue_copy(queue, device, mapped);
    }
    bench_ok(data->bench, status, data->cell->name);
}

static void cell_run(void *user, int calls)
{
    const grid_data *data = user;
    for (int i = 0; i < calls && !data->bench->failed; i++) {
        if (!data->cell->operation->apply) {
            transfer_call(data);
        } else {
            ops_array_release(operation_call(data));
        }
    }
    bench_ok(data->bench, hal_queue_wait(data->place->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* Times the first call, in milliseconds, prepares and checks the cell, then measures it. */
static bool cell_measure(bench_state *bench, const bench_place *place, const grid_cell *cell,
                         measurement *time, double *first_ms)
{
    grid_data data;
    const bool failed_before = bench->failed;
    bench->failed = false;
    if (grid_data_create(bench, place, cell, &data)) {
        bench_ok(bench, hal_queue_wait(place->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        const double start = measure_now();
        cell_run(&data, 1);
        *first_ms = 1e3 * (measure_now() - start);
        ops_array *result = NULL;
        if (cell->operation->apply && !bench->failed &&
            bench_ok(bench, ops_prepare(place->ops, program_record, &data), "ops_prepare")) {
            result = operation_call(&data);
        }
        if (!bench->failed && grid_data_check(&data, result)) {
            ops_array_release(result);
            result = NULL;
            measured one = {.function = cell_run, .user = &data};
            measure_alternating(&one, 1, bench->options.seconds);
            *time = one.time;
        }
        ops_array_release(result);
    }
    grid_data_destroy(&data);
    const bool well = !bench->failed;
    bench->failed = failed_before || !well;
    return well;
}

static void cell_add(bench_state *bench, const grid_cell *cell, copy_rates *rates)
{
    const bench_place place = {bench->device, bench->info, bench->queue, bench->ops};
    const double bytes = grid_cell_bytes(cell);
    const bool is_transfer = !cell->operation->apply;
    measurement time, second;
    double first_ms, ignored;
    const bool has_second = bench->second.device != NULL;
    if (!cell_measure(bench, &place, cell, &time, &first_ms) ||
        (has_second && !cell_measure(bench, &bench->second, cell, &second, &ignored))) {
        return;
    }
    bench_row *row = bench_add(bench, cell->name, cell->type);
    if (!row) {
        return;
    }
    row->m = grid_input_count(&cell->x);
    row->time = time;
    row->first_ms = first_ms;
    if (bytes >= COPY_BYTES && !is_transfer) {
        const double gbps = copy_rate(rates, bytes);
        const measurement copied = {.median_us = 1e-3 * bytes / gbps};
        if (gbps > 0.0) {
            bench_add_peer(row, "copy", &copied)->gbps = gbps;
        }
    }
    if (has_second) {
        bench_add_peer(row, hal_device_get_plugin_name(bench->second.device), &second);
    }
    bench_rate(row, 0.0, bytes);
}

static int cells_create(const bench_options *options, uint64_t seed, grid_cell **cells)
{
    return grid_cells_create(seed, (int)options->random,
                             options->largest > 0 ? options->largest : UINT64_C(1) << 28,
                             options->filter, cells);
}

bool grid_list(const bench_options *options)
{
    const uint64_t seed = bench_seed_of(options);
    grid_cell *cells = NULL;
    const int count = cells_create(options, seed, &cells);
    if (count >= 0) {
        grid_cells_print(cells, count, seed);
    }
    free(cells);
    return count >= 0;
}

void suite_grid(bench_state *bench)
{
    const uint64_t seed = bench_seed_of(&bench->options);
    grid_cell *cells = NULL;
    copy_rates rates = {.bench = bench};
    const int count = cells_create(&bench->options, seed, &cells);
    if (count < 0) {
        bench_fail(bench, "out of memory");
    }
    interrupt_watch();
    for (int i = 0; i < count && !interrupt_was_asked(); i++) {
        cell_add(bench, &cells[i], &rates);
    }
    free(cells);
    bench_note(bench, "Random cells: --seed %llu", (unsigned long long)seed);
}
