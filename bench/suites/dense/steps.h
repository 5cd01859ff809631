/* Steps of a network of dense layers, one after the other, as they are timed. */
#ifndef BENCH_SUITES_DENSE_STEPS_H
#define BENCH_SUITES_DENSE_STEPS_H

#include "suites/dense/network.h"

/* A step with arrays, or as a graph. */
typedef struct dense_steps {
    dense_network *network;
    ops_graph *graph; /* null: with arrays */
    bool is_unfused;
} dense_steps;

/* The results of one step, as dense_step. */
uint32_t dense_steps_results(const dense_steps *steps, ops_array **results);

/* A measure_function of dense_steps: training steps start from the results of the last one. */
void dense_steps_run(void *user, int calls);

/* Operations of the matrix products of a step. */
double dense_step_flops(const dense_cell *cell);

/* A program of ops_prepare: a step of the network `user`. */
hal_status dense_step_record(ops_context *context, void *user);

/* A step as a graph; null after a printed failure. */
ops_graph *dense_graph_create(dense_network *network);

#endif
