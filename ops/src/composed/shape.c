/* Padding, mirrored and shifted axes, repetitions, triangles. */
#include "compose.h"

#include <ops/shape.h>

/* x modulo a period, from 0 on. */
static ops_array *modulo(ops_array *x, int64_t period)
{
    ops_array *divisor = ops_compose_scalar(x, (double)period);
    return ops_rem(ops_add(ops_rem(x, divisor), divisor), divisor);
}

/* The elements along an axis of `length` that a padded one takes, from their numbers. */
static ops_array *sources(ops_pad_mode mode, int64_t length, ops_array *numbers)
{
    if (mode == OPS_PAD_EDGE || length == 1) {
        return ops_minimum_scalar(ops_maximum_scalar(numbers, 0), (double)(length - 1));
    }
    if (mode == OPS_PAD_WRAP) {
        return modulo(numbers, length);
    }
    const int64_t period = 2 * (length - 1);
    ops_array *at = modulo(numbers, period);
    return ops_minimum(at, ops_array_scalar_binary(OPS_SUB, (double)period, at));
}

static ops_array *pad_axis(ops_pad_mode mode, uint32_t axis, int64_t before, int64_t after,
                           ops_array *x)
{
    const int64_t length = x->view.shape[axis];
    ops_array *numbers =
        ops_compose_count(x->owner->context, 1, 0, before + length + after, -before, 1);
    return ops_array_gather((int32_t)axis, x, numbers ? sources(mode, length, numbers) : NULL);
}

/* Removes what negative numbers say, and counts what is added. */
static ops_array *crop(const int64_t *before, const int64_t *after, ops_array *x, bool *is_longer)
{
    for (uint32_t i = 0; x && i < x->view.rank; i++) {
        const int64_t length = x->view.shape[i], most = INT64_C(1) << 48;
        const int64_t start = before[i] < 0 ? -before[i] : 0, end = after[i] < 0 ? -after[i] : 0;
        if (before[i] > most || after[i] > most || length > most || start > length ||
            end > length - start) {
            char text[OPS_TEXT_BYTES];
            ops_invalid("ops_array_pad: before, after: expected numbers that leave elements of "
                        "axis %u of %s, got %lld and %lld",
                        i, ops_describe(&x->view, text), (long long)before[i], (long long)after[i]);
            return NULL;
        }
        *is_longer |= before[i] > 0 || after[i] > 0;
        x = ops_compose_slice(x, i, start, length - start - end, 1);
    }
    return x;
}

static ops_array *pad_constant(const int64_t *before, const int64_t *after, double value,
                               ops_array *x)
{
    int64_t shape[OPS_MAX_RANK], start[OPS_MAX_RANK];
    const uint32_t rank = ops_compose_shape(x, shape);
    for (uint32_t i = 0; i < rank; i++) {
        start[i] = before[i] > 0 ? before[i] : 0;
        shape[i] += start[i] + (after[i] > 0 ? after[i] : 0);
    }
    return ops_compose_pad(start, shape, value, x);
}

static ops_array *pad(ops_pad_mode mode, const int64_t *before, const int64_t *after, double value,
                      ops_array *x)
{
    bool is_longer = false;
    if (((!before || !after) && x->view.rank > 0) || (uint32_t)mode >= OPS_PAD_MODE_COUNT) {
        ops_invalid("ops_array_pad: mode, before, after: expected an ops_pad_mode and two lists of "
                    "%u numbers, got %d%s",
                    x->view.rank, (int)mode, before && after ? "" : " and null");
        return NULL;
    }
    x = crop(before, after, x, &is_longer);
    if (!x || !is_longer) {
        return x;
    }
    if (mode == OPS_PAD_CONSTANT) {
        return pad_constant(before, after, value, x);
    }
    for (uint32_t i = 0; x && i < x->view.rank; i++) {
        const int64_t more = before[i] > 0 ? before[i] : 0, less = after[i] > 0 ? after[i] : 0;
        if (more + less > 0 && x->view.shape[i] == 0) {
            ops_invalid("ops_array_pad: x: expected elements along axis %u, which is padded with "
                        "its own, got none",
                        i);
            return NULL;
        }
        x = more + less > 0 ? pad_axis(mode, i, more, less, x) : x;
    }
    return x;
}

ops_array *ops_array_pad(ops_pad_mode mode, const int64_t *before, const int64_t *after,
                         double value, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_pad", &x, 1);
    return arrays ? ops_compose_end(arrays, pad(mode, before, after, value, x)) : NULL;
}

