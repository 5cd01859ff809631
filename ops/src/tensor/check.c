/* Checks of tensors and comparisons of views, called by every family before it records. */
#include "context.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether two elements may share memory: false when each axis, ordered by stride, steps over all
 * that the finer ones span. */
static int elements_overlap(const ops_tensor *tensor)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0) {
            return 0;
        }
        left |= tensor->shape[i] > 1 ? 1u << i : 0;
    }
    int64_t span = 1;
    while (left) {
        uint32_t finest = (uint32_t)__builtin_ctz(left);
        for (uint32_t i = finest + 1; i < tensor->rank; i++) {
            if ((left >> i & 1) && llabs(tensor->stride[i]) < llabs(tensor->stride[finest])) {
                finest = i;
            }
        }
        if (llabs(tensor->stride[finest]) < span) {
            return 1;
        }
        span += (tensor->shape[finest] - 1) * llabs(tensor->stride[finest]);
        left &= ~(1u << finest);
    }
    return 0;
}

/* Whether coordinates of x, less those of y, along order[at] and finer axes can make up a distance.
 * The finer axes reach less than a stride, so only the two nearest multiples come into question. */
static int meet_from(const ops_tensor *x, const ops_tensor *y, const uint32_t *order, uint32_t at,
                     int64_t distance)
{
    if (at == x->rank) {
        return distance == 0;
    }
    uint32_t axis = order[at];
    int64_t stride = x->stride[axis];
    int64_t below = distance / stride - (distance % stride < 0);
    for (int64_t steps = below; steps <= below + 1; steps++) {
        if (steps > -y->shape[axis] && steps < x->shape[axis] &&
            meet_from(x, y, order, at + 1, distance - steps * stride)) {
            return 1;
        }
    }
    return 0;
}

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

hal_status ops_check_tensor(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor)
{
    char text[OPS_TEXT_BYTES];
    if (!context || !tensor || !tensor->buffer) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s%s", function,
                              context ? argument : "context",
                              context && tensor ? " has no buffer" : " is null");
    }
    if (tensor->rank > OPS_MAX_RANK || hal_type_size(tensor->type) == 0) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: %s has rank %u and type %u; at most %u and a type of ir.h are "
                              "meant",
                              function, argument, tensor->rank, tensor->type, OPS_MAX_RANK);
    }
    int64_t first = 0, end = 0, count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s has a negative length: %s",
                                  function, argument, ops_describe(tensor, text));
        }
    }
    /* Sizes are powers of two: a shift, as a division takes longer than all else here. */
    uint64_t bytes = hal_buffer_get_bytes(tensor->buffer);
    uint64_t elements = bytes >> __builtin_ctz(hal_type_size(tensor->type));
    if (!ops_extent(tensor, &first, &end, &count) || first < 0 || (uint64_t)end > elements ||
        (first < end && count > INT64_MAX / 16)) { /* room to round up, and to count bytes */
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: %s, %s at offset %lld, reaches beyond its buffer of %llu bytes",
                              function, argument, ops_describe(tensor, text),
                              (long long)tensor->offset, (unsigned long long)bytes);
    }
    if (hal_buffer_get_device(tensor->buffer) != context->device) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: %s, %s, is in a buffer of another device than the context's",
                              function, argument, ops_describe(tensor, text));
    }
    return HAL_OK;
}

hal_status ops_check_output(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor)
{
    hal_status status = ops_check_tensor(context, function, argument, tensor);
    if (!status && !ops_tensor_is_contiguous(tensor) && elements_overlap(tensor)) {
        char text[OPS_TEXT_BYTES];
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: %s, %s, is written, but its strides put several elements in one "
                              "place",
                              function, argument, ops_describe(tensor, text));
    }
    return status;
}

