/* Attributes and operands of a call. */
#include "call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const onnx_attribute *onnx_find(const onnx_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->node->attribute_count; i++) {
        if (strcmp(call->node->attributes[i].name, name) == 0) {
            return &call->node->attributes[i];
        }
    }
    return NULL;
}

int64_t onnx_integer(const onnx_call *call, const char *name, int64_t otherwise)
{
    const onnx_attribute *found = onnx_find(call, name);
    return found ? found->integer : otherwise;
}

double onnx_number(const onnx_call *call, const char *name, double otherwise)
{
    const onnx_attribute *found = onnx_find(call, name);
    return found ? found->number : otherwise;
}

const char *onnx_text(const onnx_call *call, const char *name, const char *otherwise)
{
    const onnx_attribute *found = onnx_find(call, name);
    return found && found->text ? found->text : otherwise;
}

int32_t onnx_integers(const onnx_call *call, const char *name, int64_t *values, int32_t most)
{
    const onnx_attribute *found = onnx_find(call, name);
    if (!found) {
        return -1;
    }
    const int32_t count = (int32_t)found->count < most ? (int32_t)found->count : most;
    memcpy(values, found->numbers, (size_t)count * 8);
    return count;
}

int32_t onnx_host_integers(onnx_call *call, ops_array *x, int64_t *values, int32_t most)
{
    const int64_t count = ops_array_get_element_count(x);
    const hal_type type = ops_array_get_type(x);
    if (!x || count > most || (type != HAL_TYPE_I64 && type != HAL_TYPE_I32)) {
        onnx_skip(call, "%lld numbers of %s read by the host", (long long)count,
                  hal_type_name(type));
        return -1;
    }
    if (count == 0) {
        return 0;
    }
    ops_array *wide = type == HAL_TYPE_I64 ? x : ops_array_cast(HAL_TYPE_I64, x);
    return ops_array_read(wide, (uint64_t)count * 8, values) ? -1 : (int32_t)count;
}

double onnx_host_number(onnx_call *call, ops_array *x, double otherwise)
{
    if (!x || ops_array_get_element_count(x) != 1) {
        return otherwise;
    }
    float value = 0;
    if (ops_array_read(ops_array_cast(HAL_TYPE_F32, x), sizeof value, &value)) {
        onnx_skip(call, "a number that the host could not read");
    }
    return (double)value;
}

void onnx_skip(onnx_call *call, const char *format, ...)
{
    va_list arguments;
    if (!*call->skipped) {
        va_start(arguments, format);
        vsnprintf(call->skipped, sizeof call->skipped, format, arguments);
        va_end(arguments);
    }
}

ops_array *onnx_vector(const onnx_call *call, const int64_t *values, int64_t count)
{
    return ops_array_from_host(call->context, HAL_TYPE_I64, 1, &count, values);
}

int32_t onnx_axis(const ops_array *x, int64_t axis)
{
    return (int32_t)(axis < 0 ? axis + (int64_t)ops_array_get_rank(x) : axis);
}

uint32_t onnx_shape(const ops_array *x, int64_t shape[ONNX_MAX_RANK])
{
    const uint32_t rank = ops_array_get_rank(x);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = ops_array_get_length(x, (int32_t)i);
    }
    return rank;
}

ops_array *onnx_rank(ops_array *x, uint32_t rank)
{
    int64_t shape[ONNX_MAX_RANK], longer[ONNX_MAX_RANK];
    const uint32_t old = onnx_shape(x, shape);
    for (uint32_t i = 0; i < rank && rank >= old; i++) {
        longer[i] = i < rank - old ? 1 : shape[i - (rank - old)];
    }
    return rank > old ? ops_array_reshape(x, rank, longer) : x;
}

hal_type onnx_wide(const ops_array *x)
{
    const hal_type type = ops_array_get_type(x);
    return hal_type_is_float(type) && type != HAL_TYPE_F64 ? (hal_type)HAL_TYPE_F32 : type;
}
