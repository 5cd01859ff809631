/* Data-parallel training of a network. A rank's gradients are reduced by layers: those of a layer
 * on a second queue, while the next layer's are computed. */
#include "suites/dense/ranks.h"

#include <ops/comm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/dense/steps.h"

/* How the ranks take a step. */
typedef enum ranks_way { OVERLAPPED, ONE_QUEUE, GRAPH, WAYS } ranks_way;

/* The mean of the gradients over the ranks. Biases are reduced together, before the last weights;
 * weights of less than a bucket wait for those of the next layer. */
typedef struct gradient_mean {
    bench_state *bench;
    hal_comm *comm;    /* null: gradients stay as they are, but are computed by layers */
    hal_queue *second; /* of the collectives; null: the context's queue */
    bool any_order;
    int layers;
    int pending;          /* layers whose weights wait */
    uint64_t bytes;       /* of those */
    int last;             /* the highest layer of the last collective of weights */
    hal_point most, done; /* of the second queue: before that collective, and after it */
} gradient_mean;

/* A rank, with its state in place of the program's. */
typedef struct rank_place {
    bench_state bench;
    hal_queue *second;
    dense_network network;
    gradient_mean mean;
    dense_exchange exchange;
    ops_graph *graph;
    uint64_t hash; /* of the results of a checked step */
} rank_place;

struct dense_ranks {
    bench_state *bench;
    bench_ranks all;
    rank_place places[RANKS_MAX];
    /* On the first rank's queue without a communicator: as one rank trains, and with gradients that
     * are computed by layers. */
    dense_network one, by_layers;
    gradient_mean none;
    dense_exchange no_exchange;
};

/* Reduces the gradients of `count` layers from `first` down: of weights (part 0) or biases (1). */
static bool gradients_reduce(gradient_mean *mean, ops_array **gradients, int first, int count,
                             int part)
{
    const ops_comm_options options = {
        .size = sizeof options, .any_order = mean->any_order, .queue = mean->second};
    ops_array *list[DENSE_MAX_LAYERS] = {NULL};
    for (int i = 0; i < count; i++) {
        list[i] = gradients[2 * (first - i) + part];
    }
    if (ops_array_all_reduce(mean->comm, HAL_REDUCE_MEAN, list, (uint32_t)count, &options, list) !=
        HAL_OK) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        gradients[2 * (first - i) + part] = list[i];
    }
    return true;
}

static bool layer_start(void *user, int layer, ops_array **gradients)
{
    gradient_mean *mean = user;
    ops_array *weights = gradients[2 * layer];
    bool well = ops_array_evaluate(&gradients[2 * layer], 2) == HAL_OK;
    if (!mean->comm || !well) {
        return well;
    }
    if (layer == mean->layers - 1) {
        mean->pending = 0;
        mean->bytes = 0;
    }
    mean->pending++;
    mean->bytes +=
        (uint64_t)ops_array_get_element_count(weights) * hal_type_size(ops_array_get_type(weights));
    if (layer > 0 && mean->bytes < OPS_COMM_BUCKET_BYTES) {
        return true;
    }
    if (layer == 0) {
        mean->last = mean->pending - 1;
        well = gradients_reduce(mean, gradients, mean->layers - 1, mean->layers, 1) &&
               (!mean->second || hal_queue_flush(mean->second, &mean->most) == HAL_OK);
    }
    well = well && gradients_reduce(mean, gradients, layer + mean->pending - 1, mean->pending, 0);
    mean->pending = 0;
    mean->bytes = 0;
    return well &&
           (layer > 0 || !mean->second || hal_queue_flush(mean->second, &mean->done) == HAL_OK);
}

/* The updates of other layers run next to the last collective. */
static bool layer_finish(void *user, int layer)
{
    const gradient_mean *mean = user;
    hal_queue *queue = mean->bench->queue;
    bool well = true;
    if (!mean->comm || !mean->second) {
        return true;
    }
    if (layer == mean->layers - 1 && layer > mean->last) {
        well = hal_queue_wait_point(queue, mean->most) == HAL_OK;
    }
    return well && (layer != mean->last || hal_queue_wait_point(queue, mean->done) == HAL_OK);
}

/* ---- The work of a rank ---- */

/* A rank that failed must not let the others wait. */
static void rank_end(const bench_rank *self)
{
    const rank_place *place = self->user;
    if (place->bench.failed) {
        hal_comm_abort(self->comm, hal_status_message());
    }
}

static dense_steps way_select(rank_place *place, int way)
{
    place->mean.second = way == OVERLAPPED ? place->second : NULL;
    return (dense_steps){.network = &place->network, .graph = way == GRAPH ? place->graph : NULL};
}

static void member_steps(bench_rank *self, int way, int calls)
{
    rank_place *place = self->user;
    dense_steps steps = way_select(place, way);
    dense_steps_run(&steps, calls);
    rank_end(self);
}

static void member_overlapped(bench_rank *self, int calls)
{
    member_steps(self, OVERLAPPED, calls);
}

