/* The training loop, see train.h. All work is recorded on the device; the host waits once in an
 * epoch, when it reads the loss. */
#include "train.h"

#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                    \
    do {                             \
        hal_status status_ = (call); \
        if (status_ != HAL_OK) {     \
            return status_;          \
        }                            \
    } while (0)

enum { STREAM_ORDER = 1000 }; /* the seed's streams after those of the weights */
static const double first_rate = 0.2;

/* The inputs of a step, and of the graph of one: the state, the batch's rows, the rate. */
enum { MAX_INPUTS = NETWORK_MAX_STATE + 2, MAX_RESULTS = NETWORK_MAX_STATE + 1 };

typedef struct trainer {
    ops_context *context;
    const train_settings *settings;
    hal_comm *comm; /* null: none */
    network net;
    int states;                  /* arrays of net.state */
    int64_t rank, batch;         /* of the part of a batch; pictures that the rank learns from */
    ops_array *pixels, *targets; /* all pictures, count x 64; their classes one-hot, count x 10 */
    ops_array *order, *rate;     /* of the epoch: I32, count; F32, 1 x 1 */
    ops_array *loss;             /* of the last step */
    ops_graph *graph;            /* of a step; null: eager, or not recorded yet */
} trainer;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void array_replace(ops_array **place, ops_array *array)
{
    ops_array_release(*place);
    *place = array;
}

static hal_status arrays_upload(trainer *t, const digits_data *training)
{
    const int64_t shape[2] = {training->count, DIGITS_PIXELS};
    t->pixels = ops_array_from_host(t->context, HAL_TYPE_F32, 2, shape, training->pixels);
    ops_array *labels = ops_array_from_host(t->context, HAL_TYPE_I32, 1, shape, training->labels);
    t->targets = ops_array_one_hot(HAL_TYPE_F32, DIGITS_CLASSES, labels);
    ops_array_release(labels);
    if (!t->pixels || !t->targets) {
        return HAL_ERROR_INVALID_STATE;
    }
    return ops_array_evaluate(&t->targets, 1);
}

/* A new order of the pictures, and a rate that falls to 0 in equal steps. */
static hal_status epoch_begin(trainer *t, int epoch)
{
    const int64_t count = ops_array_get_length(t->pixels, 0), one[2] = {1, 1};
    const ops_random_key key = {.seed = t->settings->seed,
                                .stream = STREAM_ORDER + (uint64_t)epoch};
    const float rate = (float)(first_rate * (1 - (double)epoch / t->settings->epochs));
    ops_tensor order;
    TRY(ops_tensor_create(t->context, HAL_TYPE_I32, 1, &count, &order));
    hal_status status = ops_random_permutation(t->context, key, &order);
    if (status == HAL_OK) {
        array_replace(&t->order, ops_array_from_tensor(t->context, &order));
        array_replace(&t->rate, ops_array_from_host(t->context, HAL_TYPE_F32, 2, one, &rate));
        status = t->order && t->rate ? HAL_OK : HAL_ERROR_INVALID_STATE;
    }
    ops_tensor_release(&order);
    return status;
}

/* Picks the rows of a batch and learns from them: the piece of program that eager training calls
 * for each step, and that the graph records once. */
static hal_status step_call(const trainer *t, ops_array *rows, ops_array **next)
{
    TRY(ops_scope_begin(t->context));
    ops_array *input = ops_array_gather(0, t->pixels, rows);
    ops_array *target = ops_array_gather(0, t->targets, rows);
    hal_status status = network_train(&t->net, input, target, t->rate, next);
    ops_scope_end(t->context);
    return status;
}

/* The arrays that differ from launch to launch. The pictures are the same for all. */
static uint32_t step_inputs(const trainer *t, ops_array *rows, ops_array **inputs)
{
    memcpy(inputs, t->net.state, (size_t)t->states * sizeof(*inputs));
    inputs[t->states] = rows;
    inputs[t->states + 1] = t->rate;
    return (uint32_t)t->states + 2;
}

static hal_status step_record(trainer *t, ops_array *rows)
{
    ops_array *inputs[MAX_INPUTS], *next[MAX_RESULTS] = {NULL};
    const uint32_t input_count = step_inputs(t, rows, inputs);
    const uint32_t count = (uint32_t)t->states + 1;
    TRY(ops_graph_begin(t->context));
    hal_status called = step_call(t, rows, next);
    hal_status ended = ops_graph_end(t->context, inputs, input_count, next, count, &t->graph);
    for (uint32_t i = 0; i < count; i++) {
        ops_array_release(next[i]); /* they were placeholders: a launch makes the arrays */
    }
    return called != HAL_OK ? called : ended;
}

/* A step on `rows`, which is a copy: a graph cannot be recorded with a view as an input. The
 * results become the state and the loss. */
static hal_status step_train(trainer *t, ops_array *rows)
{
    ops_array *inputs[MAX_INPUTS], *next[MAX_RESULTS];
    if (t->settings->eager) {
        TRY(step_call(t, rows, next));
    } else {
        if (!t->graph) {
            TRY(step_record(t, rows));
        }
        const uint32_t input_count = step_inputs(t, rows, inputs);
        TRY(ops_graph_launch(t->graph, inputs, input_count, next, (uint32_t)t->states + 1));
    }
    for (int i = 0; i < t->states; i++) {
        array_replace(&t->net.state[i], next[i]);
    }
    array_replace(&t->loss, next[t->states]);
    return HAL_OK;
}

