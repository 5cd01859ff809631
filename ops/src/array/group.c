/* Groups of pointwise operations, see group.h. */
#include "group.h"

#include "kernels/cast.h"

/* The place of a leaf, in contrast to that of a node. */
#define LEAF 0x8000u

typedef struct visit {
    ops_array *array;
    uint32_t next; /* operand */
} visit;

/* Asked two times for each operation; shapes are short, so calling memcmp would cost more. */
static int same_shape(const ops_array *x, const ops_array *y)
{
    const ops_tensor *a = &x->view, *b = &y->view;
    int same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++) {
        same = a->shape[i] == b->shape[i];
    }
    return same;
}

/* Ends a gathering that went too far: what is complete comes first, else what was just entered. */
static int cut(ops_group *group, ops_array *entered)
{
    group->cut = group->node_count ? group->nodes[group->node_count - 1] : entered;
    return 0;
}

/* Makes an operand that was not met before a leaf, or a node to be visited. 0 without room. */
static int meet(ops_group *group, ops_array *root, ops_array *x, uint32_t stamp)
{
    x->stamp = stamp;
    x->seen = 0;
    x->place = 0;
    if (!ops_group_may_join(root, x)) {
        if (group->leaf_count == ops_group_most_leaves(root->context)) {
            x->stamp = 0;
            return 0;
        }
        x->place = (uint16_t)(LEAF | group->leaf_count);
        group->leaves[group->leaf_count++] = x;
    }
    return 1;
}

/* Whether somebody may still ask for a node: the caller holds it, another deferred array uses it,
 * or its scope does and it would be computed for the second time. */
static int is_wanted(const ops_array *x)
{
    return ops_array_is_kept(x) || x->uses > x->seen || (x->in_scope && x->was_computed);
}

static hal_ir_value emit(hal_ir_builder *b, const ops_array *node, const hal_ir_value *in)
{
    switch (node->operation) {
    case OPS_OPERATION_UNARY:
        return ops_unary_value(b, (ops_unary_function)node->function, in[0]);
    case OPS_OPERATION_BINARY:
        return ops_binary_value(b, (ops_binary_function)node->function, in[0], in[1]);
    case OPS_OPERATION_WHERE:
        return hal_ir_select(b, in[0], in[1], in[2]);
    default:
        return ops_cast_value(b, node->function, in[0]);
    }
}

int ops_group_may_join(const ops_array *array, const ops_array *x)
{
    return ops_array_is_pointwise(x) && !x->needs_memory && ops_array_is_pointwise(array) &&
           same_shape(array, x) && !array->context->arrays->unfused;
}

int ops_group_may_follow(const ops_array *array, const ops_array *x)
{
    if ((x->operation != OPS_OPERATION_REDUCE && x->operation != OPS_OPERATION_MATMUL) ||
        x->state != OPS_ARRAY_DEFERRED || !ops_array_is_pointwise(array) || !same_shape(array, x) ||
        array->context->arrays->unfused) {
        return 0;
    }
    /* A product is stored as what it adds up, or as its operands are. */
    return x->operation == OPS_OPERATION_REDUCE || array->view.type == x->view.type ||
           array->view.type == HAL_TYPE_F32;
}

int ops_group_gather(ops_group *group, ops_array *const *roots, uint32_t root_count)
{
    visit path[OPS_GROUP_OPERATIONS + 1];
    struct ops_arrays *arrays = roots[0]->context->arrays;
    arrays->stamp += arrays->stamp == UINT32_MAX ? 2 : 1; /* 0: not met by any */
    uint32_t stamp = arrays->stamp;
    group->node_count = group->leaf_count = group->output_count = 0;
    for (uint32_t i = 0; i < root_count; i++) {
        if (roots[i]->stamp == stamp && !(roots[i]->place & LEAF)) {
            continue;
        }
        uint32_t depth = 1;
        path[0] = (visit){roots[i], 0};
        roots[i]->stamp = stamp;
        roots[i]->seen = 0;
        roots[i]->place = 0;
        while (depth > 0) {
            visit *at = &path[depth - 1];
            if (at->next == at->array->operand_count) {
                if (group->node_count == OPS_GROUP_OPERATIONS) {
                    return cut(group, at->array);
                }
                at->array->place = (uint16_t)group->node_count;
                group->nodes[group->node_count++] = at->array;
                depth--;
                continue;
            }
            ops_array *x = at->array->operands[at->next++];
            int is_new = x->stamp != stamp;
            if (is_new && !meet(group, roots[i], x, stamp)) {
                return cut(group, at->array);
            }
            x->seen++;
            if (is_new && !(x->place & LEAF)) {
                if (depth == OPS_GROUP_OPERATIONS) {
                    return cut(group, at->array);
                }
                path[depth++] = (visit){x, 0};
            }
        }
    }
    return 1;
}

