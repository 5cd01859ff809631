/* sequential.h: what the parts of suite_sequential share: places that take turns, and values with
 * what their errors may be. The parts are sequential_*.c; sequential_chain's functions and the
 * numbers of sequential_steps are those of torch_sequential.py too. */
#ifndef OPS_BENCH_SEQUENTIAL_H
#define OPS_BENCH_SEQUENTIAL_H

#include "bench.h"

#define SEQUENTIAL_ELEMENTS 1024

/* 10,000 unary operations on 1,024 floats. */
void sequential_chain(bench_state *bench);
/* The recurrent step at several sizes. */
void sequential_steps(bench_state *bench);
/* One operation and the wait for it. */
void sequential_alone(bench_state *bench);
/* Random expressions that no kernel exists for. */
void sequential_trees(bench_state *bench);

/* The device of the run and the one of --beside. Returns their count, 1 or 2. */
int sequential_places(const bench_state *bench, bench_place places[2]);

/* Ends a run: has `last` computed and waits for it. False when a call failed, which is said. */
bool sequential_finish(bench_state *bench, const bench_place *place, ops_array *last);

/* Divides times by the operations or steps of a call. */
measurement sequential_share(const measurement *time, double parts);

/* A float of a device as the host works it out in double precision: the value, and how far the
 * device's may be from it when every operation keeps to its bound. */
typedef struct estimate {
    double value, error;
} estimate;

/* An exact input. f(x); f(x, y) of ADD, SUB, MUL, MIN and MAX. The function's own error is what
 * hal-conformance allows: 16 units in the last place of erf, 5 of others, half of one where f is
 * exact but for the rounding. */
estimate estimate_exact(double value);
estimate estimate_unary(ops_unary_function function, estimate x);
estimate estimate_binary(ops_binary_function function, estimate x, estimate y);

/* Whether a device's values keep to the estimates; bench_fail with `what` when one does not. */
bool estimate_check(bench_state *bench, const char *what, const float *values,
                    const estimate *expected, int count);

#endif
