/* Large operands on a device: they repeat a block of random elements whose length has a large
 * prime factor, so that the host knows each without a copy, and a wrong index gives a wrong
 * result. */
#ifndef BENCH_SUITES_PATTERN_H
#define BENCH_SUITES_PATTERN_H

#include "harness/bench.h"

/* Elements of the block: twice a prime. */
enum { PATTERN_PERIOD = 2 * 500009 };

/* The block of f32, f16 or bf16, in [-1, 1): kept until the process ends; null after a printed
 * failure. Element i of a pattern with `start` is element (start + i) % PATTERN_PERIOD. */
const void *pattern_block(bench_state *bench, hal_type type);

/* A contiguous tensor of `count` elements of the pattern; the caller releases its buffer. False
 * after a printed failure. */
bool pattern_create(bench_state *bench, const bench_place *place, hal_type type, int64_t count,
                    int start, ops_tensor *made);

#endif
