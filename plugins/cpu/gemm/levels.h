/* Levels of Strassen's algorithm inside the matrix product: the sums of blocks of A and B are
 * formed while they are packed, and products are combined before they are stored, so that one level
 * adds no pass over memory. */
#ifndef PLUGINS_CPU_GEMM_LEVELS_H
#define PLUGINS_CPU_GEMM_LEVELS_H

#include "gemm/job.h"

/* The most tile sizes along one axis. */
enum { CPU_GEMM_LEVELS_LENGTHS = 12 };

/* The slabs of a phase, at least one. */
static inline int64_t cpu_gemm_levels_slabs(const struct cpu_gemm_plan *plan,
                                            const struct cpu_gemm_stage *stage)
{
    return stage->k > plan->kc ? cpu_gemm_ceil_div(stage->k, plan->kc) : 1;
}

/* Packs a strip of the sums of A's blocks, or panels of those of B's, for one slab of k. */
void cpu_gemm_levels_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                          int64_t unit, int slot);

/* Computes a tile of 7 products, combines them and adds the results to blocks of C. */
void cpu_gemm_levels_multiply(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                              int64_t unit, int slot);

/* The lengths that tiles have along an axis of `length`, which 2^levels blocks of `block` cover,
 * cut into outer blocks and tasks. Returns their number. */
int cpu_gemm_levels_lengths(int levels, int64_t length, int64_t block, int64_t outer, int64_t task,
                            int64_t lengths[CPU_GEMM_LEVELS_LENGTHS]);

#endif
