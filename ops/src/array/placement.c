/* Placement, see placement.h. */
#include "placement.h"

#include "fusion_cluster.h"

#include <string.h>

/* What is computed into one buffer: operands that are placed, then copies of other operands. */
typedef struct placement {
    ops_array *nodes[OPS_MAX_OPERANDS];
    int64_t before[OPS_MAX_OPERANDS][OPS_MAX_RANK]; /* their strides */
    uint32_t count, operand_count;
} placement;

/* Whether the kernel of a deferred node would have a product as its anchor. */
static bool node_follows_product(ops_array *node)
{
    ops_fusion_cluster cluster;
    if (!ops_fusion_cluster_gather(&cluster, &node, 1, true)) {
        return true;
    }
    bool follows = false;
    for (uint32_t i = 0; i < cluster.leaf_count; i++) {
        follows = follows || (cluster.leaves[i]->operation == OPS_OPERATION_MATMUL &&
                              ops_fusion_cluster_may_follow(node, cluster.leaves[i]));
    }
    return follows;
}

/* Whether a node that is read once can be computed at a place of its shape. */
static bool node_may_be_placed(ops_array *node)
{
    return node->owner->fusion && ops_node_is_needed_once(node, 1) &&
           (node->state == OPS_NODE_DEFERRED && node->operation == OPS_OPERATION_REDUCE
                ? true
                : ops_node_is_elementwise(node) && !node_follows_product(node));
}

/* The place of x whose elements, in their order, are those of `at`: axes of `at` are divided. False
 * where axes of x lie across several of them. */
static bool place_divide(const ops_tensor *at, const ops_tensor *x, ops_tensor *place)
{
    uint32_t left = x->rank;
    *place = *at;
    place->rank = x->rank;
    for (uint32_t axis = at->rank; axis-- > 0;) {
        int64_t divided = 1;
        while (left > 0 && divided < at->shape[axis]) {
            left--;
            place->shape[left] = x->shape[left];
            place->stride[left] = at->stride[axis] * divided;
            divided *= x->shape[left];
        }
        if (divided != at->shape[axis]) {
            return false;
        }
    }
    while (left > 0 && x->shape[left - 1] == 1) {
        left--;
        place->shape[left] = 1;
        place->stride[left] = 0;
    }
    return left == 0;
}

/* What is computed for an operand, and its place: of a deferred reshape that nothing else reads,
 * the source. */
static ops_array *operand_computes(ops_array *operand, const ops_tensor *at, ops_tensor *place)
{
    const ops_tensor *view = &operand->view;
    *place = *at;
    if (!ops_node_is_view(operand) || !ops_node_is_needed_once(operand, 1)) {
        return operand;
    }
    ops_array *source = operand->operands[0];
    const bool is_reshape =
        ops_node_is_elementwise(source) && !source->is_reordered && !source->needs_memory &&
        view->offset == 0 && ops_tensor_is_contiguous(view) &&
        ops_tensor_get_element_count(view) == ops_tensor_get_element_count(&source->view);
    return is_reshape && place_divide(at, &source->view, place) ? source : operand;
}

static void node_place(ops_array *node, hal_buffer *buffer, const ops_tensor *at)
{
    ops_tensor view = *at;
    view.type = node->view.type;
    view.buffer = hal_buffer_retain(buffer);
    ops_node_set_view(node, &view);
}

/* A deferred copy of x, broadcast to the shape of `like`. */
static ops_array *copy_create(ops_array *x, const ops_tensor *like)
{
    ops_array *node = ops_node_create(x->owner);
    if (!node) {
        return NULL;
    }
    ops_node_set_shape(node, x->view.type, like->rank, like->shape);
    ops_node_set_operands(node, &x, 1); /* one operand takes no memory */
    node->state = OPS_NODE_DEFERRED;
    node->operation = OPS_OPERATION_UNARY;
    node->function = OPS_IDENTITY;
    x->owner->statistics.recorded++;
    x->owner->statistics.deferred++;
    return node;
}

static void placement_add(placement *p, ops_array *node, hal_buffer *buffer, const ops_tensor *at)
{
    memcpy(p->before[p->count], node->view.stride, node->view.rank * sizeof *node->view.stride);
    p->nodes[p->count++] = node;
    node_place(node, buffer, at);
}

/* Places an operand; false where it is not one that can be placed. */
static bool placement_add_operand(placement *p, ops_array *operand, hal_buffer *buffer,
                                  const ops_tensor *at)
{
    ops_tensor place;
    ops_array *node = operand_computes(operand, at, &place);
    if (!ops_same_shape(&node->view, &place) || !node_may_be_placed(node)) {
        return false;
    }
    placement_add(p, node, buffer, &place);
    p->operand_count = p->count;
    return true;
}

