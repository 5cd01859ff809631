/* Tensors: creating them, and their views. */
#include "context.h"

#include "allocation.h"

#include <stdio.h>
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

static hal_status check_view(const char *function, const ops_tensor *tensor, const void *view)
{
    if (!tensor || !view) {
        return ops_invalid("%s: %s: expected a pointer, got null", function,
                           tensor ? "view" : "tensor");
    }
    if (tensor->rank > OPS_MAX_RANK) {
        return ops_invalid("%s: tensor: expected a rank of at most 8, got %u", function,
                           tensor->rank);
    }
    int64_t first, end, count;
    if (!ops_extent(tensor, &first, &end, &count)) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("%s: tensor: expected lengths of at least 0 and a reach that 63 bits "
                           "count, got %s at offset %lld",
                           function, ops_describe(tensor, text), (long long)tensor->offset);
    }
    return HAL_OK;
}

hal_status ops_tensor_create(ops_context *context, hal_type type, uint32_t rank,
                             const int64_t *shape, ops_tensor *tensor)
{
    if (!context || !tensor) {
        return ops_invalid("ops_tensor_create: %s: expected a pointer, got null",
                           context ? "tensor" : "context");
    }
    uint64_t bytes;
    HAL_TRY(ops_check_shape("ops_tensor_create", type, rank, shape, &bytes));
    if (type != HAL_TYPE_F64) { /* which any device holds as words, for HAL_GEMM_EXACT */
        HAL_TRY(ops_check_storage(context, "ops_tensor_create", "tensor", type));
    }
    ops_tensor made;
    describe_contiguous(&made, type, rank, shape);
    /* A tensor without elements still has a buffer, so that it is a tensor of its device. */
    hal_status status = ops_buffer_create(context, bytes ? bytes : 4, &made.buffer);
    if (status == HAL_OK) {
        *tensor = made;
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

hal_status ops_tensor_slice(const ops_tensor *tensor, int32_t given_axis, int64_t start,
                            int64_t count, int64_t step, ops_tensor *view)
{
    HAL_TRY(check_view("ops_tensor_slice", tensor, view));
    uint32_t axis;
    HAL_TRY(ops_check_axis("ops_tensor_slice", "axis", tensor, given_axis, &axis));
    char text[OPS_TEXT_BYTES];
    const int64_t length = tensor->shape[axis];
    int64_t reach = 0, last = start;
    bool fits = count >= 0 && start >= 0;
    if (fits && count > 0) {
        fits = !__builtin_mul_overflow(count - 1, step, &reach) &&
               !__builtin_add_overflow(start, reach, &last) && start < length && last >= 0 &&
               last < length;
    } else if (fits) {
        fits = start <= length;
    }
    if (!fits) {
        return ops_invalid("ops_tensor_slice: start, count, step: expected elements of axis %u of "
                           "%s, got start %lld, count %lld, step %lld",
                           axis, ops_describe(tensor, text), (long long)start, (long long)count,
                           (long long)step);
    }
    ops_tensor made = *tensor;
    made.offset += count ? start * tensor->stride[axis] : 0;
    made.shape[axis] = count;
    made.stride[axis] = count > 1 ? tensor->stride[axis] * step : tensor->stride[axis];
    uint64_t bytes; /* steps of 0 make any number of elements */
    hal_status status =
        ops_check_shape("ops_tensor_slice", made.type, made.rank, made.shape, &bytes);
    if (status == HAL_OK) {
        *view = made;
    }
    return status;
}

hal_status ops_tensor_permute(const ops_tensor *tensor, const int32_t *axes, ops_tensor *view)
{
    HAL_TRY(check_view("ops_tensor_permute", tensor, view));
    if (!axes && tensor->rank > 0) {
        return ops_invalid("ops_tensor_permute: axes: expected a pointer, got null");
    }
    char text[OPS_TEXT_BYTES];
    ops_tensor made = *tensor;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint32_t axis;
        char name[24];
        snprintf(name, sizeof name, "axes[%u]", i);
        HAL_TRY(ops_check_axis("ops_tensor_permute", name, tensor, axes[i], &axis));
        if (seen >> axis & 1) {
            return ops_invalid(
                "ops_tensor_permute: %s: expected each axis of %s once, got %d again", name,
                ops_describe(tensor, text), (int)axes[i]);
        }
        seen |= 1u << axis;
        made.shape[i] = tensor->shape[axis];
        made.stride[i] = tensor->stride[axis];
    }
    *view = made;
    return HAL_OK;
}

hal_status ops_tensor_transpose(const ops_tensor *tensor, int32_t axis1, int32_t axis2,
                                ops_tensor *view)
{
    HAL_TRY(check_view("ops_tensor_transpose", tensor, view));
    uint32_t one, other;
    hal_status status = ops_check_axis("ops_tensor_transpose", "axis1", tensor, axis1, &one);
    if (status == HAL_OK) {
        status = ops_check_axis("ops_tensor_transpose", "axis2", tensor, axis2, &other);
    }
    if (status != HAL_OK) {
        return status;
    }
    ops_tensor made = *tensor;
    made.shape[one] = tensor->shape[other];
    made.stride[one] = tensor->stride[other];
    made.shape[other] = tensor->shape[one];
    made.stride[other] = tensor->stride[one];
    *view = made;
    return HAL_OK;
}

hal_status ops_tensor_reshape(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                              ops_tensor *view)
{
    HAL_TRY(check_view("ops_tensor_reshape", tensor, view));
    char text[OPS_TEXT_BYTES];
    int64_t wanted[OPS_MAX_RANK], known = 1;
    uint32_t open = OPS_MAX_RANK;
    bool fits = rank <= OPS_MAX_RANK && (rank == 0 || shape);
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
    } else {
        fits = fits && known == elements;
    }
    if (!fits) {
        return ops_invalid("ops_tensor_reshape: shape: expected as many elements as %s has, got "
                           "rank %u with %lld in its known axes",
                           ops_describe(tensor, text), rank, (long long)known);
    }
    if (!ops_tensor_is_contiguous(tensor)) {
        return ops_invalid("ops_tensor_reshape: tensor: expected a contiguous one, got %s with "
                           "other strides; copy it with ops_copy first",
                           ops_describe(tensor, text));
    }
    uint64_t bytes;
    hal_status status = ops_check_shape("ops_tensor_reshape", tensor->type, rank, wanted, &bytes);
    if (status != HAL_OK) {
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
    if (status == HAL_OK) {
        status = ops_check_shape("ops_tensor_broadcast", tensor->type, rank, shape, &bytes);
    }
    if (status == HAL_OK) {
        status = ops_check_broadcast("ops_tensor_broadcast", "tensor", tensor, rank, shape);
    }
    if (status != HAL_OK) {
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

hal_status ops_tensor_windows(const ops_tensor *tensor, int32_t given_axis, int64_t size,
                              int64_t step, int64_t dilation, ops_tensor *view)
{
    HAL_TRY(check_view("ops_tensor_windows", tensor, view));
    uint32_t axis;
    HAL_TRY(ops_check_axis("ops_tensor_windows", "axis", tensor, given_axis, &axis));
    char text[OPS_TEXT_BYTES];
    const int64_t length = tensor->shape[axis];
    int64_t reach;
    if (tensor->rank == OPS_MAX_RANK || size < 1 || step < 1 || dilation < 1 ||
        __builtin_mul_overflow(size - 1, dilation, &reach) || reach >= length) {
        return ops_invalid("ops_tensor_windows: size, step, dilation: expected windows within axis "
                           "%u of %s, of rank below %u, got %lld, %lld and %lld",
                           axis, ops_describe(tensor, text), OPS_MAX_RANK, (long long)size,
                           (long long)step, (long long)dilation);
    }
    ops_tensor made = *tensor;
    made.shape[axis] = (length - 1 - reach) / step + 1;
    made.stride[axis] = made.shape[axis] > 1 ? tensor->stride[axis] * step : tensor->stride[axis];
    made.shape[made.rank] = size;
    made.stride[made.rank] = size > 1 ? tensor->stride[axis] * dilation : tensor->stride[axis];
    made.rank++;
    uint64_t bytes;
    HAL_TRY(ops_check_shape("ops_tensor_windows", made.type, made.rank, made.shape, &bytes));
    *view = made;
    return HAL_OK;
}

hal_status ops_tensor_diagonal(const ops_tensor *tensor, int32_t axis1, int32_t axis2,
                               int64_t offset, ops_tensor *view)
{
    HAL_TRY(check_view("ops_tensor_diagonal", tensor, view));
    uint32_t one, other;
    HAL_TRY(ops_check_axis("ops_tensor_diagonal", "axis1", tensor, axis1, &one));
    HAL_TRY(ops_check_axis("ops_tensor_diagonal", "axis2", tensor, axis2, &other));
    char text[OPS_TEXT_BYTES];
    if (one == other) {
        return ops_invalid("ops_tensor_diagonal: axis2: expected another axis of %s than %u, the "
                           "same was given twice",
                           ops_describe(tensor, text), one);
    }
    const int64_t rows = tensor->shape[one], columns = tensor->shape[other];
    const bool is_inside = offset > -rows && offset < columns;
    const int64_t row = is_inside && offset < 0 ? -offset : 0;
    const int64_t column = is_inside && offset > 0 ? offset : 0;
    const int64_t down = rows - row, across = columns - column;
    ops_tensor made = {tensor->buffer, tensor->type, 0, tensor->offset, {0}, {0}};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (i != one && i != other) {
            made.shape[made.rank] = tensor->shape[i];
            made.stride[made.rank++] = tensor->stride[i];
        }
    }
    made.offset += row * tensor->stride[one] + column * tensor->stride[other];
    made.shape[made.rank] = is_inside ? (down < across ? down : across) : 0;
    made.stride[made.rank++] = tensor->stride[one] + tensor->stride[other];
    *view = made;
    return HAL_OK;
}

/* Lengths of 0 count as 1: strides do not overflow either. */
hal_status ops_check_shape(const char *function, hal_type type, uint32_t rank, const int64_t *shape,
                           uint64_t *bytes)
{
    if (hal_type_size(type) == 0) {
        return ops_invalid("%s: type: expected a hal_type, got %u", function, type);
    }
    if (rank > OPS_MAX_RANK) {
        return ops_invalid("%s: rank: expected at most %u, got %u", function, OPS_MAX_RANK, rank);
    }
    if (rank > 0 && !shape) {
        return ops_invalid("%s: shape: expected a pointer, got null", function);
    }
    int64_t count = hal_type_size(type);
    int empty = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) {
            return ops_invalid("%s: shape[%u]: expected at least 0, got %lld", function, i,
                               (long long)shape[i]);
        }
        empty |= shape[i] == 0;
        if (__builtin_mul_overflow(count, shape[i] ? shape[i] : 1, &count)) {
            return ops_invalid(
                "%s: shape: expected bytes that 63 bits count, got more (axis %u of length %lld)",
                function, i, (long long)shape[i]);
        }
    }
    *bytes = empty ? 0 : (uint64_t)count;
    return HAL_OK;
}
