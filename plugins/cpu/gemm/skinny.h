/* The routes of products with a short side. */
#ifndef PLUGINS_CPU_GEMM_SKINNY_H
#define PLUGINS_CPU_GEMM_SKINNY_H

#include "gemm/plan.h"

/* Packs the short matrix of product `batch` along k at `to`, in the accumulator's type. */
void cpu_gemm_skinny_pack(const struct cpu_gemm_plan *plan, const struct cpu_gemm_args *args,
                          int64_t batch, char *to);

/* Elements `at` to at + count - 1 of the long side, of product `batch`. `packed`: the short matrix
 * if the plan packs it. `sums`: a slot of the workspace. */
void cpu_gemm_skinny_multiply(const struct cpu_gemm_plan *plan, const struct cpu_gemm_args *args,
                              int64_t batch, int64_t at, int64_t count, const char *packed,
                              char *sums, int slot);

#endif
