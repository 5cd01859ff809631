/* Fusion plans, see fusion_plan.h. */
#include "fusion_plan.h"

#include <string.h>

/* Bindings of one kernel at most, and those that a reduction or product needs besides its prologue
 * and epilogue. */
#define MAX_BINDINGS 24u
#define ANCHOR_BINDINGS 3u

static uint32_t plan_max_outputs(const ops_fusion_plan *plan)
{
    uint32_t bindings = plan->context->info->max_bindings;
    bindings = bindings < MAX_BINDINGS ? bindings : MAX_BINDINGS;
    uint32_t leaves = plan->epilogue.leaf_count;
    uint32_t left = bindings > leaves ? bindings - leaves : 1;
    return left < OPS_MAX_OUTPUTS ? left : OPS_MAX_OUTPUTS;
}

/* A node of the group that one of its leaves is computed from as well, and that is therefore stored
 * first: for example the state that a recurrent step both multiplies and adds. Null if none. */
static ops_array *group_find_operand_of_leaf(const ops_fusion_group *group)
{
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        const ops_array *leaf = group->leaves[i];
        ops_array *const *operands = ops_node_operands(leaf);
        for (uint32_t k = 0; k < leaf->operand_count; k++) {
            ops_array *operand = operands[k];
            operand =
                operand->state == OPS_NODE_DEFERRED && operand->operation == OPS_OPERATION_VIEW
                    ? operand->operands[0]
                    : operand;
            if (ops_fusion_group_contains(group, operand)) {
                return operand;
            }
        }
    }
    return NULL;
}

/* Whether nothing can read the node once `uses` of its uses are over. A scope is assumed to be done
 * with it the first time; if it is not, the node is computed again, and stored. */
static int node_is_needed_once(const ops_array *node, uint32_t uses)
{
    return !ops_node_is_held(node) && node->uses == uses && !(node->in_scope && node->was_computed);
}

/* Whether leaf number `leaf` can be the anchor that the epilogue follows. */
static int plan_can_anchor(const ops_fusion_plan *plan, uint32_t leaf)
{
    const ops_fusion_group *group = &plan->epilogue;
    return plan->fuse && ops_fusion_group_may_follow(plan->roots[0], group->leaves[leaf]) &&
           group->output_count == 1 &&
           group->leaf_count - 1 + ANCHOR_BINDINGS <= plan->context->info->max_bindings &&
           node_is_needed_once(group->leaves[leaf], group->leaf_uses[leaf]);
}

/* Plans the elementwise nodes; the only deferred leaf may become the anchor. */
static ops_array *plan_epilogue(ops_fusion_plan *plan)
{
    ops_fusion_group *group = &plan->epilogue;
    plan->has_epilogue = 1;
    if (!ops_fusion_group_gather(group, plan->roots, 1, plan->fuse)) {
        return group->excess;
    }
    ops_fusion_group_choose_outputs(group, plan->roots, 1, plan_max_outputs(plan));
    ops_array *shared = group_find_operand_of_leaf(group);
    if (shared) {
        return shared;
    }
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        ops_array *leaf = group->leaves[i];
        if (leaf->state != OPS_NODE_DEFERRED) {
            continue;
        }
        if (plan->anchor || !plan_can_anchor(plan, i)) {
            plan->anchor = NULL;
            return leaf;
        }
        plan->anchor = leaf;
    }
    return NULL;
}

static ops_array *find_deferred(ops_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (arrays[i]->state == OPS_NODE_DEFERRED) {
            return arrays[i];
        }
    }
    return NULL;
}

/* Plans the operands of the anchor. A reduction takes elementwise operands as its prologue. */
static ops_array *plan_prologue(ops_fusion_plan *plan)
{
    const ops_array *anchor = plan->anchor;
    ops_array *const *operands = ops_node_operands(anchor);
    ops_array *operand = operands[0];
    if (anchor->operation != OPS_OPERATION_REDUCE || !ops_node_is_elementwise(operand) ||
        !plan->fuse || !node_is_needed_once(operand, 1)) {
        return find_deferred(operands, anchor->operand_count);
    }
    ops_fusion_group *group = &plan->prologue;
    if (!ops_fusion_group_gather(group, &operand, 1, plan->fuse)) {
        return operand;
    }
    ops_fusion_group_choose_outputs(group, &operand, 1, OPS_MAX_OUTPUTS);
    uint32_t bindings = group->leaf_count + ANCHOR_BINDINGS +
                        (plan->has_epilogue ? plan->epilogue.leaf_count - 1 : 0);
    if (group->output_count > 1 || bindings > plan->context->info->max_bindings ||
        bindings > MAX_BINDINGS) {
        return operand;
    }
    plan->has_prologue = 1;
    return find_deferred(group->leaves, group->leaf_count);
}

static void plan_add_inputs(ops_fusion_plan *plan, ops_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        plan->inputs[plan->input_count++] = arrays[i];
    }
}

static void key_append_shape(ops_cache_key *key, const ops_tensor *tensor)
{
    const uint32_t form[2] = {tensor->type, tensor->rank};
    ops_cache_key_append(key, form, sizeof form);
    ops_cache_key_append(key, tensor->shape, tensor->rank * sizeof *tensor->shape);
}

/* How input number `i` is read, and the first input that shares its buffer. An input with the
 * layout of the output, the usual case, takes four bytes. */
