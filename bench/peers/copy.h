/* The memory-bound baseline of devices with device memory: a copy within the device, by hal and
 * with --raw by the driver's own call. */
#ifndef BENCH_PEERS_COPY_H
#define BENCH_PEERS_COPY_H

#include "harness/bench.h"

typedef struct copy_baseline {
    bench_state *bench;
    hal_buffer *source, *target;
    uint64_t bytes;
} copy_baseline;

/* Allocates two blocks of `bytes` bytes, and two more by raw calls, and checks a copy of each.
 * False after a printed failure. */
bool copy_create(bench_state *bench, uint64_t bytes, copy_baseline *made);
void copy_destroy(copy_baseline *made);

/* A measure_function over a copy_baseline. */
void copy_run(void *user, int calls);

#endif
