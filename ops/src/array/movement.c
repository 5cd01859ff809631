/* Public calls that move elements by index: gather, take_along_axis, scatter, concatenate, one_hot,
 * copy. */
#include "deferred.h"

#include "kernels/scatter_atomic.h"

static hal_status check_indices(const char *function, const ops_array *indices)
{
    const hal_type type = indices->view.type;
    if (type == HAL_TYPE_I32 || type == HAL_TYPE_I64) {
        return HAL_OK;
    }
    return ops_invalid("%s: indices: expected i32 or i64, got %s", function, hal_type_name(type));
}

/* Checks part number `i` of a concatenation against the first one. */
static hal_status check_part(ops_array *const *parts, uint32_t i, uint32_t axis)
{
    const ops_tensor *first = &parts[0]->view, *part = &parts[i]->view;
    bool fits = part->type == first->type && part->rank == first->rank;
    for (uint32_t j = 0; fits && j < first->rank; j++) {
        fits = j == axis || part->shape[j] == first->shape[j];
    }
    if (fits) {
        return HAL_OK;
    }
    char text[2][OPS_TEXT_BYTES];
    return ops_invalid("ops_array_concatenate: parts[%u]: expected the type and shape of parts[0], "
                       "%s, but for axis %u, got %s",
                       i, ops_describe(first, text[0]), axis, ops_describe(part, text[1]));
}

static hal_status check_parts(ops_array *const *parts, uint32_t count, int32_t axis,
                              ops_result *result)
{
    hal_status status =
        ops_check_axis("ops_array_concatenate", "axis", &parts[0]->view, axis, &result->axis);
    int64_t length = 0;
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        status = check_part(parts, i, result->axis);
        if (status == HAL_OK &&
            __builtin_add_overflow(length, parts[i]->view.shape[result->axis], &length)) {
            status = ops_invalid("ops_array_concatenate: parts: expected a length that 63 bits "
                                 "count, got a longer one along axis %u",
                                 result->axis);
        }
    }
    ops_result_own_shape(result)[result->axis] = length;
    return status;
}

/* Concatenates any number of parts. Neighbours are joined first where there are more than a node
 * takes, as few as leave OPS_MAX_OPERANDS, because those are copied twice. */
static ops_array *concatenate_parts(ops_array *const *parts, uint32_t count, uint32_t axis)
{
    ops_array *operands[OPS_MAX_OPERANDS], *joined[OPS_MAX_OPERANDS] = {0};
    uint32_t longest = 1, operand_count = 0;
    while (longest < (count - 1) / OPS_MAX_OPERANDS + 1) {
        longest *= OPS_MAX_OPERANDS;
    }
    bool is_whole = true;
    for (uint32_t i = 0; i < count && is_whole; operand_count++) {
        const uint32_t left = OPS_MAX_OPERANDS - operand_count;
        const uint32_t excess = count - i > left ? count - i - left : 0;
        const uint32_t length = excess < longest ? excess + 1 : longest;
        if (length > 1) {
            joined[operand_count] = concatenate_parts(parts + i, length, axis);
            is_whole = joined[operand_count] != NULL;
        }
        operands[operand_count] = length > 1 ? joined[operand_count] : parts[i];
        i += length;
    }
    ops_result result;
    ops_array *whole = NULL;
    if (is_whole) {
        ops_result_like(operands[0], &result);
        is_whole = check_parts(operands, operand_count, (int32_t)axis, &result) == HAL_OK;
        whole = is_whole ? ops_defer("ops_array_concatenate", OPS_OPERATION_CONCATENATE, 0,
                                     operands, operand_count, &result)
                         : NULL;
    }
    for (uint32_t i = 0; i < operand_count; i++) {
        if (joined[i]) {
            ops_node_release(joined[i]);
        }
    }
    return whole;
}

ops_array *ops_array_gather(int32_t axis, ops_array *x, ops_array *indices)
{
    ops_array *const operands[2] = {x, indices};
    ops_result result;
    uint32_t along;
    if (!ops_check_operands("ops_array_gather", operands, 2) ||
        ops_check_axis("ops_array_gather", "axis", &x->view, axis, &along) ||
        check_indices("ops_array_gather", indices)) {
        return NULL;
    }
    if (indices->view.rank != 1) {
        char text[OPS_TEXT_BYTES];
        ops_invalid("ops_array_gather: indices: expected rank 1, got %s",
                    ops_describe(&indices->view, text));
        return NULL;
    }
    ops_result_like(x, &result);
    result.axis = along;
    ops_result_own_shape(&result)[along] = indices->view.shape[0];
    return ops_defer("ops_array_gather", OPS_OPERATION_GATHER, 0, operands, 2, &result);
}

/* Whether indices have the shape of x except for the length at the axis. */
static bool picks_fit(const ops_array *x, const ops_array *indices, uint32_t axis)
{
    bool fits = x->view.rank == indices->view.rank;
    for (uint32_t i = 0; fits && i < x->view.rank; i++) {
        fits = i == axis || x->view.shape[i] == indices->view.shape[i];
    }
    return fits;
}

