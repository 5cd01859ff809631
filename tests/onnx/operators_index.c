/* Elements by index. Negative indices count from the end. */
#include "operators.h"

#include <string.h>

/* Indices from 0 on, I64. */
static ops_array *counted(const onnx_call *c, ops_array *indices, int64_t length)
{
    ops_array *wide = ops_array_cast(HAL_TYPE_I64, indices);
    ops_array *zero = ops_array_scalar(c->context, HAL_TYPE_I64, 0);
    return ops_array_where(ops_lt(wide, zero), ops_add_scalar(wide, (double)length), wide);
}

static void map_gather(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", 0));
    int64_t shape[ONNX_MAX_RANK], picked[ONNX_MAX_RANK], result[2 * ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(x, shape), inner = onnx_shape(c->x[1], picked);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        for (uint32_t j = 0; (int32_t)i == axis && j < inner; j++) {
            result[count++] = picked[j];
        }
        if ((int32_t)i != axis) {
            result[count++] = shape[i];
        }
    }
    ops_array *indices = counted(c, c->x[1], shape[axis]);
    const int64_t total = ops_array_get_element_count(indices);
    ops_array *y = ops_array_gather(axis, x, ops_array_reshape(indices, 1, &total));
    c->y[0] = ops_array_reshape(y, count, result);
}

/* Both tensors cut to the indices' lengths except at the axis. */
static ops_array *cut(ops_array *x, const ops_array *indices, int32_t axis)
{
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(x); i++) {
        const int64_t length = ops_array_get_length(indices, i);
        if (i != axis && length != ops_array_get_length(x, i)) {
            x = ops_array_slice(x, i, 0, length, 1);
        }
    }
    return x;
}

static void map_gather_elements(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", 0));
    ops_array *indices = counted(c, c->x[1], ops_array_get_length(x, axis));
    c->y[0] = ops_array_take_along_axis(axis, cut(x, indices, axis), indices);
}

static ops_scatter_kind kind_of(const onnx_call *c)
{
    static const char *const names[] = {[OPS_SCATTER_ASSIGN] = "none",
                                        [OPS_SCATTER_ADD] = "add",
                                        [OPS_SCATTER_MULTIPLY] = "mul",
                                        [OPS_SCATTER_MAX] = "max",
                                        [OPS_SCATTER_MIN] = "min"};
    const char *name = onnx_text(c, "reduction", "none");
    uint32_t kind = 0;
    while (kind < OPS_SCATTER_KIND_COUNT && strcmp(names[kind], name) != 0) {
        kind++;
    }
    return (ops_scatter_kind)kind;
}

static void map_scatter_elements(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", 0));
    ops_array *indices = counted(c, c->x[1], ops_array_get_length(x, axis));
    ops_array *part = cut(x, indices, axis);
    ops_array *y = ops_array_scatter(kind_of(c), axis, part, indices, c->x[2]);
    ops_tensor target;
    if (part == x || !y) {
        c->y[0] = y;
        return;
    }
    /* The part goes back to where it was. */
    ops_array_describe(x, &target);
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(x); i++) {
        ops_tensor_slice(&target, i, 0, ops_array_get_length(part, i), 1, &target);
    }
    c->y[0] = ops_array_update(x, &target, y);
}

/* The last axis of indices names `depth` axes of x from `first` on: their number in the axes as
 * one. Returns the indices without that axis. */
static ops_array *flat_indices(onnx_call *c, ops_array *indices, const int64_t *lengths)
{
    const int64_t depth = ops_array_get_length(indices, -1);
    ops_array *flat = NULL;
    for (int64_t i = 0; i < depth; i++) {
        ops_array *one = counted(c, ops_array_slice(indices, -1, i, 1, 1), lengths[i]);
        flat = flat ? ops_add(ops_mul_scalar(flat, (double)lengths[i]), one) : one;
    }
    return flat;
}

static int64_t product(const int64_t *lengths, uint32_t count)
{
    int64_t total = 1;
    for (uint32_t i = 0; i < count; i++) {
        total *= lengths[i];
    }
    return total;
}

