/* Public calls on the memory of an array: an update of a part of it, who holds it, taking it. */
#include "deferred.h"
#include "execute.h"
#include "horizontal.h"
#include "tensor/overlap.h"
#include "view_map.h"

#include <string.h>

static hal_status check_target(const ops_array *x, const ops_tensor *view, const ops_array *value)
{
    static const char function[] = "ops_array_update";
    char text[2][OPS_TEXT_BYTES];
    int64_t first, end, count;
    if (!view) {
        return ops_invalid("%s: view: expected a tensor, got null", function);
    }
    if (view->type != x->view.type || value->view.type != x->view.type) {
        return ops_invalid("%s: view and value: expected %s, the type of x, got %s and %s",
                           function, hal_type_name(x->view.type), ops_describe(view, text[0]),
                           ops_describe(&value->view, text[1]));
    }
    if (view->rank > OPS_MAX_RANK || !ops_extent(view, &first, &end, &count) || first < 0 ||
        end > ops_tensor_get_element_count(&x->view)) {
        return ops_invalid("%s: view: expected a view of the elements of x, %s, got one beyond "
                           "them; make views of ops_array_describe(x)",
                           function, ops_describe(&x->view, text[0]));
    }
    if (ops_elements_overlap(view)) {
        return ops_invalid("%s: view: expected elements that do not overlap, got %s with strides "
                           "that repeat some",
                           function, ops_describe(view, text[0]));
    }
    return ops_check_broadcast(function, "value", &value->view, view->rank, view->shape);
}

hal_status ops_array_describe(const ops_array *array, ops_tensor *tensor)
{
    if (!array || !tensor) {
        return ops_invalid("ops_array_describe: %s: expected a pointer, got null",
                           array ? "tensor" : "array");
    }
    *tensor = ops_row_major(&array->view);
    tensor->buffer = NULL;
    return HAL_OK;
}

/* As ops_check_operands; a lost array may be replaced as a whole. */
static bool check_operands(ops_array *x, const ops_tensor *view, ops_array *value)
{
    static const char function[] = "ops_array_update";
    ops_array *const operands[2] = {x, value};
    const ops_arrays *owner = ops_check_operands(function, &value, 1);
    if (owner && x && view && x->owner == owner && x->state == OPS_NODE_LOST) {
        const ops_tensor all = ops_row_major(&x->view);
        if (view->offset == 0 && ops_same_shape(view, &all) && ops_same_strides(view, &all)) {
            return true;
        }
    }
    return ops_check_operands(function, operands, 2) != NULL;
}

ops_array *ops_array_update(ops_array *x, const ops_tensor *view, ops_array *value)
{
    static const char function[] = "ops_array_update";
    ops_array *const operands[2] = {x, value};
    ops_result result;
    ops_tensor base, target;
    if (!check_operands(x, view, value) || check_target(x, view, value) ||
        ops_array_describe(x, &base)) {
        return NULL;
    }
    /* In the order of x, so that it can be written in place, if the view has strides there. */
    ops_tensor like = x->view;
    like.offset = 0;
    if (!ops_is_dense(&like) || !ops_view_map(&base, view, &like, &target)) {
        like = base;
        target = *view;
    }
    ops_result_like(x, &result);
    result.like = &like;
    result.form = &target;
    result.form_bytes = sizeof target;
    target.buffer = NULL;
    return ops_defer(function, OPS_OPERATION_UPDATE, 0, operands, 2, &result);
}

int ops_array_is_sole_holder(const ops_array *array)
{
    return array && array->state == OPS_NODE_MEMORY && array->references == 1 && array->uses == 0 &&
           array->operation != OPS_OPERATION_CONSTANT &&
           array->operation != OPS_OPERATION_PREPARED && !hal_buffer_is_shared(array->view.buffer);
}

hal_status ops_array_take_buffer(ops_array *array, ops_tensor *tensor)
{
    HAL_TRY(ops_array_get_tensor(array, tensor));
    if (array->references == 1 && array->uses == 0 && array->shares_buffer) {
        HAL_TRY(ops_node_unshare_buffer(array));
        HAL_TRY(ops_array_get_tensor(array, tensor));
    }
    if (!ops_array_is_sole_holder(array)) {
        memset(tensor, 0, sizeof *tensor);
        return hal_status_set(HAL_ERROR_INVALID_STATE,
                              "ops_array_take_buffer: array: expected the only holder of its "
                              "memory, got one with other references, uses or views; release them "
                              "or use ops_array_copy");
    }
    hal_buffer_retain(tensor->buffer);
    ops_node_release(array);
    return HAL_OK;
}
