/* What gemm_plan.c and gemm.c share: the layout of the workspace and small arithmetic. */
#ifndef HALYARD_CPU_GEMM_JOB_H
#define HALYARD_CPU_GEMM_JOB_H

#include "gemm_kernels.h"

enum { CPU_GEMM_SKINNY = 32 }; /* the longest short side that the skinny routes take */

/* The workspace: packed A (or the short matrix of a skinny product) from offset 0, packed B, then
 * sums: one slot for each thread, or one block for each member of the group. In bytes. */
struct cpu_gemm_layout {
    int64_t item_a, item_b, item_c; /* of one member of a group; 0 where it is not needed */
    int64_t b, scratch;             /* offsets */
    int64_t slot;
};

int64_t cpu_gemm_layout_of(const struct cpu_gemm_plan *plan, int threads,
                           struct cpu_gemm_layout *layout);

static inline int64_t cpu_gemm_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t cpu_gemm_round_up(int64_t a, int64_t b)
{
    return cpu_gemm_ceil_div(a, b) * b;
}

static inline int64_t cpu_gemm_clamp(int64_t a, int64_t low, int64_t high)
{
    return a > high ? high : a < low ? low : a;
}

/* Elements that a packed row of A takes along k: rows of a strip lie on different cache sets. */
static inline int64_t cpu_gemm_a_stride(const struct cpu_gemm_plan *plan)
{
    return plan->desc.transpose_a ? plan->kc : cpu_gemm_round_up(plan->kc, 16) + 16;
}

#endif
