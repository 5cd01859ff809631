/* Nodes, see node.h. */
#include "node.h"

#include "gemm/windows.h"
#include "kernels/depthwise_weights.h"
#include "kernels/direct_form.h"
#include "kernels/pool.h"
#include "kernels/resize.h"

#include <hal/profile.h>
#include <ops/gemm.h>
#include <ops/pointwise.h>
#include <ops/windows.h>

#include <stdlib.h>
#include <string.h>

static inline void node_free_form(ops_array *node)
{
    if (node->form) {
        free(node->form);
        node->form = NULL;
    }
}

static void node_free_owned(ops_array *node)
{
    if (node->operand_count > OPS_INLINE_OPERANDS) {
        free(node->operand_list);
    } else if (node->operation == OPS_OPERATION_PREPARED) {
        ops_gemm_prepared_destroy(node->prepared);
    }
    node_free_form(node);
}

static void arrays_free_slabs(ops_arrays *arrays)
{
    while (arrays->slabs) {
        ops_slab *slab = arrays->slabs;
        arrays->slabs = slab->next;
        for (uint32_t i = 0; i < OPS_SLAB_NODES; i++) {
            ops_array *node = &slab->nodes[i];
            if (node->state == OPS_NODE_FREE) {
                continue;
            }
            hal_buffer_release(node->view.buffer);
            node_free_owned(node);
        }
        free(slab);
    }
}

static void arrays_free_scopes(ops_scope *scope)
{
    while (scope) {
        ops_scope *outer = scope->outer;
        free(scope);
        scope = outer;
    }
}

/* Reports arrays that callers still hold: mostly intermediates of nested calls outside a scope. The
 * first one is the lowest node of the oldest slab, because nodes are allocated in that order. */
static void arrays_report_held(const ops_arrays *arrays)
{
    const ops_array *first = NULL;
    uint64_t count = 0;
    for (const ops_slab *slab = arrays->slabs; slab; slab = slab->next) {
        for (uint32_t i = OPS_SLAB_NODES; i-- > 0;) {
            const ops_array *node = &slab->nodes[i];
            if (node->state != OPS_NODE_FREE && ops_node_is_held(node)) {
                first = node;
                count++;
            }
        }
    }
    if (first) {
        char text[OPS_TEXT_BYTES];
        hal_log_write(HAL_LOG_WARN,
                      "ops_context_destroy: %llu arrays were not released, first %s %s; make the "
                      "intermediates of nested calls between ops_scope_begin and ops_scope_end",
                      (unsigned long long)count, ops_node_operation_name(first),
                      ops_describe(&first->view, text));
    }
}

static void arrays_destroy(ops_extension *extension)
{
    ops_arrays *arrays = (ops_arrays *)extension;
    ops_arrays_drain(arrays);
    arrays_report_held(arrays);
    if (arrays->is_recording) {
        ops_arrays_cancel_recording(arrays);
    }
    arrays_free_slabs(arrays);
    while (arrays->holders) { /* graphs may be destroyed later */
        arrays->holders->owner = NULL;
        arrays->holders = arrays->holders->next;
    }
    ops_constants_clear(&arrays->constants);
    ops_segment_tables_clear(&arrays->segment_tables);
    ops_plan_cache_destroy(arrays->plan_cache);
    ops_sites_free(&arrays->sites);
    arrays_free_scopes(arrays->scope);
    arrays_free_scopes(arrays->spare_scopes);
    arrays->context->extension = NULL;
    free(arrays);
}

static bool arrays_add_slab(ops_arrays *arrays)
{
    ops_slab *slab = calloc(1, sizeof *slab);
    if (!slab) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "The host has no %zu bytes for %u more arrays",
                       sizeof *slab, OPS_SLAB_NODES);
        return false;
    }
    slab->next = arrays->slabs;
    arrays->slabs = slab;
    for (uint32_t i = OPS_SLAB_NODES; i-- > 0;) {
        slab->nodes[i].next = arrays->free;
        arrays->free = &slab->nodes[i];
    }
    return true;
}

static void scope_add(ops_scope *scope, ops_array *node)
{
    node->in_scope = 1;
    node->previous = scope->head.previous;
    node->next = &scope->head;
    node->previous->next = node;
    scope->head.previous = node;
}

/* Frees a node without references and uses, and operands that only it used. It keeps a list instead
 * of recursing, because chains of nodes may be long. */
