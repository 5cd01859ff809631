/* Arrays: their lives, scopes, memory and views. Operations on them are in operation.c. */
#include "array.h"

#include "tensor/memo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef hal_status (*random_fill)(ops_context *context, ops_random_key key, double first,
                                  double second, const ops_tensor *y);

/* ---- Lives ---- */

static void free_slabs(struct ops_arrays *arrays)
{
    while (arrays->slabs) {
        ops_slab *slab = arrays->slabs;
        arrays->slabs = slab->next;
        for (uint32_t i = 0; i < OPS_SLAB_ARRAYS; i++) {
            if (slab->arrays[i].state != OPS_ARRAY_FREE) {
                hal_buffer_release(slab->arrays[i].view.buffer);
            }
        }
        free(slab);
    }
}

static void forget_constants(struct ops_arrays *arrays)
{
    for (uint32_t i = 0; i < OPS_CONSTANTS; i++) {
        hal_buffer_release(arrays->constants[i].buffer);
        arrays->constants[i].buffer = NULL;
    }
}

static int add_slab(struct ops_arrays *arrays)
{
    ops_slab *slab = calloc(1, sizeof *slab);
    if (!slab) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "The host has no %zu bytes for %u more arrays",
                       sizeof *slab, OPS_SLAB_ARRAYS);
        return 0;
    }
    slab->next = arrays->slabs;
    arrays->slabs = slab;
    for (uint32_t i = OPS_SLAB_ARRAYS; i-- > 0;) {
        slab->arrays[i].next = arrays->free;
        arrays->free = &slab->arrays[i];
    }
    return 1;
}

static void link_to(ops_scope *scope, ops_array *array)
{
    array->in_scope = 1;
    array->previous = scope->head.previous;
    array->next = &scope->head;
    array->previous->next = array;
    scope->head.previous = array;
}

/* Frees an array that has neither holders nor uses, and what only it has used: a list, as chains of
 * them may be long. */
static void drop(ops_array *array)
{
    struct ops_arrays *arrays = array->context->arrays;
    ops_array *waiting = array;
    array->next = NULL;
    while (waiting) {
        ops_array *gone = waiting;
        waiting = gone->next;
        if (gone->state == OPS_ARRAY_DEFERRED) {
            arrays->statistics.deferred--;
            arrays->statistics.dropped +=
                !gone->was_computed && gone->operation != OPS_OPERATION_VIEW;
        }
        for (uint32_t i = 0; i < gone->operand_count; i++) {
            ops_array *operand = gone->operands[i];
            if (--operand->uses == 0 && operand->holders == 0) {
                operand->next = waiting;
                waiting = operand;
            }
        }
        hal_buffer_release(gone->view.buffer);
        gone->state = OPS_ARRAY_FREE;
        gone->next = arrays->free;
        arrays->free = gone;
        arrays->statistics.arrays--;
    }
}

static void unlink_from_scope(ops_array *array)
{
    array->in_scope = 0;
    array->previous->next = array->next;
    array->next->previous = array->previous;
}

static hal_status check_given(const char *function, ops_array *array)
{
    if (!array) {
        return ops_array_missing("The array");
    }
    return ops_array_operands(function, &array, 1) ? HAL_OK : HAL_ERROR_INVALID_STATE;
}

/* An array of a tensor, whose reference to the buffer becomes the array's in any case. */
static ops_array *hold(ops_context *context, const ops_tensor *tensor)
{
    ops_array *array = ops_array_new(context);
    if (!array) {
        hal_buffer_release(tensor->buffer);
        return NULL;
    }
    array->view = *tensor;
    return array;
}

/* A buffer of one element with a value, and a reference to it: constants are used again and again.
 * What a graph's recording makes is filled by its launches alone, and not kept. */
static hal_status constant(ops_context *context, hal_type type, double value, hal_buffer **buffer)
{
    struct ops_arrays *arrays = ops_arrays_of(context);
    if (!arrays) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    ops_constant *kept =
        &arrays->constants[(bits * UINT64_C(0x9e3779b97f4a7c15) >> 32 ^ type) % OPS_CONSTANTS];
    if (kept->buffer && kept->type == type && memcmp(&kept->value, &value, sizeof value) == 0) {
        *buffer = hal_buffer_retain(kept->buffer);
        return HAL_OK;
    }
    ops_tensor made;
    hal_status status = ops_tensor_create(context, type, 0, NULL, &made);
    if (!status && (status = ops_fill(context, value, &made)) != HAL_OK) {
        ops_tensor_release(&made);
    }
    if (!status) {
        *buffer = made.buffer;
        if (!arrays->recording) {
            hal_buffer_release(kept->buffer);
            *kept = (ops_constant){hal_buffer_retain(made.buffer), type, value};
        }
    }
    return status;
}

