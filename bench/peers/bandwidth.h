/* References for memory-bound work: the triad (triad.h) on CPUs, device-to-device copies (copy.h)
 * on devices with device memory, both on software GPUs. Called by suite_pointwise.c and
 * suite_reduce.c. */
#ifndef BENCH_PEERS_BANDWIDTH_H
#define BENCH_PEERS_BANDWIDTH_H

#include "harness/bench.h"
#include "peers/copy.h"
#include "peers/triad.h"

typedef struct yardsticks {
    bench_state *bench;
    int64_t count; /* floats of one array */
    triad *triad;  /* null on a GPU */
    bool copies;
    copy_yardstick copy;
} yardsticks;

/* Creates yardsticks with arrays of `count` floats. False after a printed failure; call
 * yardsticks_destroy in any case. */
bool yardsticks_create(bench_state *bench, int64_t count, yardsticks *made);
void yardsticks_destroy(yardsticks *made);

/* Appends them to the first competitor, the device; returns the number of all, at most
 * 1 + BENCH_MAX_PEERS. */
int yardsticks_list(yardsticks *all, measured *competitors);

/* Adds their results to a row, before bench_rate. */
void yardsticks_add(const yardsticks *all, const measured *competitors, int count, bench_row *row);

#endif
