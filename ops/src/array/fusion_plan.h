/* Fusion plans: what one kernel computes. A plan is an anchor (a reduction, softmax, matrix product
 * or move by index) with the elementwise nodes before it (prologue) and after it (epilogue), or,
 * without an anchor, elementwise nodes alone (in `epilogue`), or rows: reductions along one axis
 * with what is computed for them and from them, such as a normalisation (in `epilogue` as well).
 * execute.c makes plans and passes them to fusion_record.c. */
#ifndef OPS_SRC_ARRAY_FUSION_PLAN_H
#define OPS_SRC_ARRAY_FUSION_PLAN_H

#include "fusion_cluster.h"

#include "kernels/rows.h"

#include <stdbool.h>

#define OPS_PLAN_INPUTS (2u * OPS_CLUSTER_LEAVES + 2u)
_Static_assert(OPS_PLAN_INPUTS >= OPS_MAX_OPERANDS, "an anchor's operands are inputs");
_Static_assert(OPS_PLAN_INPUTS + OPS_MAX_OUTPUTS <= OPS_PLAN_BUFFERS, "a plan can be recorded");

typedef struct ops_fusion_plan {
    ops_context *context;
    bool fuse;         /* 0: operations are not fused */
    ops_array *anchor; /* null: elementwise nodes alone */
    ops_array *roots[OPS_MAX_OUTPUTS];
    uint32_t root_count;   /* above 1 only without an anchor */
    const ops_array *rows; /* a reduction whose rows `epilogue` is; null: elementwise nodes */
    bool has_prologue, has_epilogue;
    ops_fusion_cluster prologue, epilogue;
    /* Arrays that are read: operands of the anchor or leaves of the prologue, then, from
     * epilogue_first on, leaves of the epilogue without the anchor. */
    ops_array *inputs[OPS_PLAN_INPUTS];
    uint32_t input_count, epilogue_first;
    ops_array *outputs[OPS_MAX_OUTPUTS]; /* arrays that are stored */
    uint32_t output_count;
    /* Products by levels of Strassen's algorithm, one layer after the other: the anchor's first
     * operand is read as sums of a_levels, which `a_sums` holds (a view, and no node of the
     * owner's); sums of the result, of c_levels, are one more output, in place of the result itself
     * where drops_result. 0: neither. */
    uint32_t a_levels, c_levels;
    bool drops_result;
    const ops_array *a_source; /* the operand whose sums are given, or null */
    ops_array a_sums;
} ops_fusion_plan;

/* Chooses the layout that all reductions of a plan of rows have in common, as each has it by
 * itself. Returns 0 where they differ or need several kernels. */
bool ops_fusion_plan_row_layout(const ops_fusion_plan *plan, ops_row_layout *layout);

/* Plans the kernel of a deferred root. Returns a deferred array that has to be computed first, and
 * then the plan is void; null when the plan is complete except for its operands. `a_source`: an
 * array that need not be computed as the first operand of a product, since its sums are given. */
ops_array *ops_fusion_plan_make(ops_fusion_plan *plan, ops_array *root, bool fuse,
                                const ops_array *a_source);

/* The levels by which the plan's product reads sums of its first operand and can write those of its
 * result: its lengths leave no rest. 0: it is no such product. */
uint32_t ops_fusion_plan_levels(const ops_fusion_plan *plan);

/* Buffers that the plan writes: those of the outputs, unless they are dropped, then that of the
 * result's sums. */
uint32_t ops_fusion_plan_buffer_count(const ops_fusion_plan *plan);

/* Adds further roots to a plan of elementwise nodes, where they fit into its kernel. */
void ops_fusion_plan_add_roots(ops_fusion_plan *plan, ops_array *const *roots, uint32_t count);

/* Lists inputs and outputs: the last step of planning. `a_sums`, of `a_levels`: those of the plan's
 * a_source. */
void ops_fusion_plan_list_operands(ops_fusion_plan *plan, const ops_tensor *a_sums,
                                   uint32_t a_levels);

/* Operations of the plan: the kernels that it takes without fusion. */
uint32_t ops_fusion_plan_operation_count(const ops_fusion_plan *plan);

/* Appends all that decides the recorded commands but the buffers: operations, shapes, strides, and
 * which inputs share memory. Inputs are in memory by now. */
void ops_fusion_plan_append_key(const ops_fusion_plan *plan, ops_cache_key *key);

#endif