static ops_array *random_array(random_fill fill, ops_context *context, hal_type type, uint32_t rank,
                               const int64_t *shape, ops_random_key key, double first,
                               double second)
{
    ops_tensor tensor;
    if (ops_tensor_create(context, type, rank, shape, &tensor)) {
        return NULL;
    }
    if (fill(context, key, first, second, &tensor)) {
        ops_tensor_release(&tensor);
        return NULL;
    }
    return hold(context, &tensor);
}

/* A view of memory has its own reference to it; one of a deferred array waits for it. */
static ops_array *view_of(ops_array *x, const ops_tensor *view)
{
    ops_array *array = ops_array_new(x->context);
    if (!array) {
        return NULL;
    }
    array->view = *view;
    array->view.buffer = hal_buffer_retain(x->view.buffer);
    array->in_host_memory = x->in_host_memory;
    array->operation =
        x->operation == OPS_OPERATION_CONSTANT ? OPS_OPERATION_CONSTANT : OPS_OPERATION_NONE;
    if (x->state == OPS_ARRAY_DEFERRED) {
        /* Offset and strides hold for the array at the root of a chain of views. */
        x = x->operation == OPS_OPERATION_VIEW ? x->operands[0] : x;
        array->state = OPS_ARRAY_DEFERRED;
        array->operation = OPS_OPERATION_VIEW;
        array->depth = x->depth;
        array->operands[0] = x;
        array->operand_count = 1;
        ops_array_use(x);
        x->context->arrays->statistics.deferred++;
    }
    return array;
}

static ops_array *reshaped_copy(ops_array *x, uint32_t rank, const int64_t *shape)
{
    ops_array *copy = ops_array_unary(OPS_IDENTITY, x);
    ops_array *view = copy ? ops_array_reshape(copy, rank, shape) : NULL;
    ops_array_release(copy);
    return view;
}

struct ops_arrays *ops_arrays_of(ops_context *context)
{
    if (!context->arrays && !(context->arrays = calloc(1, sizeof *context->arrays))) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                       "The host has no %zu bytes for the arrays of a "
                       "context",
                       sizeof *context->arrays);
    }
    return context->arrays;
}

void ops_arrays_destroy(ops_context *context)
{
    struct ops_arrays *arrays = context->arrays;
    if (!arrays) {
        return;
    }
    if (arrays->recording) {
        ops_graph_drop(context); /* the queue goes on */
    }
    free_slabs(arrays);
    forget_constants(arrays);
    ops_scope *lists[2] = {arrays->scope, arrays->spare_scopes};
    for (uint32_t i = 0; i < 2; i++) {
        while (lists[i]) {
            ops_scope *outer = lists[i]->outer;
            free(lists[i]);
            lists[i] = outer;
        }
    }
    free(arrays);
    context->arrays = NULL;
}

hal_status ops_arrays_failed(ops_context *context, hal_status status)
{
    if (context->arrays) {
        forget_constants(context->arrays);
    }
    return status;
}

ops_array *ops_array_new(ops_context *context)
{
    struct ops_arrays *arrays = ops_arrays_of(context);
    if (!arrays || (!arrays->free && !add_slab(arrays))) {
        return NULL;
    }
    ops_array *array = arrays->free;
    arrays->free = array->next;
    array->context = context;
    array->holders = 1;
    array->uses = 0;
    array->state = OPS_ARRAY_MEMORY;
    array->operation = OPS_OPERATION_NONE;
    array->operand_count = 0;
    array->in_scope = 0;
    array->needs_memory = 0;
    array->was_computed = 0;
    array->in_host_memory = 0;
    array->depth = 0;
    array->operations = 0;
    array->leaves = 1;
    array->generation = arrays->recording ? arrays->generation : 0;
    array->view.buffer = NULL;
    if (arrays->scope) {
        link_to(arrays->scope, array);
    }
    arrays->statistics.arrays++;
    return array;
}

void ops_array_settle(ops_array *array, hal_buffer *buffer)
{
    array->view.buffer = buffer;
    array->state = OPS_ARRAY_MEMORY;
    array->context->arrays->statistics.deferred--;
    array->operations = 0;
    array->leaves = 1;
    array->depth = 0;
    uint32_t count = array->operand_count;
    array->operand_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        ops_array_disuse(array->operands[i]);
    }
}

