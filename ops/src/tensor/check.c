/* Checks of tensors, called by every family before it records. */
#include "context.h"
#include "overlap.h"

#include <stdio.h>

hal_status ops_check_size(const char *function, const char *argument, uint32_t size,
                          uint32_t expected)
{
    return size == expected ? HAL_OK
                            : ops_invalid("%s: %s.size: expected %u, got %u; begin with the "
                                          "structure's _DEFAULT initialiser",
                                          function, argument, expected, size);
}

hal_status ops_check_tensor(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor)
{
    char text[OPS_TEXT_BYTES];
    if (!context || !tensor || !tensor->buffer) {
        return ops_invalid("%s: %s: expected %s, got %s", function, context ? argument : "context",
                           !context ? "a context" : "a tensor with a buffer",
                           context && tensor ? "one without" : "null");
    }
    if (tensor->rank > OPS_MAX_RANK || hal_type_size(tensor->type) == 0) {
        return ops_invalid("%s: %s: expected a rank of at most %u and a hal_type, got %u and %u",
                           function, argument, OPS_MAX_RANK, tensor->rank, tensor->type);
    }
    int64_t first = 0, end = 0, count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0) {
            return ops_invalid("%s: %s: expected lengths of at least 0, got %s", function, argument,
                               ops_describe(tensor, text));
        }
    }
    /* Sizes are powers of two: a shift, as a division takes longer than all else here. */
    uint64_t bytes = hal_buffer_get_bytes(tensor->buffer);
    uint64_t elements = bytes >> __builtin_ctz(hal_type_size(tensor->type));
    if (!ops_extent(tensor, &first, &end, &count) || first < 0 || (uint64_t)end > elements ||
        (first < end && count > INT64_MAX / 16)) { /* room to round up, and to count bytes */
        return ops_invalid("%s: %s: expected elements within the buffer of %llu bytes, got %s at "
                           "offset %lld",
                           function, argument, (unsigned long long)bytes,
                           ops_describe(tensor, text), (long long)tensor->offset);
    }
    if (hal_buffer_get_device(tensor->buffer) != context->device) {
        return ops_invalid(
            "%s: %s: expected a buffer of the context's device, got %s on another one", function,
            argument, ops_describe(tensor, text));
    }
    return HAL_OK;
}

hal_status ops_check_output(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor)
{
    hal_status status = ops_check_tensor(context, function, argument, tensor);
    if (status == HAL_OK && !ops_tensor_is_contiguous(tensor) && ops_elements_overlap(tensor)) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("%s: %s: expected distinct addresses for all elements of an output, got "
                           "strides of %s that repeat some",
                           function, argument, ops_describe(tensor, text));
    }
    return status;
}

hal_status ops_check_broadcast(const char *function, const char *argument, const ops_tensor *tensor,
                               uint32_t rank, const int64_t *shape)
{
    bool fits = tensor->rank <= rank;
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
    return ops_invalid("%s: %s: expected a shape that broadcasts to %s, got %s", function, argument,
                       ops_describe(&target, target_text), ops_describe(tensor, text));
}

hal_status ops_check_storage(const ops_context *context, const char *function, const char *argument,
                             hal_type type)
{
    const uint32_t claimed = context->info->storage_types, bit = HAL_TYPE_BIT(type);
    if ((claimed & bit) || (hal_types_storable(claimed) & bit)) {
        return HAL_OK;
    }
    return hal_status_set(HAL_ERROR_UNSUPPORTED,
                          "%s: %s: expected a type that %s can store, got %s", function, argument,
                          context->info->name, hal_type_name(type));
}
