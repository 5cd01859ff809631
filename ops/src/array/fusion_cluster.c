/* Fusion groups, see fusion_group.h. */
#include "fusion_group.h"

#include "kernels/short_functions.h"

typedef struct group_visit {
    ops_array *node;
    uint32_t next; /* operand */
} group_visit;

/* Whether an array has one value for each row of x along an axis, and so can be broadcast to x. */
static int has_row_shape(const ops_array *row, const ops_array *x, uint32_t axis)
{
    const ops_tensor *a = &row->view, *b = &x->view;
    int fits = a->rank <= b->rank;
    for (uint32_t i = 0; fits && i < b->rank; i++) {
        const uint32_t missing = b->rank - a->rank;
        fits = (i < missing ? 1 : a->shape[i - missing]) == (i == axis ? 1 : b->shape[i]);
    }
    return fits;
}

/* Ends a gathering beyond the limits: a node whose operands are complete is computed first, else
 * the one that was just entered. */
static int group_set_excess(ops_fusion_group *group, ops_array *entered)
{
    group->excess = group->node_count ? group->nodes[group->node_count - 1] : entered;
    return 0;
}

/* Whether an operand can be computed in the kernel of `reduction` and of what is computed of it. */
static int row_may_join(const ops_array *reduction, const ops_array *operand)
{
    const ops_array *x = reduction->operands[0];
    if (operand->needs_memory) {
        return 0;
    }
    if (ops_node_is_elementwise(operand)) {
        return ops_node_has_shape_of(operand, x) || has_row_shape(operand, x, reduction->axis);
    }
    return operand->state == OPS_NODE_DEFERRED && operand->operation == OPS_OPERATION_REDUCE &&
           operand->axis == reduction->axis && ops_node_has_shape_of(operand->operands[0], x) &&
           has_row_shape(operand, x, reduction->axis);
}

/* Whether something besides the group may read an operand of it: it is stored by the kernel that
 * computes it. Assumes that all its uses but one are outside of the group. */
static int operand_is_stored(const ops_array *operand)
{
    return ops_node_is_held(operand) || operand->uses > 1 ||
           (operand->in_scope && operand->was_computed);
}

/* Whether operand `number` of a node is computed in the kernel of `root`, as the node is. One that
 * is stored in another order of axes is not: the kernel would write it across the order in which it
 * computes. */
static int operand_joins(const ops_array *root, const ops_array *node, uint32_t number)
{
    const ops_array *operand = node->operands[number];
    return ops_fusion_group_takes_operand(node, number) &&
           (ops_node_has_order_of(operand, root) || !operand_is_stored(operand));
}

/* Enters an operand that was not met before. Returns 0 when there are too many leaves. */
static int group_enter(ops_fusion_group *group, const ops_array *root, const ops_array *node,
                       uint32_t number, uint32_t epoch, int fuse, const ops_array *reduction)
{
    ops_array *operand = node->operands[number];
    if (reduction ? row_may_join(reduction, operand) : fuse && operand_joins(root, node, number)) {
        operand->group_epoch = epoch;
        operand->group_index = 0;
        return 1;
    }
    if (group->leaf_count == root->owner->max_leaves) {
        return 0;
    }
    operand->group_epoch = epoch;
    operand->group_index = (uint16_t)(OPS_GROUP_LEAF | group->leaf_count);
    group->leaf_uses[group->leaf_count] = 0;
    group->leaves[group->leaf_count++] = operand;
    return 1;
}

/* Appends a node whose operands are all in the group. */
static void group_append(ops_fusion_group *group, ops_array *node)
{
    const uint32_t index = group->node_count++;
    node->group_index = (uint16_t)index;
    group->nodes[index] = node;
    group->node_uses[index] = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const uint8_t operand = (uint8_t)node->operands[i]->group_index;
        group->operands[index][i] = operand;
        if (operand & OPS_GROUP_LEAF) {
            group->leaf_uses[operand & ~OPS_GROUP_LEAF]++;
        } else {
            group->node_uses[operand]++;
        }
    }
}

/* Whether node number `index` may be read later: a caller holds it, a node outside the group uses
 * it, or its scope still owns it and it would be computed for the second time. */
