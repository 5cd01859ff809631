/* The cpu plugin's native matrix product: C = alpha * op(A) * op(B) + beta * C, row-major.
 * Called by the plugin's gemm entry; knows nothing of hal. A plan is made once from a description
 * and may then be run from any number of threads at a time, each with its own workspace. */
#ifndef PLUGINS_CPU_GEMM_GEMM_H
#define PLUGINS_CPU_GEMM_GEMM_H

#include "gemm/plan.h"
#include "threads/pool.h"

/* Writes the shapes of all tiles that the epilogue gets in runs with this many threads (1: no pool)
 * and returns their number. */
int cpu_gemm_tile_shapes(const struct cpu_gemm_plan *plan, int threads,
                         struct cpu_gemm_shape shapes[CPU_GEMM_SHAPES]);

/* Computes. The result's bits depend on the plan alone, not on the number of threads. */
void cpu_gemm_run(const struct cpu_gemm_plan *plan, const struct cpu_gemm_args *args);

#endif
