/* Public calls that follow or make an order along an axis: scans and sorts. */
#include "deferred.h"

ops_array *ops_array_scan(ops_scan_kind kind, int32_t axis, ops_array *x)
{
    ops_result result;
    uint32_t along;
    if (!ops_check_operands("ops_array_scan", &x, 1) ||
        ops_check_short_axis("ops_array_scan", axis, x, &along)) {
        return NULL;
    }
    if ((uint32_t)kind >= OPS_SCAN_KIND_COUNT || x->view.type == HAL_TYPE_BOOL) {
        ops_invalid("ops_array_scan: kind and x: expected an ops_scan_kind and numbers, got %d and "
                    "%s",
                    (int)kind, hal_type_name(x->view.type));
        return NULL;
    }
    ops_result_like(x, &result);
    result.axis = along;
    return ops_defer("ops_array_scan", OPS_OPERATION_SCAN, kind, &x, 1, &result);
}

ops_array *ops_array_argsort(int32_t axis, int descending, int64_t count, ops_array *x)
{
    ops_result result;
    uint32_t along;
    if (!ops_check_operands("ops_array_argsort", &x, 1) ||
        ops_check_short_axis("ops_array_argsort", axis, x, &along)) {
        return NULL;
    }
    const int64_t length = x->view.shape[along];
    if (count < -1 || count > length) {
        ops_invalid("ops_array_argsort: count: expected -1 or at most the %lld elements of axis "
                    "%u, got %lld",
                    (long long)length, along, (long long)count);
        return NULL;
    }
    ops_result_like(x, &result);
    result.type = HAL_TYPE_I32;
    result.axis = along;
    ops_result_own_shape(&result)[along] = count < 0 ? length : count;
    return ops_defer("ops_array_argsort", OPS_OPERATION_ORDER, descending != 0, &x, 1, &result);
}

ops_array *ops_array_sort(int32_t axis, int descending, int64_t count, ops_array *x)
{
    ops_array *order = ops_array_argsort(axis, descending, count, x);
    ops_array *sorted = order ? ops_array_take_along_axis(axis, x, order) : NULL;
    ops_array_release(order);
    return sorted;
}