ops_array *ops_array_flip(const int32_t *axes, uint32_t axis_count, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_flip", &x, 1);
    if (!arrays) {
        return NULL;
    }
    ops_array *y = x;
    if (!axes && axis_count > 0) {
        ops_invalid("ops_array_flip: axes: expected a pointer, got null");
        y = NULL;
    }
    for (uint32_t i = 0; y && i < axis_count; i++) {
        uint32_t axis;
        const hal_status status =
            ops_check_axis("ops_array_flip", "axes", &x->view, axes[i], &axis);
        const int64_t length = status == HAL_OK ? x->view.shape[axis] : 0;
        y = status != HAL_OK ? NULL
            : length > 0     ? ops_array_slice(y, axes[i], length - 1, length, -1)
                             : y;
    }
    return ops_compose_end(arrays, y);
}

static ops_array *roll(int32_t given_axis, int64_t shift, ops_array *x)
{
    uint32_t axis;
    if (ops_check_axis("ops_array_roll", "axis", &x->view, given_axis, &axis)) {
        return NULL;
    }
    const int64_t length = x->view.shape[axis];
    const int64_t moved = length > 0 ? (shift % length + length) % length : 0;
    if (moved == 0) {
        return x;
    }
    ops_array *parts[2] = {ops_compose_slice(x, axis, length - moved, moved, 1),
                           ops_compose_slice(x, axis, 0, length - moved, 1)};
    return ops_array_concatenate((int32_t)axis, parts, 2);
}

ops_array *ops_array_roll(int32_t axis, int64_t shift, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_roll", &x, 1);
    return arrays ? ops_compose_end(arrays, roll(axis, shift, x)) : NULL;
}

/* An axis at a time, which is split in two: [..., repeats, length, ...]. */
static ops_array *tile(const int64_t *repeats, ops_array *x)
{
    const uint32_t rank = x->view.rank;
    for (uint32_t axis = 0; x && axis < rank; axis++) {
        int64_t shape[OPS_MAX_RANK];
        ops_compose_shape(x, shape);
        int64_t inner = 1, outer = 1;
        if (repeats[axis] < 0 || __builtin_mul_overflow(shape[axis], repeats[axis], &inner)) {
            ops_invalid("ops_array_tile: repeats[%u]: expected at least 0, and a length that 63 "
                        "bits count, got %lld",
                        axis, (long long)repeats[axis]);
            return NULL;
        }
        if (repeats[axis] == 1) {
            continue;
        }
        const int64_t length = shape[axis];
        shape[axis] = inner;
        inner = length;
        for (uint32_t i = 0; i < rank; i++) {
            outer *= i < axis ? shape[i] : 1;
            inner *= i > axis ? shape[i] : 1;
        }
        x = ops_array_reshape(x, 3, (int64_t[]){outer, 1, inner});
        x = x ? ops_array_broadcast(x, 3, (int64_t[]){outer, repeats[axis], inner}) : NULL;
        x = x ? ops_array_reshape(x, rank, shape) : NULL;
    }
    return x;
}

ops_array *ops_array_tile(const int64_t *repeats, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_tile", &x, 1);
    if (arrays && !repeats && x->view.rank > 0) {
        ops_invalid("ops_array_tile: repeats: expected a pointer, got null");
        return ops_compose_end(arrays, NULL);
    }
    return arrays ? ops_compose_end(arrays, tile(repeats, x)) : NULL;
}

static ops_array *triangle(const char *function, ops_binary_function keeps, int64_t offset,
                           ops_array *x)
{
    const uint32_t rank = x->view.rank;
    char text[OPS_TEXT_BYTES];
    if (rank < 2 || x->view.shape[rank - 1] > INT32_MAX / 4 ||
        x->view.shape[rank - 2] > INT32_MAX / 4) {
        ops_invalid("%s: x: expected at least two axes, of lengths up to 2^29, got %s", function,
                    ops_describe(&x->view, text));
        return NULL;
    }
    const int64_t rows = x->view.shape[rank - 2], columns = x->view.shape[rank - 1];
    offset = offset < -rows - 1 ? -rows - 1 : offset > columns + 1 ? columns + 1 : offset;
    ops_context *context = x->owner->context;
    ops_array *row = ops_array_iota(context, HAL_TYPE_I32, rows, (double)offset, 1);
    ops_array *column = ops_array_iota(context, HAL_TYPE_I32, columns, 0, 1);
    row = row ? ops_array_reshape(row, 2, (int64_t[]){rows, 1}) : NULL;
    return ops_array_where(ops_array_binary(keeps, column, row), x, ops_compose_scalar(x, 0));
}

ops_array *ops_array_lower_triangle(int64_t offset, ops_array *x)
{
    const char *function = "ops_array_lower_triangle";
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    return arrays ? ops_compose_end(arrays, triangle(function, OPS_LE, offset, x)) : NULL;
}

ops_array *ops_array_upper_triangle(int64_t offset, ops_array *x)
{
    const char *function = "ops_array_upper_triangle";
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    return arrays ? ops_compose_end(arrays, triangle(function, OPS_GE, offset, x)) : NULL;
}
