/* The step of a recurrent network, one matrix product and five pointwise operations. Leaky neurons
 * with a state h of [batch, hidden], a new input x in each step and a rate a per hidden unit:
 *
 * h' = h + a (tanh(h W + x) - h)
 *
 * W is scaled to a spectral radius of about 0.9 and 0.25 <= a <= 0.75, so |h| stays below 1 and
 * errors fade. H. Jaeger et al., "Optimization and applications of echo state networks with
 * leaky-integrator neurons", Neural Networks 20, 2007. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/sequential/sequential.h"

/* The inputs are RING arrays in turn; a call has RING steps. */
enum { RING = 16, CHECKED = 3 * RING, CHECKED_ROWS = 4, LONG_RUN = 10000 };

/* Ways to run it. */
enum { EAGER, UNFUSED, GRAPH, GRAPH_OF_RING, WAYS };
static const char *const suffixes[WAYS] = {"", ", unfused", ", graph", ", graph of 16"};

typedef struct recurrence {
    bench_state *bench;
    bench_place place;
    int way;
    int64_t batch, hidden;
    ops_array *weight, *rate, *start, *inputs[RING], *state;
    ops_graph *graph; /* of one step or of RING */
} recurrence;

/* The numbers of a size, and the states after each of the first CHECKED steps. */
typedef struct step_numbers {
    int64_t batch, hidden;
    float *weight, *rate, *start, *inputs[RING], *states[CHECKED], *other;
} step_numbers;

/* The best time of a step at a size, on the device and on that of --second. */
typedef struct step_best {
    int64_t batch, hidden;
    double device_us, second_us;
} step_best;

static bool make_numbers(bench_state *bench, step_numbers *n)
{
    const size_t square = (size_t)(n->hidden * n->hidden), state = (size_t)(n->batch * n->hidden);
    const size_t hidden = (size_t)n->hidden;
    float *all = calloc(square + hidden + state * (2 + RING + CHECKED), sizeof *all);
    if (!all) {
        return bench_fail(bench, "out of memory");
    }
    n->weight = all;
    n->rate = n->weight + square;
    n->start = n->rate + hidden;
    n->other = n->start + state;
    for (int i = 0; i < RING; i++) {
        n->inputs[i] = n->other + state * (size_t)(1 + i);
        bench_random(HAL_TYPE_F32, n->inputs[i], state, (uint64_t)(100 + i));
    }
    for (int i = 0; i < CHECKED; i++) {
        n->states[i] = n->other + state * (size_t)(1 + RING + i);
    }
    bench_random(HAL_TYPE_F32, n->weight, square, 21);
    bench_random(HAL_TYPE_F32, n->rate, hidden, 22);
    const float scale = (float)(0.9 * sqrt(3.0 / (double)n->hidden));
    for (size_t i = 0; i < square; i++) {
        n->weight[i] *= scale;
    }
    for (size_t i = 0; i < hidden; i++) {
        n->rate[i] = 0.5f + 0.25f * n->rate[i];
    }
    return true;
}

/* The caller's next state. */
static ops_array *step(const recurrence *r, ops_array *state, ops_array *input)
{
    ops_scope_begin(r->place.ops);
    ops_array *aim = ops_tanh(ops_add(ops_matmul(state, r->weight), input));
    ops_array *next = ops_add(state, ops_mul(r->rate, ops_sub(aim, state)));
    ops_array_keep(next);
    ops_scope_end(r->place.ops);
    return next;
}

/* For ops_prepare: compiles the kernels of a step. */
static hal_status rehearse(ops_context *context, void *user)
{
    const recurrence *r = user;
    ops_array *next = step(r, r->start, r->inputs[0]);
    const hal_status status = ops_array_evaluate(&next, 1);
    ops_array_release(next);
    (void)context;
    return status;
}

