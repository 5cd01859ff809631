/* The suites of hal-bench: each adds rows to the table of the run. */
#ifndef BENCH_SUITES_SUITES_H
#define BENCH_SUITES_SUITES_H

#include "harness/bench.h"

void suite_gemm(bench_state *bench);
void suite_pointwise(bench_state *bench);
void suite_reduce(bench_state *bench);
void suite_dispatch(bench_state *bench);
void suite_batch(bench_state *bench);
void suite_start(bench_state *bench);
void suite_sequential(bench_state *bench);
void suite_transfer(bench_state *bench);
void suite_collectives(bench_state *bench);
void suite_grid(bench_state *bench);
void suite_dense(bench_state *bench);
void suite_mixes(bench_state *bench);
void suite_optimizer(bench_state *bench);
void suite_kernels(bench_state *bench);
void suite_attention(bench_state *bench);
void suite_operators(bench_state *bench);
void suite_quantised(bench_state *bench);
void suite_grouped(bench_state *bench);

/* The one pass of start --once, which suite_start runs in child processes: prints the times. False
 * after a printed failure. */
bool start_once(const bench_options *options);

/* Print the cells of the suites as JSON, without a device. False without
 * memory. */
bool grid_list(const bench_options *options);
bool dense_list(const bench_options *options);
bool mixes_list(const bench_options *options);
bool attention_list(const bench_options *options);
bool operators_list(const bench_options *options);

#endif
