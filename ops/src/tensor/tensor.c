/* Tensors: creating, reading and writing them, and their views. */
#include "context.h"

#include "allocation.h"

#include <ops/index.h>

#include <stdlib.h>
#include <string.h>

static void describe_contiguous(ops_tensor *tensor, hal_type type, uint32_t rank,
                                const int64_t *shape)
{
    *tensor = (ops_tensor){NULL, type, rank, 0, {0}, {0}};
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        tensor->shape[i] = shape[i];
        tensor->stride[i] = stride;
        stride *= shape[i] ? shape[i] : 1;
    }
}

static hal_status check_bytes(const char *function, const ops_tensor *tensor, const void *elements,
                              uint64_t bytes)
{
    char text[OPS_TEXT_BYTES];
    uint64_t needed = (uint64_t)ops_tensor_get_element_count(tensor) * hal_type_size(tensor->type);
    if (bytes != needed) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: bytes is %llu, but the elements of %s take %llu", function,
                              (unsigned long long)bytes, ops_describe(tensor, text),
                              (unsigned long long)needed);
    }
    if (!elements && bytes) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: elements is null", function);
    }
    return HAL_OK;
}

/* Reads a tensor that is not contiguous through a temporary copy. */
static hal_status read_gathered(ops_context *context, const ops_tensor *tensor, void *elements,
                                uint64_t bytes)
{
    ops_tensor copy;
    hal_status status =
        ops_tensor_create(context, tensor->type, tensor->rank, tensor->shape, &copy);
    if (status) {
        return status;
    }
    status = ops_copy(context, tensor, &copy);
    if (!status) {
        status = hal_queue_read(context->queue, copy.buffer, 0, bytes, elements);
    }
    ops_tensor_release(&copy);
    return status;
}

static hal_status check_view(const char *function, const ops_tensor *tensor, const void *view)
{
    if (!tensor || !view) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s is null", function,
                              tensor ? "view" : "tensor");
    }
    if (tensor->rank > OPS_MAX_RANK) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: tensor's rank %u is above 8",
                              function, tensor->rank);
    }
    int64_t first, end, count;
    if (!ops_extent(tensor, &first, &end, &count)) {
        char text[OPS_TEXT_BYTES];
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: tensor, %s at offset %lld, has negative lengths or reaches "
                              "further than 63 bits can count",
                              function, ops_describe(tensor, text), (long long)tensor->offset);
    }
    return HAL_OK;
}

hal_status ops_tensor_create(ops_context *context, hal_type type, uint32_t rank,
                             const int64_t *shape, ops_tensor *tensor)
{
    if (!context || !tensor) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_tensor_create: %s is null",
                              context ? "tensor" : "context");
    }
    uint64_t bytes;
    hal_status status = ops_check_shape("ops_tensor_create", type, rank, shape, &bytes);
    if (status) {
        return status;
    }
    status = ops_check_storage(context, "ops_tensor_create", "tensor", type);
    if (status) {
        return status;
    }
    ops_tensor made;
    describe_contiguous(&made, type, rank, shape);
    /* A tensor without elements still has a buffer, so that it is a tensor of its device. */
    status = ops_buffer_create(context, bytes ? bytes : 4, &made.buffer);
    if (!status) {
        *tensor = made;
    }
    return status;
}

hal_status ops_tensor_from_host(ops_context *context, hal_type type, uint32_t rank,
                                const int64_t *shape, const void *elements, ops_tensor *tensor)
{
    hal_status status = ops_tensor_create(context, type, rank, shape, tensor);
    if (status) {
        return status;
    }
    uint64_t bytes = (uint64_t)ops_tensor_get_element_count(tensor) * hal_type_size(type);
    status = ops_tensor_write(context, tensor, elements, bytes);
    if (status) {
        ops_tensor_release(tensor);
    }
    return status;
}

void ops_tensor_release(ops_tensor *tensor)
{
    if (tensor) {
        hal_buffer_release(tensor->buffer);
        memset(tensor, 0, sizeof *tensor);
    }
}

