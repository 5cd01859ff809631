/* Reductions, scans, order, softmax. */
#include "operators.h"

/* The axes that an operator names, as bits. 0 of them: all, or none if it says so. Returns false
 * for an operator that leaves x as it is. */
static bool reduced_axes(onnx_call *c, uint32_t *bits)
{
    int64_t axes[ONNX_MAX_RANK];
    int32_t count = onnx_integers(c, "axes", axes, ONNX_MAX_RANK);
    if (c->node->input_count > 1 && c->x[1]) {
        count = onnx_host_integers(c, c->x[1], axes, ONNX_MAX_RANK);
    }
    *bits = 0;
    for (int32_t i = 0; i < count; i++) {
        *bits |= 1u << onnx_axis(c->x[0], axes[i]);
    }
    if (count <= 0) {
        *bits = (1u << ops_array_get_rank(c->x[0])) - 1;
    }
    return count > 0 || !onnx_integer(c, "noop_with_empty_axes", 0);
}

static ops_array *reduce_bits(ops_reduction reduction, uint32_t bits, bool keeps, ops_array *x)
{
    int32_t axes[ONNX_MAX_RANK];
    uint32_t count = 0;
    for (int32_t i = 0; i < ONNX_MAX_RANK; i++) {
        if (bits >> i & 1) {
            axes[count++] = i;
        }
    }
    return ops_array_reduce_axes(reduction, axes, count, keeps, x);
}

/* Of BOOL as of U8: max and min are any and all. */
static void map_reduce(onnx_call *c, ops_reduction reduction, ops_array *x)
{
    uint32_t bits;
    const bool reduces = reduced_axes(c, &bits), keeps = onnx_integer(c, "keepdims", 1) != 0;
    const hal_type type = ops_array_get_type(x), used = type == HAL_TYPE_BOOL ? HAL_TYPE_U8 : type;
    if (!reduces) {
        c->y[0] = ops_array_unary(OPS_IDENTITY, x);
        return;
    }
    bool is_empty = false;
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(x); i++) {
        is_empty |= (bits >> i & 1) && ops_array_get_length(x, i) == 0;
    }
    if (is_empty && reduction != OPS_REDUCE_SUM && reduction != OPS_REDUCE_PRODUCT) {
        onnx_skip(c, "a reduction of no elements that has no neutral value in ops");
        return;
    }
    x = type == used ? x : ops_array_cast(used, x);
    c->y[0] = reduce_bits(reduction, bits, keeps, x);
    c->y[0] = type == used ? c->y[0] : ops_array_cast(type, c->y[0]);
}

static void map_reduce_sum(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_SUM, c->x[0]);
}

static void map_reduce_mean(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_MEAN, c->x[0]);
}

static void map_reduce_max(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_MAX, c->x[0]);
}

static void map_reduce_min(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_MIN, c->x[0]);
}

static void map_reduce_product(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_PRODUCT, c->x[0]);
}

static void map_reduce_l1(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_SUM, ops_abs(c->x[0]));
}

static void map_reduce_sum_square(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_SUM, ops_square(c->x[0]));
}

static void map_reduce_l2(onnx_call *c)
{
    map_reduce_sum_square(c);
    c->y[0] = c->y[0] ? ops_sqrt(c->y[0]) : NULL;
}

static void map_reduce_log_sum(onnx_call *c)
{
    map_reduce_sum(c);
    c->y[0] = c->y[0] ? ops_log(c->y[0]) : NULL;
}

static void map_reduce_log_sum_exp(onnx_call *c)
{
    map_reduce(c, OPS_REDUCE_SUM, ops_exp(c->x[0]));
    c->y[0] = c->y[0] ? ops_log(c->y[0]) : NULL;
}

/* The last index is the first one of the reversed axis. */
static void map_arg(onnx_call *c, ops_reduction reduction)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", 0));
    const int keeps = (int)onnx_integer(c, "keepdims", 1);
    const int64_t length = ops_array_get_length(x, axis);
    const bool is_last = onnx_integer(c, "select_last_index", 0) != 0;
    x = is_last ? ops_array_slice(x, axis, length - 1, length, -1) : x;
    ops_array *y = ops_array_reduce(reduction, axis, keeps, x);
    y = is_last ? ops_array_scalar_binary(OPS_SUB, (double)(length - 1), y) : y;
    c->y[0] = ops_array_cast(HAL_TYPE_I64, y);
}

static void map_argmax(onnx_call *c)
{
    map_arg(c, OPS_REDUCE_ARGMAX);
}

