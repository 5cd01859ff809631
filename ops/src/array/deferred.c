/* Deferred nodes, see deferred.h. */
#include "deferred.h"

#include "axis_order.h"
#include "execute.h"
#include "fusion_cluster.h"
#include "matmul.h"
#include "tensor/message.h"

#include <stdlib.h>
#include <string.h>

/* Memory from which on an array that waits is computed to free it, in bytes. */
#define OPS_HELD_BYTES (UINT64_C(1) << 20)

/* Of what is inlined for one, two and any number of operands. */
#define FOR_EACH_COUNT static inline __attribute__((always_inline))

/* A cast that each kernel makes again of memory is one operation, whatever computed that memory. */
static inline void operand_recount(ops_array *operand)
{
    ops_array *x = ops_node_is_view(operand) ? ops_view_source(operand) : operand;
    if (ops_node_is_remade(x) && x->operands[0]->state == OPS_NODE_MEMORY) {
        x->cluster_operations = x->cluster_leaves = x->counts_once = 1;
        operand->depth = x->depth = 0;
    }
}

/* Sets upper bounds for the cluster that would compute the node: shared operands count twice. */
FOR_EACH_COUNT void node_bound_cluster(ops_array *node, ops_array *const *operands, uint32_t count)
{
    const bool fuse = node->owner->fusion, joins = fuse && ops_node_is_elementwise(node);
    uint32_t operations = 1, leaves = 0, depth = 0, joined = 0, counts_once = 1;
    for (uint32_t i = 0; i < count; i++) {
        ops_array *operand = operands[i];
        if (i == 1 && operand == operands[0]) {
            continue; /* a square */
        }
        operand_recount(operand);
        uint32_t before = operand->depth;
        if (joins && ops_fusion_cluster_takes_operand(node, i)) {
            operations += operand->cluster_operations;
            leaves += operand->cluster_leaves;
            counts_once &= (uint32_t)operand->counts_once & (joined == 0);
            joined++;
        } else if (joins && ops_fusion_cluster_takes_view(node, i)) {
            const ops_array *source = ops_view_source(operand);
            operations += source->cluster_operations;
            leaves += source->cluster_leaves;
            counts_once = 0;
            before += OPS_VIEW_DEPTH;
        } else {
            leaves++;
            if (operand->state == OPS_NODE_DEFERRED &&
                !(fuse && ops_fusion_cluster_may_follow(node, operand))) {
                before +=
                    i == 0 && ops_matmul_may_take_sums(node) ? OPS_LAYER_DEPTH : OPS_KERNEL_DEPTH;
            }
        }
        depth = before > depth ? before : depth;
    }
    node->counts_once = (uint8_t)counts_once;
    node->cluster_operations = (uint16_t)operations;
    node->cluster_leaves = (uint16_t)leaves;
    node->depth = (uint8_t)depth;
}

static void node_count_cluster(ops_array *node)
{
    node_bound_cluster(node, ops_node_operands(node), node->operand_count);
}

/* The operand with the largest cluster among those in the node's cluster; null if none. */
static ops_array *node_largest_operand(const ops_array *node)
{
    ops_array *largest = NULL;
    for (uint32_t i = 0; node->owner->fusion && i < node->operand_count; i++) {
        const bool is_view = ops_fusion_cluster_takes_view(node, i);
        ops_array *x = is_view ? ops_view_source(node->operands[i]) : node->operands[i];
        if ((is_view || ops_fusion_cluster_takes_operand(node, i)) &&
            (!largest || x->cluster_operations + x->cluster_leaves >
                             largest->cluster_operations + largest->cluster_leaves)) {
            largest = x;
        }
    }
    return largest;
}

/* Counts the cluster exactly, unless its operations were counted so; when it is beyond the limits,
 * executes its largest part. Sets *is_done when nothing can be executed: the device binds too few
 * arrays even for the node alone, which its own execution reports. */