void ops_array_disuse(ops_array *array)
{
    array->uses--;
    if (array->uses == 0 && array->holders == 0) {
        drop(array);
    }
}

ops_array *ops_array_keep(ops_array *array)
{
    if (array && array->in_scope) {
        unlink_from_scope(array);
    }
    return array;
}

ops_array *ops_array_retain(ops_array *array)
{
    if (array) {
        array->holders++;
    }
    return array;
}

void ops_array_release(ops_array *array)
{
    if (!array || array->holders == 0) {
        return;
    }
    if (!ops_array_is_kept(array)) {
        unlink_from_scope(array);
    }
    array->holders--;
    if (array->holders == 0 && array->uses == 0) {
        drop(array);
    }
}

hal_status ops_scope_begin(ops_context *context)
{
    struct ops_arrays *arrays = context ? ops_arrays_of(context) : NULL;
    if (!arrays) {
        return context
                   ? HAL_ERROR_OUT_OF_MEMORY
                   : hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_scope_begin: context is null");
    }
    ops_scope *scope = arrays->spare_scopes;
    if (scope) {
        arrays->spare_scopes = scope->outer;
    } else if (!(scope = malloc(sizeof *scope))) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "ops_scope_begin: no host memory");
    }
    scope->head.previous = scope->head.next = &scope->head;
    scope->outer = arrays->scope;
    arrays->scope = scope;
    return HAL_OK;
}

hal_status ops_scope_end(ops_context *context)
{
    struct ops_arrays *arrays = context ? context->arrays : NULL;
    if (!arrays || !arrays->scope) {
        return hal_status_set(context ? HAL_ERROR_INVALID_STATE : HAL_ERROR_INVALID_ARGUMENT,
                              "ops_scope_end: %s",
                              context ? "no scope is open; call "
                                        "ops_scope_begin first"
                                      : "context is null");
    }
    ops_scope *scope = arrays->scope;
    while (scope->head.next != &scope->head) {
        ops_array *array = scope->head.next;
        unlink_from_scope(array);
        array->holders--;
        if (array->holders == 0 && array->uses == 0) {
            drop(array);
        }
    }
    arrays->scope = scope->outer;
    scope->outer = arrays->spare_scopes;
    arrays->spare_scopes = scope;
    return HAL_OK;
}

ops_context *ops_array_get_context(const ops_array *array)
{
    return array ? array->context : NULL;
}

hal_type ops_array_get_type(const ops_array *array)
{
    return array ? array->view.type : HAL_TYPE_NONE;
}

uint32_t ops_array_get_rank(const ops_array *array)
{
    return array ? array->view.rank : 0;
}

int64_t ops_array_get_length(const ops_array *array, uint32_t axis)
{
    return array && axis < array->view.rank ? array->view.shape[axis] : -1;
}

int64_t ops_array_get_element_count(const ops_array *array)
{
    return array ? ops_tensor_get_element_count(&array->view) : 0;
}

hal_status ops_array_read(ops_array *array, void *elements, uint64_t bytes)
{
    hal_status status = check_given("ops_array_read", array);
    if (!status && array->context->arrays->recording) {
        status = hal_status_set(HAL_ERROR_INVALID_STATE,
                                "ops_array_read: a graph is being recorded; end it first");
    }
    if (!status && array->state == OPS_ARRAY_DEFERRED) {
        status = ops_evaluate_to_read(array);
    }
    if (!status &&
        (status = ops_tensor_read(array->context, &array->view, elements, bytes)) != HAL_OK) {
        ops_arrays_failed(array->context, status);
    }
    return status;
}

hal_status ops_array_get_tensor(ops_array *array, ops_tensor *tensor)
{
    if (!tensor) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_array_get_tensor: tensor is null");
    }
    hal_status status = check_given("ops_array_get_tensor", array);
    if (!status && array->state == OPS_ARRAY_DEFERRED) {
        status = ops_evaluate(&array, 1);
    }
    if (!status) {
        *tensor = array->view;
    }
    return status;
}

hal_status ops_array_missing(const char *format, ...)
{
    char name[64], cause[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    snprintf(cause, sizeof cause, "%s", hal_status_message());
    return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                          "%s is null; the last call that failed said: %s", name, cause);
}

ops_context *ops_array_operands(const char *function, ops_array *const *operands, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!operands[i]) {
            return NULL;
        }
        if (operands[i]->state == OPS_ARRAY_VOID || operands[i]->state == OPS_ARRAY_FREE) {
            hal_status_set(HAL_ERROR_INVALID_STATE,
                           operands[i]->state == OPS_ARRAY_FREE
                               ? "%s: operand %u was released"
                               : "%s: operand %u was made while a graph was recorded and holds "
                                 "nothing; use what ops_graph_launch gives",
                           function, i);
            return NULL;
        }
        if (operands[i]->context != operands[0]->context) {
            hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                           "%s: operand %u is an array of another context; read it and make one of "
                           "this context",
                           function, i);
            return NULL;
        }
    }
    return operands[0]->context;
}