static void node_free(ops_array *node)
{
    ops_arrays *arrays = node->owner;
    ops_array *waiting = node;
    node->next = NULL;
    while (waiting) {
        ops_array *freed = waiting;
        waiting = freed->next;
        if (freed->state == OPS_NODE_DEFERRED) {
            arrays->statistics.deferred--;
            arrays->statistics.dropped +=
                !freed->was_computed && freed->operation != OPS_OPERATION_VIEW;
        }
        ops_array *const *operands = ops_node_operands(freed);
        for (uint32_t i = 0; i < freed->operand_count; i++) {
            ops_array *operand = operands[i];
            if (--operand->uses == 0 && operand->references == 0) {
                operand->next = waiting;
                waiting = operand;
            }
        }
        node_free_owned(freed);
        if (freed->view.buffer) {
            hal_buffer_release(freed->view.buffer);
        }
        freed->state = OPS_NODE_FREE;
        freed->next = arrays->free;
        arrays->free = freed;
        arrays->statistics.arrays--;
    }
}

void ops_node_remove_use(ops_array *node)
{
    node->uses--;
    if (node->uses == 0 && node->references == 0) {
        node_free(node);
    }
}

ops_arrays *ops_arrays_make(ops_context *context, const char *function)
{
    if (!context) {
        ops_invalid("%s: context: expected a context, got null", function);
        return NULL;
    }
    if (context->extension) {
        return ops_arrays_of(context);
    }
    ops_arrays *arrays = calloc(1, sizeof *arrays);
    ops_plan_cache *plan_cache = ops_plan_cache_create();
    if (!arrays || !plan_cache) {
        free(arrays);
        ops_plan_cache_destroy(plan_cache);
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                       "%s: the host has no %zu bytes for the arrays of a context", function,
                       sizeof *arrays);
        return NULL;
    }
    arrays->extension.destroy = arrays_destroy;
    arrays->context = context;
    arrays->plan_cache = plan_cache;
    arrays->losses = hal_queue_get_loss_count(context->queue);
    arrays->losses_found = *arrays->losses;
    arrays->fusion = !hal_profile_is_unfused();
    atomic_init(&arrays->thread, ops_current_thread());
    atomic_init(&arrays->remote_list, NULL);
    const uint32_t most = context->info->max_bindings - 1;
    arrays->max_leaves = most < OPS_CLUSTER_LEAVES ? most : OPS_CLUSTER_LEAVES;
    context->extension = &arrays->extension;
    return arrays;
}

hal_status ops_arrays_cancel_recording(ops_arrays *arrays)
{
    hal_graph *dropped = NULL;
    hal_status status = hal_graph_end(arrays->context->queue, NULL, 0, &dropped);
    hal_graph_destroy(dropped);
    return status;
}

hal_status ops_arrays_open_scope(ops_arrays *arrays)
{
    ops_scope *scope = arrays->spare_scopes;
    if (scope) {
        arrays->spare_scopes = scope->outer;
    } else if (!(scope = malloc(sizeof *scope))) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_scope_begin: the host has no %zu bytes for a scope",
                              sizeof *scope);
    }
    scope->head.previous = scope->head.next = &scope->head;
    scope->outer = arrays->scope;
    arrays->scope = scope;
    return HAL_OK;
}

void ops_arrays_close_scope(ops_arrays *arrays)
{
    ops_scope *scope = arrays->scope;
    ops_arrays_drain(arrays);
    while (scope->head.next != &scope->head) {
        ops_array *node = scope->head.next;
        ops_node_leave_scope(node);
        node->references--;
        if (node->references == 0 && node->uses == 0) {
            node_free(node);
        }
    }
    arrays->scope = scope->outer;
    scope->outer = arrays->spare_scopes;
    arrays->spare_scopes = scope;
}

bool ops_arrays_scope_has(const ops_arrays *arrays, const ops_array *node)
{
    const ops_array *head = &arrays->scope->head, *at = head->previous;
    while (node->in_scope && at != head && at != node) {
        at = at->previous; /* the newest first: it is most often the one */
    }
    return node->in_scope && at == node;
}

void ops_arrays_close_scope_with(ops_arrays *arrays, ops_array *const *results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (results[i]) {
            ops_node_leave_scope(results[i]);
        }
    }
    ops_arrays_close_scope(arrays);
    for (uint32_t i = 0; i < count && arrays->scope; i++) {
        if (results[i]) {
            scope_add(arrays->scope, results[i]);
        }
    }
}

ops_array *ops_node_create(ops_arrays *arrays)
{
    ops_arrays_drain(arrays);
    if (!arrays->free && !arrays_add_slab(arrays)) {
        return NULL;
    }
    ops_array *node = arrays->free;
    arrays->free = node->next;
    node->owner = arrays;
    node->references = 1;
    node->uses = 0;
    node->state = OPS_NODE_MEMORY;
    node->operation = OPS_OPERATION_NONE;
    node->function = 0;
    node->operand_count = 0;
    node->axis = 0;
    node->in_scope = 0;
    node->needs_memory = 0;
    node->was_computed = 0;
    node->in_host_memory = 0;
    node->depth = 0;
    node->is_reordered = 0;
    node->same_shape = 0;
    node->counts_once = 1;
    node->is_fusible = 0;
    node->shares_buffer = 0;
    node->join_marks = 0;
    node->cluster_operations = 0;
    node->cluster_leaves = 1;
    node->recording = arrays->is_recording ? arrays->recording : 0;
    node->site = ops_sites_now(&arrays->sites);
    node->number = 0;
    node->view.buffer = NULL;
    if (arrays->scope) {
        scope_add(arrays->scope, node);
    }
    arrays->statistics.arrays++;
    return node;
}

