/* Products that are one task of one thread: run without phases, which would take as long as a small
 * product. Called by gemm.c and gemm_plan.c. */
#ifndef HALYARD_CPU_GEMM_SINGLE_H
#define HALYARD_CPU_GEMM_SINGLE_H

#include "gemm_plan.h"

/* Returns where a single run has its copies. */
struct cpu_gemm_single cpu_gemm_single_layout(const struct cpu_gemm_plan *plan);

/* Runs a plan that is single. The bits are those of a run in phases. */
void cpu_gemm_single_run(const struct cpu_gemm_plan *plan, const struct cpu_gemm_args *args);

#endif
