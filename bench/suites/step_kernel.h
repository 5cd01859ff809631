/* step_kernel.h: the small kernel of suites that measure commands which follow one another:
 * out[i] = in[i] * 3 + i of STEP_WORDS words. The raw APIs have the same one (raw.h: step). */
#ifndef BENCH_SUITES_STEP_KERNEL_H
#define BENCH_SUITES_STEP_KERNEL_H

#include "harness/bench.h"
#include "peers/raw/raw.h"

enum { STEP_WORDS = RAW_STEP_WORDS, STEP_GROUP = RAW_STEP_GROUP };

/* Null when that fails, which is said. */
hal_kernel *step_kernel_make(bench_state *bench);

/* The words that this many steps make of zeros. */
void step_kernel_expect(uint32_t words[STEP_WORDS], int64_t steps);

#endif