void ops_node_release(ops_array *node)
{
    if (!ops_node_is_held(node)) {
        ops_node_leave_scope(node);
    }
    node->references--;
    if (node->references == 0 && node->uses == 0) {
        node_free(node);
    }
}

void ops_node_release_remotely(ops_array *node)
{
    ops_arrays *arrays = node->owner;
    if (atomic_fetch_add_explicit(&node->remote_releases, 1, memory_order_acq_rel) > 0) {
        return; /* is in the list */
    }
    ops_array *first = atomic_load_explicit(&arrays->remote_list, memory_order_relaxed);
    do {
        node->remote_next = first;
    } while (!atomic_compare_exchange_weak_explicit(&arrays->remote_list, &first, node,
                                                    memory_order_release, memory_order_relaxed));
}

void ops_arrays_drain_list(ops_arrays *arrays)
{
    ops_array *node = atomic_exchange_explicit(&arrays->remote_list, NULL, memory_order_acquire);
    while (node) {
        /* From the exchange on, another thread may put the node into the list again. */
        ops_array *next = node->remote_next;
        uint32_t count = atomic_exchange_explicit(&node->remote_releases, 0, memory_order_acq_rel);
        while (count-- > 0 && node->references > 0) {
            ops_node_release(node);
        }
        node = next;
    }
}

void ops_node_leave_scope(ops_array *node)
{
    node->in_scope = 0;
    node->previous->next = node->next;
    node->next->previous = node->previous;
}

hal_status ops_node_make_list(ops_array *node, uint32_t count)
{
    node->operand_list = malloc(count * sizeof(ops_array *));
    return node->operand_list
               ? HAL_OK
               : hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                                "The host has no %zu bytes for the operands of an array",
                                count * sizeof(ops_array *));
}

hal_status ops_node_replace_operands(ops_array *node, ops_array *const *operands, uint32_t count)
{
    ops_array *before[OPS_INLINE_OPERANDS];
    const uint32_t count_before = node->operand_count;
    memcpy(before, node->operands, sizeof before);
    const hal_status status = ops_node_set_operands(node, operands, count);
    if (status != HAL_OK) {
        memcpy(node->operands, before, sizeof before);
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        operands[i]->needs_memory = 1;
    }
    for (uint32_t i = 0; i < count_before; i++) {
        ops_node_remove_use(before[i]);
    }
    return HAL_OK;
}

/* Tells tools where a value is; others than those in row-major order have an order of their own in
 * each run. */
static void node_tell_value(const ops_array *node)
{
    const ops_tensor *view = &node->view;
    const uint64_t size = hal_type_size(view->type);
    int64_t count = 1;
    bool is_dense = node->number > 0 && !ops_node_is_view(node);
    for (uint32_t i = view->rank; i-- > 0;) {
        is_dense &= view->shape[i] == 1 || view->stride[i] == count;
        count *= view->shape[i];
    }
    if (is_dense && count > 0) {
        const hal_range range = {view->buffer, (uint64_t)view->offset * size,
                                 (uint64_t)count * size};
        hal_profile_value(node->owner->context->queue, &range, view->type, node->number,
                          ops_node_operation_name(node));
    }
}

void ops_node_set_result(ops_array *node, hal_buffer *buffer)
{
    hal_buffer_release(node->view.buffer); /* of a placed node */
    node->view.buffer = buffer;
    node->batch = ops_arrays_batch(node->owner);
    node->state = OPS_NODE_MEMORY;
    if (hal_profile_is_on()) {
        node_tell_value(node);
    }
    node->owner->statistics.deferred--;
    node->cluster_operations = 0;
    node->cluster_leaves = 1;
    node->depth = 0;
    ops_array *const *operands = ops_node_operands(node);
    uint32_t count = node->operand_count;
    node->operand_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        ops_node_remove_use(operands[i]);
    }
    if (count > OPS_INLINE_OPERANDS) {
        free(node->operand_list);
    }
    node->base = node->view.offset;
    node_free_form(node);
}

void ops_node_empty(ops_array *node, ops_node_state state)
{
    hal_buffer *buffer = node->view.buffer;
    node->view.buffer = NULL;
    hal_buffer_release(buffer);
    if (node->state == OPS_NODE_DEFERRED) {
        node->owner->statistics.dropped +=
            !node->was_computed && node->operation != OPS_OPERATION_VIEW;
        node->was_computed = 1;
        node->uses++; /* keeps it alive while its operands go */
        ops_node_set_result(node, NULL);
        node->uses--;
    }
    node->state = (uint8_t)state;
}

