/* Operations on arrays: each checks shapes and types, notes what is to be computed, and has what
 * came before recorded when it has grown enough. */
#include "array.h"
#include "kernels/expression.h"
#include "group.h"

#include <string.h>

/* A result that is being noted; `axis` is of a reduction or softmax. */
typedef struct result {
    hal_type type;
    uint32_t rank, axis;
    int64_t shape[OPS_MAX_RANK];
} result;

static void take_shape(const ops_array *x, result *out)
{
    out->type = x->view.type;
    out->axis = 0;
    out->rank = x->view.rank;
    memcpy(out->shape, x->view.shape, x->view.rank * sizeof *out->shape);
}

/* Upper bounds of the group that would compute the array: what operands share counts twice. */
static void count_group(ops_array *array)
{
    uint32_t operations = 1, leaves = 0, depth = 0;
    for (uint32_t i = 0; i < array->operand_count; i++) {
        const ops_array *x = array->operands[i];
        int joins = ops_group_may_join(array, x);
        operations += joins ? x->operations : 0;
        leaves += joins ? x->leaves : 1;
        uint32_t below = x->depth + (x->state == OPS_ARRAY_DEFERRED && !joins &&
                                     !ops_group_may_follow(array, x));
        depth = below > depth ? below : depth;
    }
    array->operations = (uint16_t)operations;
    array->leaves = (uint16_t)leaves;
    array->depth = (uint8_t)depth;
}

static ops_array *largest_operand(const ops_array *array)
{
    ops_array *largest = NULL;
    for (uint32_t i = 0; i < array->operand_count; i++) {
        ops_array *x = array->operands[i];
        if (ops_group_may_join(array, x) &&
            (!largest || x->operations + x->leaves > largest->operations + largest->leaves)) {
            largest = x;
        }
    }
    return largest;
}

/* Has operands computed until the array's group keeps the limits. */
static hal_status limit_group(ops_array *array)
{
    hal_status status = HAL_OK;
    while (!status && array->state == OPS_ARRAY_DEFERRED) {
        if (array->operations > OPS_GROUP_OPERATIONS ||
            array->leaves > ops_group_most_leaves(array->context)) {
            ops_group group;
            if (ops_group_gather(&group, &array, 1)) {
                array->operations = (uint16_t)group.node_count;
                array->leaves = (uint16_t)group.leaf_count;
            } else {
                ops_array *operand = largest_operand(array);
                if (!operand) {
                    break; /* the device binds too few even for it alone, as its kernel will say */
                }
                status = ops_evaluate(&operand, 1);
                count_group(array);
            }
        } else if (array->depth > OPS_DEFERRED_DEPTH) {
            for (uint32_t i = 0; i < array->operand_count && !status; i++) {
                ops_array *operand = array->operands[i];
                if (operand->state == OPS_ARRAY_DEFERRED && operand->depth >= array->depth - 1) {
                    status = ops_evaluate(&operand, 1);
                }
            }
            count_group(array);
        } else {
            break;
        }
    }
    return status;
}

/* A deferred array. Without fusion it is computed at once. */
static ops_array *note(ops_operation operation, uint32_t function, ops_array *const *operands,
                       uint32_t count, const result *out)
{
    ops_context *context = operands[0]->context;
    uint64_t bytes;
    /* Of one operand's shape and at most its type's size there is one already. */
    if (operation != OPS_OPERATION_UNARY &&
        ops_check_shape("The array's result", out->type, out->rank, out->shape, &bytes)) {
        return NULL;
    }
    ops_array *made = ops_array_new(context);
    if (!made) {
        return NULL;
    }
    struct ops_arrays *arrays = context->arrays;
    ops_array_shape(made, out->type, out->rank, out->shape);
    made->state = OPS_ARRAY_DEFERRED;
    made->operation = (uint8_t)operation;
    made->function = (uint8_t)function;
    made->axis = (uint8_t)out->axis;
    made->operand_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        made->operands[i] = operands[i];
        operands[i]->needs_memory |=
            operation >= OPS_OPERATION_SOFTMAX && operation <= OPS_OPERATION_MATMUL;
        ops_array_use(operands[i]);
    }
    arrays->statistics.recorded++;
    arrays->statistics.deferred++;
    count_group(made);
    hal_status status = arrays->unfused ? ops_evaluate(&made, 1) : limit_group(made);
    if (status) {
        ops_array_release(made);
        return NULL;
    }
    return made;
}

