/* Levels of Strassen's algorithm inside the matrix product: the sums of blocks of A and B are formed
 * while they are packed, and products are added to blocks of C while they are stored, so that no
 * pass over memory is added. Used by gemm.c. */
#ifndef HALYARD_CPU_GEMM_LEVELS_H
#define HALYARD_CPU_GEMM_LEVELS_H

#include "gemm_job.h"

enum {
    CPU_GEMM_MAX_LEVELS = 2,
    CPU_GEMM_MAX_TERMS = 1 << CPU_GEMM_MAX_LEVELS,
    CPU_GEMM_LEVELS_PANELS = 8
};

/* The products of a number of levels: 7^levels. */
int cpu_gemm_level_products(int levels);

/* Packs strips of the sum of A's blocks, and panels of that of B's, for all slabs of k. */
void cpu_gemm_levels_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                          int64_t unit, int slot);

/* A block of the stage's product, which is added to the blocks of C. */
void cpu_gemm_levels_multiply(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *stage,
                              int64_t unit, int slot);

#endif
