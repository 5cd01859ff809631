/* Fusion clusters, see fusion_cluster.h. */
#include "fusion_cluster.h"

#include "kernels/complex_functions.h"
#include "kernels/short_functions.h"
#include "view_map.h"

#include <string.h>

typedef struct cluster_visit {
    ops_array *node;
    uint8_t next; /* operand */
    uint8_t frame;
    bool is_source; /* of the frame's view */
} cluster_visit;

/* A gathering in progress. */
typedef struct cluster_gather {
    ops_fusion_cluster *cluster;
    const ops_array *root;
    const ops_array *reduction; /* whose rows are gathered, or null */
    uint32_t epoch;
    bool fuse;
    bool is_blocked; /* a view turned out to be a leaf: all is gathered once more */
} cluster_gather;

/* Whether an array has one value for each row of x along an axis, and so can be broadcast to x. */
static bool has_row_shape(const ops_array *row, const ops_array *x, uint32_t axis)
{
    const ops_tensor *a = &row->view, *b = &x->view;
    bool fits = a->rank <= b->rank;
    for (uint32_t i = 0; fits && i < b->rank; i++) {
        const uint32_t missing = b->rank - a->rank;
        fits = (i < missing ? 1 : a->shape[i - missing]) == (i == axis ? 1 : b->shape[i]);
    }
    return fits;
}

/* Ends a gathering beyond the limits: a node whose operands are complete is computed first, else
 * the one that was just entered. */
static bool cluster_set_excess(ops_fusion_cluster *cluster, ops_array *entered)
{
    cluster->excess = cluster->node_count ? cluster->nodes[cluster->node_count - 1] : entered;
    return false;
}

/* Whether an operand can be computed in the kernel of `reduction` and of what is computed of it. */
static bool row_may_join(const ops_array *reduction, const ops_array *operand)
{
    const ops_array *x = reduction->operands[0];
    if (operand->needs_memory) {
        return false;
    }
    if (ops_node_is_elementwise(operand)) {
        return ops_node_has_shape_of(operand, x) || has_row_shape(operand, x, reduction->axis);
    }
    return operand->state == OPS_NODE_DEFERRED && operand->operation == OPS_OPERATION_REDUCE &&
           operand->axis == reduction->axis && ops_node_has_shape_of(operand->operands[0], x) &&
           has_row_shape(operand, x, reduction->axis);
}

/* Whether something besides the cluster may read an operand of it: it is stored by the kernel that
 * computes it. Assumes that all its uses but one are outside of the cluster. */
static bool operand_is_stored(const ops_array *operand)
{
    return !ops_node_is_remade(operand) &&
           (ops_node_is_held(operand) || operand->uses > 1 ||
            (operand->in_scope && operand->was_computed));
}

/* The elements of an operand in a frame, in the shape of the outermost view around it. */
static bool cluster_map(const ops_fusion_cluster *cluster, uint32_t frame, const ops_tensor *x,
                        ops_tensor *mapped)
{
    ops_tensor inner = *x;
    for (uint32_t f = frame; f > 0; f = cluster->frames[f].parent) {
        const ops_array *view = cluster->frames[f].view;
        if (!ops_view_map(&ops_view_source(view)->view, &view->view, &inner, mapped)) {
            return false;
        }
        inner = *mapped;
    }
    return true;
}

/* Whether the kernel of `root` can store a node of a frame: its elements are those of the root, in
 * the same order. */
static bool cluster_may_store(const cluster_gather *gather, uint32_t frame, const ops_array *node)
{
    const ops_tensor *root = &gather->root->view;
    ops_tensor mapped;
    return !gather->reduction && !ops_node_is_view(gather->root) &&
           ops_tensor_get_element_count(&node->view) == ops_tensor_get_element_count(root) &&
           cluster_map(gather->cluster, frame, &node->view, &mapped) && mapped.offset == 0 &&
           ops_same_strides(&mapped, root);
}

