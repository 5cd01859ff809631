/* copy.h: the yardstick of memory-bound work on devices with memory of their own: a copy within
 * the device, by hal and, where --raw asks for it, by the driver's own call. Called by
 * suite_pointwise.c. */
#ifndef OPS_BENCH_COPY_H
#define OPS_BENCH_COPY_H

#include "bench.h"

typedef struct copy_yardstick {
    bench_state *bench;
    hal_buffer *source, *target;
    uint64_t bytes;
} copy_yardstick;

/* Makes two blocks of `bytes` bytes, and two more by raw calls, and checks a copy of each. False
 * when that fails, which is said. */
bool copy_create(bench_state *bench, uint64_t bytes, copy_yardstick *made);
void copy_destroy(copy_yardstick *made);

/* A measure_function over a copy_yardstick. */
void copy_run(void *user, int calls);

#endif