/* One step, or RING steps; the graph's inputs are the state and the inputs of the steps. */
static bool make_graph(recurrence *r)
{
    bench_state *bench = r->bench;
    const int steps = r->way == GRAPH ? 1 : RING;
    ops_array *inputs[1 + RING] = {r->start};
    ops_array *state = ops_array_retain(r->start);
    if (!bench_ok(bench, ops_graph_begin(r->place.ops), "ops_graph_begin")) {
        ops_array_release(state);
        return false;
    }
    for (int i = 0; i < steps; i++) {
        ops_array *next = step(r, state, r->inputs[i]);
        ops_array_release(state);
        state = next;
        inputs[1 + i] = r->inputs[i];
    }
    const bool well = bench_ok(
        bench, ops_graph_end(r->place.ops, inputs, (uint32_t)steps + 1, &state, 1, &r->graph),
        "ops_graph_end");
    ops_array_release(state);
    return well;
}

static bool make(recurrence *r, const step_numbers *n)
{
    ops_context *context = r->place.ops;
    const int64_t square[2] = {r->hidden, r->hidden}, row[2] = {1, r->hidden};
    const int64_t state[2] = {r->batch, r->hidden};
    ops_context_set_fusion(context, r->way != UNFUSED);
    r->weight = ops_array_from_host(context, HAL_TYPE_F32, 2, square, n->weight);
    r->rate = ops_array_from_host(context, HAL_TYPE_F32, 2, row, n->rate);
    r->start = ops_array_from_host(context, HAL_TYPE_F32, 2, state, n->start);
    bool well = r->weight && r->rate && r->start != NULL;
    for (int i = 0; i < RING && well; i++) {
        r->inputs[i] = ops_array_from_host(context, HAL_TYPE_F32, 2, state, n->inputs[i]);
        well = r->inputs[i] != NULL;
    }
    r->state = ops_array_retain(r->start);
    if (!well) {
        return bench_fail(r->bench, "an input of the step: %s", hal_status_message());
    }
    return r->way < GRAPH ? bench_ok(r->bench, ops_prepare(context, rehearse, r), "ops_prepare")
                          : make_graph(r);
}

/* The bound adds the errors of all operations: a product of `hidden` terms in any order, 5 units in
 * the last place of tanh, and the rounding of the others. */
static bool check_row(recurrence *r, const step_numbers *n, int at, int64_t row)
{
    const int64_t hidden = n->hidden;
    const double unit = (double)FLT_EPSILON / 2.0;
    const float *before = (at == 0 ? n->start : n->states[at - 1]) + row * hidden;
    const float *after = n->states[at] + row * hidden;
    const float *input = n->inputs[at % RING] + row * hidden;
    for (int64_t j = 0; j < hidden; j++) {
        double product = 0.0, size = 0.0;
        for (int64_t k = 0; k < hidden; k++) {
            const double term = (double)before[k] * (double)n->weight[k * hidden + j];
            product += term;
            size += fabs(term);
        }
        const double sum = product + (double)input[j], aim = tanh(sum), rate = (double)n->rate[j];
        const double way = aim - (double)before[j], expected = (double)before[j] + rate * way;
        const double aim_error =
            (double)(hidden + 1) * unit * size + unit * fabs(sum) + 10.0 * unit * fabs(aim);
        const double error =
            rate * (aim_error + 2.0 * unit * fabs(way)) + unit * fabs(expected) + (double)FLT_MIN;
        if (!(fabs((double)after[j] - expected) <= 1.01 * error)) {
            return bench_fail(r->bench,
                              "step %d, batch %lld, hidden %lld on %s: element (%lld, %lld) is "
                              "%.9g instead of %.9g +- %.2g",
                              at, (long long)n->batch, (long long)hidden,
                              hal_device_get_plugin_name(r->place.device), (long long)row,
                              (long long)j, (double)after[j], expected, error);
        }
    }
    return true;
}

/* Reads the state after each step and compares some rows with one step in double precision from the
 * previous state. */