/* Whether operand `number` of a node is computed in the kernel of the root, as the node is. One
 * that is stored in another order of axes is not: the kernel would write it across the order in
 * which it computes. Whether nodes of other frames can be stored is tested at the end. */
static bool operand_joins(const cluster_gather *gather, const ops_array *node, uint32_t number,
                          uint32_t frame)
{
    const ops_array *operand = node->operands[number];
    if (frame > 0) {
        return ops_fusion_cluster_takes_operand(node, number);
    }
    if (gather->reduction) {
        return row_may_join(gather->reduction, operand);
    }
    return gather->fuse && ops_fusion_cluster_takes_operand(node, number) &&
           (ops_node_has_order_of(operand, gather->root) || !operand_is_stored(operand));
}

/* Whether the source of a view is computed again by each kernel, once what it is made of is stored:
 * that comes first, since a kernel of views could not store it. */
static bool view_waits(const ops_array *view)
{
    const ops_array *source = ops_view_source(view);
    return ops_node_is_remade(source) && source->operands[0]->state == OPS_NODE_DEFERRED;
}

/* Whether operand `number` of a node is a view that is computed in the kernel of the root. Of rows,
 * one that has all elements of their shape. */
static bool view_joins(const cluster_gather *gather, const ops_array *node, uint32_t number,
                       uint32_t frame)
{
    const ops_array *operand = node->operands[number];
    if (!operand->is_fusible || !gather->fuse ||
        gather->cluster->frame_count == OPS_CLUSTER_FRAMES || view_waits(operand)) {
        return false;
    }
    return gather->reduction && frame == 0
               ? ops_cluster_view_joins(operand) &&
                     ops_node_has_shape_of(operand, gather->reduction->operands[0])
               : ops_fusion_cluster_takes_view(node, number);
}

/* Whether two arrays are the same elements of the same memory: constants of one value, and views
 * that were made twice, are one leaf. */
static bool reads_same_memory(const ops_array *x, const ops_array *y)
{
    const ops_tensor *a = &x->view, *b = &y->view;
    return a->buffer == b->buffer && x->state == OPS_NODE_MEMORY && y->state == OPS_NODE_MEMORY &&
           a->type == b->type && a->offset == b->offset && ops_node_has_shape_of(x, y) &&
           ops_same_strides(a, b);
}

/* The leaf of a frame that an operand is read as; leaf_count: there is none yet. */
static uint32_t cluster_find_leaf(const ops_fusion_cluster *cluster, const ops_array *operand,
                                  uint32_t frame)
{
    uint32_t i = 0;
    while (i < cluster->leaf_count &&
           (cluster->leaf_frames[i] != frame ||
            (cluster->leaves[i] != operand && !reads_same_memory(cluster->leaves[i], operand)))) {
        i++;
    }
    return i;
}

/* What an operand is in the cluster: the index of a node, OPS_CLUSTER_LEAF | the index of a leaf,
 * or OPERAND_IS_NEW. Frame 0 is kept in the nodes; others have few. */
#define OPERAND_IS_NEW UINT16_MAX

static uint16_t operand_index(const cluster_gather *gather, const ops_array *operand,
                              uint32_t frame)
{
    const ops_fusion_cluster *cluster = gather->cluster;
    if (frame == 0) {
        return operand->cluster_epoch == gather->epoch ? operand->cluster_index : OPERAND_IS_NEW;
    }
    for (uint32_t f = 1; ops_node_is_view(operand) && f < cluster->frame_count; f++) {
        if (cluster->frames[f].view == operand && cluster->frames[f].parent == frame) {
            return cluster->frames[f].node;
        }
    }
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i] == operand && cluster->node_frames[i] == frame) {
            return (uint16_t)i;
        }
    }
    const uint32_t leaf = cluster_find_leaf(cluster, operand, frame);
    return leaf < cluster->leaf_count ? (uint16_t)(OPS_CLUSTER_LEAF | leaf) : OPERAND_IS_NEW;
}

