/* Training and testing of a network on digits, on the device of a context. */
#ifndef EXAMPLES_DIGITS_TRAIN_H
#define EXAMPLES_DIGITS_TRAIN_H

#include "data.h"

#include <ops/ops.h>

/* The fewest pictures that training or testing takes: one batch. */
#define TRAIN_LEAST 64

/* The result of a run. */
typedef struct train_outcome {
    double accuracy; /* on the pictures it was tested on, 0 to 1 */
    double loss;     /* mean cross-entropy of the last batch */
    double seconds;  /* of training alone, until the device is idle */
    int64_t steps;
    int64_t images;  /* that were learned from, with repetitions */
} train_outcome;

/* Trains a fresh network on `training` from `seed` and tests it on `test`; `guesses` takes the
 * class of each test picture. Each rank of the communicator learns from an equal part of every
 * batch; the number of ranks divides TRAIN_LEAST. The first rank shows its progress. */
hal_status train_and_test(ops_context *context, hal_comm *comm, const digits_data *training,
                          const digits_data *test, uint64_t seed, int32_t *guesses,
                          train_outcome *outcome);

#endif
