/* The inference of a network by matrix products with a number of levels of Strassen's algorithm,
 * whose epilogues add the bias and compute the ReLU. */
#ifndef BENCH_SUITES_DENSE_LEVELS_H
#define BENCH_SUITES_DENSE_LEVELS_H

#include "suites/dense/network.h"

typedef struct dense_levels {
    dense_network *network;
    uint32_t levels;
    ops_expression *epilogue;
    /* On a processor, whose kernel has the levels inside, layers write `outputs` in turn; else each
     * one writes the sums that the next one reads, and the weights are prepared. */
    bool is_chained;
    ops_gemm_prepared *prepared[DENSE_MAX_LAYERS];
    ops_tensor sums[2], outputs[2]; /* chained: only the last layer has an output, the first */
} dense_levels;

/* For a network of F32. False after a printed failure; call dense_levels_destroy in any case. */
bool dense_levels_create(dense_network *network, uint32_t levels, dense_levels *made);
void dense_levels_destroy(dense_levels *levels);

/* Records the layers; false after a printed failure. */
bool dense_levels_record(dense_levels *levels);

/* Records them and compares the result as dense_check does. */
bool dense_levels_check(dense_levels *levels);

#endif