static int group_must_store(const ops_fusion_group *group, uint32_t index)
{
    const ops_array *node = group->nodes[index];
    return ops_node_is_held(node) || node->uses > group->node_uses[index] ||
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

int ops_fusion_group_may_join(const ops_array *node, const ops_array *operand)
{
    return ops_node_is_elementwise(operand) && !operand->needs_memory &&
           ops_node_is_elementwise(node) && ops_node_has_shape_of(node, operand);
}

int ops_fusion_group_may_follow(const ops_array *node, const ops_array *anchor)
{
    if ((anchor->operation != OPS_OPERATION_REDUCE && anchor->operation != OPS_OPERATION_MATMUL) ||
        anchor->state != OPS_NODE_DEFERRED || !ops_node_is_elementwise(node) ||
        !ops_node_has_shape_of(node, anchor)) {
        return 0;
    }
    /* ops_gemm stores the type of its operands or of its accumulator. */
    return anchor->operation == OPS_OPERATION_REDUCE || node->view.type == anchor->view.type ||
           node->view.type == HAL_TYPE_F32;
}

/* With a `reduction`, its rows are gathered. */
static int group_gather(ops_fusion_group *group, ops_array *const *roots, uint32_t root_count,
                        int fuse, const ops_array *reduction)
{
    group_visit path[OPS_GROUP_OPERATIONS + 1]; /* depth first */
    ops_arrays *arrays = roots[0]->owner;
    arrays->group_epoch += arrays->group_epoch == UINT32_MAX ? 2 : 1;
    const uint32_t epoch = arrays->group_epoch;
    group->node_count = group->leaf_count = group->output_count = 0;
    for (uint32_t i = 0; i < root_count; i++) {
        if (roots[i]->group_epoch == epoch && !(roots[i]->group_index & OPS_GROUP_LEAF)) {
            continue;
        }
        uint32_t depth = 1;
        path[0] = (group_visit){roots[i], 0};
        roots[i]->group_epoch = epoch;
        roots[i]->group_index = 0;
        while (depth > 0) {
            group_visit *at = &path[depth - 1];
            if (at->next == at->node->operand_count) {
                if (group->node_count == OPS_GROUP_OPERATIONS) {
                    return group_set_excess(group, at->node);
                }
                group_append(group, at->node);
                depth--;
                continue;
            }
            const uint32_t number = at->next++;
            ops_array *operand = at->node->operands[number];
            if (operand->group_epoch == epoch) {
                continue;
            }
            if (!group_enter(group, roots[i], at->node, number, epoch, fuse, reduction)) {
                return group_set_excess(group, at->node);
            }
            if (!(operand->group_index & OPS_GROUP_LEAF)) {
                if (depth == OPS_GROUP_OPERATIONS) {
                    return group_set_excess(group, at->node);
                }
                path[depth++] = (group_visit){operand, 0};
            }
        }
    }
    return 1;
}

int ops_fusion_group_gather(ops_fusion_group *group, ops_array *const *roots, uint32_t root_count,
                            int fuse)
{
    return group_gather(group, roots, root_count, fuse, NULL);
}

int ops_fusion_group_gather_rows(ops_fusion_group *group, ops_array *root,
                                 const ops_array *reduction)
{
    const ops_array *x = reduction->operands[0];
    const int is_reduction = root->operation == OPS_OPERATION_REDUCE;
    if (x->view.shape[reduction->axis] < 2 ||
        (is_reduction
             ? root->axis != reduction->axis || !ops_node_has_shape_of(root->operands[0], x)
             : !ops_node_has_shape_of(root, x) && !has_row_shape(root, x, reduction->axis)) ||
        !group_gather(group, &root, 1, 1, reduction)) {
        return 0;
    }
    uint32_t reductions = 0;
    for (uint32_t i = 0; i < group->node_count; i++) {
        reductions += group->nodes[i]->operation == OPS_OPERATION_REDUCE;
    }
    return reductions > 1 || (reductions == 1 && !is_reduction && ops_node_has_shape_of(root, x));
}

/* Whether the result is a number of the node's type wherever the operands are: rounding it would
 * change nothing. */
static int node_is_exact(const ops_array *node)
{
    if (!hal_type_is_float(node->view.type)) {
        return 0;
    }
    switch (node->operation) {
    case OPS_OPERATION_WHERE:
        return 1;
    case OPS_OPERATION_BINARY:
        return node->function == OPS_MINIMUM || node->function == OPS_MAXIMUM;
    case OPS_OPERATION_UNARY:
        return (node->function <= OPS_RELU && node->function != OPS_SQUARE) ||
               (node->function >= OPS_FLOOR && node->function <= OPS_ROUND);
    default:
        return 0;
    }
}

hal_ir_value ops_fusion_group_emit_stored(hal_ir_builder *b, const void *user,
                                          const hal_ir_value *in)
{
    const ops_array *node = user;
    return node->operation == OPS_OPERATION_REDUCE ? in[0] : node_emit(b, node, in);
}

hal_ir_value ops_fusion_group_emit_node(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    const ops_array *node = user;
    const hal_ir_value value = ops_fusion_group_emit_stored(b, node, in);
    return node_is_exact(node) ? value : hal_ir_narrow(b, node->view.type, value);
}

int ops_fusion_group_only_stores(const ops_fusion_group *group, uint32_t node)
{
    return group->node_uses[node] == 0;
}

int ops_fusion_group_contains(const ops_fusion_group *group, const ops_array *node)
{
    return node->group_index < group->node_count && group->nodes[node->group_index] == node;
}

void ops_fusion_group_lead_with(ops_fusion_group *group, uint32_t leaf)
{
    if (leaf == 0) {
        return;
    }
    ops_array *first = group->leaves[0];
    const uint16_t uses = group->leaf_uses[0];
    group->leaves[0] = group->leaves[leaf];
    group->leaf_uses[0] = group->leaf_uses[leaf];
    group->leaves[leaf] = first;
    group->leaf_uses[leaf] = uses;
    for (uint32_t i = 0; i < group->node_count; i++) {
        for (uint32_t j = 0; j < group->nodes[i]->operand_count; j++) {
            uint8_t *operand = &group->operands[i][j];
            *operand = (uint8_t)(*operand == OPS_GROUP_LEAF            ? OPS_GROUP_LEAF | leaf
                                 : *operand == (OPS_GROUP_LEAF | leaf) ? OPS_GROUP_LEAF
                                                                       : *operand);
        }
    }
}

void ops_fusion_group_choose_outputs(ops_fusion_group *group, ops_array *const *roots,
                                     uint32_t root_count, uint32_t most)
{
    uint64_t chosen = 0; /* one bit per node */
    group->output_count = 0;
    for (uint32_t i = 0; i < root_count; i++) {
        const uint32_t index = roots[i]->group_index;
        if (!(chosen >> index & 1)) {
            chosen |= UINT64_C(1) << index;
            group->outputs[group->output_count++] = (uint8_t)index;
        }
    }
    for (uint32_t i = 0; i < group->node_count && group->output_count < most; i++) {
        if (!(chosen >> i & 1) && group_must_store(group, i)) {
            group->outputs[group->output_count++] = (uint8_t)i;
        }
    }
}

void ops_fusion_group_append_key(const ops_fusion_group *group, ops_cache_key *key)
{
    const uint32_t counts[3] = {group->node_count, group->output_count, group->leaf_count};
    ops_cache_key_append(key, counts, sizeof counts);
    for (uint32_t i = 0; i < group->node_count; i++) {
        const ops_array *node = group->nodes[i];
        /* One word by shifts: storing single bytes and loading all of them would stall. */
        uint64_t form = node->operation | (uint64_t)node->function << 8 |
                        (uint64_t)node->view.type << 16 | (uint64_t)node->operand_count << 24;
        for (uint32_t j = 0; j < node->operand_count; j++) {
            form |= (uint64_t)group->operands[i][j] << (32 + 8 * j);
        }
        form |= (uint64_t)node->is_reordered << 56;
        ops_cache_key_append(key, &form, sizeof form);
        if (node->is_reordered) {
            ops_cache_key_append(key, node->view.stride,
                                 node->view.rank * sizeof *node->view.stride);
        }
    }
    ops_cache_key_append(key, group->outputs, group->output_count);
}

hal_status ops_fusion_group_make_expression(const ops_fusion_group *group, uint32_t gap,
                                            int is_stored, ops_expression **expression)
{
    hal_ir_builder *b;
    hal_status status = hal_ir_builder_create_fragment("chain", &b);
    if (status) {
        return status;
    }
    hal_ir_value leaves[OPS_GROUP_LEAVES], nodes[OPS_GROUP_OPERATIONS];
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        const ops_array *leaf = group->leaves[i];
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
    for (uint32_t i = 0; i < group->node_count; i++) {
        const ops_array *node = group->nodes[i];
        hal_ir_value in[OPS_INLINE_OPERANDS];
        for (uint32_t j = 0; j < node->operand_count; j++) {
            const uint32_t operand = group->operands[i][j];
            in[j] = operand & OPS_GROUP_LEAF ? leaves[operand & ~OPS_GROUP_LEAF] : nodes[operand];
        }
        nodes[i] = is_stored && ops_fusion_group_only_stores(group, i)
                       ? ops_fusion_group_emit_stored(b, node, in)
                       : ops_fusion_group_emit_node(b, node, in);
    }
    for (uint32_t i = 0; i < group->output_count; i++) {
        hal_ir_output(b, i, nodes[group->outputs[i]]);
    }
    return ops_expression_create(b, expression);
}