static void map_argmin(onnx_call *c)
{
    map_arg(c, OPS_REDUCE_ARGMIN);
}

static void map_softmax(onnx_call *c)
{
    c->y[0] = ops_array_softmax((int32_t)onnx_integer(c, "axis", -1), c->x[0]);
}

static void map_log_softmax(onnx_call *c)
{
    c->y[0] = ops_array_log_softmax((int32_t)onnx_integer(c, "axis", -1), c->x[0]);
}

static void map_hardmax(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", -1));
    const int32_t last = (int32_t)ops_array_get_rank(x) - 1;
    ops_array *place = ops_array_reduce(OPS_REDUCE_ARGMAX, axis, 0, x);
    ops_array *one = ops_array_one_hot(ops_array_get_type(x), ops_array_get_length(x, axis), place);
    int32_t axes[ONNX_MAX_RANK];
    for (int32_t i = 0; i <= last; i++) {
        axes[i] = i < axis ? i : i == axis ? last : i - 1;
    }
    c->y[0] = ops_array_permute(one, axes);
}

static ops_array *reversed(ops_array *x, int32_t axis)
{
    const int64_t length = ops_array_get_length(x, axis);
    return ops_array_slice(x, axis, length - 1, length, -1);
}

/* An exclusive scan is that of the elements before, which begins with the neutral value. */
static void map_scan(onnx_call *c, ops_scan_kind kind, double neutral)
{
    ops_array *x = c->x[0];
    int64_t axis, shape[ONNX_MAX_RANK];
    if (onnx_host_integers(c, c->x[1], &axis, 1) < 0) {
        return;
    }
    const int32_t along = onnx_axis(x, axis);
    const bool reverses = onnx_integer(c, "reverse", 0) != 0;
    x = reverses ? reversed(x, along) : x;
    ops_array *y = ops_array_scan(kind, along, x);
    if (onnx_integer(c, "exclusive", 0)) {
        const uint32_t rank = onnx_shape(x, shape);
        const int64_t length = shape[along];
        shape[along] = 1;
        ops_array *parts[2] = {
            ops_array_full(c->context, ops_array_get_type(x), rank, shape, neutral),
            ops_array_slice(y, along, 0, length - 1, 1)};
        y = ops_array_concatenate(along, parts, 2);
    }
    c->y[0] = reverses ? reversed(y, along) : y;
}

static void map_cumulative_sum(onnx_call *c)
{
    map_scan(c, OPS_SCAN_SUM, 0);
}

static void map_cumulative_product(onnx_call *c)
{
    map_scan(c, OPS_SCAN_PRODUCT, 1);
}

static void map_top(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", -1));
    int64_t count;
    if (onnx_host_integers(c, c->x[1], &count, 1) < 0) {
        return;
    }
    const int descends = (int)onnx_integer(c, "largest", 1);
    ops_array *places = ops_array_argsort(axis, descends, count, x);
    c->y[0] = ops_array_take_along_axis(axis, x, places);
    c->y[1] = ops_array_cast(HAL_TYPE_I64, places);
}

static void map_norm(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", -1));
    const bool is_one = onnx_integer(c, "p", 2) == 1;
    ops_array *size =
        ops_array_reduce(OPS_REDUCE_SUM, axis, 1, is_one ? ops_abs(x) : ops_square(x));
    size = is_one ? size : ops_sqrt(size);
    ops_array *zero = ops_array_scalar(c->context, ops_array_get_type(x), 0);
    c->y[0] = ops_array_where(ops_eq(size, zero), zero, ops_div(x, size));
}

const onnx_operator onnx_reduce_operators[] = {
    {"ReduceSum", map_reduce_sum},
    {"ReduceMean", map_reduce_mean},
    {"ReduceMax", map_reduce_max},
    {"ReduceMin", map_reduce_min},
    {"ReduceProd", map_reduce_product},
    {"ReduceL1", map_reduce_l1},
    {"ReduceL2", map_reduce_l2},
    {"ReduceSumSquare", map_reduce_sum_square},
    {"ReduceLogSum", map_reduce_log_sum},
    {"ReduceLogSumExp", map_reduce_log_sum_exp},
    {"ArgMax", map_argmax},
    {"ArgMin", map_argmin},
    {"Softmax", map_softmax},
    {"LogSoftmax", map_log_softmax},
    {"Hardmax", map_hardmax},
    {"CumSum", map_cumulative_sum},
    {"CumProd", map_cumulative_product},
    {"TopK", map_top},
    {"LpNormalization", map_norm},
    {NULL, NULL},
};
