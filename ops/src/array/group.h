/* Groups: deferred pointwise operations that become one kernel, or the part of a reduction or
 * matrix product before or after it. */
#ifndef OPS_SRC_ARRAY_GROUP_H
#define OPS_SRC_ARRAY_GROUP_H

#include "array.h"
#include "kernels/expression.h"

typedef struct ops_group {
    uint32_t node_count, leaf_count, output_count;
    ops_array *nodes[OPS_GROUP_OPERATIONS]; /* operands before what uses them */
    ops_array *leaves[OPS_GROUP_LEAVES];    /* arrays that are read */
    uint8_t outputs[OPS_MAX_OUTPUTS];       /* places of nodes that get memory */
    ops_array *cut; /* of what is more than one kernel may have: an operation to compute first */
} ops_group;

/* Whether x, an operand of `array`, can be computed in the same kernel as it is needed. */
int ops_group_may_join(const ops_array *array, const ops_array *x);

/* Whether `array`, which is pointwise, can be computed at the end of x's kernel, x being a
 * reduction or a matrix product. */
int ops_group_may_follow(const ops_array *array, const ops_array *x);

/* Gathers what computes the roots, which are pointwise and of one shape. 0 when it is more than one
 * kernel may have: a root was noted within the limits, but what was computed since is now read
 * where it was computed along, and there may be more of it. */
int ops_group_gather(ops_group *group, ops_array *const *roots, uint32_t root_count);

/* Whether x is one of the operations that were gathered last. */
int ops_group_has(const ops_group *group, const ops_array *x);

/* Makes leaf number `leaf` the first one. */
void ops_group_lead_with(ops_group *group, uint32_t leaf);

/* Chooses the outputs: the roots, and what somebody may still ask for, up to `most`. */
void ops_group_choose_outputs(ops_group *group, ops_array *const *roots, uint32_t root_count,
                              uint32_t most);

/* Adds the operations to a signature; their operands are told by their places. */
void ops_group_key(const ops_group *group, ops_cache_key *signature);

/* Makes the expression. The first leaf is input 0, then come `gap` inputs of U32 that are not used,
 * then the other leaves. Output i is the node at outputs[i].
 * Ownership: the caller's. */
hal_status ops_group_expression(const ops_group *group, uint32_t gap, ops_expression **expression);

#endif