static void map_gather_nd(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK], picked[ONNX_MAX_RANK], result[2 * ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(c->x[0], shape), inner = onnx_shape(c->x[1], picked);
    const uint32_t batch = (uint32_t)onnx_integer(c, "batch_dims", 0);
    const uint32_t depth = (uint32_t)picked[inner - 1];
    const int64_t lines = product(shape, batch), places = product(shape + batch, depth);
    const int64_t width = product(shape + batch + depth, rank - batch - depth);
    const int64_t count = product(picked + batch, inner - 1 - batch);
    ops_array *x = ops_array_reshape(c->x[0], 2, (int64_t[]){lines * places, width});
    ops_array *flat = flat_indices(c, c->x[1], shape + batch);
    flat = ops_array_reshape(flat, 2, (int64_t[]){lines, count});
    ops_array *base = ops_array_iota(c->context, HAL_TYPE_I64, lines, 0, (double)places);
    flat = ops_add(flat, ops_array_reshape(base, 2, (int64_t[]){lines, 1}));
    flat = ops_array_reshape(flat, 1, (int64_t[]){lines * count});
    memcpy(result, picked, (inner - 1) * sizeof *result);
    memcpy(result + inner - 1, shape + batch + depth, (rank - batch - depth) * sizeof *result);
    c->y[0] =
        ops_array_reshape(ops_array_gather(0, x, flat), inner - 1 + rank - batch - depth, result);
}

static void map_scatter_nd(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(c->x[0], shape);
    const uint32_t depth = (uint32_t)ops_array_get_length(c->x[1], -1);
    const int64_t places = product(shape, depth), width = product(shape + depth, rank - depth);
    ops_array *flat = flat_indices(c, c->x[1], shape);
    const int64_t count = ops_array_get_element_count(flat);
    ops_array *x = ops_array_reshape(c->x[0], 2, (int64_t[]){places, width});
    ops_array *updates = ops_array_reshape(c->x[2], 2, (int64_t[]){count, width});
    flat = ops_array_broadcast(ops_array_reshape(flat, 2, (int64_t[]){count, 1}), 2,
                               (int64_t[]){count, width});
    c->y[0] = ops_array_reshape(ops_array_scatter(kind_of(c), 0, x, flat, updates), rank, shape);
}

static void map_one_hot(onnx_call *c)
{
    ops_array *depth = ops_array_cast(HAL_TYPE_I64, c->x[1]);
    int64_t count;
    if (onnx_host_integers(c, depth, &count, 1) < 0) {
        return;
    }
    ops_array *indices = counted(c, c->x[0], count);
    ops_array *hot = ops_array_one_hot(HAL_TYPE_BOOL, count, indices);
    const int32_t rank = (int32_t)ops_array_get_rank(hot);
    const int64_t axis = onnx_integer(c, "axis", -1);
    const int32_t along = (int32_t)(axis < 0 ? axis + rank : axis);
    int32_t axes[ONNX_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) {
        axes[i] = i < along ? i : i == along ? rank - 1 : i - 1;
    }
    ops_array *off = ops_array_slice(c->x[2], 0, 0, 1, 1);
    ops_array *on = ops_array_slice(c->x[2], 0, 1, 1, 1);
    c->y[0] = ops_array_where(ops_array_permute(hot, axes), on, off);
}

static void map_reverse_sequence(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t time = (int32_t)onnx_integer(c, "time_axis", 0);
    int64_t shape[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(x, shape);
    int64_t line[ONNX_MAX_RANK], column[ONNX_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        line[i] = (int32_t)i == time ? shape[i] : 1;
        column[i] = (int32_t)i == time ? 1 : i < 2 ? shape[i] : 1;
    }
    ops_array *place = ops_array_iota(c->context, HAL_TYPE_I64, shape[time], 0, 1);
    place = ops_array_reshape(place, rank, line);
    ops_array *length = ops_array_reshape(c->x[1], rank, column);
    ops_array *back = ops_sub(ops_add_scalar(length, -1), place);
    ops_array *indices = ops_array_where(ops_lt(place, length), back, place);
    c->y[0] = ops_array_take_along_axis(time, x, ops_array_broadcast(indices, rank, shape));
}

static void map_feature(onnx_call *c)
{
    const int64_t count = ops_array_get_element_count(c->x[1]);
    c->y[0] = ops_array_gather(-1, c->x[0], ops_array_reshape(c->x[1], 1, &count));
}

const onnx_operator onnx_index_operators[] = {
    {"Gather", map_gather},
    {"GatherElements", map_gather_elements},
    {"GatherND", map_gather_nd},
    {"Scatter", map_scatter_elements},
    {"ScatterElements", map_scatter_elements},
    {"ScatterND", map_scatter_nd},
    {"OneHot", map_one_hot},
    {"ReverseSequence", map_reverse_sequence},
    {"ai.onnx.ml.ArrayFeatureExtractor", map_feature},
    {NULL, NULL},
};