hal_status ops_tensor_write(ops_context *context, const ops_tensor *tensor, const void *elements,
                            uint64_t bytes)
{
    hal_status status = ops_check_tensor(context, "ops_tensor_write", "tensor", tensor);
    if (!status) {
        status = check_bytes("ops_tensor_write", tensor, elements, bytes);
    }
    if (status || bytes == 0) {
        return status;
    }
    if (!ops_tensor_is_contiguous(tensor)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_tensor_write: the tensor is not contiguous; write a contiguous "
                              "one and copy it with ops_copy");
    }
    uint64_t offset = (uint64_t)tensor->offset * hal_type_size(tensor->type);
    return hal_queue_write(context->queue, tensor->buffer, offset, elements, bytes);
}

hal_status ops_tensor_read(ops_context *context, const ops_tensor *tensor, void *elements,
                           uint64_t bytes)
{
    hal_status status = ops_check_tensor(context, "ops_tensor_read", "tensor", tensor);
    if (!status) {
        status = check_bytes("ops_tensor_read", tensor, elements, bytes);
    }
    if (status || bytes == 0) {
        return status;
    }
    if (!ops_tensor_is_contiguous(tensor)) {
        return read_gathered(context, tensor, elements, bytes);
    }
    uint64_t offset = (uint64_t)tensor->offset * hal_type_size(tensor->type);
    return hal_queue_read(context->queue, tensor->buffer, offset, bytes, elements);
}

int64_t ops_tensor_get_element_count(const ops_tensor *tensor)
{
    if (!tensor) {
        return 0;
    }
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank && i < OPS_MAX_RANK; i++) {
        if (tensor->shape[i] == 0) {
            return 0;
        }
        if (__builtin_mul_overflow(count, tensor->shape[i], &count)) {
            count = INT64_MAX;
        }
    }
    return count;
}

int ops_tensor_is_contiguous(const ops_tensor *tensor)
{
    if (!tensor || tensor->rank > OPS_MAX_RANK) {
        return 0;
    }
    int64_t stride = 1;
    for (uint32_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] == 0) {
            return 1;
        }
        if (tensor->shape[i] != 1 && tensor->stride[i] != stride) {
            return 0;
        }
        if (__builtin_mul_overflow(stride, tensor->shape[i], &stride)) {
            return 0;
        }
    }
    return 1;
}

hal_status ops_tensor_slice(const ops_tensor *tensor, uint32_t axis, int64_t start, int64_t count,
                            int64_t step, ops_tensor *view)
{
    hal_status status = check_view("ops_tensor_slice", tensor, view);
    if (status) {
        return status;
    }
    char text[OPS_TEXT_BYTES];
    int64_t length = axis < tensor->rank ? tensor->shape[axis] : -1;
    int64_t reach = 0, last = start;
    int fits = length >= 0 && count >= 0 && start >= 0;
    if (fits && count > 0) {
        fits = !__builtin_mul_overflow(count - 1, step, &reach) &&
               !__builtin_add_overflow(start, reach, &last) && start < length && last >= 0 &&
               last < length;
    } else if (fits) {
        fits = start <= length;
    }
    if (!fits) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_tensor_slice: axis %u, start %lld, count %lld, step %lld do not "
                              "fit %s",
                              axis, (long long)start, (long long)count, (long long)step,
                              ops_describe(tensor, text));
    }
    ops_tensor made = *tensor;
    made.offset += count ? start * tensor->stride[axis] : 0;
    made.shape[axis] = count;
    made.stride[axis] = count > 1 ? tensor->stride[axis] * step : tensor->stride[axis];
    uint64_t bytes; /* steps of 0 make any number of elements */
    status = ops_check_shape("ops_tensor_slice", made.type, made.rank, made.shape, &bytes);
    if (!status) {
        *view = made;
    }
    return status;
}

hal_status ops_tensor_permute(const ops_tensor *tensor, const uint32_t *axes, ops_tensor *view)
{
    hal_status status = check_view("ops_tensor_permute", tensor, view);
    if (status) {
        return status;
    }
    char text[OPS_TEXT_BYTES];
    ops_tensor made = *tensor;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!axes || axes[i] >= tensor->rank || (seen >> axes[i] & 1)) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_tensor_permute: axes is not an order of the %u axes of %s "
                                  "(place %u)",
                                  tensor->rank, ops_describe(tensor, text), i);
        }
        seen |= 1u << axes[i];
        made.shape[i] = tensor->shape[axes[i]];
        made.stride[i] = tensor->stride[axes[i]];
    }
    *view = made;
    return HAL_OK;
}

