/* The memory-bound baseline of CPUs: a[i] = b[i] + s * c[i] in C on as many threads as the device
 * has. J. D. McCalpin's STREAM counts bytes the same way: 12 per float. */
#ifndef BENCH_PEERS_TRIAD_H
#define BENCH_PEERS_TRIAD_H

#include <stdbool.h>
#include <stddef.h>

typedef struct triad triad;

/* Allocates three arrays of `count` floats and starts the threads; null when it cannot. */
triad *triad_create(size_t count, int threads);
void triad_destroy(triad *baseline);

/* Runs it `calls` times, with ordinary stores or with non-temporal ones. */
void triad_run(void *baseline, int calls);
void triad_run_streaming(void *baseline, int calls);

/* Whether this build has non-temporal stores. */
bool triad_can_stream(void);

#endif
