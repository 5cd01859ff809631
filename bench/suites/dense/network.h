/* A network of dense layers with biases and ReLU, on a device and as its own reference in double
 * precision. */
#ifndef BENCH_SUITES_DENSE_NETWORK_H
#define BENCH_SUITES_DENSE_NETWORK_H

#include "harness/bench.h"

enum { DENSE_MAX_LAYERS = 8 };

/* Layers of hidden x hidden weights on batch x hidden inputs. */
typedef struct dense_cell {
    char name[64];
    int layers;
    int64_t batch, hidden;
    hal_type type;
    hal_gemm_precision precision;
    bool is_training; /* forward, backward and the update of the weights */
} dense_cell;

/* What a training step does with the gradients of a layer before its weights are updated, such as
 * averaging them over ranks. Both return false after a failure, with hal's message. */
typedef struct dense_exchange {
    /* Called for the last layer first, when the gradients of its weights (2 * layer) and biases
     * (2 * layer + 1) are described; those of layers below are null. May replace all others. */
    bool (*start)(void *user, int layer, ops_array **gradients);
    /* Called after all calls of `start`, in the same order, before the gradients of the layer are
     * used. */
    bool (*finish)(void *user, int layer);
    void *user;
} dense_exchange;

typedef struct dense_network {
    bench_state *bench;
    const dense_cell *cell;
    const dense_exchange *exchange; /* null: none */
    ops_array *x, *target;          /* target: of training, else null */
    ops_array *weights[DENSE_MAX_LAYERS], *biases[DENSE_MAX_LAYERS];
    double *expected; /* the last row of an inference's output; null until the first check */
} dense_network;

/* The loss is the mean of the squared differences; the update subtracts its gradient times this. */
#define DENSE_RATE 0.0625

/* False after a printed failure; call dense_destroy in any case. */
bool dense_create(bench_state *bench, const dense_cell *cell, dense_network *made);
void dense_destroy(dense_network *network);

/* Makes the inputs others than those of dense_create, the same for the same `variant`. */
bool dense_vary(dense_network *network, int variant);

/* The results of a step, which the caller releases: the last layer's output, or the new weights and
 * biases (2 * layers arrays). Returns their number, 0 after an error of ops, with its message. */
uint32_t dense_step(const dense_network *network, ops_array **results);

/* Replaces weights and biases by the results of a training step. */
void dense_update(dense_network *network, ops_array **results);

/* Compares results of a step from the network's first weights with double precision: a row of the
 * output; of training all new weights and biases, where that takes the host at most seconds. False
 * after a printed failure. */
bool dense_check(dense_network *network, ops_array *const *results);

#endif
