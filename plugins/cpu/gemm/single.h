/* Products that are one task of one thread: run without phases, which would take as long as a small
 * product. */
#ifndef PLUGINS_CPU_GEMM_SINGLE_H
#define PLUGINS_CPU_GEMM_SINGLE_H

#include "gemm/plan.h"

/* Runs a plan that is single. The bits are those of a run in phases. */
void cpu_gemm_single_run(const struct cpu_gemm_plan *plan, const struct cpu_gemm_args *args);

#endif