static hal_status broadcast_shapes(const char *function, ops_array *const *operands, uint32_t count,
                                   result *out)
{
    take_shape(operands[0], out);
    for (uint32_t i = 1; i < count; i++) {
        const ops_tensor *x = &operands[i]->view;
        if (x->rank == out->rank && memcmp(x->shape, out->shape, x->rank * sizeof *x->shape) == 0) {
            continue;
        }
        uint32_t rank = x->rank > out->rank ? x->rank : out->rank;
        int64_t shape[OPS_MAX_RANK];
        for (uint32_t axis = 0; axis < rank; axis++) {
            /* Counted from the last axis on. */
            int64_t one = axis < out->rank ? out->shape[out->rank - 1 - axis] : 1;
            int64_t other = axis < x->rank ? x->shape[x->rank - 1 - axis] : 1;
            if (one != other && one != 1 && other != 1) {
                char text[2][OPS_TEXT_BYTES];
                return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                      "%s: operands of shapes %s and %s do not go together: "
                                      "lengths of an axis, counted from the last, are equal or 1",
                                      function, ops_describe(&operands[0]->view, text[0]),
                                      ops_describe(x, text[1]));
            }
            shape[rank - 1 - axis] = one == 1 ? other : one;
        }
        out->rank = rank;
        memcpy(out->shape, shape, rank * sizeof *shape);
    }
    return HAL_OK;
}

static hal_status check_axis(const char *function, uint32_t axis, const ops_array *x)
{
    char text[OPS_TEXT_BYTES];
    if (axis < x->view.rank && x->view.shape[axis] <= INT32_MAX) {
        return HAL_OK;
    }
    return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: axis %u %s, %s", function, axis,
                          axis < x->view.rank ? "has a length above 2^31 - 1 in x"
                                              : "is beyond those of x",
                          ops_describe(&x->view, text));
}

static ops_array *softmax(ops_operation operation, const char *function, uint32_t axis,
                          ops_array *x)
{
    if (!ops_array_operands(function, &x, 1) || check_axis(function, axis, x)) {
        return NULL;
    }
    if (!hal_type_is_float(x->view.type)) {
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: x is %s; floats are meant", function,
                       hal_type_name(x->view.type));
        return NULL;
    }
    result out;
    take_shape(x, &out);
    out.axis = axis;
    return note(operation, 0, &x, 1, &out);
}

static hal_status product_shape(const ops_array *a, const ops_array *b, result *out)
{
    const ops_tensor *x = &a->view, *y = &b->view;
    int fits = x->rank >= 2 && x->rank <= 3 && y->rank >= 2 && y->rank <= 3 &&
               hal_type_is_float(x->type) && x->type == y->type &&
               x->shape[x->rank - 1] == y->shape[y->rank - 2];
    int64_t one = fits && x->rank == 3 ? x->shape[0] : 1;
    int64_t other = fits && y->rank == 3 ? y->shape[0] : 1;
    if (!fits || (one != other && one != 1 && other != 1)) {
        char text[2][OPS_TEXT_BYTES];
        return hal_status_set(
            HAL_ERROR_INVALID_ARGUMENT,
            "ops_array_matmul: a %s and b %s do not fit: [m, k] and [k, n] of one "
            "float type are meant, each with a batch in front or not",
            ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    for (uint32_t i = 0; i < x->rank + y->rank; i++) {
        if ((i < x->rank ? x->shape[i] : y->shape[i - x->rank]) > INT32_MAX) {
            char text[2][OPS_TEXT_BYTES];
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_array_matmul: a %s or b %s has a length above 2^31 - 1",
                                  ops_describe(x, text[0]), ops_describe(y, text[1]));
        }
    }
    out->type = x->type;
    out->axis = 0;
    out->rank = x->rank > y->rank ? x->rank : y->rank;
    out->shape[0] = one == 1 ? other : one;
    out->shape[out->rank - 2] = x->shape[x->rank - 2];
    out->shape[out->rank - 1] = y->shape[y->rank - 1];
    return HAL_OK;
}

ops_array *ops_array_unary(ops_unary_function function, ops_array *x)
{
    ops_context *context = ops_array_operands("ops_array_unary", &x, 1);
    ops_expression *expression;
    if (!context ||
        ops_unary_expression(context, "ops_array_unary", function, x->view.type, &expression)) {
        return NULL;
    }
    result out;
    take_shape(x, &out);
    out.type = expression->outputs[0] == HAL_TYPE_BOOL ? (hal_type)HAL_TYPE_BOOL : x->view.type;
    return note(OPS_OPERATION_UNARY, function, &x, 1, &out);
}

ops_array *ops_array_binary(ops_binary_function function, ops_array *x, ops_array *y)
{
    ops_array *const operands[2] = {x, y};
    ops_context *context = ops_array_operands("ops_array_binary", operands, 2);
    ops_expression *expression;
    result out;
    if (!context ||
        ops_binary_expression(context, "ops_array_binary", function, x->view.type, &expression)) {
        return NULL;
    }
    if (x->view.type != y->view.type) {
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                       "ops_array_binary: %s of x, which is %s, and y, which is %s: cast one of "
                       "them first",
                       ops_binary_name(function), hal_type_name(x->view.type),
                       hal_type_name(y->view.type));
        return NULL;
    }
    if (broadcast_shapes("ops_array_binary", operands, 2, &out)) {
        return NULL;
    }
    out.type = expression->outputs[0] == HAL_TYPE_BOOL ? (hal_type)HAL_TYPE_BOOL : x->view.type;
    return note(OPS_OPERATION_BINARY, function, operands, 2, &out);
}

