/* Fusion clusters: deferred elementwise nodes of one shape that become one expression. A fusion
 * plan has one as prologue and one as epilogue of a reduction or matrix product, or one alone.
 *
 * A view of such a node stays in the cluster: the view's elements are computed instead of the
 * node's. Each view so opens a frame, in which nodes have the shape of the view's source and are
 * computed at the elements that the view selects; frame 0 is that of the roots. A node may be in
 * several frames, and is computed in each.
 *
 * A cluster is a value: it stays valid as long as its nodes, whatever is gathered later. */
#ifndef OPS_SRC_ARRAY_FUSION_CLUSTER_H
#define OPS_SRC_ARRAY_FUSION_CLUSTER_H

#include "node.h"

#include "kernels/cast.h"
#include "tensor/expression.h"

#include <stdbool.h>

/* Operands of nodes: the index of a node, or OPS_CLUSTER_LEAF | the index of a leaf. */
#define OPS_CLUSTER_LEAF 0x80u

/* Frames of a cluster at most, with frame 0. */
#define OPS_CLUSTER_FRAMES 9u

typedef struct ops_cluster_frame {
    ops_array *view;
    uint8_t parent; /* the frame that reads the view */
    uint8_t node;   /* index of the view's source in this frame */
    uint16_t uses;  /* of the view, in the parent */
} ops_cluster_frame;

typedef struct ops_fusion_cluster {
    uint32_t node_count, leaf_count, output_count;
    uint32_t frame_count;                     /* with frame 0 */
    ops_array *nodes[OPS_CLUSTER_OPERATIONS]; /* operands before their users */
    ops_array *leaves[OPS_CLUSTER_LEAVES];    /* arrays that are read */
    uint8_t operands[OPS_CLUSTER_OPERATIONS][OPS_INLINE_OPERANDS];
    uint16_t node_uses[OPS_CLUSTER_OPERATIONS]; /* as operands within the cluster */
    uint16_t leaf_uses[OPS_CLUSTER_LEAVES];
    uint8_t outputs[OPS_MAX_OUTPUTS]; /* indices of nodes that are stored */
    uint8_t node_frames[OPS_CLUSTER_OPERATIONS], leaf_frames[OPS_CLUSTER_LEAVES];
    ops_cluster_frame frames[OPS_CLUSTER_FRAMES];
    ops_array *excess; /* of a cluster beyond the limits: the node to compute first */
} ops_fusion_cluster;

/* Whether operand `number` of a node can be computed in the node's kernel. */
static inline bool ops_fusion_cluster_takes_operand(const ops_array *node, uint32_t number)
{
    return ops_node_is_elementwise(node) && (node->same_shape >> number & 1) &&
           ops_node_is_elementwise(node->operands[number]) && !node->operands[number]->needs_memory;
}

/* Whether the elements of a deferred view can be computed in place of those of its source. */
bool ops_cluster_view_joins(const ops_array *view);

/* Decides `is_fusible` of a new view of a deferred array: recomputing what it repeats is cheap. A
 * gathering ends it where an array that computes the source has no strides through the view. */
bool ops_cluster_view_is_fusible(const ops_array *view);

/* Whether operand `number` of a node is a view that can be computed in the node's kernel. */
static inline bool ops_fusion_cluster_takes_view(const ops_array *node, uint32_t number)
{
    return node->operands[number]->is_fusible && ops_node_is_elementwise(node) &&
           (node->same_shape >> number & 1) && ops_cluster_view_joins(node->operands[number]);
}

/* Whether `node` can be part of the epilogue of `anchor`, one of its operands. */
bool ops_fusion_cluster_may_follow(const ops_array *node, const ops_array *anchor);

/* Gathers what computes the roots, which are elementwise and of one shape; a single root may be a
 * view that joins. Without `fuse`, a root's operands are all leaves. Returns 0 when it is beyond
 * the limits of one kernel: bounds were kept when the nodes were made, but a node that was stored
 * since is a leaf now. */
bool ops_fusion_cluster_gather(ops_fusion_cluster *cluster, ops_array *const *roots,
                               uint32_t root_count, bool fuse);

/* Gathers the rows of `reduction`, which computes `root` or an operand of it: also reductions along
 * the same axis of the same shape, and elementwise nodes of their results' shape. Returns 0 where
 * there is nothing that other fusion would not do, and beyond the limits. */
bool ops_fusion_cluster_gather_rows(ops_fusion_cluster *cluster, ops_array *root,
                                    const ops_array *reduction);

/* Gathers the rows of `reduction` for several roots: what gather_rows takes, and other reductions
 * of its rows. Returns 0 beyond the limits. */
bool ops_fusion_cluster_gather_joined(ops_fusion_cluster *cluster, ops_array *const *roots,
                                      uint32_t root_count, const ops_array *reduction);

/* Emits an elementwise node, rounded to its type; of a reduction (`in` is its result) the rounding
 * alone. */
hal_ir_value ops_fusion_cluster_emit_node(hal_ir_builder *b, const void *node,
                                          const hal_ir_value *in);

/* The same without rounding, for a node that is stored and has no other use: a store rounds. */
hal_ir_value ops_fusion_cluster_emit_stored(hal_ir_builder *b, const void *node,
                                            const hal_ir_value *in);

/* Whether no other node of the cluster uses node number `node`. */
bool ops_fusion_cluster_only_stores(const ops_fusion_cluster *cluster, uint32_t node);

/* Whether `node` is in the cluster; only for the cluster that was gathered last. */
bool ops_fusion_cluster_contains(const ops_fusion_cluster *cluster, const ops_array *node);

/* The tensor that leaf number `leaf` is read as: of a frame above 0, in the shape of the outermost
 * view around it. */
ops_tensor ops_fusion_cluster_leaf_tensor(const ops_fusion_cluster *cluster, uint32_t leaf);

/* Makes leaf number `leaf`, which is of frame 0, the first one. */
void ops_fusion_cluster_lead_with(ops_fusion_cluster *cluster, uint32_t leaf);

/* Chooses the outputs: the roots, then nodes that may still be read, up to `most`. */
void ops_fusion_cluster_choose_outputs(ops_fusion_cluster *cluster, ops_array *const *roots,
                                       uint32_t root_count, uint32_t most);

/* Marks nodes and views as computed in a kernel that stores the outputs alone. */
void ops_fusion_cluster_mark_computed(const ops_fusion_cluster *cluster);

/* Appends operations, operands and outputs to a cache key. */
void ops_fusion_cluster_append_key(const ops_fusion_cluster *cluster, ops_cache_key *key);

/* Makes the expression: leaf 0 is input 0; then `gap` unused inputs of U32; then the other leaves.
 * Output i is the node outputs[i]. With `is_stored` the outputs are stored in the types of their
 * nodes and used for nothing else. Ownership: the caller's. */
hal_status ops_fusion_cluster_make_expression(const ops_fusion_cluster *cluster, uint32_t gap,
                                              bool is_stored, ops_expression **expression);

#endif
