/* Public calls on single arrays and contexts: lifetime and scopes, properties, values, views,
 * settings. Calls of operations are in operation.c and movement.c, those that make
 * arrays in creation.c. */
#include "deferred.h"
#include "execute.h"
#include "fusion_cluster.h"

#include <hal/profile.h>
#include <stdio.h>
#include <string.h>

static hal_status check_array(const char *function, ops_array *array)
{
    if (!array) {
        return ops_report_null_array(function, "array");
    }
    return ops_check_operands(function, &array, 1) ? HAL_OK : HAL_ERROR_INVALID_STATE;
}

/* A view of memory has its own reference to the buffer; one of a deferred node is deferred too. */
static ops_array *array_make_view(ops_array *x, const ops_tensor *view)
{
    ops_array *node = ops_node_create(x->owner);
    if (!node) {
        return NULL;
    }
    ops_node_set_view(node, view);
    node->view.buffer = hal_buffer_retain(x->view.buffer);
    node->batch = x->batch;
    node->in_host_memory = x->in_host_memory;
    node->operation =
        x->operation == OPS_OPERATION_CONSTANT ? OPS_OPERATION_CONSTANT : OPS_OPERATION_NONE;
    if (x->state == OPS_NODE_DEFERRED) {
        const bool is_view = x->operation == OPS_OPERATION_VIEW;
        ops_array *of = is_view && x->function == OPS_VIEW_CHAIN ? ops_view_source(x) : x;
        node->state = OPS_NODE_DEFERRED;
        node->operation = OPS_OPERATION_VIEW;
        node->function = ops_node_is_view(of) ? (uint8_t)(of->function + 1) : 0;
        node->depth = of->depth;
        ops_node_set_operands(node, &of, 1); /* one operand takes no memory */
        node->is_fusible = x->owner->fusion && ops_cluster_view_is_fusible(node);
        x->owner->statistics.deferred++;
    }
    return node;
}

ops_array *ops_array_keep(ops_array *array)
{
    if (array && array->in_scope) {
        ops_node_leave_scope(array);
    }
    return array;
}

ops_array *ops_array_retain(ops_array *array)
{
    if (array) {
        array->references++;
    }
    return array;
}

void ops_array_release(ops_array *array)
{
    if (!array) {
        return;
    }
    if (atomic_load_explicit(&array->owner->thread, memory_order_relaxed) != ops_current_thread()) {
        ops_node_release_remotely(array);
    } else if (array->references > 0) {
        ops_node_release(array);
    }
}

hal_status ops_context_set_thread(ops_context *context)
{
    if (!context) {
        return ops_invalid("ops_context_set_thread: context: expected a context, got null");
    }
    ops_arrays *arrays = ops_arrays_of(context);
    if (arrays) {
        atomic_store_explicit(&arrays->thread, ops_current_thread(), memory_order_relaxed);
        ops_arrays_drain(arrays);
    }
    return HAL_OK;
}

hal_status ops_scope_begin(ops_context *context)
{
    ops_arrays *arrays = ops_arrays_make(context, "ops_scope_begin");
    if (!arrays) {
        return context ? HAL_ERROR_OUT_OF_MEMORY : HAL_ERROR_INVALID_ARGUMENT;
    }
    return ops_arrays_open_scope(arrays);
}

hal_status ops_scope_end(ops_context *context)
{
    if (!context) {
        return ops_invalid("ops_scope_end: context: expected a context, got null");
    }
    ops_arrays *arrays = ops_arrays_of(context);
    if (!arrays || !arrays->scope) {
        return hal_status_set(HAL_ERROR_INVALID_STATE,
                              "ops_scope_end: context: expected an open scope, got none; call "
                              "ops_scope_begin first");
    }
    ops_arrays_close_scope(arrays);
    return HAL_OK;
}

ops_context *ops_array_get_context(const ops_array *array)
{
    return array ? array->owner->context : NULL;
}

hal_type ops_array_get_type(const ops_array *array)
{
    return array ? array->view.type : HAL_TYPE_NONE;
}

uint32_t ops_array_get_rank(const ops_array *array)
{
    return array ? array->view.rank : 0;
}

int64_t ops_array_get_length(const ops_array *array, int32_t axis)
{
    const int64_t rank = array ? array->view.rank : 0, from_start = axis < 0 ? axis + rank : axis;
    return from_start >= 0 && from_start < rank ? array->view.shape[from_start] : -1;
}

