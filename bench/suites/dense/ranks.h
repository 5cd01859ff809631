/* Data-parallel training of a network of dense layers by several ranks, each with a batch of
 * its own. */
#ifndef BENCH_SUITES_DENSE_RANKS_H
#define BENCH_SUITES_DENSE_RANKS_H

#include "harness/ranks.h"
#include "suites/dense/network.h"

typedef struct dense_ranks dense_ranks;

/* Null after a printed failure. */
dense_ranks *dense_ranks_open(bench_state *bench);
void dense_ranks_close(dense_ranks *run); /* null is allowed */

/* Whether a cell failed: the communicator may have ended, so no other cell can be measured. */
bool dense_ranks_has_failed(const dense_ranks *run);

/* Checks the training of a cell, and adds its rows. False after a printed failure. */
bool dense_ranks_measure(dense_ranks *run, const dense_cell *cell);

#endif
