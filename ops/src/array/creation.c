/* Public calls that make arrays in memory: from the host, from tensors, constants, random numbers,
 * sequences. */
#include "lost.h"

#include <ops/index.h>

typedef hal_status (*random_fill)(ops_context *context, ops_random_key key, double first,
                                  double second, const ops_tensor *y);

/* The arrays of a context. Losses are found before the call makes an array, which they do not
 * concern; constants whose batch was dropped are forgotten. */
static ops_arrays *arrays_make_checked(ops_context *context, const char *function)
{
    ops_arrays *arrays = ops_arrays_make(context, function);
    if (arrays) {
        ops_arrays_note_losses(arrays);
    }
    return arrays;
}

/* An array in the memory of a tensor. Takes the caller's reference to the buffer in any case. */
static ops_array *array_take_tensor(ops_context *context, const char *function,
                                    const ops_tensor *tensor)
{
    ops_arrays *arrays = arrays_make_checked(context, function);
    ops_array *node = arrays ? ops_node_create(arrays) : NULL;
    if (!node) {
        hal_buffer_release(tensor->buffer);
        return NULL;
    }
    ops_node_set_view(node, tensor);
    node->batch = ops_arrays_batch(arrays);
    return node;
}

static ops_array *array_of_random(const char *function, random_fill fill, ops_context *context,
                                  hal_type type, uint32_t rank, const int64_t *shape,
                                  ops_random_key key, double first, double second)
{
    ops_tensor tensor;
    if (ops_tensor_create(context, type, rank, shape, &tensor)) {
        return NULL;
    }
    if (fill(context, key, first, second, &tensor)) {
        ops_tensor_release(&tensor);
        return NULL;
    }
    return array_take_tensor(context, function, &tensor);
}

/* A constant of any shape, all of whose elements are one in memory. */
static ops_array *array_of_constant(const char *function, ops_context *context, hal_type type,
                                    uint32_t rank, const int64_t *shape, double value)
{
    ops_tensor one = {.type = type}, all;
    ops_arrays *arrays = arrays_make_checked(context, function);
    uint64_t batch;
    if (!arrays || ops_constants_get(&arrays->constants, context, type, &value,
                                     !arrays->is_recording, &one.buffer, &batch)) {
        return NULL;
    }
    if (ops_tensor_broadcast(&one, rank, shape, &all)) {
        hal_buffer_release(one.buffer);
        return NULL;
    }
    ops_array *node = array_take_tensor(context, function, &all);
    if (node) {
        node->batch = batch;
        node->operation = OPS_OPERATION_CONSTANT;
        node->value = value;
    }
    return node;
}

/* A constant of rank 0 without copies of tensors: many operations have a scalar. */
static ops_array *array_of_scalar(const char *function, ops_context *context, hal_type type,
                                  double value)
{
    ops_arrays *arrays = arrays_make_checked(context, function);
    hal_buffer *buffer;
    uint64_t batch;
    if (!arrays || ops_constants_get(&arrays->constants, context, type, &value,
                                     !arrays->is_recording, &buffer, &batch)) {
        return NULL;
    }
    ops_array *node = ops_node_create(arrays);
    if (!node) {
        hal_buffer_release(buffer);
        return NULL;
    }
    ops_node_set_shape(node, type, 0, NULL);
    node->view.buffer = buffer;
    node->batch = batch;
    node->operation = OPS_OPERATION_CONSTANT;
    node->value = value;
    return node;
}

ops_array *ops_array_from_host(ops_context *context, hal_type type, uint32_t rank,
                               const int64_t *shape, const void *elements)
{
    ops_tensor tensor;
    hal_status status = ops_tensor_from_host(context, type, rank, shape, elements, &tensor);
    if (status != HAL_OK) {
        if (context && context->extension) {
            ops_arrays_failed(ops_arrays_of(context), status);
        }
        return NULL;
    }
    return array_take_tensor(context, "ops_array_from_host", &tensor);
}

ops_array *ops_array_from_tensor(ops_context *context, const ops_tensor *tensor)
{
    if (ops_check_tensor(context, "ops_array_from_tensor", "tensor", tensor)) {
        return NULL;
    }
    hal_buffer_retain(tensor->buffer);
    return array_take_tensor(context, "ops_array_from_tensor", tensor);
}

ops_array *ops_array_full(ops_context *context, hal_type type, uint32_t rank, const int64_t *shape,
                          double value)
{
    const char *function = "ops_array_full";
    return rank == 0 ? array_of_scalar(function, context, type, value)
                     : array_of_constant(function, context, type, rank, shape, value);
}

ops_array *ops_array_full_of(ops_context *context, hal_type type, uint32_t rank,
                             const int64_t *shape, const void *element)
{
    ops_array *one = ops_array_from_host(context, type, 0, NULL, element);
    ops_array *node = one ? ops_array_broadcast(one, rank, shape) : NULL;
    ops_array_release(one);
    return node;
}

ops_array *ops_array_scalar(ops_context *context, hal_type type, double value)
{
    return array_of_scalar("ops_array_scalar", context, type, value);
}

ops_array *ops_array_uniform(ops_context *context, hal_type type, uint32_t rank,
                             const int64_t *shape, ops_random_key key, double low, double high)
{
    return array_of_random("ops_array_uniform", ops_random_uniform, context, type, rank, shape, key,
                           low, high);
}

ops_array *ops_array_normal(ops_context *context, hal_type type, uint32_t rank,
                            const int64_t *shape, ops_random_key key, double mean, double deviation)
{
    return array_of_random("ops_array_normal", ops_random_normal, context, type, rank, shape, key,
                           mean, deviation);
}

ops_array *ops_array_iota(ops_context *context, hal_type type, int64_t count, double start,
                          double step)
{
    ops_tensor tensor;
    ops_arrays *arrays = arrays_make_checked(context, "ops_array_iota");
    uint64_t batch;
    if (!arrays) {
        return NULL;
    }
    if (count > 0 && count <= OPS_CONSTANT_SEQUENCE_MAX && !arrays->is_recording) {
        ops_array *kept = NULL;
        if (!ops_constants_get_sequence(&arrays->constants, context, type, count, start, step,
                                        &tensor, &batch)) {
            kept = array_take_tensor(context, "ops_array_iota", &tensor);
        }
        if (kept) {
            kept->batch = batch;
            kept->shares_buffer = 1; /* who takes it gets a copy */
        }
        return kept;
    }
    if (ops_tensor_create(context, type, 1, &count, &tensor)) {
        return NULL;
    }
    if (ops_iota(context, start, step, &tensor)) {
        ops_tensor_release(&tensor);
        return NULL;
    }
    return array_take_tensor(context, "ops_array_iota", &tensor);
}