ops_array *ops_array_where(ops_array *condition, ops_array *x, ops_array *y)
{
    ops_array *const operands[3] = {condition, x, y};
    result out;
    if (!ops_array_operands("ops_array_where", operands, 3)) {
        return NULL;
    }
    if (condition->view.type != HAL_TYPE_BOOL || x->view.type != y->view.type) {
        hal_status_set(
            HAL_ERROR_INVALID_ARGUMENT,
            "ops_array_where: condition is %s, x %s, y %s; a bool and two of one type are "
            "meant",
            hal_type_name(condition->view.type), hal_type_name(x->view.type),
            hal_type_name(y->view.type));
        return NULL;
    }
    if (broadcast_shapes("ops_array_where", operands, 3, &out)) {
        return NULL;
    }
    out.type = x->view.type;
    return note(OPS_OPERATION_WHERE, 0, operands, 3, &out);
}

ops_array *ops_array_cast(hal_type type, ops_array *x)
{
    result out;
    ops_context *context = ops_array_operands("ops_array_cast", &x, 1);
    if (!context) {
        return NULL;
    }
    if (hal_type_size(type) == 0) {
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_array_cast: type %u is none", type);
        return NULL;
    }
    if (ops_check_storage(context, "ops_array_cast", "the result", type)) {
        return NULL;
    }
    take_shape(x, &out);
    out.type = type;
    return note(OPS_OPERATION_CAST, type, &x, 1, &out);
}

ops_array *ops_array_reduce(ops_reduction reduction, uint32_t axis, int keep_axis, ops_array *x)
{
    if (!ops_array_operands("ops_array_reduce", &x, 1) || check_axis("ops_array_reduce", axis, x)) {
        return NULL;
    }
    hal_type type = x->view.type;
    if ((uint32_t)reduction >= OPS_REDUCTION_COUNT || type == HAL_TYPE_BOOL ||
        (reduction == OPS_REDUCE_MEAN && !hal_type_is_float(type))) {
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                       "ops_array_reduce: reduction %d does not take %s", (int)reduction,
                       hal_type_name(type));
        return NULL;
    }
    if (x->view.shape[axis] == 0 && reduction != OPS_REDUCE_SUM) {
        char text[OPS_TEXT_BYTES];
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                       "ops_array_reduce: axis %u of %s is empty, and only a sum has a value there",
                       axis, ops_describe(&x->view, text));
        return NULL;
    }
    result out = {.axis = axis};
    out.type = reduction == OPS_REDUCE_ARGMAX ? (hal_type)HAL_TYPE_I32 : type;
    for (uint32_t i = 0; i < x->view.rank; i++) {
        if (i != axis || keep_axis) {
            out.shape[out.rank++] = i == axis ? 1 : x->view.shape[i];
        }
    }
    return note(OPS_OPERATION_REDUCE, reduction, &x, 1, &out);
}

ops_array *ops_array_softmax(uint32_t axis, ops_array *x)
{
    return softmax(OPS_OPERATION_SOFTMAX, "ops_array_softmax", axis, x);
}

ops_array *ops_array_log_softmax(uint32_t axis, ops_array *x)
{
    return softmax(OPS_OPERATION_LOG_SOFTMAX, "ops_array_log_softmax", axis, x);
}

ops_array *ops_array_matmul(ops_array *a, ops_array *b, uint32_t precision)
{
    ops_array *const operands[2] = {a, b};
    result out;
    if (!ops_array_operands("ops_array_matmul", operands, 2)) {
        return NULL;
    }
    if (precision > HAL_GEMM_FAST) {
        hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_array_matmul: precision %u is none",
                       precision);
        return NULL;
    }
    return product_shape(a, b, &out) ? NULL
                                     : note(OPS_OPERATION_MATMUL, precision, operands, 2, &out);
}
