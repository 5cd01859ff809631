/* Fusion plans: what one kernel computes. A plan is an anchor (a reduction, softmax, matrix product
 * or move by index) with the elementwise nodes before it (prologue) and after it (epilogue), or,
 * without an anchor, elementwise nodes alone (in `epilogue`), or rows: reductions along one axis
 * with what is computed for them and from them, such as a normalisation (in `epilogue` as well).
 * execute.c makes plans and passes them to fusion_record.c. */
#ifndef OPS_SRC_ARRAY_FUSION_PLAN_H
#define OPS_SRC_ARRAY_FUSION_PLAN_H

#include "fusion_cluster.h"
#include "matmul.h"

#include "kernels/rows.h"

#include <stdbool.h>

#define OPS_PLAN_INPUTS (2u * OPS_CLUSTER_LEAVES + 2u)
_Static_assert(OPS_PLAN_INPUTS >= OPS_MAX_OPERANDS, "an anchor's operands are inputs");
_Static_assert(OPS_PLAN_INPUTS + OPS_MAX_OUTPUTS <= OPS_PLAN_BUFFERS, "a plan can be recorded");

typedef struct ops_fusion_plan {
    ops_context *context;
    bool fuse;         /* 0: operations are not fused */
    ops_array *anchor; /* null: elementwise nodes alone */
    ops_array *twin;   /* a second result of the anchor's kernel; null: there is none */
    ops_array *roots[OPS_MAX_OUTPUTS];
    uint32_t root_count;   /* above 1 only without an anchor; of rows: further reductions of them */
    const ops_array *rows; /* a reduction whose rows `epilogue` is; null: elementwise nodes */
    bool has_prologue, has_epilogue;
    ops_fusion_cluster prologue, epilogue;
    /* Arrays that are read: operands of the anchor or leaves of the prologue, then, from
     * epilogue_first on, leaves of the epilogue without the anchor. */
    ops_array *inputs[OPS_PLAN_INPUTS];
    uint32_t input_count, epilogue_first;
    ops_array *outputs[OPS_MAX_OUTPUTS]; /* arrays that are stored */
    uint32_t output_count;
    uint8_t donors[OPS_MAX_OUTPUTS]; /* 1 + the input whose memory an output takes; 0: of none */
    /* Sums that take the place of the anchor's first operand, and those of the result, which are
     * one more output, or the only one, see matmul.h. Null: none. */
    ops_matmul_sums *reads, *writes;
} ops_fusion_plan;

/* Chooses the layout that all reductions of a plan of rows have in common, as each has it by
 * itself. Returns 0 where they differ or need several kernels. */
bool ops_fusion_plan_row_layout(const ops_fusion_plan *plan, ops_row_layout *layout);

/* Plans the kernel of a deferred root. Returns a deferred array that has to be computed first, and
 * then the plan is void; null when the plan is complete except for its operands. `sums`: of an
 * array that need not be computed as the first operand of a product; null: none are given. */
ops_array *ops_fusion_plan_make(ops_fusion_plan *plan, ops_array *root, bool fuse,
                                ops_matmul_sums *sums);

/* Describes the sums of `operand` that the plan's product reads in its place. Returns whether it
 * does. */
bool ops_fusion_plan_wants_sums(const ops_fusion_plan *plan, const ops_array *operand,
                                ops_matmul_sums *sums);

/* Makes the sums of the result an output of the plan, if its product has as many levels. */
void ops_fusion_plan_write_sums(ops_fusion_plan *plan, ops_matmul_sums *sums);

/* Arrays that the plan stores: its outputs unless their sums take their place. */
uint32_t ops_fusion_plan_stored_count(const ops_fusion_plan *plan);

/* Buffers that the plan writes: those of what it stores, then that of the result's sums. */
uint32_t ops_fusion_plan_buffer_count(const ops_fusion_plan *plan);

/* Adds further roots to a plan of elementwise nodes, where they fit into its kernel. */
void ops_fusion_plan_add_roots(ops_fusion_plan *plan, ops_array *const *roots, uint32_t count);

/* Lists inputs and outputs: the last step of planning. */
void ops_fusion_plan_list_operands(ops_fusion_plan *plan);

/* The tensor that input number `i` is read as. */
ops_tensor ops_fusion_plan_input(const ops_fusion_plan *plan, uint32_t i);

/* Operations of the plan: the kernels that it takes without fusion. */
uint32_t ops_fusion_plan_operation_count(const ops_fusion_plan *plan);

/* Appends all that decides the recorded commands but the buffers: operations, shapes, strides, and
 * which inputs share memory. Inputs are in memory by now. */
void ops_fusion_plan_append_key(const ops_fusion_plan *plan, ops_cache_key *key);

#endif