int64_t ops_array_get_element_count(const ops_array *array)
{
    return array ? ops_tensor_get_element_count(&array->view) : 0;
}

static hal_status arrays_record(const char *function, ops_array *const *arrays, uint32_t count,
                                bool submits)
{
    if (count && !arrays) {
        return ops_invalid("%s: arrays: expected an array of arrays, got null", function);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i]) {
            char argument[24];
            snprintf(argument, sizeof argument, "arrays[%u]", i);
            return ops_report_null_array(function, argument);
        }
    }
    if (count == 0) {
        return HAL_OK;
    }
    ops_arrays *owner = ops_check_operands(function, arrays, count);
    if (!owner) {
        return HAL_ERROR_INVALID_STATE;
    }
    hal_status status = ops_execute(arrays, count);
    if (status == HAL_OK && submits && !owner->is_recording) {
        status = hal_queue_flush(owner->context->queue, NULL);
    }
    return status != HAL_OK ? ops_arrays_failed(owner, status) : HAL_OK;
}

hal_status ops_array_evaluate(ops_array *const *arrays, uint32_t count)
{
    return arrays_record("ops_array_evaluate", arrays, count, true);
}

hal_status ops_array_record(ops_array *const *arrays, uint32_t count)
{
    return arrays_record("ops_array_record", arrays, count, false);
}

/* Reads an array that is not row-major by a copy that is. The array itself is computed first: it
 * may be used again. */
static hal_status array_read_copy(ops_array *array, uint64_t bytes, void *elements)
{
    hal_status status = ops_execute(&array, 1);
    ops_array *copy = status != HAL_OK ? NULL : ops_array_copy(array);
    if (status == HAL_OK) {
        status = copy ? ops_execute_for_host(copy) : HAL_ERROR_OUT_OF_MEMORY;
    }
    if (status == HAL_OK) {
        status = ops_tensor_read(array->owner->context, &copy->view, bytes, elements);
    }
    ops_array_release(copy);
    return status;
}

static hal_status array_read(ops_array *array, uint64_t bytes, void *elements)
{
    if (!ops_tensor_is_contiguous(&array->view)) {
        return array_read_copy(array, bytes, elements);
    }
    if (array->state == OPS_NODE_DEFERRED) {
        HAL_TRY(ops_execute_for_host(array));
    }
    return ops_tensor_read(array->owner->context, &array->view, bytes, elements);
}

hal_status ops_array_read(ops_array *array, uint64_t bytes, void *elements)
{
    HAL_TRY(check_array("ops_array_read", array));
    if (array->owner->is_recording) {
        return hal_status_set(HAL_ERROR_INVALID_STATE,
                              "ops_array_read: array: expected no graph to be recorded, got a "
                              "recording; call ops_graph_end first");
    }
    const hal_status status = array_read(array, bytes, elements);
    if (status != HAL_OK) {
        return ops_arrays_failed(array->owner, status);
    }
    ops_arrays_note_losses(array->owner); /* a batch may fail while it is waited for */
    return array->state == OPS_NODE_LOST ? check_array("ops_array_read", array) : HAL_OK;
}

hal_status ops_array_get_tensor(ops_array *array, ops_tensor *tensor)
{
    if (!tensor) {
        return ops_invalid("ops_array_get_tensor: tensor: expected memory for a tensor, got null");
    }
    hal_status status = check_array("ops_array_get_tensor", array);
    if (status == HAL_OK && array->state == OPS_NODE_DEFERRED) {
        status = ops_execute(&array, 1);
    }
    if (status == HAL_OK) {
        *tensor = array->view;
    }
    return status;
}

ops_array *ops_array_slice(ops_array *x, int32_t axis, int64_t start, int64_t count, int64_t step)
{
    ops_tensor view;
    uint32_t along;
    return ops_check_operands("ops_array_slice", &x, 1) &&
                   !ops_check_axis("ops_array_slice", "axis", &x->view, axis, &along) &&
                   !ops_tensor_slice(&x->view, along, start, count, step, &view)
               ? array_make_view(x, &view)
               : NULL;
}