static bool check_states(recurrence *r, step_numbers *n)
{
    const uint64_t bytes = (uint64_t)(n->batch * n->hidden) * sizeof(float);
    const int64_t stride = n->batch > CHECKED_ROWS ? (n->batch - 1) / (CHECKED_ROWS - 1) : 1;
    ops_array *states[CHECKED], *state = r->start;
    bool well = true;
    for (int i = 0; i < CHECKED; i++) {
        state = states[i] = step(r, state, r->inputs[i % RING]);
    }
    for (int i = 0; i < CHECKED; i++) {
        well = well &&
               bench_ok(r->bench, ops_array_read(states[i], bytes, n->states[i]), "ops_array_read");
        for (int64_t row = 0; row < n->batch && well; row += stride) {
            well = check_row(r, n, i, row);
        }
    }
    for (int i = 0; i < CHECKED; i++) {
        ops_array_release(states[i]);
    }
    return well;
}

/* Runs RING steps from the latest state. */
static bool run_ring(recurrence *r)
{
    const int launches = r->way == GRAPH_OF_RING ? 1 : RING;
    for (int i = 0; i < launches; i++) {
        ops_array *next = NULL;
        if (r->way < GRAPH) {
            next = step(r, r->state, r->inputs[i]);
        } else {
            ops_array *inputs[1 + RING] = {r->state};
            const int count = r->way == GRAPH ? 1 : RING;
            memcpy(inputs + 1, r->inputs + i, (size_t)count * sizeof *inputs);
            ops_graph_launch(r->graph, inputs, (uint32_t)count + 1, &next, 1);
        }
        if (!next) {
            return bench_fail(r->bench, "a step%s: %s", suffixes[r->way], hal_status_message());
        }
        ops_array_release(r->state);
        r->state = next;
    }
    return true;
}

/* Checks that the other ways compute the same bits. */
static bool check_way(recurrence *r, const step_numbers *n)
{
    const uint64_t bytes = (uint64_t)(n->batch * n->hidden) * sizeof(float);
    for (int i = 0; i < CHECKED / RING; i++) {
        if (!run_ring(r)) {
            return false;
        }
    }
    if (!bench_ok(r->bench, ops_array_read(r->state, bytes, n->other), "ops_array_read")) {
        return false;
    }
    const float *expected = n->states[CHECKED - 1];
    for (int64_t i = 0; i < n->batch * n->hidden; i++) {
        if (memcmp(&n->other[i], &expected[i], sizeof *expected) != 0) {
            return bench_fail(r->bench,
                              "after %d steps, batch %lld, hidden %lld on %s%s: element %lld is "
                              "%.9g instead of %.9g",
                              CHECKED, (long long)n->batch, (long long)n->hidden,
                              hal_device_get_plugin_name(r->place.device), suffixes[r->way],
                              (long long)i, (double)n->other[i], (double)expected[i]);
        }
    }
    return true;
}

static void run(void *user, int calls)
{
    recurrence *r = user;
    ops_context_set_fusion(r->place.ops, r->way != UNFUSED);
    for (int i = 0; i < calls && run_ring(r); i++) {
    }
    if (!r->bench->failed) {
        sequential_finish(r->bench, &r->place, r->state);
    }
}

/* Runs have LONG_RUN steps where these take at most a tenth of a second, else 5 ms. On the second
 * device only the eager way and the graph of RING are measured. */
static void add_rows(bench_state *bench, recurrence *ways, int places, step_best *best)
{
    measured competitors[WAYS + 2];
    int count = 0;
    for (int i = 0; i < WAYS * places; i++) {
        if (i < WAYS || i % WAYS == EAGER || i % WAYS == GRAPH_OF_RING) {
            const double start = measure_now();
            run(&ways[i], 1);
            const bool quick = measure_now() - start < 0.1 * RING / LONG_RUN;
            competitors[count++] =
                (measured){.function = run, .user = &ways[i], .least = quick ? LONG_RUN / RING : 0};
        }
    }
    measure_alternating(competitors, count, bench->options.seconds);
    for (int i = 0; i < WAYS && !bench->failed; i++) {
        char name[96];
        snprintf(name, sizeof name, "step, batch %lld, hidden %lld%s", (long long)best->batch,
                 (long long)best->hidden, suffixes[i]);
        bench_row *row = bench_add(bench, name, HAL_TYPE_F32);
        if (!row) {
            return;
        }
        row->m = best->batch;
        row->n = row->k = best->hidden;
        row->time = measure_divide(&competitors[i].time, RING);
        if (i == 0 || row->time.median_us < best->device_us) {
            best->device_us = row->time.median_us;
        }
        const int other = i == EAGER ? WAYS : i == GRAPH_OF_RING ? WAYS + 1 : count;
        if (other < count) {
            const measurement second = measure_divide(&competitors[other].time, RING);
            bench_add_peer(row, hal_device_get_plugin_name(ways[WAYS].place.device), &second);
            if (i == EAGER || second.median_us < best->second_us) {
                best->second_us = second.median_us;
            }
        }
        bench_rate(row, 0.0, 0.0);
    }
}

