/* Public calls of elementwise operations, reductions, softmax and matrix products. Each checks
 * types and shapes and makes a deferred node. */
#include "attention/attention.h"
#include "attention_match.h"
#include "deferred.h"
#include "matmul.h"
#include "gemm/prepare.h"
#include "kernels/fold.h"
#include "kernels/functions.h"

#include <string.h>

/* Broadcasts the shapes of the operands to the shape of the result. */
static hal_status broadcast_shapes(const char *function, ops_array *const *operands, uint32_t count,
                                   ops_result *result)
{
    ops_result_like(operands[0], result);
    for (uint32_t i = 1; i < count; i++) {
        const ops_tensor *x = &operands[i]->view;
        if (x->rank == result->rank &&
            memcmp(x->shape, result->shape, x->rank * sizeof *x->shape) == 0) {
            continue;
        }
        if (x->rank == 0) { /* a scalar */
            continue;
        }
        uint32_t rank = x->rank > result->rank ? x->rank : result->rank;
        int64_t shape[OPS_MAX_RANK]; /* result->shape may be result->own */
        for (uint32_t axis = 0; axis < rank; axis++) {
            /* Counted from the last axis. */
            int64_t one = axis < result->rank ? result->shape[result->rank - 1 - axis] : 1;
            int64_t other = axis < x->rank ? x->shape[x->rank - 1 - axis] : 1;
            if (one != other && one != 1 && other != 1) {
                char text[2][OPS_TEXT_BYTES];
                return ops_invalid("%s: operands: expected equal lengths or 1 along each axis, "
                                   "counted from the last, got %s and %s",
                                   function, ops_describe(&operands[0]->view, text[0]),
                                   ops_describe(x, text[1]));
            }
            shape[rank - 1 - axis] = one == 1 ? other : one;
        }
        result->rank = rank;
        result->shape = memcpy(result->own, shape, rank * sizeof *shape);
    }
    return HAL_OK;
}

static ops_array *defer_softmax(ops_operation operation, const char *function, int32_t axis,
                                ops_array *x)
{
    ops_result result;
    uint32_t checked;
    if (!ops_check_operands(function, &x, 1) || ops_check_short_axis(function, axis, x, &checked)) {
        return NULL;
    }
    if (!hal_type_is_float(x->view.type)) {
        ops_invalid("%s: x: expected a float type, got %s", function, hal_type_name(x->view.type));
        return NULL;
    }
    ops_result_like(x, &result);
    result.axis = checked;
    return ops_defer(function, operation, 0, &x, 1, &result);
}