/* Checks the indices of each element, and the axis. */
static hal_status check_picks(const char *function, int32_t axis, const ops_array *x,
                              const ops_array *indices, uint32_t *along)
{
    HAL_TRY(ops_check_axis(function, "axis", &x->view, axis, along));
    HAL_TRY(check_indices(function, indices));
    char text[2][OPS_TEXT_BYTES];
    return picks_fit(x, indices, *along)
               ? HAL_OK
               : ops_invalid("%s: indices: expected the shape of x %s except at axis %u, got %s",
                             function, ops_describe(&x->view, text[0]), *along,
                             ops_describe(&indices->view, text[1]));
}

ops_array *ops_array_take_along_axis(int32_t axis, ops_array *x, ops_array *indices)
{
    ops_array *const operands[2] = {x, indices};
    ops_result result;
    uint32_t along;
    if (!ops_check_operands("ops_array_take_along_axis", operands, 2) ||
        check_picks("ops_array_take_along_axis", axis, x, indices, &along)) {
        return NULL;
    }
    ops_result_like(x, &result);
    result.axis = along;
    ops_result_own_shape(&result)[along] = indices->view.shape[along];
    return ops_defer("ops_array_take_along_axis", OPS_OPERATION_TAKE, 0, operands, 2, &result);
}

ops_array *ops_array_scatter(ops_scatter_kind kind, int32_t axis, ops_array *x, ops_array *indices,
                             ops_array *updates)
{
    ops_array *const operands[3] = {x, indices, updates};
    ops_result result;
    uint32_t along;
    if (!ops_check_operands("ops_array_scatter", operands, 3) ||
        check_picks("ops_array_scatter", axis, x, indices, &along)) {
        return NULL;
    }
    if ((uint32_t)kind >= OPS_SCATTER_KIND_COUNT ||
        (kind != OPS_SCATTER_ASSIGN && x->view.type == HAL_TYPE_BOOL)) {
        ops_invalid("ops_array_scatter: kind: expected an ops_scatter_kind, of bool only ASSIGN, "
                    "got %d for %s",
                    (int)kind, hal_type_name(x->view.type));
        return NULL;
    }
    if (updates->view.type != x->view.type || !ops_same_shape(&updates->view, &indices->view)) {
        char text[3][OPS_TEXT_BYTES];
        ops_invalid("ops_array_scatter: updates: expected the type of x %s and the shape of "
                    "indices %s, got %s",
                    ops_describe(&x->view, text[0]), ops_describe(&indices->view, text[1]),
                    ops_describe(&updates->view, text[2]));
        return NULL;
    }
    ops_result_like(x, &result);
    result.axis = along;
    const uint32_t function = ops_scatter_function(x->owner->context, kind);
    return ops_defer("ops_array_scatter", OPS_OPERATION_SCATTER, function, operands, 3, &result);
}

ops_array *ops_array_concatenate(int32_t axis, ops_array *const *parts, uint32_t part_count)
{
    ops_result result;
    if (!parts || part_count == 0) {
        ops_invalid("ops_array_concatenate: parts: expected at least one array, got %s",
                    parts ? "0" : "null");
        return NULL;
    }
    if (!ops_check_operands("ops_array_concatenate", parts, part_count)) {
        return NULL;
    }
    ops_result_like(parts[0], &result);
    if (check_parts(parts, part_count, axis, &result)) {
        return NULL;
    }
    return concatenate_parts(parts, part_count, result.axis);
}

ops_array *ops_array_one_hot(hal_type type, int64_t count, ops_array *indices)
{
    ops_result result;
    ops_arrays *arrays = ops_check_operands("ops_array_one_hot", &indices, 1);
    if (!arrays || check_indices("ops_array_one_hot", indices) ||
        ops_check_type("ops_array_one_hot", arrays, type)) {
        return NULL;
    }
    if (indices->view.rank == OPS_MAX_RANK || count < 0) {
        char text[OPS_TEXT_BYTES];
        ops_invalid("ops_array_one_hot: indices and count: expected a rank below %u and a count of "
                    "at least 0, got %s and %lld",
                    OPS_MAX_RANK, ops_describe(&indices->view, text), (long long)count);
        return NULL;
    }
    ops_result_like(indices, &result);
    result.type = type;
    ops_result_own_shape(&result)[result.rank] = count;
    result.rank++;
    return ops_defer("ops_array_one_hot", OPS_OPERATION_ONE_HOT, 0, &indices, 1, &result);
}

ops_array *ops_copy_like(ops_array *x, const ops_tensor *like)
{
    ops_result result;
    ops_result_like(x, &result);
    result.like = like;
    return ops_defer("ops_array_copy", OPS_OPERATION_UNARY, OPS_IDENTITY, &x, 1, &result);
}

ops_array *ops_array_copy(ops_array *x)
{
    if (!ops_check_operands("ops_array_copy", &x, 1)) {
        return NULL;
    }
    const ops_tensor like = ops_row_major(&x->view);
    return ops_copy_like(x, &like);
}