/* Marks an operand of frame 0 as part of the cluster. */
static void operand_mark(const cluster_gather *gather, ops_array *operand, uint32_t frame,
                         uint32_t index)
{
    if (frame == 0) {
        operand->cluster_epoch = gather->epoch;
        operand->cluster_index = (uint16_t)index;
    }
}

/* Whether an operand that is not computed in the kernel of `node` may be read through a view: it is
 * computed by a kernel that would not compute the node as well. */
static bool is_plain_leaf(const ops_array *node, const ops_array *operand)
{
    const ops_array *from = ops_node_is_view(operand) ? ops_view_source(operand) : operand;
    return from->state == OPS_NODE_MEMORY || (from->operation >= OPS_OPERATION_SOFTMAX &&
                                              !ops_fusion_cluster_may_follow(node, operand));
}

/* Adds operand `number` of a node as a leaf. False beyond the limits, and when it blocks the view
 * of the frame. */
static bool cluster_add_leaf(cluster_gather *gather, const ops_array *node, uint32_t number,
                             uint32_t frame)
{
    ops_fusion_cluster *cluster = gather->cluster;
    ops_array *operand = node->operands[number];
    const uint32_t leaf = cluster_find_leaf(cluster, operand, frame);
    if (leaf < cluster->leaf_count) {
        operand_mark(gather, operand, frame, OPS_CLUSTER_LEAF | leaf);
        return true;
    }
    if (leaf == operand->owner->max_leaves) {
        return false;
    }
    if (frame > 0) {
        ops_tensor mapped;
        if (!is_plain_leaf(node, operand) ||
            !cluster_map(cluster, frame, &operand->view, &mapped)) {
            cluster->frames[frame].view->is_fusible = 0;
            gather->is_blocked = true;
            return false;
        }
    }
    operand_mark(gather, operand, frame, OPS_CLUSTER_LEAF | leaf);
    cluster->leaf_frames[leaf] = (uint8_t)frame;
    cluster->leaf_uses[leaf] = 0;
    cluster->leaves[cluster->leaf_count++] = operand;
    return true;
}

/* The visit of a view's source, in a frame of its own. */
static cluster_visit cluster_open_frame(const cluster_gather *gather, ops_array *view,
                                        uint32_t parent)
{
    ops_fusion_cluster *cluster = gather->cluster;
    const uint32_t frame = cluster->frame_count++;
    cluster->frames[frame] = (ops_cluster_frame){.view = view, .parent = (uint8_t)parent};
    operand_mark(gather, view, parent, 0);
    return (cluster_visit){ops_view_source(view), 0, (uint8_t)frame, true};
}

/* Appends a node whose operands are all in the cluster. */
static void cluster_append(const cluster_gather *gather, const cluster_visit *visit)
{
    ops_fusion_cluster *cluster = gather->cluster;
    ops_array *node = visit->node;
    const uint32_t index = cluster->node_count++;
    cluster->nodes[index] = node;
    cluster->node_uses[index] = 0;
    cluster->node_frames[index] = visit->frame;
    if (visit->is_source) {
        ops_cluster_frame *frame = &cluster->frames[visit->frame];
        frame->node = (uint8_t)index;
        operand_mark(gather, frame->view, frame->parent, index);
    } else {
        operand_mark(gather, node, visit->frame, index);
    }
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const uint16_t operand = operand_index(gather, node->operands[i], visit->frame);
        cluster->operands[index][i] = (uint8_t)operand;
        if (operand & OPS_CLUSTER_LEAF) {
            const uint32_t leaf = operand & ~OPS_CLUSTER_LEAF;
            cluster->leaf_uses[leaf] += cluster->leaves[leaf] == node->operands[i];
        } else {
            cluster->node_uses[operand]++;
            cluster->frames[cluster->node_frames[operand]].uses +=
                cluster->node_frames[operand] != visit->frame;
        }
    }
}