static hal_status node_shrink_cluster(ops_array *node, bool *is_done)
{
    ops_fusion_cluster cluster;
    const bool is_beyond = node->counts_once && node->cluster_operations > OPS_CLUSTER_OPERATIONS;
    if (!is_beyond && ops_fusion_cluster_gather(&cluster, &node, 1, node->owner->fusion)) {
        node->cluster_operations = (uint16_t)cluster.node_count;
        node->cluster_leaves = (uint16_t)cluster.leaf_count;
        return HAL_OK;
    }
    ops_array *operand = node_largest_operand(node);
    if (!operand) {
        *is_done = true;
        return HAL_OK;
    }
    node->owner->why = "the next call would exceed the operations or arrays of one kernel";
    hal_status status = ops_execute(&operand, 1);
    node_count_cluster(node);
    return status;
}

/* Sets the strides of a new node, which are row-major so far. */
FOR_EACH_COUNT void node_set_order(ops_array *node, ops_array *const *operands, uint32_t count,
                                   const ops_result *result)
{
    const bool has_order =
        (node->operation >= OPS_OPERATION_UNARY && node->operation <= OPS_OPERATION_LOG_SOFTMAX) ||
        node->operation == OPS_OPERATION_UPDATE;
    bool is_reordered = false;
    for (uint32_t i = 0; i < count; i++) {
        is_reordered |= operands[i]->is_reordered;
    }
    if (has_order && result->like) {
        memcpy(node->view.stride, result->like->stride,
               node->view.rank * sizeof *node->view.stride);
        node->is_reordered = (uint8_t)ops_is_reordered(&node->view);
    } else if (has_order && is_reordered) {
        ops_axis_order_set(node);
    }
}

/* Arrays that are looked at for what a reduction's prologue reads, at most. */
#define DEEPEST_VISITS 32u

/* Executes what the elementwise nodes read that compute x, and counts them again. Not those nodes:
 * the kernel of the reduction that reads x computes them, and would read them from memory else. */
static hal_status execute_before(ops_array *x, uint32_t *visits)
{
    hal_status status = HAL_OK;
    if (x->state != OPS_NODE_DEFERRED || *visits == 0) {
        return HAL_OK;
    }
    (*visits)--;
    if (ops_node_is_view(x)) {
        status = execute_before(ops_view_source(x), visits);
    } else if (!ops_node_is_elementwise(x)) {
        return ops_execute(&x, 1);
    }
    for (uint32_t i = 0; ops_node_is_elementwise(x) && i < x->operand_count && !status; i++) {
        status = execute_before(x->operands[i], visits);
    }
    if (x->state == OPS_NODE_DEFERRED) {
        node_count_cluster(x);
    }
    return status;
}

static hal_status node_execute_deepest(ops_array *node)
{
    const bool has_prologue = node->operation == OPS_OPERATION_REDUCE && node->owner->fusion;
    hal_status status = HAL_OK;
    ops_array *const *operands = ops_node_operands(node);
    for (uint32_t i = 0; i < node->operand_count && status == HAL_OK; i++) {
        ops_array *operand = operands[i];
        uint32_t visits = DEEPEST_VISITS;
        node->owner->why = "four kernels are waiting: the device should start";
        if (has_prologue) {
            status = execute_before(operand, &visits);
        }
        if (status == HAL_OK && operand->state == OPS_NODE_DEFERRED &&
            operand->depth + OPS_KERNEL_DEPTH >= node->depth) {
            status = ops_execute(&operand, 1);
        }
    }
    node_count_cluster(node);
    return status;
}

static inline bool node_is_beyond_cluster(const ops_array *node)
{
    return ops_node_is_elementwise(node) && (node->cluster_operations > OPS_CLUSTER_OPERATIONS ||
                                             node->cluster_leaves > node->owner->max_leaves);
}

/* Executes operands until the node's cluster is within the limits. */
static hal_status node_limit_cluster(ops_array *node)
{
    hal_status status = HAL_OK;
    bool is_done = false;
    while (status == HAL_OK && !is_done && node->state == OPS_NODE_DEFERRED) {
        if (node_is_beyond_cluster(node)) {
            status = node_shrink_cluster(node, &is_done);
        } else if (node->depth > OPS_DEFERRED_DEPTH) {
            status = node_execute_deepest(node);
        } else {
            is_done = true;
        }
    }
    return status;
}

/* ---- Anchors that wait ---- */

