/* Convolutions. */
#include "operators.h"

#include <string.h>

enum { SPATIAL = OPS_MAX_SPATIAL };

/* Padding by the attribute auto_pad: as many places as steps fit into the length. */
static void pad_same(const onnx_call *c, ops_convolution_options *o, const int64_t *window)
{
    const char *word = onnx_text(c, "auto_pad", "NOTSET");
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(c->x[0]) - 2; i++) {
        const int64_t length = ops_array_get_length(c->x[0], i + 2);
        const int64_t places = (length + o->stride[i] - 1) / o->stride[i];
        const int64_t reach = (window[i] - 1) * o->dilation[i] + 1;
        const int64_t total = (places - 1) * o->stride[i] + reach - length;
        const int64_t less = total > 0 ? total / 2 : 0, more = total > 0 ? total - less : 0;
        if (strncmp(word, "SAME", 4) == 0) {
            o->before[i] = strcmp(word, "SAME_UPPER") == 0 ? less : more;
            o->after[i] = strcmp(word, "SAME_UPPER") == 0 ? more : less;
        }
    }
}

/* The options; `window` gets the lengths of the weights' window. */
static ops_convolution_options options_of(const onnx_call *c, int64_t *window)
{
    ops_convolution_options o = {.size = sizeof o, .groups = onnx_integer(c, "group", 1)};
    const int32_t rank = (int32_t)ops_array_get_rank(c->x[0]) - 2;
    int64_t pads[2 * SPATIAL] = {0};
    for (int32_t i = 0; i < SPATIAL; i++) {
        o.stride[i] = o.dilation[i] = 1;
        window[i] = i < rank ? ops_array_get_length(c->x[1], i + 2) : 1;
    }
    onnx_integers(c, "strides", o.stride, SPATIAL);
    onnx_integers(c, "dilations", o.dilation, SPATIAL);
    onnx_integers(c, "pads", pads, 2 * SPATIAL);
    for (int32_t i = 0; i < rank; i++) {
        o.before[i] = pads[i];
        o.after[i] = pads[rank + i];
    }
    return o;
}

static ops_array *bias_of(const onnx_call *c)
{
    return c->node->input_count > 2 ? c->x[2] : NULL;
}

static void map_conv(onnx_call *c)
{
    int64_t window[SPATIAL];
    ops_convolution_options o = options_of(c, window);
    pad_same(c, &o, window);
    c->y[0] = ops_array_convolution(&o, c->x[0], c->x[1], bias_of(c));
}

static void map_conv_transpose(onnx_call *c)
{
    int64_t window[SPATIAL], lengths[SPATIAL], more[SPATIAL] = {0}, given[SPATIAL];
    ops_convolution_options o = options_of(c, window);
    const bool is_given = onnx_integers(c, "output_shape", given, SPATIAL) > 0;
    const char *word = onnx_text(c, "auto_pad", "NOTSET");
    onnx_integers(c, "output_padding", more, SPATIAL);
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(c->x[0]) - 2; i++) {
        const int64_t places = ops_array_get_length(c->x[0], i + 2);
        const int64_t reach = (window[i] - 1) * o.dilation[i] + 1;
        const int64_t all = (places - 1) * o.stride[i] + more[i] + reach;
        const bool is_same = strncmp(word, "SAME", 4) == 0;
        if (is_given || is_same) {
            lengths[i] = is_given ? given[i] : places * o.stride[i];
            const int64_t total = all > lengths[i] ? all - lengths[i] : 0;
            o.before[i] = strcmp(word, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        } else {
            lengths[i] = all - o.before[i] - o.after[i];
        }
    }
    c->y[0] = ops_array_convolution_transposed(&o, c->x[0], c->x[1], bias_of(c), lengths);
}

/* x less its zero point, in F32, which holds the sums of the standard's cases. */
static ops_array *shifted(const onnx_call *c, uint32_t x, uint32_t zero)
{
    ops_array *value = ops_array_cast(HAL_TYPE_F32, c->x[x]);
    return c->node->input_count > zero && c->x[zero]
               ? ops_sub(value, ops_array_cast(HAL_TYPE_F32, c->x[zero]))
               : value;
}

static void map_conv_integer(onnx_call *c)
{
    int64_t window[SPATIAL];
    ops_convolution_options o = options_of(c, window);
    pad_same(c, &o, window);
    ops_array *w = ops_array_cast(HAL_TYPE_F32, c->x[1]);
    if (c->node->input_count > 3 && c->x[3]) { /* one zero point, or one for each result */
        ops_array *zero = ops_array_cast(HAL_TYPE_F32, c->x[3]);
        w = ops_sub(w, ops_array_reshape(zero, 4, (int64_t[]){-1, 1, 1, 1}));
    }
    ops_array *y = ops_array_convolution(&o, shifted(c, 0, 2), w, NULL);
    c->y[0] = ops_array_cast(HAL_TYPE_I32, y);
}

const onnx_operator onnx_network_operators[] = {
    {"Conv", map_conv},
    {"ConvTranspose", map_conv_transpose},
    {"ConvInteger", map_conv_integer},
    {NULL, NULL},
};