/* Whether nothing but the cluster reads a view, and the views between it and its source. */
static bool view_is_internal(const ops_fusion_cluster *cluster, const ops_array *view)
{
    uint32_t uses = 0;
    for (uint32_t f = 1; f < cluster->frame_count; f++) {
        uses += cluster->frames[f].view == view ? cluster->frames[f].uses : 0;
    }
    bool is_internal = ops_node_is_needed_once(view, uses);
    while (is_internal && ops_node_is_view(view->operands[0])) {
        view = view->operands[0];
        is_internal = ops_node_is_needed_once(view, 1);
    }
    return is_internal;
}

/* Uses of a node within the cluster, in all frames. */
static uint32_t cluster_uses(const ops_fusion_cluster *cluster, const ops_array *node)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        uses += cluster->nodes[i] == node ? cluster->node_uses[i] : 0;
    }
    for (uint32_t f = 1; f < cluster->frame_count; f++) {
        const ops_array *view = cluster->frames[f].view;
        if (cluster->nodes[cluster->frames[f].node] != node) {
            continue;
        }
        bool is_first = true; /* frame of the view: the view is one use */
        for (uint32_t k = 1; k < f; k++) {
            is_first = is_first && cluster->frames[k].view != view;
        }
        uses = uses - cluster->frames[f].uses +
               (uint32_t)(is_first && view_is_internal(cluster, view));
    }
    return uses;
}

/* Whether node number `index` may be read later: a caller holds it, a node outside the cluster uses
 * it, or its scope still owns it and it would be computed for the second time; and it is not made
 * again by each kernel. */
static bool cluster_must_store(const ops_fusion_cluster *cluster, uint32_t index)
{
    const ops_array *node = cluster->nodes[index];
    const uint32_t uses =
        cluster->frame_count > 1 ? cluster_uses(cluster, node) : cluster->node_uses[index];
    return !ops_node_is_remade(node) &&
           (ops_node_is_held(node) || node->uses > uses || (node->in_scope && node->was_computed));
}

static hal_ir_value node_emit(hal_ir_builder *b, const ops_array *node, const hal_ir_value *in)
{
    switch (node->operation) {
    case OPS_OPERATION_UNARY:
        return ops_unary_rounded(b, node->owner->context->info, (ops_unary_function)node->function,
                                 node->view.type, in[0]);
    case OPS_OPERATION_BINARY:
        return ops_binary_value(b, (ops_binary_function)node->function, in[0], in[1]);
    case OPS_OPERATION_WHERE:
        return hal_ir_select(b, in[0], in[1], in[2]);
    case OPS_OPERATION_COMPLEX: {
        hal_ir_value parts[2];
        ops_complex_values(b, node->function / 2u, in[0], in[1], parts);
        return parts[node->function % 2u];
    }
    default:
        return ops_cast_value(b, node->function, in[0]);
    }
}

bool ops_cluster_view_joins(const ops_array *view)
{
    if (!view->is_fusible || !ops_node_is_view(view) || view->needs_memory) {
        return false;
    }
    const ops_array *source = ops_view_source(view);
    return ops_node_is_elementwise(source) && !source->needs_memory && !view_waits(view);
}

/* Operations before a view that repeats elements at most: each is computed for every repetition. */
#define MAX_REPEATED_OPERATIONS 4u

bool ops_cluster_view_is_fusible(const ops_array *view)
{
    const ops_array *source = ops_view_source(view);
    if (!ops_node_is_elementwise(source) || source->needs_memory) {
        return false;
    }
    const int64_t elements = ops_tensor_get_element_count(&source->view);
    const int64_t wanted = ops_tensor_get_element_count(&view->view);
    return wanted > 0 &&
           (wanted <= elements || source->cluster_operations <= MAX_REPEATED_OPERATIONS);
}

