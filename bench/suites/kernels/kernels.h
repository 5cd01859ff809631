/* Families of operations and programs, of which the suite counts the kernels over random shapes. */
#ifndef BENCH_SUITES_KERNELS_KERNELS_H
#define BENCH_SUITES_KERNELS_KERNELS_H

#include "harness/bench.h"

#define KERNELS_MAX_ARRAYS 16

/* What a case draws shapes from, and what it has made. */
typedef struct kernels_draw {
    bench_state *bench;
    ops_context *ops;
    uint64_t *random;
    int64_t largest; /* elements of an array, about */
    ops_array *inputs[KERNELS_MAX_ARRAYS];
    uint32_t input_count;
    ops_array *results[KERNELS_MAX_ARRAYS];
    uint32_t result_count;
    int64_t size[8]; /* that the case has drawn */
    char shape[64];
} kernels_draw;

/* Draws sizes and makes inputs; then, in the time that is measured, records the results. */
typedef struct kernels_case {
    const char *name;
    bool (*prepare)(kernels_draw *draw);
    bool (*compute)(kernels_draw *draw);
    uint32_t most_kernels; /* of any shapes, where the documentation promises a number; or 0 */
} kernels_case;

/* Adds rows of the first shapes of a case, each of which is repeated (settle.c). */
void kernels_settle(bench_state *bench, const kernels_case *what, uint64_t seed, int64_t largest);

extern const kernels_case kernels_cases[];
extern const uint32_t kernels_case_count;

#endif