static inline bool node_is_anchor(const ops_array *node)
{
    return node->state == OPS_NODE_DEFERRED && node->operation >= OPS_OPERATION_REDUCE &&
           node->operation < OPS_OPERATION_UPDATE &&
           !(node->operation == OPS_OPERATION_CONCATENATE &&
             node->function == OPS_CONCATENATE_PARTS);
}

/* The anchor that a node is, or that an elementwise node reads; null if none. */
static const ops_array *node_find_anchor(const ops_array *node)
{
    const ops_array *anchor = node_is_anchor(node) ? node : NULL;
    for (uint32_t i = 0; ops_node_is_elementwise(node) && i < node->operand_count && !anchor; i++) {
        anchor = node_is_anchor(node->operands[i]) ? node->operands[i] : NULL;
    }
    return anchor;
}

static uint64_t view_bytes(const ops_array *x)
{
    return (uint64_t)ops_tensor_get_element_count(&x->view) * hal_type_size(x->view.type);
}

/* Whether memory of some size ends with an array's only use. */
static bool array_ends_with_use(const ops_array *x)
{
    bool ends = view_bytes(x) >= OPS_HELD_BYTES && x->references == 0 && x->uses == 1;
    for (; ends && ops_node_is_view(x); x = x->operands[0]) {
        ends = x->operands[0]->references == 0 && x->operands[0]->uses == 1;
    }
    return ends && (x->state == OPS_NODE_DEFERRED || !hal_buffer_is_shared(x->view.buffer));
}

static bool has_large_operand(const ops_array *node)
{
    bool has = false;
    for (uint32_t i = 0; i < node->operand_count && !has; i++) {
        has = view_bytes(ops_node_operands(node)[i]) >= OPS_HELD_BYTES;
    }
    return has;
}

static bool node_holds_memory(const ops_array *node)
{
    const ops_array *anchor = ops_node_is_held(node) ? node_find_anchor(node) : NULL;
    bool holds = false;
    for (uint32_t i = 0; anchor && i < anchor->operand_count && !holds; i++) {
        holds = array_ends_with_use(ops_node_operands(anchor)[i]);
    }
    return holds;
}

/* Lists a node that has or is an anchor, and computes the one that has waited longest, if it alone
 * holds memory: a product for a weight's gradient, which nothing reads before the end of the step,
 * would keep the activations and gradients of all layers. */
static void arrays_add_waiting(ops_arrays *arrays, ops_array *node)
{
    /* Programs without large operands list nothing. */
    if (arrays->waiting_count == 0 && !(node_is_anchor(node) && has_large_operand(node))) {
        return;
    }
    if (arrays->is_recording || !node_find_anchor(node)) {
        return;
    }
    ops_array **at = &arrays->waiting[arrays->waiting_count++ % OPS_WAITING_ANCHORS];
    ops_array *oldest = *at; /* any node by now */
    *at = node;
    if (!oldest || oldest == node || oldest->state != OPS_NODE_DEFERRED ||
        !node_holds_memory(oldest)) {
        return;
    }
    ops_message message; /* of before: whoever asks for the array is told why it has no values */
    ops_message_save(&message);
    arrays->why = "it holds memory that nothing else needs";
    if (ops_execute(&oldest, 1) != HAL_OK) {
        ops_message_restore(&message);
    }
}

/* ops_defer after its checks. */
FOR_EACH_COUNT ops_array *node_defer(ops_arrays *arrays, ops_operation operation,
                                     uint32_t operation_function, ops_array *const *operands,
                                     uint32_t count, const ops_result *result)
{
    ops_array *node = ops_node_create(arrays);
    if (!node) {
        return NULL;
    }
    ops_node_set_shape(node, result->type, result->rank, result->shape);
    if (ops_node_set_operands(node, operands, count)) {
        ops_node_release(node);
        return NULL;
    }
    node->state = OPS_NODE_DEFERRED;
    node->operation = (uint8_t)operation;
    node->function = (uint8_t)operation_function;
    node->axis = (uint8_t)result->axis;
    node_set_order(node, operands, count, result);
    node->number = ++arrays->call_count;
    arrays->statistics.recorded++;
    arrays->statistics.deferred++;
    node_bound_cluster(node, operands, count);
    return node;
}