bool ops_fusion_cluster_may_follow(const ops_array *node, const ops_array *anchor)
{
    if ((anchor->operation != OPS_OPERATION_REDUCE && anchor->operation != OPS_OPERATION_MATMUL) ||
        anchor->state != OPS_NODE_DEFERRED || !ops_node_is_elementwise(node) ||
        !ops_node_has_shape_of(node, anchor)) {
        return false;
    }
    /* ops_gemm stores the type of its operands or of its accumulator. */
    return anchor->operation == OPS_OPERATION_REDUCE || node->view.type == anchor->view.type ||
           node->view.type == HAL_TYPE_F32;
}

/* Adds what computes one root. False beyond the limits, and when a view is blocked. */
static bool gather_root(cluster_gather *gather, ops_array *root)
{
    ops_fusion_cluster *cluster = gather->cluster;
    cluster_visit path[OPS_CLUSTER_OPERATIONS + 1]; /* depth first */
    uint32_t depth = 1;
    operand_mark(gather, root, 0, 0);
    path[0] = ops_node_is_view(root) ? cluster_open_frame(gather, root, 0)
                                     : (cluster_visit){root, 0, 0, false};
    while (depth > 0) {
        cluster_visit *at = &path[depth - 1];
        if (at->next == at->node->operand_count) {
            if (cluster->node_count == OPS_CLUSTER_OPERATIONS) {
                return cluster_set_excess(cluster, at->node);
            }
            cluster_append(gather, at);
            depth--;
            continue;
        }
        const uint32_t number = at->next++, frame = at->frame;
        ops_array *operand = at->node->operands[number];
        if (operand_index(gather, operand, frame) != OPERAND_IS_NEW) {
            continue;
        }
        const bool joins = operand_joins(gather, at->node, number, frame);
        const bool is_view = !joins && view_joins(gather, at->node, number, frame);
        if (!joins && !is_view) {
            if (!cluster_add_leaf(gather, at->node, number, frame)) {
                return !gather->is_blocked && cluster_set_excess(cluster, at->node);
            }
            continue;
        }
        if (depth == OPS_CLUSTER_OPERATIONS) {
            return cluster_set_excess(cluster, at->node);
        }
        if (joins) {
            operand_mark(gather, operand, frame, 0);
            path[depth++] = (cluster_visit){operand, 0, (uint8_t)frame, false};
        } else {
            path[depth++] = cluster_open_frame(gather, operand, frame);
        }
    }
    return true;
}

/* Blocks the view around a node that is needed elsewhere and cannot be stored. */
static void gather_check_frames(cluster_gather *gather)
{
    const ops_fusion_cluster *cluster = gather->cluster;
    for (uint32_t i = 0; i < cluster->node_count && !gather->is_blocked; i++) {
        const uint32_t frame = cluster->node_frames[i];
        if (frame > 0 && cluster_must_store(cluster, i) &&
            !cluster_may_store(gather, frame, cluster->nodes[i])) {
            cluster->frames[frame].view->is_fusible = 0;
            gather->is_blocked = true;
        }
    }
}

/* With a `reduction`, its rows are gathered. */
static bool cluster_gather_roots(ops_fusion_cluster *cluster, ops_array *const *roots,
                                 uint32_t root_count, bool fuse, const ops_array *reduction)
{
    ops_arrays *arrays = roots[0]->owner;
    cluster_gather gather = {
        .cluster = cluster, .root = roots[0], .reduction = reduction, .fuse = fuse};
    bool fits;
    do {
        arrays->cluster_epoch += arrays->cluster_epoch == UINT32_MAX ? 2 : 1;
        gather.epoch = arrays->cluster_epoch;
        gather.is_blocked = false;
        cluster->node_count = cluster->leaf_count = cluster->output_count = 0;
        cluster->frame_count = 1;
        if (ops_node_is_view(roots[0]) && !ops_cluster_view_joins(roots[0])) {
            return cluster_set_excess(cluster, roots[0]);
        }
        fits = true;
        for (uint32_t i = 0; i < root_count && fits; i++) {
            if (roots[i]->cluster_epoch != gather.epoch ||
                roots[i]->cluster_index & OPS_CLUSTER_LEAF) {
                fits = gather_root(&gather, roots[i]);
            }
        }
        if (fits && cluster->frame_count > 1) {
            if (ops_node_is_view(roots[0])) { /* used by what reads the root */
                cluster->frames[1].uses++;
                cluster->node_uses[cluster->frames[1].node]++;
            }
            gather_check_frames(&gather);
        }
    } while (gather.is_blocked);
    return fits;
}

