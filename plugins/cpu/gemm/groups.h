/* Products of groups of rows: the rows offsets[g] to offsets[g + 1] - 1 of A and C times matrix g
 * of B, with offsets that are read when the product runs. Called by the plugin's gemm kernel.
 *
 * A run is a grid of tasks: some rows of a group times some columns of its B, by one thread, which
 * packs what it needs in its own part of the workspace. No task waits for another, so that the
 * threads share all groups, whatever their sizes. The bits are those of a product for each group.
 */
#ifndef PLUGINS_CPU_GEMM_GROUPS_H
#define PLUGINS_CPU_GEMM_GROUPS_H

#include "gemm/plan.h"
#include "threads/pool.h"

/* Opaque. Owns no memory. */
struct cpu_gemm_groups {
    struct cpu_gemm_desc desc; /* m: rows of all groups; batch: groups */
    struct cpu_gemm_plan plan; /* of one group with all rows */
    bool has_wide_offsets;     /* 64 bits */
    int64_t task_m, task_n;    /* rows and columns of a task, at most */
    int64_t slot;              /* bytes of a thread's workspace */
};

/* Makes a plan for runs with up to `threads` threads. Strides of A and C between matrices are not
 * read. Returns NULL, or the fault of the description. */
const char *cpu_gemm_groups_make(struct cpu_gemm_groups *groups, const struct cpu_gemm_desc *desc,
                                 bool has_wide_offsets, int threads);

/* Bytes of workspace that a run with at most `threads` threads needs. */
int64_t cpu_gemm_groups_workspace_size(const struct cpu_gemm_groups *groups, int threads);

/* Computes. `offsets`: one more than there are groups, 32 or 64 bits each; others than ascending
 * ones of 0 to m give wrong rows, and nothing outside of the matrices is accessed. */
void cpu_gemm_groups_run(const struct cpu_gemm_groups *groups, const struct cpu_gemm_args *args,
                         const void *offsets);

#endif