bool ops_node_is_missing(ops_array *node)
{
    if (!ops_node_is_view(node)) {
        return node->state == OPS_NODE_DEFERRED;
    }
    const ops_array *source = ops_view_source(node);
    if (source->state == OPS_NODE_DEFERRED) {
        return true;
    }
    const uint64_t batch = source->batch;
    const int64_t base = source->base;
    node->in_host_memory = source->in_host_memory;
    node->view.offset += base;
    ops_node_set_result(node, hal_buffer_retain(source->view.buffer)); /* may end the source */
    node->batch = batch;
    node->base = base;
    return false;
}

void ops_node_set_view(ops_array *node, const ops_tensor *view)
{
    node->view = *view;
    node->is_reordered = (uint8_t)ops_is_reordered(view);
}

uint32_t ops_node_form_bytes(const ops_array *node)
{
    if (ops_node_is_grouped(node)) {
        const ops_grouped_form *groups = node->form;
        return (uint32_t)(sizeof *groups + (size_t)groups->count * sizeof *groups->offsets);
    }
    return node->operation == OPS_OPERATION_UNFOLD              ? sizeof(ops_unfold_places)
           : node->operation == OPS_OPERATION_DEPTHWISE         ? sizeof(ops_depthwise_options)
           : node->operation == OPS_OPERATION_DEPTHWISE_WEIGHTS ? sizeof(ops_depthwise_weights_form)
           : node->operation == OPS_OPERATION_CONVOLUTION       ? sizeof(ops_gemm_windows_form)
           : node->operation == OPS_OPERATION_DIRECT            ? sizeof(ops_direct_form)
           : node->operation == OPS_OPERATION_POOL || node->operation == OPS_OPERATION_POOL_GRADIENT
               ? sizeof(ops_pool_form)
           : node->operation == OPS_OPERATION_RESIZE ? sizeof(ops_resize_form)
           : node->operation == OPS_OPERATION_UPDATE ? sizeof(ops_tensor)
                                                     : sizeof(ops_quantised_form);
}

bool ops_node_update_covers(const ops_array *node)
{
    const ops_tensor *target = ops_node_update_target(node);
    return target->offset == 0 && ops_same_shape(target, &node->view) &&
           ops_same_strides(target, &node->view);
}

const char *ops_node_operation_name(const ops_array *node)
{
    static const char *const names[] = {
        [OPS_OPERATION_NONE] = "data",
        [OPS_OPERATION_WHERE] = "where",
        [OPS_OPERATION_COMPLEX] = "complex",
        [OPS_OPERATION_CAST] = "cast",
        [OPS_OPERATION_REDUCE] = "reduce",
        [OPS_OPERATION_SOFTMAX] = "softmax",
        [OPS_OPERATION_LOG_SOFTMAX] = "log_softmax",
        [OPS_OPERATION_MATMUL] = "matmul",
        [OPS_OPERATION_GATHER] = "gather",
        [OPS_OPERATION_TAKE] = "take_along_axis",
        [OPS_OPERATION_SCATTER] = "scatter",
        [OPS_OPERATION_SCAN] = "scan",
        [OPS_OPERATION_ORDER] = "argsort",
        [OPS_OPERATION_CONCATENATE] = "concatenate",
        [OPS_OPERATION_ONE_HOT] = "one_hot",
        [OPS_OPERATION_ATTENTION] = "attention",
        [OPS_OPERATION_UNFOLD] = "unfold",
        [OPS_OPERATION_DEPTHWISE] = "depthwise",
        [OPS_OPERATION_DEPTHWISE_WEIGHTS] = "depthwise_weights",
        [OPS_OPERATION_CONVOLUTION] = "convolution",
        [OPS_OPERATION_DIRECT] = "convolution",
        [OPS_OPERATION_POOL] = "pool",
        [OPS_OPERATION_POOL_GRADIENT] = "pool_gradient",
        [OPS_OPERATION_RESIZE] = "resize",
        [OPS_OPERATION_DEQUANTISE] = "dequantise",
        [OPS_OPERATION_UPDATE] = "update",
        [OPS_OPERATION_VIEW] = "view",
        [OPS_OPERATION_CONSTANT] = "full",
        [OPS_OPERATION_PREPARED] = "prepare",
    };
    switch (node->operation) {
    case OPS_OPERATION_UNARY:
        return ops_unary_name((ops_unary_function)node->function);
    case OPS_OPERATION_BINARY:
        return ops_binary_name((ops_binary_function)node->function);
    default:
        return names[node->operation];
    }
}
