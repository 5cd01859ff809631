/* Sorting along an axis: checks, and the choice between whole lines and their first elements. */
#include "tensor/overlap.h"

#include "sort_call.h"

#include <ops/sort.h>

static hal_status record_first(ops_context *context, bool descending, int64_t count,
                               ops_sort_call *c)
{
    ops_sort_key_choose(context, c->x->type, descending, &c->key);
    c->length = c->x->shape[c->axis];
    c->lines = ops_tensor_get_element_count(c->x) / c->length;
    hal_status status = ops_sort_top(context, c, count, &c->places);
    if (status == HAL_OK) {
        status = ops_sort_results(context, c);
    }
    hal_buffer_release(c->places.buffer);
    return status;
}

/* Checks an output, which may be null, and whose type is one of two. */
static hal_status check_sorted(const ops_context *context, const char *argument,
                               const ops_tensor *x, uint32_t axis, const ops_tensor *y,
                               const hal_type types[2])
{
    if (!y) {
        return HAL_OK;
    }
    HAL_TRY(ops_check_output(context, "ops_sort", argument, y));
    bool fits = y->rank == x->rank && (y->type == types[0] || y->type == types[1]);
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = i == axis ? y->shape[i] <= x->shape[i] : y->shape[i] == x->shape[i];
    }
    char text[2][OPS_TEXT_BYTES];
    return fits ? HAL_OK
                : ops_invalid("ops_sort: %s: expected %s or %s with the shape of x %s, or less "
                              "along axis %u, got %s",
                              argument, hal_type_name(types[0]), hal_type_name(types[1]),
                              ops_describe(x, text[0]), axis, ops_describe(y, text[1]));
}

static hal_status check_sort(const ops_context *context, int32_t axis, ops_sort_call *c)
{
    const ops_tensor *x = c->x, *values = c->values, *indices = c->indices;
    char text[2][OPS_TEXT_BYTES];
    HAL_TRY(ops_check_tensor(context, "ops_sort", "x", x));
    HAL_TRY(ops_check_storage(context, "ops_sort", "x", x->type));
    HAL_TRY(ops_check_axis("ops_sort", "axis", x, axis, &c->axis));
    if (!values && !indices) {
        return ops_invalid("ops_sort: values, indices: expected at least one output, got null");
    }
    HAL_TRY(check_sorted(context, "values", x, c->axis, values, (hal_type[2]){x->type, x->type}));
    HAL_TRY(check_sorted(context, "indices", x, c->axis, indices,
                         (hal_type[2]){HAL_TYPE_I32, HAL_TYPE_I64}));
    if (values && indices && !ops_same_shape(values, indices)) {
        return ops_invalid("ops_sort: indices: expected the shape of values %s, got %s",
                           ops_describe(values, text[0]), ops_describe(indices, text[1]));
    }
    if ((indices && (ops_overlap(x, indices) || (values && ops_overlap(values, indices)))) ||
        (values && ops_overlap(x, values) && !ops_same_view(x, values))) {
        return ops_invalid("ops_sort: values, indices: expected memory that x does not use, or x "
                           "for the values, got an overlap");
    }
    if (x->shape[c->axis] > INT32_MAX) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_sort: x: expected at most 2^31 - 1 elements along axis %u, got "
                              "%s",
                              c->axis, ops_describe(x, text[0]));
    }
    return HAL_OK;
}

hal_status ops_sort(ops_context *context, int32_t axis, int descending, const ops_tensor *x,
                    const ops_tensor *values, const ops_tensor *indices)
{
    ops_sort_call c = {.x = x, .values = values, .indices = indices};
    HAL_TRY(check_sort(context, axis, &c));
    const ops_tensor *like = values ? values : indices;
    const int64_t count = like->shape[c.axis];
    return ops_tensor_get_element_count(like) == 0 ? HAL_OK
           : ops_sort_is_top(&c, count) ? record_first(context, descending != 0, count, &c)
                                        : ops_sort_whole(context, descending != 0, &c);
}