bool ops_fusion_cluster_gather(ops_fusion_cluster *cluster, ops_array *const *roots,
                               uint32_t root_count, bool fuse)
{
    return cluster_gather_roots(cluster, roots, root_count, fuse, NULL);
}

bool ops_fusion_cluster_gather_rows(ops_fusion_cluster *cluster, ops_array *root,
                                    const ops_array *reduction)
{
    const ops_array *x = reduction->operands[0];
    const bool is_reduction = root->operation == OPS_OPERATION_REDUCE;
    if (x->view.shape[reduction->axis] < 2 ||
        (is_reduction
             ? root->axis != reduction->axis || !ops_node_has_shape_of(root->operands[0], x)
             : !ops_node_has_shape_of(root, x) && !has_row_shape(root, x, reduction->axis)) ||
        !cluster_gather_roots(cluster, &root, 1, 1, reduction)) {
        return false;
    }
    uint32_t reductions = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        reductions += cluster->nodes[i]->operation == OPS_OPERATION_REDUCE;
    }
    return reductions > 1 || (reductions == 1 && !is_reduction && ops_node_has_shape_of(root, x));
}

bool ops_fusion_cluster_gather_joined(ops_fusion_cluster *cluster, ops_array *const *roots,
                                      uint32_t root_count, const ops_array *reduction)
{
    return cluster_gather_roots(cluster, roots, root_count, 1, reduction);
}

/* Whether the result is a number of the node's type wherever the operands are: rounding it would
 * change nothing. */
static bool node_is_exact(const ops_array *node)
{
    if (!hal_type_is_float(node->view.type)) {
        return false;
    }
    switch (node->operation) {
    case OPS_OPERATION_WHERE:
        return true;
    case OPS_OPERATION_BINARY:
        return node->function == OPS_MINIMUM || node->function == OPS_MAXIMUM;
    case OPS_OPERATION_UNARY:
        return (node->function <= OPS_RELU && node->function != OPS_SQUARE) ||
               (node->function >= OPS_FLOOR && node->function <= OPS_ROUND);
    default:
        return false;
    }
}

hal_ir_value ops_fusion_cluster_emit_stored(hal_ir_builder *b, const void *user,
                                            const hal_ir_value *in)
{
    const ops_array *node = user;
    return node->operation == OPS_OPERATION_REDUCE ? in[0] : node_emit(b, node, in);
}

hal_ir_value ops_fusion_cluster_emit_node(hal_ir_builder *b, const void *user,
                                          const hal_ir_value *in)
{
    const ops_array *node = user;
    const hal_ir_value value = ops_fusion_cluster_emit_stored(b, node, in);
    return node_is_exact(node) ? value : hal_ir_narrow(b, node->view.type, value);
}

bool ops_fusion_cluster_only_stores(const ops_fusion_cluster *cluster, uint32_t node)
{
    return cluster->node_uses[node] == 0;
}

bool ops_fusion_cluster_contains(const ops_fusion_cluster *cluster, const ops_array *node)
{
    return node->cluster_index < cluster->node_count && cluster->nodes[node->cluster_index] == node;
}

