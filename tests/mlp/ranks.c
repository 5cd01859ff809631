/* One step of training of examples/mlp by two ranks, each with half of the batch or of the layers,
 * next to the step of one rank. Exits 0 when every array of the state, and the loss, differs from
 * that of one rank by rounding only, and has the same bits on both ranks where both have it: a
 * gradient that is not reduced over the ranks differs by more. */
#include "mlp/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, LAYERS = 5, ARRAYS = 2 * LAYERS + 1, BATCH = 32, MOST = 64 * 48 };
static const int64_t widths[LAYERS + 1] = {64, 48, 23, 18, 12, 10};
static const double most_difference = 1e-5; /* of elements of about 1 */

/* The state and the loss after the step, on the host; `counts` elements. */
typedef struct step_outcome {
    int64_t counts[ARRAYS];
    float elements[ARRAYS][MOST];
} step_outcome;

/* A rank's network, and its step's results. */
typedef struct rank_state {
    hal_queue *queue;
    ops_context *context;
    hal_comm *comm; /* null: one rank */
    network net;
    ops_array *next[ARRAYS];
} rank_state;

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 0;
}

/* Rows [first, first + count) of the batch. */
static ops_array *batch_rows(const rank_state *rank, int64_t columns, int is_target, int64_t first,
                             int64_t count)
{
    const int64_t shape[2] = {count, columns};
    static float rows[BATCH * 64];
    for (int64_t i = 0; i < count * columns; i++) {
        const int64_t row = first + i / columns, column = i % columns;
        rows[i] = is_target ? (float)(row * 7 % columns == column)
                            : (float)((row * 31 + column * 17) % 101) / 50;
    }
    return ops_array_from_host(rank->context, HAL_TYPE_F32, 2, shape, rows);
}

/* Records the step, without waiting for the other ranks. */
static int step_record(hal_device *device, hal_comm *comm, uint32_t divides, int64_t first,
                       int64_t count, rank_state *rank)
{
    const int64_t one[2] = {1, 1};
    rank->comm = comm;
    if (hal_queue_create(device, &rank->queue) || ops_context_create(rank->queue, &rank->context)) {
        return fail("context", hal_status_message());
    }
    rank->net = (network){
        .context = rank->context, .comm = comm, .divides = divides, .precision = HAL_GEMM_STRICT};
    if (network_create(widths, LAYERS, 1, &rank->net)) {
        return fail("network", hal_status_message());
    }
    ops_array *input = batch_rows(rank, widths[0], 0, first, count);
    ops_array *target = batch_rows(rank, widths[LAYERS], 1, first, count);
    ops_array *rate = ops_array_from_host(rank->context, HAL_TYPE_F32, 2, one, &(const float){1});
    hal_status status = network_train(&rank->net, input, target, rate, rank->next);
    if (status == HAL_OK) {
        status = ops_array_evaluate(rank->next, ARRAYS);
    }
    ops_array_release(input);
    ops_array_release(target);
    ops_array_release(rate);
    return status == HAL_OK || fail("step", hal_status_message());
}

static int step_read(const rank_state *rank, step_outcome *outcome)
{
    for (int i = 0; i < ARRAYS; i++) {
        const int64_t count = ops_array_get_element_count(rank->next[i]);
        outcome->counts[i] = count;
        if (count <= 0 || count > MOST ||
            ops_array_read(rank->next[i], (uint64_t)count * sizeof(float), outcome->elements[i])) {
            return fail("reading", hal_status_message());
        }
    }
    return 1;
}

static void rank_close(rank_state *rank)
{
    for (int i = 0; i < ARRAYS; i++) {
        ops_array_release(rank->next[i]);
    }
    network_destroy(&rank->net);
    ops_context_destroy(rank->context);
    hal_queue_destroy(rank->queue);
}

/* Where element k of array i of a rank is in that of one rank. Of the five layers that are divided,
 * the first and third have columns, the second and fourth rows, and the fifth is whole. */
static int64_t element_place(uint32_t divides, int i, int64_t rank, int64_t k)
{
    const int layer = i / 2;
    if (divides == NETWORK_DIVIDES_BATCH || layer + 1 >= LAYERS) {
        return k;
    }
    const int64_t columns = widths[layer + 1] / RANKS;
    if (layer % 2 == 0) {
        return k / columns * widths[layer + 1] + rank * columns + k % columns;
    }
    return i % 2 == 0 ? rank * widths[layer] / RANKS * widths[layer + 1] + k : k;
}

/* `one` is of one rank, `ranks` of each of two. */
static int outcomes_compare(uint32_t divides, const step_outcome *one, const step_outcome *ranks)
{
    int good = 1;
    for (int i = 0; i < ARRAYS; i++) {
        const int64_t count = ranks[0].counts[i];
        double difference = 0;
        for (int64_t r = 0; r < RANKS; r++) {
            for (int64_t k = 0; k < count; k++) {
                const float wanted = one->elements[i][element_place(divides, i, r, k)];
                const double d = fabs((double)(ranks[r].elements[i][k] - wanted));
                difference = d > difference || isnan(d) ? d : difference;
            }
        }
        const int is_part = count < one->counts[i];
        const int equal =
            memcmp(ranks[0].elements[i], ranks[1].elements[i], (size_t)count * sizeof(float)) == 0;
        printf("array %d: the ranks have %s bits, %.2g from one rank's\n", i,
               is_part ? "other"
               : equal ? "the same"
                       : "different",
               difference);
        good = good && (is_part || equal) && difference <= most_difference &&
               (is_part ? RANKS : 1) * count == one->counts[i];
    }
    return good || fail("a step of two ranks", "expected that of one rank with the whole batch");
}

static int ranks_compare(hal_device *device, uint32_t divides, step_outcome *outcomes)
{
    rank_state ranks[RANKS] = {{0}};
    hal_comm *comms[RANKS] = {NULL};
    hal_device *const devices[RANKS] = {device, device};
    const int64_t part = divides == NETWORK_DIVIDES_BATCH ? BATCH / RANKS : 0;
    int good = hal_comm_create_local(devices, RANKS, 0, comms) == HAL_OK ||
               fail("communicator", hal_status_message());
    for (int r = 0; good && r < RANKS; r++) {
        good = step_record(device, comms[r], divides, r * part, part ? part : BATCH, &ranks[r]);
    }
    for (int r = 0; good && r < RANKS; r++) {
        good = step_read(&ranks[r], &outcomes[1 + r]);
    }
    good = good && outcomes_compare(divides, outcomes, outcomes + 1);
    for (int r = 0; r < RANKS; r++) {
        rank_close(&ranks[r]);
        hal_comm_destroy(comms[r]);
    }
    return good;
}

static int run(hal_device *device, step_outcome *outcomes)
{
    rank_state one = {0};
    const int good = step_record(device, NULL, NETWORK_DIVIDES_BATCH, 0, BATCH, &one) &&
                     step_read(&one, &outcomes[0]);
    rank_close(&one);
    return good && ranks_compare(device, NETWORK_DIVIDES_BATCH, outcomes) &&
           ranks_compare(device, NETWORK_DIVIDES_LAYERS, outcomes);
}

int main(void)
{
    hal_device *device = NULL;
    step_outcome *outcomes = calloc(1 + RANKS, sizeof *outcomes);
    int good = outcomes &&
               (hal_device_open("cpu", &device) == HAL_OK || fail("device", hal_status_message()));
    good = good && run(device, outcomes);
    hal_device_release(device);
    free(outcomes);
    return good ? 0 : 1;
}
