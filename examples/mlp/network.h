/* A dense classifier written with arrays: layers of y = relu(x W + b), the last one without relu,
 * softmax cross-entropy and gradient descent. Used by train.c. */
#ifndef EXAMPLES_MLP_NETWORK_H
#define EXAMPLES_MLP_NETWORK_H

#include <ops/ops.h>

#define NETWORK_MAX_LAYERS 16
#define NETWORK_MAX_STATE (2 * NETWORK_MAX_LAYERS)

/* What the ranks of a communicator divide among them. */
enum {
    NETWORK_DIVIDES_BATCH, /* every rank has the network, and learns from a part of each batch */
    NETWORK_DIVIDES_LAYERS /* every rank learns from the whole batch with a part of the network */
};

/* state[2 i] is the weight of layer i, widths[i] x widths[i + 1], state[2 i + 1] its bias,
 * 1 x widths[i + 1]; both are F32. A step of training makes a new state.
 * If layers are divided, a rank has some columns of the weight and bias of each even layer, and of
 * each odd layer the rows of the weight that they are multiplied with; the products of odd layers
 * are sums over the ranks. A last layer of even number is whole. */
typedef struct network {
    ops_context *context; /* not owned */
    hal_comm *comm;       /* not owned; null: no communicator */
    uint32_t divides;     /* NETWORK_DIVIDES_BATCH ... */
    uint32_t precision;   /* of all matrix products, a hal_gemm_precision */
    uint32_t levels;      /* of products of HAL_GEMM_NORMWISE; 0: the library chooses */
    int layers;
    ops_array *state[NETWORK_MAX_STATE];
} network;

/* Makes biases of 0 and random weights from `seed`, the same for every number of ranks. `widths`
 * has layers + 1 numbers, from the inputs to the classes; if layers are divided, the number of
 * ranks divides those between. `net` has context, communicator, divides, precision and levels, and
 * 0 for the rest. Call network_destroy also after a failure. */
hal_status network_create(const int64_t *widths, int layers, uint64_t seed, network *net);
void network_destroy(network *net);

/* Defers a step of training on a batch: `input` is batch x widths[0], `target` batch x classes with
 * rows that sum to 1, `rate` 1 x 1. `next` receives the new state and then the mean loss of the
 * batch, 1 x 1: 2 layers + 1 arrays, which are the caller's; nulls after a failure.
 * With a communicator whose ranks divide the batch, it is the rank's part, and the results are
 * those of the parts of all ranks together. This call records the collectives. */
hal_status network_train(const network *net, ops_array *input, ops_array *target, ops_array *rate,
                         ops_array **next);

/* Replaces the weights by copies that are prepared for products with about `rows` inputs. For use
 * after training: graphs do not take prepared weights as inputs. */
hal_status network_prepare(network *net, int64_t rows);

/* Defers the classification of inputs: the class of each row, I32. Null after a failure. The array
 * is the caller's. If layers are divided, all ranks call it with the same inputs. */
ops_array *network_classify(const network *net, ops_array *input);

#endif