/* Returns the number of steps in *steps. Pictures that do not fill a batch wait for an epoch whose
 * order has them earlier. */
static hal_status epoch_train(trainer *t, int64_t *steps)
{
    *steps = ops_array_get_length(t->pixels, 0) / TRAIN_BATCH;
    for (int64_t i = 0; i < *steps; i++) {
        const int64_t first = i * TRAIN_BATCH + t->rank * t->batch;
        ops_array *part = ops_array_slice(t->order, 0, first, t->batch, 1);
        ops_array *rows = ops_array_copy(part);
        hal_status status = rows ? step_train(t, rows) : HAL_ERROR_INVALID_STATE;
        ops_array_release(part);
        ops_array_release(rows);
        TRY(status);
    }
    return HAL_OK;
}

static hal_status network_learn(trainer *t, train_outcome *outcome)
{
    const int epochs = t->settings->epochs;
    int64_t counted = 0; /* steps since `start` */
    double start = now();
    for (int epoch = 0; epoch < epochs; epoch++) {
        int64_t steps;
        float loss;
        TRY(epoch_begin(t, epoch));
        TRY(epoch_train(t, &steps));
        TRY(ops_array_read(t->loss, sizeof(loss), &loss)); /* waits for the steps */
        counted += steps;
        outcome->loss = (double)loss;
        outcome->step_us = 1e6 * (now() - start) / (double)counted;
        if (epoch == 0) { /* it has compiled the kernels */
            start = now();
            counted = 0;
        }
        if (!t->settings->quiet) {
            printf("epoch %3d: loss %.4f\n", epoch + 1, outcome->loss);
            fflush(stdout);
        }
    }
    return HAL_OK;
}

/* Classifies all pictures by one product for each layer, with weights that are prepared for it. */
static hal_status network_test(trainer *t, const digits_data *test, double *accuracy)
{
    const int64_t shape[2] = {test->count, DIGITS_PIXELS};
    const size_t bytes = (size_t)test->count * sizeof(int32_t);
    int32_t *guesses = malloc(bytes);
    if (!guesses) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    ops_array *pixels = ops_array_from_host(t->context, HAL_TYPE_F32, 2, shape, test->pixels);
    ops_array *classes = NULL;
    hal_status status = network_prepare(&t->net, test->count);
    if (status == HAL_OK) {
        classes = network_classify(&t->net, pixels);
        status =
            classes != NULL ? ops_array_read(classes, bytes, guesses) : HAL_ERROR_INVALID_STATE;
    }
    int64_t right = 0;
    for (int64_t i = 0; status == HAL_OK && i < test->count; i++) {
        right += guesses[i] == test->labels[i];
    }
    *accuracy = (double)right / (double)test->count;
    ops_array_release(pixels);
    ops_array_release(classes);
    free(guesses);
    return status;
}

static hal_status trainer_use(trainer *t, const digits_data *training, const digits_data *test,
                              train_outcome *outcome)
{
    const train_settings *settings = t->settings;
    int64_t widths[NETWORK_MAX_LAYERS + 1] = {DIGITS_PIXELS};
    for (int i = 1; i < settings->layers; i++) {
        widths[i] = settings->width;
    }
    widths[settings->layers] = DIGITS_CLASSES;
    t->net = (network){.context = t->context,
                       .comm = t->comm,
                       .divides = settings->divides,
                       .precision = settings->precision,
                       .levels = settings->levels};
    TRY(network_create(widths, settings->layers, settings->seed, &t->net));
    TRY(arrays_upload(t, training));
    TRY(network_learn(t, outcome));
    return network_test(t, test, &outcome->accuracy);
}

hal_status train_and_test(ops_context *context, hal_comm *comm, const train_settings *settings,
                          const digits_data *training, const digits_data *test,
                          train_outcome *outcome)
{
    hal_comm_status ranks = {.count = 1};
    if (comm) {
        TRY(hal_comm_get_status(comm, &ranks));
    }
    const int divides_batch = settings->divides == NETWORK_DIVIDES_BATCH;
    const int64_t divided = divides_batch ? TRAIN_BATCH : settings->width;
    if (divided % ranks.count != 0) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "mlp: ranks: expected a divisor of %lld, got %u", (long long)divided,
                              ranks.count);
    }
    trainer t = {.context = context,
                 .settings = settings,
                 .comm = ranks.count > 1 ? comm : NULL, /* one rank needs no collectives */
                 .states = 2 * settings->layers,
                 .rank = divides_batch ? ranks.rank : 0,
                 .batch = divides_batch ? TRAIN_BATCH / ranks.count : TRAIN_BATCH};
    hal_status status = trainer_use(&t, training, test, outcome);
    ops_array *const arrays[] = {t.pixels, t.targets, t.order, t.rate, t.loss};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
        ops_array_release(arrays[i]);
    }
    ops_graph_destroy(t.graph);
    network_destroy(&t.net);
    return status;
}
