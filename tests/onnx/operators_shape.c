/* Shapes, views, parts, and arrays made of numbers. */
#include "operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void map_reshape(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK];
    const int32_t rank = onnx_host_integers(c, c->x[1], shape, ONNX_MAX_RANK);
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] == 0 && !onnx_integer(c, "allowzero", 0)) {
            shape[i] = ops_array_get_length(c->x[0], i);
        }
    }
    c->y[0] = rank < 0 ? NULL : ops_array_reshape(c->x[0], (uint32_t)rank, shape);
}

static void map_transpose(onnx_call *c)
{
    int64_t order[ONNX_MAX_RANK];
    int32_t axes[ONNX_MAX_RANK];
    const int32_t rank = (int32_t)ops_array_get_rank(c->x[0]);
    const bool given = onnx_integers(c, "perm", order, ONNX_MAX_RANK) >= 0;
    for (int32_t i = 0; i < rank; i++) {
        axes[i] = given ? (int32_t)order[i] : rank - 1 - i;
    }
    c->y[0] = ops_array_permute(c->x[0], axes);
}

/* The axes of an attribute or of input 1, as bits of `rank` axes; 0 without them. */
static uint32_t axes_of(onnx_call *c, uint32_t rank)
{
    int64_t axes[ONNX_MAX_RANK];
    int32_t count = onnx_integers(c, "axes", axes, ONNX_MAX_RANK);
    uint32_t bits = 0;
    if (c->node->input_count > 1 && c->x[1]) {
        count = onnx_host_integers(c, c->x[1], axes, ONNX_MAX_RANK);
        rank += c->node->operator_name[0] == 'U' && count > 0 ? (uint32_t)count : 0;
    }
    for (int32_t i = 0; i < count; i++) {
        bits |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    }
    return bits;
}

static void map_squeeze(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK], kept[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(c->x[0], shape), bits = axes_of(c, rank);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (bits ? !(bits >> i & 1) : shape[i] != 1) {
            kept[count++] = shape[i];
        }
    }
    c->y[0] = ops_array_reshape(c->x[0], count, kept);
}

static void map_unsqueeze(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK], longer[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(c->x[0], shape), bits = axes_of(c, rank);
    const uint32_t count = rank + (uint32_t)__builtin_popcount(bits);
    for (uint32_t i = 0, at = 0; i < count && count <= ONNX_MAX_RANK; i++) {
        longer[i] = bits >> i & 1 ? 1 : shape[at++];
    }
    c->y[0] = ops_array_reshape(c->x[0], count, longer);
}

static void map_flatten(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK], flat[2] = {1, 1};
    const uint32_t rank = onnx_shape(c->x[0], shape);
    int64_t axis = onnx_integer(c, "axis", 1);
    axis += axis < 0 ? rank : 0;
    for (int64_t i = 0; i < rank; i++) {
        flat[i >= axis] *= shape[i];
    }
    c->y[0] = ops_array_reshape(c->x[0], 2, flat);
}

static void map_expand(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK], wanted[ONNX_MAX_RANK], result[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(c->x[0], shape);
    const int32_t given = onnx_host_integers(c, c->x[1], wanted, ONNX_MAX_RANK);
    if (given < 0) {
        return;
    }
    const uint32_t count = (uint32_t)given > rank ? (uint32_t)given : rank;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t one = i < rank ? shape[rank - 1 - i] : 1;
        const int64_t other = i < (uint32_t)given ? wanted[given - 1 - (int32_t)i] : 1;
        result[count - 1 - i] = one == 1 ? other : one;
    }
    c->y[0] = ops_array_broadcast(c->x[0], count, result);
}

static void map_concat(onnx_call *c)
{
    const int32_t axis = onnx_axis(c->x[0], onnx_integer(c, "axis", 0));
    c->y[0] = ops_array_concatenate(axis, c->x, c->node->input_count);
}

static void map_split(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", 0));
    const int64_t length = ops_array_get_length(x, axis), count = c->node->output_count;
    int64_t lengths[ONNX_MAX_OPERANDS], start = 0;
    int32_t given = onnx_integers(c, "split", lengths, ONNX_MAX_OPERANDS);
    if (c->node->input_count > 1 && c->x[1]) {
        given = onnx_host_integers(c, c->x[1], lengths, ONNX_MAX_OPERANDS);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t even = (length + count - 1) / count, rest = length - start;
        const int64_t part = given > 0 ? lengths[i] : even < rest ? even : rest;
        c->y[i] = ops_array_slice(x, axis, start, part, 1);
        start += part;
    }
}

/* One axis as NumPy slices it. */
static ops_array *slice_axis(ops_array *x, int32_t axis, int64_t start, int64_t end, int64_t step)
{
    const int64_t length = ops_array_get_length(x, axis);
    const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? length - 1 : length;
    start = start < -length ? -length : start;
    end = end < -length - 1 ? -length - 1 : end;
    start += start < 0 ? length : 0;
    end += end < 0 ? length : 0;
    start = start < least ? least : start > most ? most : start;
    end = end < least ? least : end > most ? most : end;
    const int64_t gap = step < 0 ? start - end : end - start, size = llabs(step);
    const int64_t count = gap > 0 ? (gap + size - 1) / size : 0;
    return ops_array_slice(x, axis, count ? start : 0, count, step);
}

