/* Shapes, strides and spans of tensors, see shape.h. */
#include "shape.h"

#include <stdio.h>
#include <stdlib.h>

const char *ops_describe(const ops_tensor *tensor, char text[OPS_TEXT_BYTES])
{
    const char *name = hal_type_name(tensor->type);
    int used = snprintf(text, OPS_TEXT_BYTES, "%s[", name ? name : "?");
    for (uint32_t i = 0; i < tensor->rank && i < OPS_MAX_RANK && used < (int)OPS_TEXT_BYTES - 24;
         i++) {
        used += snprintf(text + used, OPS_TEXT_BYTES - (size_t)used, i ? ", %lld" : "%lld",
                         (long long)tensor->shape[i]);
    }
    snprintf(text + used, OPS_TEXT_BYTES - (size_t)used, "]");
    return text;
}

hal_status ops_check_axis(const char *function, const char *argument, const ops_tensor *tensor,
                          int32_t axis, uint32_t *checked)
{
    const int64_t rank = tensor->rank, from_start = axis < 0 ? axis + rank : axis;
    char text[OPS_TEXT_BYTES];
    if (from_start >= 0 && from_start < rank) {
        *checked = (uint32_t)from_start;
        return HAL_OK;
    }
    if (rank == 0) {
        return ops_invalid("%s: %s: expected an operand with axes, got %d for the scalar %s",
                           function, argument, (int)axis, ops_describe(tensor, text));
    }
    return ops_invalid("%s: %s: expected %d to %d for %s, got %d", function, argument, (int)-rank,
                       (int)rank - 1, ops_describe(tensor, text), (int)axis);
}

void ops_broadcast_strides(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                           int64_t *strides)
{
    uint32_t missing = rank - tensor->rank;
    for (uint32_t i = 0; i < rank; i++) {
        int stretched = i < missing || (tensor->shape[i - missing] == 1 && shape[i] != 1);
        strides[i] = stretched ? 0 : tensor->stride[i - missing];
    }
}

bool ops_same_shape(const ops_tensor *x, const ops_tensor *y)
{
    if (x->rank != y->rank) {
        return false;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->shape[i] != y->shape[i]) {
            return false;
        }
    }
    return true;
}

ops_tensor ops_row_major(const ops_tensor *tensor)
{
    ops_tensor made = *tensor;
    int64_t stride = 1;
    made.offset = 0;
    for (uint32_t i = made.rank; i-- > 0;) {
        made.stride[i] = stride;
        stride *= made.shape[i] ? made.shape[i] : 1;
    }
    return made;
}

bool ops_is_reordered(const ops_tensor *tensor)
{
    int64_t least = INT64_MAX; /* of the axes before */
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const int64_t stride = tensor->shape[i] > 1 ? llabs(tensor->stride[i]) : 0;
        if (stride > least) {
            return true;
        }
        least = stride ? stride : least;
    }
    return false;
}

bool ops_same_strides(const ops_tensor *x, const ops_tensor *y)
{
    bool same = true;
    for (uint32_t i = 0; same && i < x->rank; i++) {
        same = x->shape[i] == 1 || x->stride[i] == y->stride[i];
    }
    return same;
}

bool ops_is_dense(const ops_tensor *tensor)
{
    uint32_t placed = 0; /* one bit per axis */
    int64_t stride = 1;
    if (ops_tensor_get_element_count(tensor) == 0) {
        return true;
    }
    for (uint32_t k = 0; k < tensor->rank; k++) {
        uint32_t i = 0; /* the next axis, from the innermost one outwards */
        while (i < tensor->rank &&
               (placed >> i & 1 || (tensor->shape[i] != 1 && tensor->stride[i] != stride))) {
            i++;
        }
        if (i == tensor->rank) {
            return false;
        }
        placed |= 1u << i;
        stride *= tensor->shape[i];
    }
    return true;
}

void ops_span(const ops_tensor *tensor, int64_t *first, int64_t *end)
{
    int64_t low = tensor->offset, high = tensor->offset;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t reach = (tensor->shape[i] - 1) * tensor->stride[i];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    *first = low;
    *end = high + 1;
}

bool ops_extent(const ops_tensor *tensor, int64_t *first, int64_t *end, int64_t *count)
{
    int64_t low = tensor->offset, high = tensor->offset;
    int empty = 0;
    *count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const int64_t length = tensor->shape[i] ? tensor->shape[i] : 1;
        int64_t reach;
        empty |= tensor->shape[i] == 0;
        if (length < 0 || __builtin_mul_overflow(*count, length, count) ||
            __builtin_mul_overflow(length - 1, tensor->stride[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return false;
        }
    }
    *first = empty ? 0 : low;
    return !__builtin_add_overflow(empty ? -1 : high, 1, end);
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
