/* Shared by the parts of suite_sequential (sequential_*.c): devices that take turns, and references
 * with error bounds. pytorch/sequential.py has the functions of sequential_chain and the numbers of
 * sequential_steps too. */
#ifndef BENCH_SUITES_SEQUENTIAL_SEQUENTIAL_H
#define BENCH_SUITES_SEQUENTIAL_SEQUENTIAL_H

#include "harness/bench.h"

#define SEQUENTIAL_ELEMENTS 1024

/* 10,000 unary operations on 1,024 floats. */
void sequential_chain(bench_state *bench);
/* The recurrent step at several sizes. */
void sequential_steps(bench_state *bench);
/* One operation and the wait for it. */
void sequential_alone(bench_state *bench);
/* Random expressions without cached kernels. */
void sequential_trees(bench_state *bench);

/* The device of the run and the one of --second. Returns their count, 1 or 2. */
int sequential_places(const bench_state *bench, bench_place places[2]);

/* Ends a run: computes `last` and waits for it. False after a printed failure. */
bool sequential_finish(bench_state *bench, const bench_place *place, ops_array *last);

/* A float of a device, computed on the host in double precision, and the largest error of the
 * device when every operation keeps to its bound. */
typedef struct estimate {
    double value, error;
} estimate;

/* An exact input; f(x); f(x, y) of ADD, SUB, MUL, MIN and MAX. The error of f is what
 * hal-conformance allows: 16 units in the last place for erf, half a unit for correctly rounded
 * functions, 5 for others. */
estimate estimate_exact(double value);
estimate estimate_unary(ops_unary_function function, estimate x);
estimate estimate_binary(ops_binary_function function, estimate x, estimate y);

/* Whether a device's values are within the estimates; else bench_fail with `what`. */
bool estimate_check(bench_state *bench, const char *what, const float *values,
                    const estimate *expected, int count);

#endif
