/* Pooling, padding, and what depends on the number of elements. */
#include "operators.h"

#include <ops/pooling.h>
#include <ops/shape.h>
#include <ops/statistics.h>
#include <string.h>

enum { SPATIAL = OPS_MAX_SPATIAL };

static ops_pool_options options_of(onnx_call *c)
{
    ops_pool_options o = {.size = sizeof o,
                          .ceiling = onnx_integer(c, "ceil_mode", 0) != 0,
                          .count_padding = onnx_integer(c, "count_include_pad", 0) != 0};
    const int32_t rank = (int32_t)ops_array_get_rank(c->x[0]) - 2;
    int64_t pads[2 * SPATIAL] = {0};
    for (int32_t i = 0; i < SPATIAL; i++) {
        o.stride[i] = o.dilation[i] = 1;
    }
    onnx_integers(c, "kernel_shape", o.window, SPATIAL);
    onnx_integers(c, "strides", o.stride, SPATIAL);
    onnx_integers(c, "dilations", o.dilation, SPATIAL);
    onnx_integers(c, "pads", pads, 2 * SPATIAL);
    const char *word = onnx_text(c, "auto_pad", "NOTSET");
    for (int32_t i = 0; i < rank; i++) {
        o.before[i] = pads[i];
        o.after[i] = pads[rank + i];
        if (strncmp(word, "SAME", 4) == 0) {
            const int64_t length = ops_array_get_length(c->x[0], i + 2);
            const int64_t places = (length + o.stride[i] - 1) / o.stride[i];
            const int64_t needed =
                (places - 1) * o.stride[i] + (o.window[i] - 1) * o.dilation[i] + 1 - length;
            const int64_t total = needed > 0 ? needed : 0;
            o.before[i] = strcmp(word, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
            o.after[i] = total - o.before[i];
        }
    }
    return o;
}

static void map_average_pool(onnx_call *c)
{
    const ops_pool_options o = options_of(c);
    c->y[0] = ops_array_pool(OPS_POOL_AVERAGE, &o, c->x[0], NULL);
}

/* Places count through the whole of x; with storage_order 1 the columns first. */
static void map_max_pool(onnx_call *c)
{
    const ops_pool_options o = options_of(c);
    if (c->node->output_count < 2) {
        c->y[0] = ops_array_pool(OPS_POOL_MAX, &o, c->x[0], NULL);
        return;
    }
    ops_array *places, *x = c->x[0];
    int64_t shape[ONNX_MAX_RANK], lines[ONNX_MAX_RANK] = {1, 1, 1, 1, 1}, volume = 1;
    const uint32_t rank = onnx_shape(x, shape);
    c->y[0] = ops_array_pool(OPS_POOL_MAX, &o, x, &places);
    for (uint32_t i = 2; i < rank; i++) {
        volume *= shape[i];
    }
    if (onnx_integer(c, "storage_order", 0) && rank == 4) {
        ops_array *width = ops_array_scalar(c->context, HAL_TYPE_I64, (double)shape[3]);
        ops_array *row = ops_div(places, width), *column = ops_rem(places, width);
        places = ops_add(ops_mul_scalar(column, (double)shape[2]), row);
    }
    lines[0] = shape[0];
    lines[1] = shape[1];
    ops_array *start =
        ops_array_iota(c->context, HAL_TYPE_I64, shape[0] * shape[1], 0, (double)volume);
    c->y[1] = ops_add(places, ops_array_reshape(start, rank, lines));
}

static void map_global_pool(onnx_call *c, ops_pool_kind kind)
{
    static const int64_t one[SPATIAL] = {1, 1, 1};
    c->y[0] = ops_array_adaptive_pool(kind, one, 0, c->x[0]);
}

static void map_global_average(onnx_call *c)
{
    map_global_pool(c, OPS_POOL_AVERAGE);
}

static void map_global_max(onnx_call *c)
{
    map_global_pool(c, OPS_POOL_MAX);
}

/* Averages of powers times the number of elements, with padding counted. */
static void map_lp_pool(onnx_call *c)
{
    ops_pool_options o = options_of(c);
    const double p = (double)onnx_integer(c, "p", 2);
    double volume = 1;
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(c->x[0]) - 2; i++) {
        volume *= (double)o.window[i];
    }
    if (o.ceiling) {
        onnx_skip(c, "windows beyond the padding");
        return;
    }
    o.count_padding = 1;
    ops_array *power = ops_pow_scalar(ops_abs(c->x[0]), p);
    ops_array *sum = ops_mul_scalar(ops_array_pool(OPS_POOL_AVERAGE, &o, power, NULL), volume);
    c->y[0] = ops_pow_scalar(sum, 1 / p);
}