hal_status ops_tensor_transpose(const ops_tensor *tensor, uint32_t axis1, uint32_t axis2,
                                ops_tensor *view)
{
    hal_status status = check_view("ops_tensor_transpose", tensor, view);
    if (status) {
        return status;
    }
    if (axis1 >= tensor->rank || axis2 >= tensor->rank) {
        char text[OPS_TEXT_BYTES];
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_tensor_transpose: axis1 %u or axis2 %u is beyond %s", axis1,
                              axis2, ops_describe(tensor, text));
    }
    ops_tensor made = *tensor;
    made.shape[axis1] = tensor->shape[axis2];
    made.stride[axis1] = tensor->stride[axis2];
    made.shape[axis2] = tensor->shape[axis1];
    made.stride[axis2] = tensor->stride[axis1];
    *view = made;
    return HAL_OK;
}

hal_status ops_tensor_reshape(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                              ops_tensor *view)
{
    hal_status status = check_view("ops_tensor_reshape", tensor, view);
    if (status) {
        return status;
    }
    char text[OPS_TEXT_BYTES];
    int64_t wanted[OPS_MAX_RANK], known = 1;
    uint32_t open = OPS_MAX_RANK;
    int fits = rank <= OPS_MAX_RANK && (rank == 0 || shape);
    for (uint32_t i = 0; fits && i < rank; i++) {
        wanted[i] = shape[i];
        if (shape[i] == -1 && open == OPS_MAX_RANK) {
            open = i;
        } else {
            fits = shape[i] >= 0 && !__builtin_mul_overflow(known, shape[i], &known);
        }
    }
    int64_t elements = ops_tensor_get_element_count(tensor);
    if (fits && open < OPS_MAX_RANK) {
        fits = known != 0 && elements % known == 0;
        wanted[open] = fits ? elements / known : 0;
        known = elements;
    }
    if (!fits || known != elements) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_tensor_reshape: %s does not go into the shape of rank %u, whose "
                              "known axes make %lld elements",
                              ops_describe(tensor, text), rank, (long long)known);
    }
    if (!ops_tensor_is_contiguous(tensor)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_tensor_reshape: %s is not contiguous; copy it with ops_copy "
                              "first",
                              ops_describe(tensor, text));
    }
    uint64_t bytes;
    status = ops_check_shape("ops_tensor_reshape", tensor->type, rank, wanted, &bytes);
    if (status) {
        return status; /* without elements, the other axes may be of any length */
    }
    ops_tensor made;
    describe_contiguous(&made, tensor->type, rank, wanted);
    made.buffer = tensor->buffer;
    made.offset = tensor->offset;
    *view = made;
    return HAL_OK;
}

hal_status ops_tensor_broadcast(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                                ops_tensor *view)
{
    hal_status status = check_view("ops_tensor_broadcast", tensor, view);
    uint64_t bytes;
    if (!status) {
        status = ops_check_shape("ops_tensor_broadcast", tensor->type, rank, shape, &bytes);
    }
    if (!status) {
        status = ops_check_broadcast("ops_tensor_broadcast", "tensor", tensor, rank, shape);
    }
    if (status) {
        return status;
    }
    ops_tensor made = {tensor->buffer, tensor->type, rank, tensor->offset, {0}, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        made.shape[i] = shape[i];
    }
    ops_broadcast_strides(tensor, rank, shape, made.stride);
    *view = made;
    return HAL_OK;
}

/* Lengths of 0 count as 1: strides do not overflow either. */
hal_status ops_check_shape(const char *function, hal_type type, uint32_t rank, const int64_t *shape,
                           uint64_t *bytes)
{
    if (hal_type_size(type) == 0) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: type %u is none", function, type);
    }
    if (rank > OPS_MAX_RANK || (rank > 0 && !shape)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s", function,
                              shape ? "rank is above 8" : "shape is null");
    }
    int64_t count = hal_type_size(type);
    int empty = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "%s: length %lld of axis %u is negative", function,
                                  (long long)shape[i], i);
        }
        empty |= shape[i] == 0;
        if (__builtin_mul_overflow(count, shape[i] ? shape[i] : 1, &count)) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "%s: the shape has more bytes than 63 bits can count (axis %u of "
                                  "length %lld)",
                                  function, i, (long long)shape[i]);
        }
    }
    *bytes = empty ? 0 : (uint64_t)count;
    return HAL_OK;
}