void ops_fusion_cluster_lead_with(ops_fusion_cluster *cluster, uint32_t leaf)
{
    if (leaf == 0) {
        return;
    }
    ops_array *first = cluster->leaves[0];
    const uint16_t uses = cluster->leaf_uses[0];
    cluster->leaf_frames[leaf] = cluster->leaf_frames[0];
    cluster->leaf_frames[0] = 0;
    cluster->leaves[0] = cluster->leaves[leaf];
    cluster->leaf_uses[0] = cluster->leaf_uses[leaf];
    cluster->leaves[leaf] = first;
    cluster->leaf_uses[leaf] = uses;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        for (uint32_t j = 0; j < cluster->nodes[i]->operand_count; j++) {
            uint8_t *operand = &cluster->operands[i][j];
            *operand = (uint8_t)(*operand == OPS_CLUSTER_LEAF            ? OPS_CLUSTER_LEAF | leaf
                                 : *operand == (OPS_CLUSTER_LEAF | leaf) ? OPS_CLUSTER_LEAF
                                                                         : *operand);
        }
    }
}

/* Whether a node is stored already, in another frame. */
static bool cluster_is_output(const ops_fusion_cluster *cluster, const ops_array *node)
{
    bool found = false;
    for (uint32_t i = 0; cluster->frame_count > 1 && i < cluster->output_count; i++) {
        found = found || cluster->nodes[cluster->outputs[i]] == node;
    }
    return found;
}

void ops_fusion_cluster_choose_outputs(ops_fusion_cluster *cluster, ops_array *const *roots,
                                       uint32_t root_count, uint32_t most)
{
    uint64_t chosen = 0; /* one bit per node */
    cluster->output_count = 0;
    for (uint32_t i = 0; i < root_count; i++) {
        const uint32_t index = roots[i]->cluster_index;
        if (!(chosen >> index & 1)) {
            chosen |= UINT64_C(1) << index;
            cluster->outputs[cluster->output_count++] = (uint8_t)index;
        }
    }
    for (uint32_t i = 0; i < cluster->node_count && cluster->output_count < most; i++) {
        if (!(chosen >> i & 1) && cluster_must_store(cluster, i) &&
            !cluster_is_output(cluster, cluster->nodes[i])) {
            cluster->outputs[cluster->output_count++] = (uint8_t)i;
        }
    }
}

void ops_fusion_cluster_mark_computed(const ops_fusion_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        cluster->nodes[i]->was_computed = 1;
    }
    for (uint32_t f = 1; f < cluster->frame_count; f++) {
        ops_array *view = cluster->frames[f].view;
        for (; ops_node_is_view(view); view = view->operands[0]) {
            view->was_computed = 1;
        }
    }
}

void ops_fusion_cluster_append_key(const ops_fusion_cluster *cluster, ops_cache_key *key)
{
    const uint32_t counts[3] = {cluster->node_count, cluster->output_count,
                                cluster->leaf_count | cluster->frame_count << 8};
    ops_cache_key_append(key, counts, sizeof counts);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const ops_array *node = cluster->nodes[i];
        /* One word by shifts: storing single bytes and loading all of them would stall. */
        uint64_t form = node->operation | (uint64_t)node->function << 8 |
                        (uint64_t)node->view.type << 16 | (uint64_t)node->operand_count << 24;
        for (uint32_t j = 0; j < node->operand_count; j++) {
            form |= (uint64_t)cluster->operands[i][j] << (32 + 8 * j);
        }
        form |= (uint64_t)node->is_reordered << 56;
        ops_cache_key_append(key, &form, sizeof form);
        if (node->is_reordered) {
            ops_cache_key_append(key, node->view.stride,
                                 node->view.rank * sizeof *node->view.stride);
        }
    }
    ops_cache_key_append(key, cluster->outputs, cluster->output_count);
    for (uint32_t f = 1; f < cluster->frame_count; f++) {
        const ops_tensor *view = &cluster->frames[f].view->view;
        ops_cache_key_append(key, &cluster->frames[f].node, sizeof cluster->frames[f].node);
        ops_cache_key_append(key, &view->offset, sizeof view->offset);
        ops_cache_key_append(key, view->shape, view->rank * sizeof *view->shape);
        ops_cache_key_append(key, view->stride, view->rank * sizeof *view->stride);
    }
}