ops_array *ops_array_permute(ops_array *x, const int32_t *axes)
{
    ops_tensor view;
    return ops_check_operands("ops_array_permute", &x, 1) &&
                   !ops_tensor_permute(&x->view, axes, &view)
               ? array_make_view(x, &view)
               : NULL;
}

ops_array *ops_array_transpose(ops_array *x, int32_t axis1, int32_t axis2)
{
    ops_tensor view;
    uint32_t one, other;
    return ops_check_operands("ops_array_transpose", &x, 1) &&
                   !ops_check_axis("ops_array_transpose", "axis1", &x->view, axis1, &one) &&
                   !ops_check_axis("ops_array_transpose", "axis2", &x->view, axis2, &other) &&
                   !ops_tensor_transpose(&x->view, one, other, &view)
               ? array_make_view(x, &view)
               : NULL;
}

ops_array *ops_array_broadcast(ops_array *x, uint32_t rank, const int64_t *shape)
{
    ops_tensor view;
    return ops_check_operands("ops_array_broadcast", &x, 1) &&
                   !ops_tensor_broadcast(&x->view, rank, shape, &view)
               ? array_make_view(x, &view)
               : NULL;
}

ops_array *ops_array_windows(ops_array *x, int32_t axis, int64_t size, int64_t step,
                             int64_t dilation)
{
    ops_tensor view;
    return ops_check_operands("ops_array_windows", &x, 1) &&
                   !ops_tensor_windows(&x->view, axis, size, step, dilation, &view)
               ? array_make_view(x, &view)
               : NULL;
}

ops_array *ops_array_diagonal(ops_array *x, int32_t axis1, int32_t axis2, int64_t offset)
{
    ops_tensor view;
    return ops_check_operands("ops_array_diagonal", &x, 1) &&
                   !ops_tensor_diagonal(&x->view, axis1, axis2, offset, &view)
               ? array_make_view(x, &view)
               : NULL;
}

ops_array *ops_array_reshape(ops_array *x, uint32_t rank, const int64_t *shape)
{
    ops_tensor view;
    if (!ops_check_operands("ops_array_reshape", &x, 1)) {
        return NULL;
    }
    ops_array *copy = ops_tensor_is_contiguous(&x->view) ? NULL : ops_array_copy(x);
    ops_array *from = ops_tensor_is_contiguous(&x->view) ? x : copy;
    ops_array *node = from && !ops_tensor_reshape(&from->view, rank, shape, &view)
                          ? array_make_view(from, &view)
                          : NULL;
    ops_array_release(copy);
    return node;
}

void ops_context_set_fusion(ops_context *context, int fusion)
{
    ops_arrays *arrays = ops_arrays_make(context, "ops_context_set_fusion");
    if (arrays) {
        arrays->fusion = fusion != 0;
    }
}

void ops_context_set_site(ops_context *context, const char *file, uint32_t line)
{
    ops_arrays *arrays =
        hal_profile_is_on() ? ops_arrays_make(context, "ops_context_set_site") : NULL;
    if (arrays) {
        arrays->sites.now = ops_sites_number(&arrays->sites, (ops_site){file, line});
    }
}

void ops_context_set_site_function(ops_context *context, ops_site_function function, void *user)
{
    ops_arrays *arrays =
        hal_profile_is_on() ? ops_arrays_make(context, "ops_context_set_site_function") : NULL;
    if (arrays) {
        arrays->sites.function = function;
        arrays->sites.user = user;
    }
}

hal_status ops_context_get_statistics(const ops_context *context, ops_array_statistics *statistics)
{
    if (!context || !statistics) {
        return ops_invalid("ops_context_get_statistics: %s: expected a pointer, got null",
                           context ? "statistics" : "context");
    }
    const uint32_t size = statistics->size;
    if (size < sizeof size) {
        return ops_invalid("ops_context_get_statistics: statistics->size: expected "
                           "sizeof(ops_array_statistics), got %u",
                           size);
    }
    ops_array_statistics copy = {0};
    const ops_arrays *arrays = ops_arrays_of(context);
    if (arrays) {
        copy = arrays->statistics;
    }
    copy.made = context->kernels.insertions - context->kernels.natives;
    copy.native = context->kernels.natives;
    copy.size = size;
    memcpy(statistics, &copy, size < sizeof copy ? size : sizeof copy);
    return HAL_OK;
}
