/* Checks of tensors, called by every family before it records. */
#include "context.h"
#include "overlap.h"

#include <stdio.h>

hal_status ops_check_size(const char *function, const char *argument, uint32_t size,
                          uint32_t expected)
{
    return size == expected
               ? HAL_OK
               : hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                "%s: %s.size: expected %u, got %u; begin with the structure's "
                                "_DEFAULT initialiser",
                                function, argument, expected, size);
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
    if (!status && !ops_tensor_is_contiguous(tensor) && ops_elements_overlap(tensor)) {
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
    const uint32_t claimed = context->info->storage_types, bit = HAL_TYPE_BIT(type);
    if ((claimed & bit) || (hal_types_storable(claimed) & bit)) {
        return HAL_OK;
    }
    return hal_status_set(HAL_ERROR_UNSUPPORTED, "%s: %s is of %s, which %s cannot store", function,
                          argument, hal_type_name(type), context->info->name);
}