hal_status ops_check_broadcast(const char *function, const char *argument, const ops_tensor *tensor,
                               uint32_t rank, const int64_t *shape)
{
    int fits = tensor->rank <= rank;
    for (uint32_t i = 0; fits && i < tensor->rank; i++) {
        int64_t length = tensor->shape[i];
        fits = length == 1 || length == shape[rank - tensor->rank + i];
    }
    if (fits) {
        return HAL_OK;
    }
    char text[OPS_TEXT_BYTES], target_text[OPS_TEXT_BYTES];
    ops_tensor target = {NULL, tensor->type, rank, 0, {0}, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        target.shape[i] = shape[i];
    }
    return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                          "%s: %s, %s, cannot be broadcast to the shape of %s", function, argument,
                          ops_describe(tensor, text), ops_describe(&target, target_text));
}

hal_status ops_check_storage(const ops_context *context, const char *function, const char *argument,
                             hal_type type)
{
    if (context->info->storage_types & HAL_TYPE_BIT(type)) {
        return HAL_OK;
    }
    return hal_status_set(HAL_ERROR_UNSUPPORTED, "%s: %s is of %s, which %s cannot store", function,
                          argument, hal_type_name(type), context->info->name);
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

int ops_same_shape(const ops_tensor *x, const ops_tensor *y)
{
    if (x->rank != y->rank) {
        return 0;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->shape[i] != y->shape[i]) {
            return 0;
        }
    }
    return 1;
}

int ops_same_view(const ops_tensor *x, const ops_tensor *y)
{
    if (x->buffer != y->buffer || x->type != y->type || x->offset != y->offset ||
        x->rank > y->rank) {
        return 0;
    }
    int64_t strides[OPS_MAX_RANK];
    ops_broadcast_strides(x, y->rank, y->shape, strides);
    for (uint32_t i = 0; i < y->rank; i++) {
        if (y->shape[i] > 1 && strides[i] != y->stride[i]) {
            return 0;
        }
    }
    return 1;
}

int ops_spans_meet(const ops_tensor *x, const ops_tensor *y)
{
    if (x->buffer != y->buffer || ops_tensor_get_element_count(x) == 0 ||
        ops_tensor_get_element_count(y) == 0) {
        return 0;
    }
    int64_t first[2], end[2];
    ops_span(x, &first[0], &end[0]);
    ops_span(y, &first[1], &end[1]);
    int64_t size[2] = {hal_type_size(x->type), hal_type_size(y->type)};
    return first[0] * size[0] < end[1] * size[1] && first[1] * size[1] < end[0] * size[0];
}

/* Slices of one tensor have its strides: ordered from the coarsest, with each stride above all that
 * the finer ones reach, every place has one set of coordinates, and slices meet where those do. */
int ops_overlap(const ops_tensor *x, const ops_tensor *y)
{
    if (!ops_spans_meet(x, y)) {
        return 0;
    }
    if (x->type != y->type || x->rank != y->rank) {
        return 1;
    }
    uint32_t order[OPS_MAX_RANK];
    int64_t distance = y->offset - x->offset, reach = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->stride[i] != y->stride[i] || x->stride[i] <= 0) {
            return 1;
        }
        uint32_t j = i;
        for (; j > 0 && x->stride[order[j - 1]] < x->stride[i]; j--) {
            order[j] = order[j - 1];
        }
        order[j] = i;
    }
    for (uint32_t i = x->rank; i-- > 0;) {
        uint32_t axis = order[i];
        int64_t length = x->shape[axis] > y->shape[axis] ? x->shape[axis] : y->shape[axis];
        if (x->stride[axis] <= reach) {
            return 1;
        }
        reach += (length - 1) * x->stride[axis];
    }
    return meet_from(x, y, order, 0, distance);
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

int ops_extent(const ops_tensor *tensor, int64_t *first, int64_t *end, int64_t *count)
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
            return 0;
        }
    }
    *first = empty ? 0 : low;
    return !__builtin_add_overflow(empty ? -1 : high, 1, end);
}
