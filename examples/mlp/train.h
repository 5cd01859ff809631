/* Training and testing of a network on digits, on the device of a context. Used by main.c. */
#ifndef EXAMPLES_MLP_TRAIN_H
#define EXAMPLES_MLP_TRAIN_H

#include "../digits/data.h"

#include <ops/ops.h>

#define TRAIN_BATCH 64 /* the fewest pictures to learn from */

typedef struct train_settings {
    int layers;         /* 1 to NETWORK_MAX_LAYERS, with the last one, which gives the classes */
    int64_t width;      /* of the layers but the last one */
    uint32_t precision; /* a hal_gemm_precision */
    uint32_t levels;    /* of products of HAL_GEMM_NORMWISE; 0: the library chooses */
    int epochs;         /* how often each picture is learned from */
    uint64_t seed;      /* of the weights and of the order of the pictures */
    uint32_t divides;   /* what the ranks divide among them, NETWORK_DIVIDES_BATCH ... */
    int eager;          /* calls each step anew, instead of launching a graph */
    int quiet;          /* prints nothing */
} train_settings;

typedef struct train_outcome {
    double accuracy; /* on the test's pictures, 0 to 1 */
    double loss;     /* mean cross-entropy of the last batch */
    double step_us;  /* mean time of a step, without the first epoch if there are more */
} train_outcome;

/* Each rank of the communicator (null: none) learns from an equal part of every batch, or with an
 * equal part of the layers, and ends with the same outcome except for step_us; the number of ranks
 * divides TRAIN_BATCH or the width. */
hal_status train_and_test(ops_context *context, hal_comm *comm, const train_settings *settings,
                          const digits_data *training, const digits_data *test,
                          train_outcome *outcome);

#endif
