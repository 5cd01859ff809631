/* Scopes of compositions, and short calls that several families use. */
#include "compose.h"

#include <math.h>

ops_arrays *ops_compose_begin(const char *function, ops_array *const *operands, uint32_t count)
{
    ops_arrays *arrays = ops_check_operands(function, operands, count);
    return arrays && !ops_arrays_open_scope(arrays) ? arrays : NULL;
}

ops_arrays *ops_compose_nest(const ops_array *x)
{
    return ops_arrays_open_scope(x->owner) ? NULL : x->owner;
}

ops_array *ops_compose_end(ops_arrays *arrays, ops_array *result)
{
    ops_compose_end_all(arrays, &result, 1);
    return result;
}

void ops_compose_end_all(ops_arrays *arrays, ops_array **results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (results[i] && !ops_arrays_scope_has(arrays, results[i])) {
            results[i] = ops_compose_view(results[i]); /* of an operand */
        }
    }
    ops_arrays_close_scope_with(arrays, results, count);
}

ops_array *ops_compose_view(ops_array *x)
{
    return x ? ops_array_broadcast(x, x->view.rank, x->view.shape) : NULL;
}

ops_array *ops_compose_scalar(const ops_array *x, double value)
{
    return x ? ops_array_scalar(x->owner->context, x->view.type, value) : NULL;
}

uint32_t ops_compose_shape(const ops_array *x, int64_t shape[OPS_MAX_RANK])
{
    for (uint32_t i = 0; i < x->view.rank; i++) {
        shape[i] = x->view.shape[i];
    }
    return x->view.rank;
}

hal_type ops_compose_sum_type(hal_type type)
{
    return hal_type_is_narrow_float(type) ? (hal_type)HAL_TYPE_F32 : type;
}

ops_array *ops_compose_cast(hal_type type, ops_array *x)
{
    return x && x->view.type == type ? x : ops_array_cast(type, x);
}

ops_array *ops_compose_slice(ops_array *x, uint32_t axis, int64_t start, int64_t count,
                             int64_t step)
{
    return x && start == 0 && step == 1 && count == x->view.shape[axis]
               ? x
               : ops_array_slice(x, (int32_t)axis, start, count, step);
}

uint64_t ops_compose_bytes(uint64_t bytes, const int64_t *lengths, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(bytes, (uint64_t)lengths[i], &bytes)) {
            return UINT64_MAX;
        }
    }
    return bytes;
}

ops_array *ops_compose_count(ops_context *context, uint32_t rank, uint32_t axis, int64_t count,
                             int64_t start, int64_t step)
{
    int64_t shape[OPS_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i == axis ? count : 1;
    }
    ops_array *line = ops_array_iota(context, HAL_TYPE_I64, count, (double)start, (double)step);
    return line ? ops_array_reshape(line, rank, shape) : NULL;
}

double ops_compose_least(hal_type type)
{
    const int bits = 8 * (int)hal_type_size(type);
    if (hal_type_is_float(type)) {
        return type == HAL_TYPE_F8_E4M3 ? -448.0 : -(double)INFINITY;
    }
    return hal_type_is_signed(type) ? -ldexp(1, bits - 1) : 0;
}