ops_tensor ops_fusion_cluster_leaf_tensor(const ops_fusion_cluster *cluster, uint32_t leaf)
{
    ops_tensor tensor = cluster->leaves[leaf]->view;
    if (cluster->leaf_frames[leaf] > 0) {
        /* The leaf was added because it has a mapping. */
        cluster_map(cluster, cluster->leaf_frames[leaf], &cluster->leaves[leaf]->view, &tensor);
    }
    return tensor;
}

/* The node before number `index` that is the other part of its complex number; else `index`. */
static uint32_t cluster_find_other_part(const ops_fusion_cluster *cluster, uint32_t index)
{
    const ops_array *node = cluster->nodes[index];
    uint32_t found = 0;
    while (found < index && !(node->operation == OPS_OPERATION_COMPLEX &&
                              cluster->nodes[found]->operation == OPS_OPERATION_COMPLEX &&
                              cluster->nodes[found]->function == (node->function ^ 1u) &&
                              memcmp(cluster->operands[found], cluster->operands[index], 2) == 0)) {
        found++;
    }
    return found;
}

hal_status ops_fusion_cluster_make_expression(const ops_fusion_cluster *cluster, uint32_t gap,
                                              bool is_stored, ops_expression **expression)
{
    hal_ir_builder *b;
    HAL_TRY(hal_ir_builder_create_fragment("chain", &b));
    hal_ir_value leaves[OPS_CLUSTER_LEAVES], nodes[OPS_CLUSTER_OPERATIONS];
    hal_ir_value others[OPS_CLUSTER_OPERATIONS]; /* the other component, of complex functions */
    for (uint32_t i = 0; i < cluster->leaf_count; i++) {
        const ops_array *leaf = cluster->leaves[i];
        hal_type type = hal_type_of_value(leaf->view.type);
        leaves[i] = hal_ir_input(b, i ? gap + i : 0, type);
        if (leaf->state == OPS_NODE_DEFERRED) {
            /* The anchor's accumulator, rounded as if it had been stored. */
            leaves[i] = hal_ir_narrow(b, leaf->view.type, leaves[i]);
        }
        for (uint32_t j = 0; i == 0 && j < gap; j++) {
            hal_ir_input(b, 1 + j, HAL_TYPE_U32);
        }
    }
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const ops_array *node = cluster->nodes[i];
        hal_ir_value in[OPS_INLINE_OPERANDS];
        for (uint32_t j = 0; j < node->operand_count; j++) {
            const uint32_t operand = cluster->operands[i][j];
            in[j] =
                operand & OPS_CLUSTER_LEAF ? leaves[operand & ~OPS_CLUSTER_LEAF] : nodes[operand];
        }
        const uint32_t other = cluster_find_other_part(cluster, i);
        if (other < i) {
            nodes[i] = others[other];
            continue;
        }
        if (node->operation == OPS_OPERATION_COMPLEX) { /* of type F32 or F64: nothing to round */
            hal_ir_value parts[2];
            ops_complex_values(b, node->function / 2u, in[0], in[1], parts);
            nodes[i] = parts[node->function % 2u];
            others[i] = parts[1u - node->function % 2u];
            continue;
        }
        nodes[i] = is_stored && ops_fusion_cluster_only_stores(cluster, i)
                       ? ops_fusion_cluster_emit_stored(b, node, in)
                       : ops_fusion_cluster_emit_node(b, node, in);
    }
    for (uint32_t i = 0; i < cluster->output_count; i++) {
        hal_ir_output(b, i, nodes[cluster->outputs[i]]);
    }
    return ops_expression_create(b, expression);
}
