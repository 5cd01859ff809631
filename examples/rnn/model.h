/* A recurrent network that predicts the next letter, backpropagation through time, and Adam,
 * written with arrays: the caller evaluates each step of training, or records one as a graph.
 *
 *     h' = h + a (tanh(h W + E[letter]) - h)      a: how fast each hidden unit forgets, fixed
 *     probabilities of the next letter = softmax(h' V + b)
 * */
#ifndef EXAMPLES_RNN_MODEL_H
#define EXAMPLES_RNN_MODEL_H

#include <ops/ops.h>

typedef struct model_sizes {
    int64_t letters, hidden, batch, steps; /* steps: of backpropagation */
} model_sizes;

/* The weights. */
enum { WEIGHT_INPUT, WEIGHT_HIDDEN, WEIGHT_OUTPUT, WEIGHT_BIAS, WEIGHTS };

/* The state that a step of training updates: weights, Adam's means of gradients and of their
 * squares, the hidden state, and the sum of the losses. */
enum {
    STATE_WEIGHT = 0,
    STATE_MEAN = WEIGHTS,
    STATE_SQUARE = 2 * WEIGHTS,
    STATE_HIDDEN = 3 * WEIGHTS,
    STATE_LOSS,
    STATES
};

/* A batch: letters and those that follow, I32 of [steps * batch, 1], and the learning rate, F32 of
 * [1, 1]. */
enum { BATCH_LETTERS, BATCH_NEXT, BATCH_RATE, BATCH_ARRAYS };

typedef struct model {
    ops_context *context;
    model_sizes sizes;
    ops_array *forgetting; /* a, [1, hidden] */
    ops_array *alphabet;   /* the letters' numbers, I32 of [1, letters] */
    ops_array *state[STATES];
} model;

/* Creates weights from a seed. Call model_destroy also after a failure. */
hal_status model_create(ops_context *context, model_sizes sizes, uint64_t seed, model *m);
void model_destroy(model *m);

/* Set the hidden state, or the sum of the losses, to 0. */
hal_status model_clear_hidden(model *m);
hal_status model_clear_loss(model *m);

/* Defers a step of training; the arrays in `next` belong to the caller. */
hal_status model_train(const model *m, ops_array *const batch[BATCH_ARRAYS],
                       ops_array *next[STATES]);

/* Defers the step of one letter, I32 of [1, 1]: the hidden state after it, [1, hidden], and the
 * probabilities of the next letter, [1, letters]; both are the caller's. */
hal_status model_guess(const model *m, ops_array *hidden, ops_array *letter, ops_array **next,
                       ops_array **probabilities);

#endif
