/* References for memory-bound work: the triad (triad.h) on CPUs, device-to-device copies (copy.h)
 * on devices with device memory, both on software GPUs. */
#ifndef BENCH_PEERS_BANDWIDTH_H
#define BENCH_PEERS_BANDWIDTH_H

#include "harness/bench.h"
#include "peers/copy.h"
#include "peers/triad.h"

typedef struct baselines {
    bench_state *bench;
    int64_t count; /* floats of one array */
    triad *triad;  /* null on a GPU */
    bool copies;
    copy_baseline copy;
} baselines;

/* Creates baselines with arrays of `count` floats. False after a printed failure; call
 * baselines_destroy in any case. */
bool baselines_create(bench_state *bench, int64_t count, baselines *made);
void baselines_destroy(baselines *made);

/* Appends them to the first competitor, the device; returns the number of all, at most
 * 1 + BENCH_MAX_PEERS. */
int baselines_list(baselines *all, measured *competitors);

/* Adds their results to a row, before bench_rate. */
void baselines_add(const baselines *all, const measured *competitors, int count, bench_row *row);

#endif