static void destroy(recurrence *r)
{
    ops_graph_destroy(r->graph);
    ops_array_release(r->state);
    ops_array_release(r->start);
    ops_array_release(r->weight);
    ops_array_release(r->rate);
    for (int i = 0; i < RING; i++) {
        ops_array_release(r->inputs[i]);
    }
    ops_context_set_fusion(r->place.ops, 1);
}

static void free_numbers(step_numbers *n)
{
    free(n->weight);
}

static bool run_size(bench_state *bench, int64_t batch, int64_t hidden, step_best *best)
{
    bench_place places[2];
    recurrence ways[2 * WAYS];
    const int count = sequential_places(bench, places);
    step_numbers numbers = {.batch = batch, .hidden = hidden};
    bool well = make_numbers(bench, &numbers);
    for (int i = 0; i < WAYS * count; i++) {
        ways[i] = (recurrence){.bench = bench,
                               .place = places[i / WAYS],
                               .way = i % WAYS,
                               .batch = batch,
                               .hidden = hidden};
        well = well && make(&ways[i], &numbers) &&
               (i % WAYS != EAGER || check_states(&ways[i], &numbers)) &&
               check_way(&ways[i], &numbers);
    }
    *best = (step_best){.batch = batch, .hidden = hidden};
    if (well) {
        add_rows(bench, ways, count, best);
    }
    for (int i = 0; i < WAYS * count; i++) {
        destroy(&ways[i]);
    }
    free_numbers(&numbers);
    return well && !bench->failed;
}

/* Notes for each batch the least size from which the device is faster. */
static void note_overtaking(bench_state *bench, const step_best *best, int count)
{
    const char *device = hal_device_get_plugin_name(bench->device);
    const char *second = hal_device_get_plugin_name(bench->second.device);
    for (int first = 0, next; first < count; first = next) {
        int from = first;
        for (next = first; next < count && best[next].batch == best[first].batch; next++) {
            bench_note(bench, "batch %lld, hidden %lld: a step takes %s %.3f us, %s %.3f us.",
                       (long long)best[next].batch, (long long)best[next].hidden, device,
                       best[next].device_us, second, best[next].second_us);
            if (best[next].device_us >= best[next].second_us) {
                from = next + 1;
            }
        }
        if (from < next) {
            bench_note(bench, "batch %lld: %s is faster than %s from hidden size %lld on.",
                       (long long)best[first].batch, device, second, (long long)best[from].hidden);
        } else {
            bench_note(bench, "batch %lld: %s is not faster than %s at the largest size.",
                       (long long)best[first].batch, device, second);
        }
    }
}

void sequential_steps(bench_state *bench)
{
    static const int64_t hidden[] = {16, 32, 64, 128, 256, 512}, batches[] = {1, 64};
    step_best best[2 * BENCH_MAX_SIZES];
    const bench_options *options = &bench->options;
    const int sizes = options->size_count > 0 ? options->size_count : 6;
    int count = 0;
    for (int b = 0; b < 2; b++) {
        for (int s = 0; s < sizes && !bench->failed; s++) {
            const int64_t *size = options->sizes[s];
            const bool own = options->size_count > 0;
            const bool named = own && size[2] == 0; /* batch x hidden */
            if (!named || b == 0) {
                count += run_size(bench, named ? size[0] : batches[b], own ? size[1] : hidden[s],
                                  &best[count]);
            }
        }
    }
    if (bench->second.device) {
        note_overtaking(bench, best, count);
    }
}