static void map_slice(onnx_call *c)
{
    int64_t starts[ONNX_MAX_RANK], ends[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    const int32_t count = onnx_host_integers(c, c->x[1], starts, ONNX_MAX_RANK);
    if (count < 0 || onnx_host_integers(c, c->x[2], ends, ONNX_MAX_RANK) != count) {
        onnx_skip(c, "bounds that the host does not know");
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (c->node->input_count > 3 && c->x[3]) {
        onnx_host_integers(c, c->x[3], axes, ONNX_MAX_RANK);
    }
    if (c->node->input_count > 4 && c->x[4]) {
        onnx_host_integers(c, c->x[4], steps, ONNX_MAX_RANK);
    }
    ops_array *y = ops_array_unary(OPS_IDENTITY, c->x[0]);
    for (int32_t i = 0; i < count; i++) {
        y = slice_axis(y, onnx_axis(y, axes[i]), starts[i], ends[i], steps[i]);
    }
    c->y[0] = y;
}

static int64_t clamped(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static void map_shape(onnx_call *c)
{
    int64_t shape[ONNX_MAX_RANK];
    const int64_t rank = onnx_shape(c->x[0], shape);
    int64_t start = onnx_integer(c, "start", 0), end = onnx_integer(c, "end", rank);
    start = clamped(start < 0 ? start + rank : start, 0, rank);
    end = clamped(end < 0 ? end + rank : end, start, rank);
    c->y[0] = onnx_vector(c, shape + start, end - start);
}

static void map_size(onnx_call *c)
{
    const int64_t count = ops_array_get_element_count(c->x[0]);
    c->y[0] = ops_array_from_host(c->context, HAL_TYPE_I64, 0, NULL, &count);
}

static void map_constant(onnx_call *c)
{
    const onnx_attribute *value = &c->node->attributes[0];
    const onnx_tensor *x = &value->tensor;
    const int64_t count = value->count;
    const float number = (float)value->number;
    float *narrow = calloc((size_t)count + 1, sizeof *narrow);
    for (int64_t i = 0; narrow && value->kind == 'F' && i < count; i++) {
        double wide;
        memcpy(&wide, value->numbers + 8 * i, sizeof wide);
        narrow[i] = (float)wide;
    }
    switch (value->kind) {
    case 't':
        c->y[0] = ops_array_from_host(c->context, x->type, x->rank, x->shape, x->elements);
        break;
    case 'f':
        c->y[0] = ops_array_from_host(c->context, HAL_TYPE_F32, 0, NULL, &number);
        break;
    case 'i':
        c->y[0] = ops_array_from_host(c->context, HAL_TYPE_I64, 0, NULL, &value->integer);
        break;
    case 'I':
        c->y[0] = ops_array_from_host(c->context, HAL_TYPE_I64, 1, &count, value->numbers);
        break;
    case 'F':
        c->y[0] = ops_array_from_host(c->context, HAL_TYPE_F32, 1, &count, narrow);
        break;
    default:
        onnx_skip(c, "strings");
    }
    free(narrow);
}

static void map_constant_of_shape(onnx_call *c)
{
    static const float zero;
    const onnx_attribute *found = onnx_find(c, "value");
    int64_t shape[ONNX_MAX_RANK];
    const int32_t rank = onnx_host_integers(c, c->x[0], shape, ONNX_MAX_RANK);
    if (rank >= 0) {
        ops_array *one = ops_array_from_host(c->context, found ? found->tensor.type : HAL_TYPE_F32,
                                             0, NULL, found ? found->tensor.elements : &zero);
        c->y[0] = ops_array_broadcast(one, (uint32_t)rank, shape);
    }
}

static void map_range(onnx_call *c)
{
    const hal_type type = ops_array_get_type(c->x[0]);
    const double start = onnx_host_number(c, c->x[0], 0), end = onnx_host_number(c, c->x[1], 0);
    const double step = onnx_host_number(c, c->x[2], 1);
    const int64_t count = (int64_t)ceil((end - start) / step);
    c->y[0] = ops_array_iota(c->context, type, count > 0 ? count : 0, start, step);
}

static void map_tile(onnx_call *c)
{
    int64_t repeats[ONNX_MAX_RANK];
    const int32_t count = onnx_host_integers(c, c->x[1], repeats, ONNX_MAX_RANK);
    ops_array *y = c->x[0];
    for (int32_t axis = 0; axis < count; axis++) {
        ops_array *parts[ONNX_MAX_OPERANDS];
        if (repeats[axis] > ONNX_MAX_OPERANDS) {
            onnx_skip(c, "more than %d repetitions", (int)ONNX_MAX_OPERANDS);
            return;
        }
        for (int64_t i = 0; i < repeats[axis]; i++) {
            parts[i] = y;
        }
        y = repeats[axis] > 0 ? ops_array_concatenate(axis, parts, (uint32_t)repeats[axis])
                              : ops_array_slice(y, axis, 0, 0, 1);
    }
    c->y[0] = count < 0 ? NULL : y;
}

/* Row and column numbers of the last two axes, [rows, 1] and [columns]. */
static ops_array *numbers_of(const onnx_call *c, int64_t count, bool down)
{
    ops_array *line = ops_array_iota(c->context, HAL_TYPE_I32, count, 0, 1);
    return down ? ops_array_reshape(line, 2, (int64_t[]){count, 1}) : line;
}

static void map_triangle(onnx_call *c)
{
    ops_array *x = c->x[0];
    int64_t k = 0;
    if (c->node->input_count > 1 && c->x[1] && onnx_host_integers(c, c->x[1], &k, 1) < 0) {
        return;
    }
    const int64_t rows = ops_array_get_length(x, -2), columns = ops_array_get_length(x, -1);
    k = clamped(k, -rows - 1, columns + 1);
    ops_array *diagonal = ops_add_scalar(numbers_of(c, rows, true), (double)k);
    ops_array *column = numbers_of(c, columns, false);
    ops_array *zero = ops_array_scalar(c->context, ops_array_get_type(x), 0);
    const bool is_upper = onnx_integer(c, "upper", 1) != 0;
    ops_array *stays = is_upper ? ops_ge(column, diagonal) : ops_le(column, diagonal);
    c->y[0] = ops_array_where(stays, x, zero);
}

static void map_eye(onnx_call *c)
{
    static const int64_t numbers[] = {
        [HAL_TYPE_F32] = 1, [HAL_TYPE_F64] = 11, [HAL_TYPE_I32] = 6, [HAL_TYPE_I64] = 7};
    ops_array *x = c->x[0];
    hal_type type = ops_array_get_type(x);
    const int64_t wanted = onnx_integer(c, "dtype", 0);
    for (hal_type i = 0; wanted && i < sizeof numbers / sizeof *numbers; i++) {
        type = numbers[i] == wanted ? i : type;
    }
    ops_array *row = numbers_of(c, ops_array_get_length(x, 0), true);
    ops_array *column = numbers_of(c, ops_array_get_length(x, 1), false);
    row = ops_add_scalar(row, (double)onnx_integer(c, "k", 0));
    c->y[0] = ops_array_cast(type, ops_eq(row, column));
}

static void map_depth_to_space(onnx_call *c)
{
    int64_t s[ONNX_MAX_RANK];
    const int64_t block = onnx_integer(c, "blocksize", 1);
    onnx_shape(c->x[0], s);
    const int64_t depth = s[1] / (block * block);
    const bool columns_first = strcmp(onnx_text(c, "mode", "DCR"), "CRD") == 0;
    const int64_t parts[2][6] = {{s[0], block, block, depth, s[2], s[3]},
                                 {s[0], depth, block, block, s[2], s[3]}};
    static const int32_t orders[2][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    ops_array *y = ops_array_reshape(c->x[0], 6, parts[columns_first]);
    y = ops_array_permute(y, orders[columns_first]);
    c->y[0] = ops_array_reshape(y, 4, (int64_t[]){s[0], depth, s[2] * block, s[3] * block});
}

static void map_space_to_depth(onnx_call *c)
{
    int64_t s[ONNX_MAX_RANK];
    const int64_t block = onnx_integer(c, "blocksize", 1);
    onnx_shape(c->x[0], s);
    const int64_t parts[6] = {s[0], s[1], s[2] / block, block, s[3] / block, block};
    ops_array *y = ops_array_reshape(c->x[0], 6, parts);
    static const int32_t orders[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
    y = ops_array_permute(y, orders[strcmp(onnx_text(c, "mode", "DCR"), "CRD") == 0]);
    c->y[0] = ops_array_reshape(
        y, 4, (int64_t[]){s[0], s[1] * block * block, s[2] / block, s[3] / block});
}

const onnx_operator onnx_shape_operators[] = {
    {"Reshape", map_reshape},
    {"Transpose", map_transpose},
    {"Squeeze", map_squeeze},
    {"Unsqueeze", map_unsqueeze},
    {"Flatten", map_flatten},
    {"Expand", map_expand},
    {"Concat", map_concat},
    {"Split", map_split},
    {"Slice", map_slice},
    {"Shape", map_shape},
    {"Size", map_size},
    {"Constant", map_constant},
    {"ConstantOfShape", map_constant_of_shape},
    {"Range", map_range},
    {"Tile", map_tile},
    {"Trilu", map_triangle},
    {"EyeLike", map_eye},
    {"DepthToSpace", map_depth_to_space},
    {"SpaceToDepth", map_space_to_depth},
    {NULL, NULL},
};