static hal_status node_copy_form(const char *function, const ops_result *result, ops_array *node)
{
    node->form = malloc(result->form_bytes);
    if (!node->form) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "%s: the host has no %u bytes for a node",
                              function, result->form_bytes);
    }
    memcpy(node->form, result->form, result->form_bytes);
    return HAL_OK;
}

int64_t *ops_result_own_shape(ops_result *result)
{
    memcpy(result->own, result->shape, result->rank * sizeof *result->own);
    result->shape = result->own;
    return result->own;
}

hal_status ops_check_type(const char *function, const ops_arrays *arrays, hal_type type)
{
    if (hal_type_size(type) == 0) {
        return ops_invalid("%s: type: expected a hal_type, got %u", function, type);
    }
    return ops_check_storage(arrays->context, function, "type", type);
}

hal_status ops_check_short_axis(const char *function, int32_t axis, const ops_array *x,
                                uint32_t *checked)
{
    hal_status status = ops_check_axis(function, "axis", &x->view, axis, checked);
    if (status == HAL_OK && x->view.shape[*checked] > INT32_MAX) {
        char text[OPS_TEXT_BYTES];
        status = ops_invalid("%s: x: expected at most 2^31 - 1 elements along axis %u, got %s",
                             function, *checked, ops_describe(&x->view, text));
    }
    return status;
}

/* What nodes have that are not elementwise. */
static hal_status node_complete_anchor(const char *function, ops_array *node,
                                       const ops_result *result)
{
    ops_arrays *arrays = node->owner;
    const uint32_t operation = node->operation;
    if (operation == OPS_OPERATION_ATTENTION) {
        node->scale = result->scale;
    }
    if (ops_node_is_grouped(node) ||
        (operation >= OPS_OPERATION_UNFOLD && operation <= OPS_OPERATION_UPDATE)) {
        HAL_TRY(node_copy_form(function, result, node));
    }
    if (operation >= OPS_OPERATION_SOFTMAX && operation <= OPS_OPERATION_UPDATE &&
        !(operation == OPS_OPERATION_CONCATENATE && node->function == OPS_CONCATENATE_PARTS)) {
        for (uint32_t i = 0; i < node->operand_count; i++) {
            ops_node_operands(node)[i]->needs_memory = 1;
        }
    }
    if (operation == OPS_OPERATION_REDUCE) {
        arrays->reductions[arrays->reduction_count++ % OPS_RECENT_REDUCTIONS] = node;
    }
    if (operation == OPS_OPERATION_POOL) {
        arrays->pools[arrays->pool_count++ % OPS_RECENT_POOLS] = node;
    }
    return HAL_OK;
}

ops_array *ops_defer(const char *function, ops_operation operation, uint32_t operation_function,
                     ops_array *const *operands, uint32_t count, const ops_result *result)
{
    ops_arrays *arrays = operands[0]->owner;
    uint64_t bytes;
    /* A unary result is no larger than its operand, whose shape was checked. */
    if (operation != OPS_OPERATION_UNARY &&
        ops_check_shape(function, result->type, result->rank, result->shape, &bytes)) {
        return NULL;
    }
    ops_array *node =
        count == 1   ? node_defer(arrays, operation, operation_function, operands, 1, result)
        : count == 2 ? node_defer(arrays, operation, operation_function, operands, 2, result)
                     : node_defer(arrays, operation, operation_function, operands, count, result);
    if (!node) {
        return NULL;
    }
    if (operation >= OPS_OPERATION_REDUCE && node_complete_anchor(function, node, result)) {
        ops_node_release(node);
        return NULL;
    }
    hal_status status = HAL_OK;
    if (!arrays->fusion) {
        arrays->why = "fusion is off";
        status = ops_execute(&node, 1);
    } else {
        if (operation >= OPS_OPERATION_REDUCE || arrays->waiting_count > 0) {
            arrays_add_waiting(arrays, node);
        }
        if (node_is_beyond_cluster(node) || node->depth > OPS_DEFERRED_DEPTH) {
            status = node_limit_cluster(node);
        }
    }
    if (status != HAL_OK) {
        ops_node_release(node);
        return NULL;
    }
    return node;
}
