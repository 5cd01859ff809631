/* A run of the matrix product: its phases, and the part that every task reads. */
#ifndef PLUGINS_CPU_GEMM_JOB_H
#define PLUGINS_CPU_GEMM_JOB_H

#include "gemm/plan.h"
#include "threads/parts.h"

#include <stdatomic.h>

/* The work of one phase: matrices of a batch, a block of C, a slab of k. */
struct cpu_gemm_stage {
    bool pack, first, last; /* the first and last slab of k */
    int product;            /* of the levels, whose phases have all slabs */
    int64_t batch, matrices;
    int64_t m0, m, n0, n, k0, k;
    int64_t strips, panels;      /* to pack, of each matrix; a shared one is packed once */
    int64_t units, chunk, tasks; /* pieces of work, pieces of a task, tasks */
};

struct cpu_gemm_job {
    const struct cpu_gemm_plan *plan;
    const struct cpu_gemm_args *args;
    struct cpu_gemm_layout layout;
    /* Counts of the loops over phases. */
    int64_t products, groups, outers_m, outers_n, slabs, steps;
    int64_t phases;
    int64_t task_m, task_n, chunk;
    cpu_parts parts; /* a stage for each phase */
    _Alignas(64) atomic_llong done;
};

static inline int64_t cpu_gemm_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t cpu_gemm_type_bytes(enum cpu_gemm_type type)
{
    static const uint8_t bytes[] = {
        [CPU_GEMM_F32] = 4, [CPU_GEMM_F64] = 8, [CPU_GEMM_F16] = 2, [CPU_GEMM_BF16] = 2,
        [CPU_GEMM_I8] = 1,  [CPU_GEMM_U8] = 1,  [CPU_GEMM_I32] = 4};
    return bytes[type];
}

#endif