/* What an elementwise node reads of a kernel that it cannot follow, and is not computed; null if
 * there is none. */
static ops_array *node_find_missing(ops_array *node)
{
    ops_fusion_cluster cluster;
    ops_array *missing = NULL;
    if (!ops_node_is_elementwise(node) || !ops_fusion_cluster_gather(&cluster, &node, 1, true)) {
        return NULL;
    }
    for (uint32_t i = 0; i < cluster.leaf_count && !missing; i++) {
        ops_array *leaf = cluster.leaves[i];
        const ops_array *from = ops_node_is_view(leaf) ? ops_view_source(leaf) : leaf;
        const bool is_apart = from->operation >= OPS_OPERATION_SOFTMAX;
        missing = is_apart && ops_node_is_missing(leaf) ? leaf : NULL;
    }
    return missing;
}

/* Computes what placed nodes read of such kernels: then one kernel computes several of them. */
static hal_status placement_prepare(const placement *p, const ops_compute *compute)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < p->count && p->count > 1 && status == HAL_OK;) {
        ops_array *missing = node_find_missing(p->nodes[i]);
        status = missing ? compute->node(compute, missing, NULL, 0) : HAL_OK;
        i += !missing;
    }
    return status;
}

/* Adds a copy of an operand, which is computed first. */
static hal_status placement_add_copy(placement *p, ops_array *operand, hal_buffer *buffer,
                                     const ops_tensor *at, const ops_compute *compute)
{
    if (ops_node_is_missing(operand)) {
        HAL_TRY(compute->node(compute, operand, NULL, 0));
    }
    ops_array *copy = copy_create(operand, at);
    if (!copy) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    placement_add(p, copy, buffer, at);
    return HAL_OK;
}

/* Computes what is placed. Copies of types that kernels convert stay alone: ops_copy moves the bits
 * of a NaN. */
static hal_status placement_compute(const placement *p, bool together, const ops_compute *compute)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < p->count && status == HAL_OK; i++) {
        ops_array *node = p->nodes[i];
        const bool has_copies = !hal_type_is_narrow_float(node->view.type);
        const uint32_t end = !together ? 0 : has_copies ? p->count : p->operand_count;
        if (node->state == OPS_NODE_DEFERRED) {
            status = compute->node(compute, node, p->nodes + i + 1, end > i ? end - i - 1 : 0);
        }
    }
    return status;
}

/* Releases the copies. Operands that were not computed get their own views again: those of deferred
 * nodes, which begin at offset 0 of no buffer. */
static void placement_end(placement *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        ops_array *node = p->nodes[i];
        if (ops_node_is_placed(node)) {
            hal_buffer_release(node->view.buffer);
            node->view.buffer = NULL;
            node->view.offset = 0;
            memcpy(node->view.stride, p->before[i], node->view.rank * sizeof *node->view.stride);
            node->is_reordered = (uint8_t)ops_is_reordered(&node->view);
        }
        if (i >= p->operand_count) {
            ops_node_release(node);
        }
    }
}

/* A reshape whose source was computed at its place is there as well: the program may read it. */
static void reshape_end(ops_array *operand, const hal_buffer *buffer, const ops_tensor *at)
{
    if (!ops_node_is_view(operand) || !ops_same_shape(&operand->view, at)) {
        return;
    }
    const ops_array *source = operand->operands[0];
    if (source->state == OPS_NODE_MEMORY && source->view.buffer == buffer) {
        const uint64_t batch = source->batch;
        const hal_type type = operand->view.type;
        operand->in_host_memory = source->in_host_memory;
        ops_node_set_view(operand, at);
        operand->view.type = type;
        operand->view.buffer = NULL;
        ops_node_set_result(operand, hal_buffer_retain(source->view.buffer));
        operand->batch = batch;
    }
}

/* Gives a result its buffer, or releases the buffer after a failure. */
static hal_status result_end(ops_array *root, hal_buffer *buffer, hal_status status)
{
    if (status != HAL_OK) {
        hal_buffer_release(buffer);
        return status;
    }
    root->was_computed = 1;
    root->owner->statistics.evaluated++;
    ops_node_set_result(root, buffer);
    return HAL_OK;
}

static hal_status result_create(const ops_array *root, hal_memory_kind kind, hal_buffer **buffer)
{
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(&root->view) * hal_type_size(root->view.type);
    return hal_buffer_create(root->owner->context->device, kind, bytes ? bytes : 4, buffer);
}