int ops_group_has(const ops_group *group, const ops_array *x)
{
    return x->place < group->node_count && group->nodes[x->place] == x;
}

void ops_group_lead_with(ops_group *group, uint32_t leaf)
{
    ops_array *first = group->leaves[0];
    group->leaves[0] = group->leaves[leaf];
    group->leaves[leaf] = first;
    group->leaves[leaf]->place = (uint16_t)(LEAF | leaf);
    group->leaves[0]->place = LEAF;
}

void ops_group_choose_outputs(ops_group *group, ops_array *const *roots, uint32_t root_count,
                              uint32_t most)
{
    group->output_count = 0;
    for (uint32_t i = 0; i < root_count; i++) {
        int is_twice = 0;
        for (uint32_t j = 0; j < i; j++) {
            is_twice |= roots[j] == roots[i];
        }
        if (!is_twice) {
            group->outputs[group->output_count++] = (uint8_t)roots[i]->place;
        }
    }
    uint32_t count = group->output_count;
    for (uint32_t i = 0; i < group->node_count && group->output_count < most; i++) {
        int is_root = 0;
        for (uint32_t j = 0; j < count; j++) {
            is_root |= group->outputs[j] == i;
        }
        if (!is_root && is_wanted(group->nodes[i])) {
            group->outputs[group->output_count++] = (uint8_t)i;
        }
    }
}

void ops_group_key(const ops_group *group, ops_cache_key *signature)
{
    ops_cache_key_append(signature, group->node_count | (uint64_t)group->output_count << 16 |
                                        (uint64_t)group->leaf_count << 32);
    for (uint32_t i = 0; i < group->node_count; i++) {
        const ops_array *node = group->nodes[i];
        uint64_t word =
            node->operation | (uint64_t)node->function << 4 | (uint64_t)node->view.type << 12;
        for (uint32_t j = 0; j < node->operand_count; j++) {
            /* Places have 6 bits, and one that tells leaves from nodes. */
            uint64_t place = node->operands[j]->place;
            word |= ((place & 0x7f) | (place & LEAF) >> 8) << (20 + 9 * j);
        }
        ops_cache_key_append(signature, word);
    }
    uint64_t outputs = 0;
    for (uint32_t i = 0; i < group->output_count; i++) {
        outputs = outputs << 8 | group->outputs[i];
    }
    ops_cache_key_append(signature, outputs);
}

hal_status ops_group_expression(const ops_group *group, uint32_t gap, ops_expression **expression)
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
        if (leaf->state == OPS_ARRAY_DEFERRED) {
            /* An accumulator on its way to memory that it will never see. */
            leaves[i] = hal_ir_narrow(b, leaf->view.type, leaves[i]);
        }
        for (uint32_t j = 0; i == 0 && j < gap; j++) {
            hal_ir_input(b, 1 + j, HAL_TYPE_U32);
        }
    }
    for (uint32_t i = 0; i < group->node_count; i++) {
        const ops_array *node = group->nodes[i];
        hal_ir_value in[3];
        for (uint32_t j = 0; j < node->operand_count; j++) {
            uint32_t place = node->operands[j]->place;
            in[j] = place & LEAF ? leaves[place & ~LEAF] : nodes[place];
        }
        nodes[i] = hal_ir_narrow(b, node->view.type, emit(b, node, in));
    }
    for (uint32_t i = 0; i < group->output_count; i++) {
        hal_ir_output(b, i, nodes[group->outputs[i]]);
    }
    return ops_expression_create(b, expression);
}
