/* Training of the network on a text, and the text that it writes, on the device of a context. */
#ifndef EXAMPLES_RNN_TRAIN_H
#define EXAMPLES_RNN_TRAIN_H

#include "text.h"

#include <ops/ops.h>

typedef struct train_settings {
    int64_t steps;
    int64_t every;  /* steps between two lines */
    int64_t sample; /* letters to write in the end */
    uint64_t seed;  /* of weights and of what is written */
    int eager;      /* each step deferred anew, instead of a graph */
} train_settings;

/* The result of a run. */
typedef struct train_outcome {
    double first_loss; /* mean cross-entropy of a letter in the first `every` steps */
    double loss;       /* and in the last ones */
    double step_us;    /* per step, without the first ones, which compile kernels */
} train_outcome;

/* The fewest letters that training takes. */
int64_t train_least(void);

/* Trains a fresh network, shows its loss, and prints the sample. */
hal_status train_and_write(ops_context *context, const rnn_text *text,
                           const train_settings *settings, train_outcome *outcome);

#endif