static hal_status check_matmul(const char *function, const ops_array *a, const ops_array *b,
                               ops_result *result)
{
    const ops_tensor *x = &a->view, *y = &b->view;
    char text[2][OPS_TEXT_BYTES];
    bool fits = x->rank >= 2 && x->rank <= 3 && y->rank >= 2 && y->rank <= 3 &&
                (hal_type_is_float(x->type) || hal_type_is_integer(x->type)) &&
                x->type == y->type && x->shape[x->rank - 1] == y->shape[y->rank - 2];
    int64_t one = fits && x->rank == 3 ? x->shape[0] : 1;
    int64_t other = fits && y->rank == 3 ? y->shape[0] : 1;
    if (!fits || (one != other && one != 1 && other != 1)) {
        return ops_invalid(
            "%s: a and b: expected [m, k] and [k, n] of one type of numbers, each with an "
            "optional batch axis in front, got %s and %s",
            function, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    for (uint32_t i = 0; i < x->rank + y->rank; i++) {
        if ((i < x->rank ? x->shape[i] : y->shape[i - x->rank]) > INT32_MAX) {
            return ops_invalid("%s: a and b: expected lengths of at most 2^31 - 1, got %s and %s",
                               function, ops_describe(x, text[0]), ops_describe(y, text[1]));
        }
    }
    result->type = x->type;
    result->axis = 0;
    result->rank = x->rank > y->rank ? x->rank : y->rank;
    result->own[0] = one == 1 ? other : one;
    result->own[result->rank - 2] = x->shape[x->rank - 2];
    result->own[result->rank - 1] = y->shape[y->rank - 1];
    result->shape = result->own;
    return HAL_OK;
}

/* The type of an elementwise result: BOOL of a comparison, else the operands'. */
static hal_type expression_type(const ops_expression *expression, const ops_array *x)
{
    return expression->outputs[0] == HAL_TYPE_BOOL ? (hal_type)HAL_TYPE_BOOL : x->view.type;
}

ops_array *ops_array_unary(ops_unary_function function, ops_array *x)
{
    ops_arrays *arrays = ops_check_operands("ops_array_unary", &x, 1);
    ops_expression *expression;
    ops_result result;
    if (!arrays || ops_unary_expression(arrays->context, "ops_array_unary", function, x->view.type,
                                        &expression)) {
        return NULL;
    }
    ops_result_like(x, &result);
    result.type = expression_type(expression, x);
    return ops_defer("ops_array_unary", OPS_OPERATION_UNARY, function, &x, 1, &result);
}

ops_array *ops_array_binary(ops_binary_function function, ops_array *x, ops_array *y)
{
    ops_array *const operands[2] = {x, y};
    ops_arrays *arrays = ops_check_operands("ops_array_binary", operands, 2);
    ops_expression *expression;
    ops_result result;
    if (!arrays || ops_binary_expression(arrays->context, "ops_array_binary", function,
                                         x->view.type, &expression)) {
        return NULL;
    }
    if (x->view.type != y->view.type) {
        ops_invalid("ops_array_binary: y: expected %s, the type of x, for %s, got %s; use "
                    "ops_array_cast first",
                    hal_type_name(x->view.type), ops_binary_name(function),
                    hal_type_name(y->view.type));
        return NULL;
    }
    if (broadcast_shapes("ops_array_binary", operands, 2, &result)) {
        return NULL;
    }
    result.type = expression_type(expression, x);
    return ops_defer("ops_array_binary", OPS_OPERATION_BINARY, function, operands, 2, &result);
}

ops_array *ops_array_binary_scalar(ops_binary_function function, ops_array *x, double y)
{
    ops_arrays *arrays = ops_check_operands("ops_array_binary_scalar", &x, 1);
    ops_array *scalar = arrays ? ops_array_scalar(arrays->context, x->view.type, y) : NULL;
    ops_array *node = ops_array_binary(function, x, scalar);
    ops_array_release(scalar);
    return node;
}

ops_array *ops_array_scalar_binary(ops_binary_function function, double x, ops_array *y)
{
    ops_arrays *arrays = ops_check_operands("ops_array_scalar_binary", &y, 1);
    ops_array *scalar = arrays ? ops_array_scalar(arrays->context, y->view.type, x) : NULL;
    ops_array *node = ops_array_binary(function, scalar, y);
    ops_array_release(scalar);
    return node;
}

ops_array *ops_array_where(ops_array *condition, ops_array *x, ops_array *y)
{
    ops_array *const operands[3] = {condition, x, y};
    ops_result result;
    if (!ops_check_operands("ops_array_where", operands, 3)) {
        return NULL;
    }
    if (condition->view.type != HAL_TYPE_BOOL || x->view.type != y->view.type) {
        ops_invalid(
            "ops_array_where: operands: expected a bool and two of one type, got %s, %s and %s",
            hal_type_name(condition->view.type), hal_type_name(x->view.type),
            hal_type_name(y->view.type));
        return NULL;
    }
    if (broadcast_shapes("ops_array_where", operands, 3, &result)) {
        return NULL;
    }
    result.type = x->view.type;
    return ops_defer("ops_array_where", OPS_OPERATION_WHERE, 0, operands, 3, &result);
}

ops_array *ops_array_cast(hal_type type, ops_array *x)
{
    ops_result result;
    ops_arrays *arrays = ops_check_operands("ops_array_cast", &x, 1);
    if (!arrays || ops_check_type("ops_array_cast", arrays, type)) {
        return NULL;
    }
    ops_result_like(x, &result);
    result.type = type;
    return ops_defer("ops_array_cast", OPS_OPERATION_CAST, type, &x, 1, &result);
}

ops_array *ops_array_reduce(ops_reduction reduction, int32_t axis, int keep_axis, ops_array *x)
{
    uint32_t along;
    if (!ops_check_operands("ops_array_reduce", &x, 1) ||
        ops_check_short_axis("ops_array_reduce", axis, x, &along)) {
        return NULL;
    }
    hal_type type = x->view.type;
    if ((uint32_t)reduction >= OPS_REDUCTION_COUNT) {
        ops_invalid("ops_array_reduce: reduction: expected an ops_reduction, got %d",
                    (int)reduction);
        return NULL;
    }
    if (type == HAL_TYPE_BOOL || (reduction == OPS_REDUCE_MEAN && !hal_type_is_float(type))) {
        ops_invalid("ops_array_reduce: x: expected %s for reduction %d, got %s",
                    reduction == OPS_REDUCE_MEAN ? "a float type" : "numbers", (int)reduction,
                    hal_type_name(type));
        return NULL;
    }
    if (x->view.shape[along] == 0 && reduction != OPS_REDUCE_SUM &&
        reduction != OPS_REDUCE_PRODUCT) {
        char text[OPS_TEXT_BYTES];
        ops_invalid("ops_array_reduce: x: expected elements along axis %u for any reduction but a "
                    "sum or product, got %s",
                    along, ops_describe(&x->view, text));
        return NULL;
    }
    ops_result result = {.axis = along};
    result.shape = result.own;
    result.type = ops_fold_finds_place(reduction) ? (hal_type)HAL_TYPE_I32 : type;
    for (uint32_t i = 0; i < x->view.rank; i++) {
        if (i != along || keep_axis) {
            result.own[result.rank++] = i == along ? 1 : x->view.shape[i];
        }
    }
    return ops_defer("ops_array_reduce", OPS_OPERATION_REDUCE, reduction, &x, 1, &result);
}

ops_array *ops_array_reduce_axes(ops_reduction reduction, const int32_t *axes, uint32_t axis_count,
                                 int keep_axes, ops_array *x)
{
    const char *function = "ops_array_reduce_axes";
    if (!ops_check_operands(function, &x, 1)) {
        return NULL;
    }
    const uint32_t rank = x->view.rank;
    uint32_t reduced = axes ? 0 : (1u << rank) - 1; /* one bit per axis */
    for (uint32_t i = 0; axes && i < axis_count; i++) {
        uint32_t along;
        if (ops_check_axis(function, "axes", &x->view, axes[i], &along)) {
            return NULL;
        }
        if (reduced >> along & 1) {
            ops_invalid("%s: axes: expected different axes, got axis %u twice", function, along);
            return NULL;
        }
        reduced |= 1u << along;
    }
    if (ops_fold_finds_place(reduction) && (reduced & (reduced - 1))) {
        ops_invalid("%s: axes: expected one axis for an index, got %u; reshape x first", function,
                    (uint32_t)__builtin_popcount(reduced));
        return NULL;
    }
    ops_array *y = reduced ? x : ops_array_unary(OPS_IDENTITY, x);
    for (uint32_t along = rank; y && along-- > 0;) {
        if (reduced >> along & 1) {
            ops_array *next = ops_array_reduce(reduction, (int32_t)along, keep_axes, y);
            if (y != x) {
                ops_node_release(y);
            }
            y = next;
        }
    }
    return y;
}

ops_array *ops_array_softmax(int32_t axis, ops_array *x)
{
    return defer_softmax(OPS_OPERATION_SOFTMAX, "ops_array_softmax", axis, x);
}

ops_array *ops_array_log_softmax(int32_t axis, ops_array *x)
{
    return defer_softmax(OPS_OPERATION_LOG_SOFTMAX, "ops_array_log_softmax", axis, x);
}

/* The narrow integers that an operand is the cast of, to the type of their sums; else null. */
static ops_array *find_narrow(const ops_array *x)
{
    if (x->operation != OPS_OPERATION_CAST || x->state != OPS_NODE_DEFERRED) {
        return NULL;
    }
    const hal_type type = x->operands[0]->view.type;
    const bool is_narrow = hal_type_is_integer(type) && type != x->view.type;
    return is_narrow && ops_gemm_accumulator(type) == x->view.type ? x->operands[0] : NULL;
}

static ops_array *defer_matmul(const char *function, ops_array *a, ops_array *b, uint32_t precision,
                               uint32_t levels)
{
    ops_array *operands[2] = {a, b};
    ops_result result;
    if (!ops_check_operands(function, operands, 2)) {
        return NULL;
    }
    const bool is_exact = precision == HAL_GEMM_EXACT;
    if (precision > HAL_GEMM_EXACT ||
        (is_exact && hal_type_is_float(a->view.type) && a->view.type != HAL_TYPE_F64)) {
        ops_invalid("%s: precision: expected HAL_GEMM_STRICT, _ACCURATE, _FAST, _NORMWISE or, of "
                    "f64, _EXACT, got %u of %s",
                    function, precision, hal_type_name(a->view.type));
        return NULL;
    }
    if (levels > HAL_GEMM_MAX_LEVELS) {
        ops_invalid("%s: levels: expected at most %u, got %u", function, HAL_GEMM_MAX_LEVELS,
                    levels);
        return NULL;
    }
    if (check_matmul(function, a, b, &result)) {
        return NULL;
    }
    ops_array *const narrow[2] = {find_narrow(a), find_narrow(b)};
    if (narrow[0] && narrow[1] && narrow[0]->view.type == narrow[1]->view.type) {
        operands[0] = narrow[0];
        operands[1] = narrow[1];
    }
    return ops_defer(function, OPS_OPERATION_MATMUL, ops_matmul_function(precision, levels),
                     operands, 2, &result);
}

ops_array *ops_array_matmul(ops_array *a, ops_array *b, uint32_t precision)
{
    return defer_matmul("ops_array_matmul", a, b, precision, 0);
}

ops_array *ops_array_matmul_by_levels(ops_array *a, ops_array *b, uint32_t levels)
{
    return defer_matmul("ops_array_matmul_by_levels", a, b, HAL_GEMM_NORMWISE, levels);
}

static ops_array *defer_attention(const char *function, ops_array *const operands[4], int causal,
                                  uint32_t precision, double scale)
{
    const ops_array *q = operands[0], *mask = operands[3];
    const uint32_t count = mask ? 4 : 3;
    ops_tensor y;
    ops_result result;
    if (!ops_check_operands(function, operands, count) ||
        ops_attention_describe(function, &q->view, &operands[1]->view, &operands[2]->view,
                               mask ? &mask->view : NULL, &y)) {
        return NULL;
    }
    if (precision > HAL_GEMM_NORMWISE) {
        ops_invalid(
            "%s: precision: expected HAL_GEMM_STRICT, _ACCURATE, _FAST or _NORMWISE, got %u",
            function, precision);
        return NULL;
    }
    ops_result_like(q, &result);
    result.shape = y.shape;
    result.scale = scale;
    return ops_defer(function, OPS_OPERATION_ATTENTION,
                     ops_attention_function(causal != 0, precision, false), operands, count,
                     &result);
}

ops_array *ops_array_attention(ops_array *q, ops_array *k, ops_array *v, ops_array *mask,
                               int causal, uint32_t precision)
{
    return defer_attention("ops_array_attention", (ops_array *const[4]){q, k, v, mask}, causal,
                           precision, 0);
}

ops_array *ops_array_scaled_attention(ops_array *q, ops_array *k, ops_array *v, ops_array *mask,
                                      int causal, uint32_t precision, double scale)
{
    return defer_attention("ops_array_scaled_attention", (ops_array *const[4]){q, k, v, mask},
                           causal, precision, scale);
}

ops_array *ops_array_prepare(ops_array *b, const ops_gemm_prepare_options *options)
{
    ops_arrays *arrays = ops_check_operands("ops_array_prepare", &b, 1);
    ops_tensor view;
    ops_gemm_prepared *prepared = NULL;
    if (!arrays) {
        return NULL;
    }
    if (arrays->is_recording) {
        hal_status_set(HAL_ERROR_INVALID_STATE,
                       "ops_array_prepare: b: expected a call outside of the recording of a graph, "
                       "got one inside; prepare before ops_graph_begin");
        return NULL;
    }
    hal_status status = ops_array_get_tensor(b, &view);
    if (status == HAL_OK) {
        status =
            ops_prepared_create(arrays->context, "ops_array_prepare", options, &view, &prepared);
    }
    ops_array *node = status != HAL_OK ? NULL : ops_node_create(arrays);
    if (!node) {
        ops_gemm_prepared_destroy(prepared);
        return NULL;
    }
    ops_node_set_view(node, &prepared->b);
    hal_buffer_retain(node->view.buffer);
    node->batch = ops_arrays_batch(arrays);
    node->operation = OPS_OPERATION_PREPARED;
    node->prepared = prepared;
    return node;
}