static void member_one_queue(bench_rank *self, int calls)
{
    member_steps(self, ONE_QUEUE, calls);
}

static void member_graph(bench_rank *self, int calls)
{
    member_steps(self, GRAPH, calls);
}

static void member_record(bench_rank *self, int calls)
{
    rank_place *place = self->user;
    way_select(place, GRAPH);
    place->graph = calls > 0 ? dense_graph_create(&place->network) : NULL;
    rank_end(self);
}

/* A hash of all bits of the results of a step, whose weights stay as they are. */
static bool step_hash(dense_steps *steps, uint64_t *hash)
{
    bench_state *bench = steps->network->bench;
    ops_array *results[2 * DENSE_MAX_LAYERS];
    const uint32_t count = dense_steps_results(steps, results);
    bool well =
        count > 0 || bench_fail(bench, "%s: %s", steps->network->cell->name, hal_status_message());
    *hash = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bytes = (uint64_t)ops_array_get_element_count(results[i]) *
                               hal_type_size(ops_array_get_type(results[i]));
        char *memory = well ? malloc(bytes) : NULL;
        well = well && (memory || bench_fail(bench, "out of memory")) &&
               bench_ok(bench, ops_array_read(results[i], bytes, memory), "new weights");
        for (uint64_t at = 0; at < bytes && well; at += sizeof(uint64_t)) {
            uint64_t word = 0;
            memcpy(&word, memory + at, bytes - at < sizeof word ? bytes - at : sizeof word);
            *hash = (*hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            *hash ^= *hash >> 29;
        }
        free(memory);
        ops_array_release(results[i]);
    }
    return well;
}

static void member_check(bench_rank *self, int way)
{
    rank_place *place = self->user;
    dense_steps steps = way_select(place, way);
    step_hash(&steps, &place->hash);
    rank_end(self);
}

/* ---- All ranks ---- */

static bool steps_run(dense_ranks *run, rank_work work, int calls)
{
    ranks_run(&run->all, work, calls);
    for (uint32_t r = 0; r < run->all.ranks; r++) {
        run->bench->failed = run->bench->failed || run->places[r].bench.failed;
    }
    return !run->bench->failed;
}

/* Whether the ranks have new weights of the same bits, which equal `expected` or differ from it. */
static bool ranks_check(dense_ranks *run, ranks_way way, uint64_t expected, bool equal)
{
    static const char *const ways[] = {"two queues", "one queue", "a graph"};
    const char *name = run->places[0].network.cell->name;
    if (!steps_run(run, member_check, (int)way)) {
        return false;
    }
    const uint64_t first = run->places[0].hash;
    for (uint32_t r = 1; r < run->all.ranks; r++) {
        if (run->places[r].hash != first) {
            return bench_fail(run->bench, "%s, %s: rank %u has other weights than rank 0", name,
                              ways[way], r);
        }
    }
    return (first == expected) == equal ||
           bench_fail(run->bench, "%s, %s: expected %s", name, ways[way],
                      equal ? "the weights of the expected step" : "other weights than one rank's");
}

/* With the inputs of one rank the ranks have its new weights, if their number is a power of two, so
 * that the mean is exact; with different inputs all ranks have the same other weights, however the
 * step is configured. */
static bool steps_check(dense_ranks *run)
{
    const bool is_exact = (run->all.ranks & (run->all.ranks - 1)) == 0;
    dense_steps one = {.network = &run->one}, by_layers = {.network = &run->by_layers};
    ops_array *results[2 * DENSE_MAX_LAYERS];
    uint64_t hash = 0;
    const uint32_t count = dense_steps_results(&one, results);
    bool well = count > 0 ? dense_check(&run->one, results)
                          : bench_fail(run->one.bench, "one rank: %s", hal_status_message());
    for (uint32_t i = 0; i < count; i++) {
        ops_array_release(results[i]);
    }
    well = well && step_hash(&by_layers, &hash) &&
           (!is_exact || ranks_check(run, OVERLAPPED, hash, true));
    for (uint32_t r = 0; r < run->all.ranks && well; r++) {
        well = dense_vary(&run->places[r].network, (int)r);
    }
    well = well && steps_run(run, member_record, 1) && ranks_check(run, OVERLAPPED, hash, false);
    hash = run->places[0].hash;
    return well && ranks_check(run, ONE_QUEUE, hash, true) && ranks_check(run, GRAPH, hash, true);
}

static void run_overlapped(void *user, int calls)
{
    steps_run(user, member_overlapped, calls);
}

static void run_one_queue(void *user, int calls)
{
    steps_run(user, member_one_queue, calls);
}

static void run_graph(void *user, int calls)
{
    steps_run(user, member_graph, calls);
}

static void row_add(dense_ranks *run, const dense_cell *cell, const char *way,
                    const measurement *time, const measured *peers, const char *const *names,
                    int count)
{
    char name[96];
    snprintf(name, sizeof name, "%s, %s, %u ranks", cell->name, way, run->all.ranks);
    bench_row *row = run->bench->failed ? NULL : bench_add(run->bench, name, cell->type);
    if (row) {
        row->m = cell->batch;
        row->n = row->k = cell->hidden;
        row->time = *time;
        for (int i = 0; i < count; i++) {
            bench_add_peer(row, names[i], &peers[i].time);
        }
        bench_rate(row, dense_step_flops(cell), 0.0);
    }
}

