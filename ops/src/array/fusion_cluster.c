/* Fusion clusters, see fusion_cluster.h. */
#include "fusion_cluster.h"

#include "kernels/short_functions.h"

typedef struct cluster_visit {
    ops_array *node;
    uint32_t next; /* operand */
} cluster_visit;

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
    return ops_node_is_held(operand) || operand->uses > 1 ||
           (operand->in_scope && operand->was_computed);
}

/* Whether operand `number` of a node is computed in the kernel of `root`, as the node is. One that
 * is stored in another order of axes is not: the kernel would write it across the order in which it
 * computes. */
static bool operand_joins(const ops_array *root, const ops_array *node, uint32_t number)
{
    const ops_array *operand = node->operands[number];
    return ops_fusion_cluster_takes_operand(node, number) &&
           (ops_node_has_order_of(operand, root) || !operand_is_stored(operand));
}

/* Enters an operand that was not met before. Returns 0 when there are too many leaves. */
static bool cluster_enter(ops_fusion_cluster *cluster, const ops_array *root, const ops_array *node,
                          uint32_t number, uint32_t epoch, bool fuse, const ops_array *reduction)
{
    ops_array *operand = node->operands[number];
    if (reduction ? row_may_join(reduction, operand) : fuse && operand_joins(root, node, number)) {
        operand->cluster_epoch = epoch;
        operand->cluster_index = 0;
        return true;
    }
    if (cluster->leaf_count == root->owner->max_leaves) {
        return false;
    }
    operand->cluster_epoch = epoch;
    operand->cluster_index = (uint16_t)(OPS_CLUSTER_LEAF | cluster->leaf_count);
    cluster->leaf_uses[cluster->leaf_count] = 0;
    cluster->leaves[cluster->leaf_count++] = operand;
    return true;
}

/* Appends a node whose operands are all in the cluster. */
static void cluster_append(ops_fusion_cluster *cluster, ops_array *node)
{
    const uint32_t index = cluster->node_count++;
    node->cluster_index = (uint16_t)index;
    cluster->nodes[index] = node;
    cluster->node_uses[index] = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const uint8_t operand = (uint8_t)node->operands[i]->cluster_index;
        cluster->operands[index][i] = operand;
        if (operand & OPS_CLUSTER_LEAF) {
            cluster->leaf_uses[operand & ~OPS_CLUSTER_LEAF]++;
        } else {
            cluster->node_uses[operand]++;
        }
    }
}

/* Whether node number `index` may be read later: a caller holds it, a node outside the cluster uses
 * it, or its scope still owns it and it would be computed for the second time. */
static bool cluster_must_store(const ops_fusion_cluster *cluster, uint32_t index)
{
    const ops_array *node = cluster->nodes[index];
    return ops_node_is_held(node) || node->uses > cluster->node_uses[index] ||
           (node->in_scope && node->was_computed);
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
    default:
        return ops_cast_value(b, node->function, in[0]);
    }
}

bool ops_fusion_cluster_may_join(const ops_array *node, const ops_array *operand)
{
    return ops_node_is_elementwise(operand) && !operand->needs_memory &&
           ops_node_is_elementwise(node) && ops_node_has_shape_of(node, operand);
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

/* With a `reduction`, its rows are gathered. */
static bool cluster_gather(ops_fusion_cluster *cluster, ops_array *const *roots,
                           uint32_t root_count, bool fuse, const ops_array *reduction)
{
    cluster_visit path[OPS_CLUSTER_OPERATIONS + 1]; /* depth first */
    ops_arrays *arrays = roots[0]->owner;
    arrays->cluster_epoch += arrays->cluster_epoch == UINT32_MAX ? 2 : 1;
    const uint32_t epoch = arrays->cluster_epoch;
    cluster->node_count = cluster->leaf_count = cluster->output_count = 0;
    for (uint32_t i = 0; i < root_count; i++) {
        if (roots[i]->cluster_epoch == epoch && !(roots[i]->cluster_index & OPS_CLUSTER_LEAF)) {
            continue;
        }
        uint32_t depth = 1;
        path[0] = (cluster_visit){roots[i], 0};
        roots[i]->cluster_epoch = epoch;
        roots[i]->cluster_index = 0;
        while (depth > 0) {
            cluster_visit *at = &path[depth - 1];
            if (at->next == at->node->operand_count) {
                if (cluster->node_count == OPS_CLUSTER_OPERATIONS) {
                    return cluster_set_excess(cluster, at->node);
                }
                cluster_append(cluster, at->node);
                depth--;
                continue;
            }
            const uint32_t number = at->next++;
            ops_array *operand = at->node->operands[number];
            if (operand->cluster_epoch == epoch) {
                continue;
            }
            if (!cluster_enter(cluster, roots[i], at->node, number, epoch, fuse, reduction)) {
                return cluster_set_excess(cluster, at->node);
            }
            if (!(operand->cluster_index & OPS_CLUSTER_LEAF)) {
                if (depth == OPS_CLUSTER_OPERATIONS) {
                    return cluster_set_excess(cluster, at->node);
                }
                path[depth++] = (cluster_visit){operand, 0};
            }
        }
    }
    return true;
}

bool ops_fusion_cluster_gather(ops_fusion_cluster *cluster, ops_array *const *roots,
                               uint32_t root_count, bool fuse)
{
    return cluster_gather(cluster, roots, root_count, fuse, NULL);
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
        !cluster_gather(cluster, &root, 1, 1, reduction)) {
        return false;
    }
    uint32_t reductions = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        reductions += cluster->nodes[i]->operation == OPS_OPERATION_REDUCE;
    }
    return reductions > 1 || (reductions == 1 && !is_reduction && ops_node_has_shape_of(root, x));
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
        if (!(chosen >> i & 1) && cluster_must_store(cluster, i)) {
            cluster->outputs[cluster->output_count++] = (uint8_t)i;
        }
    }
}

void ops_fusion_cluster_append_key(const ops_fusion_cluster *cluster, ops_cache_key *key)
{
    const uint32_t counts[3] = {cluster->node_count, cluster->output_count, cluster->leaf_count};
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
}

hal_status ops_fusion_cluster_make_expression(const ops_fusion_cluster *cluster, uint32_t gap,
                                              bool is_stored, ops_expression **expression)
{
    hal_ir_builder *b;
    HAL_TRY(hal_ir_builder_create_fragment("chain", &b));
    hal_ir_value leaves[OPS_CLUSTER_LEAVES], nodes[OPS_CLUSTER_OPERATIONS];
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
        nodes[i] = is_stored && ops_fusion_cluster_only_stores(cluster, i)
                       ? ops_fusion_cluster_emit_stored(b, node, in)
                       : ops_fusion_cluster_emit_node(b, node, in);
    }
    for (uint32_t i = 0; i < cluster->output_count; i++) {
        hal_ir_output(b, i, nodes[cluster->outputs[i]]);
    }
    return ops_expression_create(b, expression);
}
