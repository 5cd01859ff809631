/* The route of bf16 products on matrix units: units of its phases. */
#ifndef PLUGINS_CPU_GEMM_PAIRS_H
#define PLUGINS_CPU_GEMM_PAIRS_H

#include "gemm/job.h"

/* Packs a panel of B, all slabs of it. */
void cpu_gemm_pairs_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                         int64_t unit);

/* Computes a block of C by the thread of a slot. */
void cpu_gemm_pairs_multiply(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                             int64_t unit, int slot);

#endif