static void map_pad(onnx_call *c)
{
    static const char *const modes[] = {[OPS_PAD_CONSTANT] = "constant",
                                        [OPS_PAD_EDGE] = "edge",
                                        [OPS_PAD_REFLECT] = "reflect",
                                        [OPS_PAD_WRAP] = "wrap"};
    int64_t pads[2 * ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    int64_t before[ONNX_MAX_RANK] = {0}, after[ONNX_MAX_RANK] = {0};
    ops_array *x = c->x[0];
    const hal_type type = ops_array_get_type(x);
    const char *name = onnx_text(c, "mode", "constant");
    uint32_t mode = 0;
    while (mode < OPS_PAD_MODE_COUNT && strcmp(modes[mode], name) != 0) {
        mode++;
    }
    int32_t count = onnx_host_integers(c, c->x[1], pads, 2 * ONNX_MAX_RANK) / 2;
    for (int32_t i = 0; i < count; i++) {
        axes[i] = i;
    }
    if (c->node->input_count > 3 && c->x[3]) {
        count = onnx_host_integers(c, c->x[3], axes, ONNX_MAX_RANK);
    }
    for (int32_t i = 0; i < count; i++) {
        before[onnx_axis(x, axes[i])] = pads[i];
        after[onnx_axis(x, axes[i])] = pads[count + i];
    }
    ops_array *given = c->node->input_count > 2 ? c->x[2] : NULL;
    ops_array *used = type == HAL_TYPE_BOOL ? ops_array_cast(HAL_TYPE_U8, x) : x;
    ops_array *y =
        ops_array_pad((ops_pad_mode)mode, before, after, onnx_host_number(c, given, 0), used);
    c->y[0] = type == HAL_TYPE_BOOL ? ops_array_cast(type, y) : y;
}

static void map_nonzero(onnx_call *c)
{
    ops_array *places = ops_array_nonzero(c->x[0]);
    c->y[0] = places ? ops_array_transpose(places, 0, 1) : NULL;
}

static void map_compress(onnx_call *c)
{
    ops_array *x = c->x[0];
    const onnx_attribute *axis = onnx_find(c, "axis");
    ops_array *line = ops_array_nonzero(c->x[1]);
    if (!line) {
        return;
    }
    line = ops_array_reshape(line, 1, (int64_t[]){ops_array_get_length(line, 0)});
    x = axis ? x : ops_array_reshape(x, 1, (int64_t[]){-1});
    c->y[0] = ops_array_gather(axis ? onnx_axis(x, axis->integer) : 0, x, line);
}

static void map_unique(onnx_call *c)
{
    ops_array *inverse, *counts, *x = c->x[0];
    if (onnx_find(c, "axis") || !onnx_integer(c, "sorted", 1)) {
        onnx_skip(c, "along an axis, or in the order of first elements");
        return;
    }
    c->y[0] = ops_array_unique(x, &inverse, &counts);
    const int64_t count = ops_array_get_element_count(x);
    if (!c->y[0]) {
        return;
    }
    /* The first places: the least of each element's. */
    ops_array *place = ops_array_iota(c->context, HAL_TYPE_I64, count, 0, 1);
    const int64_t total = ops_array_get_length(c->y[0], 0);
    ops_array *most = ops_array_full(c->context, HAL_TYPE_I64, 1, &total, (double)count);
    inverse = ops_array_reshape(inverse, 1, &count);
    c->y[1] = ops_array_scatter(OPS_SCATTER_MIN, 0, most, inverse, place);
    c->y[2] = inverse;
    c->y[3] = counts;
}

static void map_center(onnx_call *c)
{
    ops_array *x = c->x[0];
    int64_t lengths[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], before[ONNX_MAX_RANK] = {0},
                                                         after[ONNX_MAX_RANK] = {0};
    const int32_t count = onnx_host_integers(c, c->x[1], lengths, ONNX_MAX_RANK);
    for (int32_t i = 0; i < count; i++) {
        axes[i] = i;
    }
    onnx_integers(c, "axes", axes, ONNX_MAX_RANK);
    for (int32_t i = 0; i < count; i++) {
        const int32_t axis = onnx_axis(x, axes[i]);
        const int64_t more = lengths[i] - ops_array_get_length(x, axis);
        before[axis] = more >= 0 ? more / 2 : -((-more) / 2);
        after[axis] = more - before[axis];
    }
    c->y[0] = ops_array_pad(OPS_PAD_CONSTANT, before, after, 0, x);
}

const onnx_operator onnx_window_operators[] = {
    {"AveragePool", map_average_pool},
    {"MaxPool", map_max_pool},
    {"GlobalAveragePool", map_global_average},
    {"GlobalMaxPool", map_global_max},
    {"LpPool", map_lp_pool},
    {"Pad", map_pad},
    {"NonZero", map_nonzero},
    {"Compress", map_compress},
    {"Unique", map_unique},
    {"CenterCropPad", map_center},
    {NULL, NULL},
};