static void rows_add(dense_ranks *run, const dense_cell *cell, ops_graph *graph)
{
    static const char *const names[] = {"one", "by_layers", "one_queue"};
    dense_steps one = {.network = &run->one}, by_layers = {.network = &run->by_layers};
    dense_steps launches = {.network = &run->one, .graph = graph};
    measured all[] = {{.function = run_overlapped, .user = run},
                      {.function = dense_steps_run, .user = &one},
                      {.function = dense_steps_run, .user = &by_layers},
                      {.function = run_one_queue, .user = run},
                      {.function = run_graph, .user = run},
                      {.function = dense_steps_run, .user = &launches}};
    measure_alternating(all, sizeof all / sizeof *all, run->bench->options.seconds);
    run->bench->failed = run->bench->failed || run->places[0].bench.failed;
    row_add(run, cell, "arrays", &all[0].time, &all[1], names, 3);
    row_add(run, cell, "graph", &all[4].time, &all[5], names, 1);
}

/* Networks of all ranks, with equal inputs, and the kernels of their steps. */
static bool networks_create(dense_ranks *run, const dense_cell *cell)
{
    bench_state *first = &run->places[0].bench;
    bool well =
        dense_create(first, cell, &run->one) && dense_create(first, cell, &run->by_layers) &&
        bench_ok(first, ops_prepare(first->ops, dense_step_record, &run->one), "ops_prepare");
    run->none = (gradient_mean){.bench = first, .layers = cell->layers};
    run->by_layers.exchange = &run->no_exchange;
    for (uint32_t r = 0; r < run->all.ranks && well; r++) {
        rank_place *place = &run->places[r];
        well = dense_create(&place->bench, cell, &place->network);
        place->network.exchange = &run->no_exchange; /* kernels are the same without a communicator
                                                      * */
        well = well && bench_ok(run->bench,
                                ops_prepare(place->bench.ops, dense_step_record, &place->network),
                                "ops_prepare");
        place->mean = (gradient_mean){.bench = &place->bench,
                                      .comm = run->all.members[r].comm,
                                      .any_order = run->bench->options.any_order,
                                      .layers = cell->layers};
        place->network.exchange = &place->exchange;
    }
    return well;
}

bool dense_ranks_measure(dense_ranks *run, const dense_cell *cell)
{
    run->one.cell = run->by_layers.cell = cell;
    for (uint32_t r = 0; r < run->all.ranks; r++) {
        run->places[r].network = (dense_network){.cell = cell};
    }
    const bool well = networks_create(run, cell) && steps_check(run);
    ops_graph *graph = well ? dense_graph_create(&run->one) : NULL;
    if (graph) {
        rows_add(run, cell, graph);
    }
    ops_graph_destroy(graph);
    for (uint32_t r = 0; r < run->all.ranks; r++) {
        rank_place *place = &run->places[r];
        run->bench->failed = run->bench->failed || place->bench.failed;
        ops_graph_destroy(place->graph);
        place->graph = NULL;
        dense_destroy(&place->network);
    }
    dense_destroy(&run->one);
    dense_destroy(&run->by_layers);
    run->one = run->by_layers = (dense_network){.bench = NULL};
    return well && !run->bench->failed;
}

bool dense_ranks_has_failed(const dense_ranks *run)
{
    return run->bench->failed;
}

dense_ranks *dense_ranks_open(bench_state *bench)
{
    dense_ranks *run = calloc(1, sizeof *run);
    if (!run) {
        bench_fail(bench, "out of memory");
        return NULL;
    }
    run->bench = bench;
    run->no_exchange = (dense_exchange){layer_start, layer_finish, &run->none};
    bool well = ranks_open(bench, &run->all);
    for (uint32_t r = 0; r < run->all.ranks && well; r++) {
        bench_rank *self = &run->all.members[r];
        rank_place *place = &run->places[r];
        self->user = place;
        place->bench = (bench_state){.options = bench->options,
                                     .device = self->device,
                                     .info = hal_device_get_info(self->device),
                                     .queue = self->queue};
        place->exchange = (dense_exchange){layer_start, layer_finish, &place->mean};
        well = bench_ok(bench, ops_context_create(self->queue, &place->bench.ops), "a context") &&
               bench_ok(bench, hal_queue_create(self->device, &place->second), "a queue");
    }
    if (!well) {
        dense_ranks_close(run);
        return NULL;
    }
    return run;
}

void dense_ranks_close(dense_ranks *run)
{
    for (uint32_t r = 0; run && r < run->all.ranks; r++) {
        ops_context_destroy(run->places[r].bench.ops);
        hal_queue_destroy(run->places[r].second);
    }
    if (run) {
        ranks_close(&run->all);
    }
    free(run);
}
