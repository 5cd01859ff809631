/* A dense classifier: ReLU layers, softmax cross-entropy, momentum with weight decay. All work is
 * recorded with the op library on the context's device. */
#ifndef EXAMPLES_DIGITS_NETWORK_H
#define EXAMPLES_DIGITS_NETWORK_H

#include <ops/ops.h>

#define NETWORK_MAX_LAYERS 4

/* One dense layer, y = relu(x W + b); the last has no relu. All tensors are F32. */
typedef struct network_layer {
    int64_t inputs, outputs;
    ops_tensor weight, bias;                   /* inputs x outputs, 1 x outputs */
    ops_tensor weight_gradient, bias_gradient; /* as weight and bias */
    ops_tensor weight_velocity, bias_velocity;
    ops_tensor output, error;                  /* batch x outputs; error: d loss / d output */
} network_layer;

typedef struct network {
    ops_context *context; /* not owned */
    hal_comm *comm;     /* not owned; averages the gradients of its ranks; null: no communicator */
    int64_t batch;
    uint32_t layer_count;
    network_layer layers[NETWORK_MAX_LAYERS];
    ops_expression *relu_layer, *last_layer, *relu_back, *loss_back, *update;
} network;

/* Creates a network of layer_count layers, widths[0] inputs to widths[layer_count] classes, for
 * batches of `batch` rows, with He-initialised weights from `seed`. On failure nothing is kept. */
hal_status network_create(ops_context *context, const int64_t *widths, uint32_t layer_count,
                          int64_t batch, double momentum, double decay, uint64_t seed,
                          network *net);

/* Frees what create made; a zeroed network is allowed. */
void network_destroy(network *net);

/* Records the forward pass of one batch; the result is in the last layer's output. */
hal_status network_forward(network *net, const ops_tensor *input);

/* Records one step of training on a batch: input is batch x widths[0], target batch x classes
 * with rows that sum to 1, rate one element that holds the learning rate. */
hal_status network_train(network *net, const ops_tensor *input, const ops_tensor *target,
                         const ops_tensor *rate);

/* The last layer's output, before the softmax: batch x classes. */
const ops_tensor *network_output(const network *net);

#endif