static void plan_append_input(const ops_fusion_plan *plan, uint32_t i, ops_cache_key *key)
{
    const ops_tensor *view = &plan->inputs[i]->view, *usual = &plan->outputs[0]->view;
    uint8_t alias = 0;
    while (plan->inputs[alias]->view.buffer != view->buffer) {
        alias++;
    }
    const size_t bytes = view->rank * sizeof *view->stride;
    const int is_usual = view->offset == 0 && ops_same_shape(view, usual) &&
                         memcmp(view->stride, usual->stride, bytes) == 0;
    const uint8_t form[4] = {view->type, (uint8_t)view->rank, alias, (uint8_t)is_usual};
    ops_cache_key_append(key, form, sizeof form);
    if (!is_usual) {
        ops_cache_key_append(key, view->shape, bytes);
        ops_cache_key_append(key, view->stride, bytes);
        ops_cache_key_append(key, &view->offset, sizeof view->offset);
    }
}

ops_array *ops_fusion_plan_make(ops_fusion_plan *plan, ops_array *root, int fuse)
{
    plan->context = root->owner->context;
    plan->fuse = fuse;
    plan->roots[0] = root;
    plan->root_count = 1;
    plan->anchor = NULL;
    plan->has_prologue = plan->has_epilogue = 0;
    if (ops_node_is_elementwise(root)) {
        ops_array *first = plan_epilogue(plan);
        if (first) {
            return first;
        }
    } else {
        plan->anchor = root;
    }
    return plan->anchor ? plan_prologue(plan) : NULL;
}

void ops_fusion_plan_add_roots(ops_fusion_plan *plan, ops_array *const *roots, uint32_t count)
{
    if (plan->anchor || !plan->fuse || count == 0) {
        return;
    }
    ops_fusion_group *group = &plan->epilogue;
    const uint32_t most = plan_max_outputs(plan);
    for (uint32_t i = 0; i < count && plan->root_count < most; i++) {
        ops_array *root = roots[i];
        if (!ops_node_is_elementwise(root) || !ops_fusion_group_may_join(plan->roots[0], root)) {
            continue;
        }
        plan->roots[plan->root_count] = root;
        int fits = ops_fusion_group_gather(group, plan->roots, plan->root_count + 1, plan->fuse);
        for (uint32_t k = 0; fits && k < group->leaf_count; k++) {
            fits = group->leaves[k]->state == OPS_NODE_MEMORY;
        }
        plan->root_count += fits && plan->root_count + 1 <= plan_max_outputs(plan);
    }
    ops_fusion_group_gather(group, plan->roots, plan->root_count, plan->fuse);
    ops_fusion_group_choose_outputs(group, plan->roots, plan->root_count, plan_max_outputs(plan));
}

void ops_fusion_plan_list_operands(ops_fusion_plan *plan)
{
    const ops_array *anchor = plan->anchor;
    ops_fusion_group *epilogue = &plan->epilogue;
    plan->input_count = plan->output_count = 0;
    if (plan->has_prologue) {
        plan_add_inputs(plan, plan->prologue.leaves, plan->prologue.leaf_count);
    } else if (anchor) {
        plan_add_inputs(plan, ops_node_operands(anchor), anchor->operand_count);
    }
    plan->epilogue_first = plan->input_count;
    if (!plan->has_epilogue) {
        plan->outputs[plan->output_count++] = plan->anchor;
        return;
    }
    if (anchor) {
        uint32_t leaf = 0;
        while (epilogue->leaves[leaf] != anchor) {
            leaf++;
        }
        ops_fusion_group_lead_with(epilogue, leaf);
        plan_add_inputs(plan, epilogue->leaves + 1, epilogue->leaf_count - 1);
    } else {
        plan_add_inputs(plan, epilogue->leaves, epilogue->leaf_count);
    }
    for (uint32_t i = 0; i < epilogue->output_count; i++) {
        plan->outputs[plan->output_count++] = epilogue->nodes[epilogue->outputs[i]];
    }
}

uint32_t ops_fusion_plan_operation_count(const ops_fusion_plan *plan)
{
    return (plan->has_prologue ? plan->prologue.node_count : 0) +
           (plan->has_epilogue ? plan->epilogue.node_count : 0) + (plan->anchor ? 1 : 0);
}

void ops_fusion_plan_append_key(const ops_fusion_plan *plan, ops_cache_key *key)
{
    const ops_array *anchor = plan->anchor;
    const uint8_t form[4] = {(uint8_t)plan->has_prologue, (uint8_t)plan->has_epilogue,
                             (uint8_t)plan->input_count, anchor != NULL};
    ops_cache_key_append(key, form, sizeof form);
    key_append_shape(key, &plan->outputs[0]->view);
    if (anchor) {
        const uint8_t operation[4] = {anchor->operation, anchor->function, anchor->axis,
                                      anchor->view.type};
        ops_cache_key_append(key, operation, sizeof operation);
        key_append_shape(key, &ops_node_operands(anchor)[0]->view);
    }
    if (plan->has_epilogue) {
        ops_fusion_group_append_key(&plan->epilogue, key);
    }
    if (plan->has_prologue) {
        ops_fusion_group_append_key(&plan->prologue, key);
    }
    for (uint32_t i = 0; i < plan->input_count; i++) {
        plan_append_input(plan, i, key);
    }
}