bool ops_concatenation_may_place(const ops_array *root)
{
    ops_array *const *operands = ops_node_operands(root);
    bool may = false;
    for (uint32_t i = 0; i < root->operand_count && !may; i++) {
        ops_tensor place; /* in any memory of the operand's shape */
        ops_array *node = operand_computes(operands[i], &operands[i]->view, &place);
        may = node->state == OPS_NODE_DEFERRED && node_may_be_placed(node);
    }
    return may && ops_tensor_get_element_count(&root->view) > 0;
}

/* The part of the result that an operand becomes, from *start on, which becomes the next one's. */
static ops_tensor part_next(const ops_array *root, const ops_array *operand, int64_t *start)
{
    ops_tensor part = root->view;
    part.offset += *start * part.stride[root->axis];
    part.shape[root->axis] = operand->view.shape[root->axis];
    *start += part.shape[root->axis];
    return part;
}

hal_status ops_concatenation_compute(ops_array *root, hal_memory_kind kind,
                                     const ops_compute *compute)
{
    ops_array *const *operands = ops_node_operands(root);
    bool is_placed[OPS_MAX_OPERANDS];
    hal_buffer *buffer;
    placement p;
    int64_t start = 0;
    p.count = p.operand_count = 0;
    HAL_TRY(result_create(root, kind, &buffer));
    for (uint32_t i = 0; i < root->operand_count; i++) {
        const ops_tensor part = part_next(root, operands[i], &start);
        is_placed[i] = placement_add_operand(&p, operands[i], buffer, &part);
    }
    hal_status status = placement_prepare(&p, compute);
    start = 0;
    for (uint32_t i = 0; i < root->operand_count && status == HAL_OK; i++) {
        const ops_tensor part = part_next(root, operands[i], &start);
        if (!is_placed[i]) {
            status = placement_add_copy(&p, operands[i], buffer, &part, compute);
        }
    }
    status = status == HAL_OK ? placement_compute(&p, true, compute) : status;
    placement_end(&p);
    start = 0;
    for (uint32_t i = 0; i < root->operand_count && status == HAL_OK; i++) {
        const ops_tensor part = part_next(root, operands[i], &start);
        reshape_end(operands[i], buffer, &part);
    }
    return result_end(root, buffer, status);
}

/* Whether the memory of operand 0 can become that of the update. */
static bool update_is_in_place(const ops_array *root)
{
    const ops_array *x = root->operands[0];
    const ops_arrays *arrays = root->owner;
    return x->state == OPS_NODE_MEMORY && x->references == 0 && x->uses == 1 &&
           x->operation != OPS_OPERATION_CONSTANT && x->operation != OPS_OPERATION_PREPARED &&
           !x->in_host_memory && x->view.offset == 0 && ops_same_strides(&x->view, &root->view) &&
           !(arrays->is_recording && x->recording != arrays->recording) &&
           !hal_buffer_is_shared(x->view.buffer);
}

hal_status ops_update_compute(ops_array *root, const ops_compute *compute)
{
    ops_array *x = root->operands[0], *value = root->operands[1];
    const ops_tensor target = *ops_node_update_target(root);
    hal_buffer *buffer;
    placement p;
    p.count = p.operand_count = 0;
    if (ops_node_is_missing(x)) {
        HAL_TRY(compute->node(compute, x, NULL, 0));
    }
    bool in_place = update_is_in_place(root);
    if (!in_place && x->references == 0 && ops_node_is_missing(value)) {
        /* The value may be what else reads x: a copy of the value is smaller than one of x. */
        HAL_TRY(compute->node(compute, value, NULL, 0));
        in_place = update_is_in_place(root);
    }
    if (in_place) {
        buffer = hal_buffer_retain(x->view.buffer);
    } else {
        HAL_TRY(result_create(root, HAL_MEMORY_DEVICE, &buffer));
    }
    hal_status status = HAL_OK;
    const bool has_target = ops_tensor_get_element_count(&target) > 0;
    const bool is_placed = has_target && placement_add_operand(&p, value, buffer, &target);
    const bool is_copied = !in_place && !ops_node_update_covers(root);
    if (is_copied && ops_tensor_get_element_count(&root->view) > 0) {
        status = placement_add_copy(&p, x, buffer, &root->view, compute);
    }
    if (status == HAL_OK && has_target && !is_placed) {
        status = placement_add_copy(&p, value, buffer, &target, compute);
    }
    if (status == HAL_OK && is_placed && is_copied) { /* x first: the value overwrites it */
        status = compute->node(compute, p.nodes[1], NULL, 0);
    }
    status = status == HAL_OK ? placement_compute(&p, false, compute) : status;
    placement_end(&p);
    if (status == HAL_OK && is_placed) {
        reshape_end(value, buffer, &target);
    }
    return result_end(root, buffer, status);
}