void ops_array_shape(ops_array *array, hal_type type, uint32_t rank, const int64_t *shape)
{
    ops_tensor *view = &array->view;
    int64_t stride = 1;
    view->type = type;
    view->rank = rank;
    view->offset = 0;
    for (uint32_t i = rank; i-- > 0;) {
        view->shape[i] = shape[i];
        view->stride[i] = stride;
        stride *= shape[i] ? shape[i] : 1;
    }
}

ops_array *ops_array_from_host(ops_context *context, hal_type type, uint32_t rank,
                               const int64_t *shape, const void *elements)
{
    ops_tensor tensor;
    hal_status status = ops_tensor_from_host(context, type, rank, shape, elements, &tensor);
    if (status) {
        if (context) {
            ops_arrays_failed(context, status);
        }
        return NULL;
    }
    return hold(context, &tensor);
}

ops_array *ops_array_from_tensor(ops_context *context, const ops_tensor *tensor)
{
    if (ops_check_tensor(context, "ops_array_from_tensor", "tensor", tensor)) {
        return NULL;
    }
    hal_buffer_retain(tensor->buffer);
    return hold(context, tensor);
}

ops_array *ops_array_full(ops_context *context, hal_type type, uint32_t rank, const int64_t *shape,
                          double value)
{
    ops_tensor one = {.type = type}, all;
    if (!context) {
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_array_full: context is null");
        return NULL;
    }
    if (constant(context, type, value, &one.buffer)) {
        return NULL;
    }
    if (ops_tensor_broadcast(&one, rank, shape, &all)) {
        hal_buffer_release(one.buffer);
        return NULL;
    }
    ops_array *array = hold(context, &all);
    if (array) {
        array->operation = OPS_OPERATION_CONSTANT;
    }
    return array;
}

ops_array *ops_array_scalar(ops_context *context, hal_type type, double value)
{
    return ops_array_full(context, type, 0, NULL, value);
}

ops_array *ops_array_uniform(ops_context *context, hal_type type, uint32_t rank,
                             const int64_t *shape, ops_random_key key, double low, double high)
{
    return random_array(ops_random_uniform, context, type, rank, shape, key, low, high);
}

ops_array *ops_array_normal(ops_context *context, hal_type type, uint32_t rank,
                            const int64_t *shape, ops_random_key key, double mean, double deviation)
{
    return random_array(ops_random_normal, context, type, rank, shape, key, mean, deviation);
}

ops_array *ops_array_slice(ops_array *x, uint32_t axis, int64_t start, int64_t count, int64_t step)
{
    ops_tensor view;
    return ops_array_operands("ops_array_slice", &x, 1) &&
                   !ops_tensor_slice(&x->view, axis, start, count, step, &view)
               ? view_of(x, &view)
               : NULL;
}

ops_array *ops_array_permute(ops_array *x, const uint32_t *axes)
{
    ops_tensor view;
    return ops_array_operands("ops_array_permute", &x, 1) &&
                   !ops_tensor_permute(&x->view, axes, &view)
               ? view_of(x, &view)
               : NULL;
}

ops_array *ops_array_transpose(ops_array *x, uint32_t axis1, uint32_t axis2)
{
    ops_tensor view;
    return ops_array_operands("ops_array_transpose", &x, 1) &&
                   !ops_tensor_transpose(&x->view, axis1, axis2, &view)
               ? view_of(x, &view)
               : NULL;
}

ops_array *ops_array_broadcast(ops_array *x, uint32_t rank, const int64_t *shape)
{
    ops_tensor view;
    return ops_array_operands("ops_array_broadcast", &x, 1) &&
                   !ops_tensor_broadcast(&x->view, rank, shape, &view)
               ? view_of(x, &view)
               : NULL;
}

ops_array *ops_array_reshape(ops_array *x, uint32_t rank, const int64_t *shape)
{
    ops_tensor view;
    if (!ops_array_operands("ops_array_reshape", &x, 1)) {
        return NULL;
    }
    if (!ops_tensor_is_contiguous(&x->view)) {
        return reshaped_copy(x, rank, shape);
    }
    return ops_tensor_reshape(&x->view, rank, shape, &view) ? NULL : view_of(x, &view);
}
