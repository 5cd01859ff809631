/* Public calls of convolutions: shapes, and the gradients in terms of convolutions. */
#include "convolution_direct.h"
#include "convolution_implicit.h"
#include "convolution_pointwise.h"
#include "convolution_weights.h"

#include <string.h>

/* Reads the lengths of weights [outputs, inputs of one group, window], of a transposed convolution
 * with the two exchanged: its input's channels are the first axis. */
static hal_status check_weights(ops_convolution_form *f, const ops_array *x, const ops_array *w,
                                bool is_transposed)
{
    char text[2][OPS_TEXT_BYTES];
    const int64_t channels = x->view.shape[1], g = f->groups;
    bool fits = w->view.rank == x->view.rank && w->view.type == x->view.type &&
                hal_type_is_float(x->view.type) && w->view.shape[1] > 0;
    if (fits) {
        fits = w->view.shape[0] % g == 0 &&
               channels == (is_transposed ? w->view.shape[0] : w->view.shape[1] * g) &&
               channels >= g;
    }
    if (!fits) {
        return ops_invalid("%s: w: expected %s of the float type of x %s, with %lld groups of "
                           "channels, got %s",
                           f->function, is_transposed ? "[groups C, O, window]" : "[O, C, window]",
                           ops_describe(&x->view, text[0]), (long long)g,
                           ops_describe(&w->view, text[1]));
    }
    f->images = x->view.shape[0];
    f->inputs = channels / g;
    f->outputs = is_transposed ? w->view.shape[1] : w->view.shape[0] / g;
    for (uint32_t i = 0; i < f->rank; i++) {
        f->window[i] = w->view.shape[i + 2];
    }
    return HAL_OK;
}

static hal_status check_bias(const ops_convolution_form *f, const ops_array *x,
                             const ops_array *bias)
{
    char text[OPS_TEXT_BYTES];
    return !bias || (bias->view.rank == 1 && bias->view.type == x->view.type &&
                     bias->view.shape[0] == f->groups * f->outputs)
               ? HAL_OK
               : ops_invalid("%s: bias: expected %s[%lld], got %s", f->function,
                             hal_type_name(x->view.type), (long long)(f->groups * f->outputs),
                             ops_describe(&bias->view, text));
}

static ops_array *convolve_implicit(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                    ops_array *bias)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    int64_t lengths[OPS_MAX_SPATIAL] = {0};
    for (uint32_t i = 0; i < f->rank; i++) {
        lengths[i] = f->length[i] + f->before[i] + f->after[i];
    }
    const int64_t channels = ops_convolution_implicit_channels(f, x);
    x = ops_convolution_place_last(f, f->before, step, lengths, channels, x);
    return x ? ops_convolution_implicit(f, x, w, bias) : NULL;
}

static ops_array *convolve(const ops_convolution_options *options, ops_array *x, ops_array *w,
                           ops_array *bias)
{
    ops_convolution_form f;
    if (ops_convolution_begin("ops_array_convolution", options, x->view.rank - 2, &f) ||
        !(x = ops_convolution_channels_second(&f, x)) || check_weights(&f, x, w, false) ||
        check_bias(&f, x, bias)) {
        return NULL;
    }
    memcpy(f.length, x->view.shape + 2, f.rank * sizeof *f.length);
    if (ops_convolution_places(&f)) {
        return NULL;
    }
    if (ops_convolution_is_direct(&f, false, x)) {
        return ops_convolution_direct(&f, false, x, w, bias);
    }
    const bool has_results = f.images > 0 && f.outputs > 0;
    if (ops_convolution_is_implicit(&f, x, false)) {
        return convolve_implicit(&f, x, w, bias);
    }
    if (ops_convolution_is_pointwise(&f) && has_results) {
        return ops_convolution_pointwise(&f, false, x, w, bias);
    }
    if (ops_convolution_is_depthwise(&f) && has_results) {
        return ops_convolution_depthwise(&f, x, w, bias);
    }
    if (!(x = ops_convolution_pad(&f, x))) {
        return NULL;
    }
    return ops_convolution_channels_last(&f, ops_convolution_compute(&f, x, w, bias));
}

ops_array *ops_array_convolution(const ops_convolution_options *options, ops_array *x, ops_array *w,
                                 ops_array *bias)
{
    ops_array *const operands[3] = {x, w, bias};
    ops_arrays *arrays = ops_compose_begin("ops_array_convolution", operands, bias ? 3 : 2);
    return arrays ? ops_compose_end(arrays, convolve(options, x, w, bias)) : NULL;
}

/* Along one axis: the length of y, from the argument or the least one, and of x with zeros. */
static hal_status transposed_length(ops_convolution_form *f, uint32_t i, int64_t places,
                                    const int64_t *lengths)
{
    const bool fits =
        places >= 1 && places <= INT32_MAX && f->window[i] >= 1 && f->window[i] <= INT32_MAX;
    const int64_t reach = fits ? (f->window[i] - 1) * f->dilation[i] : 0;
    const int64_t spread = fits ? (places - 1) * f->stride[i] : 0;
    f->places[i] = lengths ? lengths[i] : spread + reach + 1 - f->before[i] - f->after[i];
    if (!fits || f->places[i] < 1 || f->places[i] > INT32_MAX) {
        return ops_invalid("%s: lengths: expected 1 to 2^31 - 1 along spatial axis %u, got %lld "
                           "from %lld places and a window of %lld",
                           f->function, i, (long long)f->places[i], (long long)places,
                           (long long)f->window[i]);
    }
    f->length[i] = f->places[i] + reach;
    return HAL_OK;
}

/* Weights [groups C, O, window] as those of the convolution: [groups O, C, turned window]. */
static ops_array *turn_weights(const ops_convolution_form *f, ops_array *w)
{
    int64_t shape[OPS_MAX_RANK] = {f->groups, f->inputs, f->outputs};
    int64_t turned[OPS_MAX_RANK] = {f->groups * f->outputs, f->inputs};
    for (uint32_t i = 0; w && i < f->rank; i++) {
        shape[i + 3] = turned[i + 2] = f->window[i];
        w = ops_array_slice(w, (int32_t)i + 2, f->window[i] - 1, f->window[i], -1);
    }
    w = w ? ops_array_reshape(w, f->rank + 3, shape) : NULL;
    w = w ? ops_array_transpose(w, 1, 2) : NULL;
    return w ? ops_array_reshape(w, f->rank + 2, turned) : NULL;
}

/* As a convolution of x with zeros, whose windows are 1 apart. */
static ops_convolution_form spread_form(const ops_convolution_form *f)
{
    ops_convolution_form spread = *f;
    for (uint32_t i = 0; i < f->rank; i++) {
        spread.stride[i] = 1;
        spread.before[i] = spread.after[i] = 0;
    }
    return spread;
}

/* Where x begins among the zeros of that convolution. */
static void spread_start(const ops_convolution_form *f, int64_t start[OPS_MAX_SPATIAL])
{
    for (uint32_t i = 0; i < f->rank; i++) {
        start[i] = (f->window[i] - 1) * f->dilation[i] - f->before[i];
    }
}

static bool is_implicit_transposed(const ops_convolution_form *f, const ops_array *x)
{
    const ops_convolution_form spread = spread_form(f);
    return ops_convolution_is_implicit(&spread, x, false);
}

static ops_array *convolve_transposed_implicit(const ops_convolution_form *f, ops_array *x,
                                               ops_array *w, ops_array *bias)
{
    const ops_convolution_form spread = spread_form(f);
    if (ops_convolution_has_phases(f, true)) {
        return ops_convolution_phases(f, true, x, w, bias);
    }
    int64_t start[OPS_MAX_SPATIAL];
    spread_start(f, start);
    const int64_t channels = ops_convolution_implicit_channels(&spread, x);
    x = ops_convolution_place_last(f, start, f->stride, f->length, channels, x);
    return x ? ops_convolution_implicit(&spread, x, w, bias) : NULL;
}

static ops_array *convolve_transposed(const ops_convolution_options *options, ops_array *x,
                                      ops_array *w, ops_array *bias, const int64_t *lengths)
{
    ops_convolution_form f;
    if (ops_convolution_begin("ops_array_convolution_transposed", options, x->view.rank - 2, &f) ||
        !(x = ops_convolution_channels_second(&f, x)) || check_weights(&f, x, w, true) ||
        check_bias(&f, x, bias)) {
        return NULL;
    }
    for (uint32_t i = 0; i < f.rank; i++) {
        if (transposed_length(&f, i, x->view.shape[i + 2], lengths)) {
            return NULL;
        }
    }
    if (ops_convolution_is_by_columns(&f, x)) {
        return ops_convolution_by_columns(&f, x, w, bias);
    }
    if (ops_convolution_is_direct(&f, true, x)) {
        return ops_convolution_direct(&f, true, x, w, bias);
    }
    if (ops_convolution_is_pointwise(&f) && f.images > 0 && f.outputs > 0) {
        return ops_convolution_pointwise(&f, true, x, w, bias);
    }
    w = turn_weights(&f, w);
    if (w && !ops_convolution_is_depthwise(&f) && is_implicit_transposed(&f, x)) {
        return convolve_transposed_implicit(&f, x, w, bias);
    }
    if (w && f.images > 0 && f.groups * f.outputs > 0 && ops_convolution_has_phases(&f, false)) {
        return ops_convolution_phases(&f, false, x, w, bias);
    }
    int64_t start[OPS_MAX_SPATIAL];
    spread_start(&f, start);
    x = ops_convolution_place(&f, start, f.stride, f.length, x->view.shape[1], x);
    f = spread_form(&f); /* x has its zeros */
    if (x && w && ops_convolution_is_depthwise(&f) && f.images > 0 && f.outputs > 0) {
        return ops_convolution_depthwise(&f, x, w, bias);
    }
    return x && w ? ops_convolution_channels_last(&f, ops_convolution_compute(&f, x, w, bias))
                  : NULL;
}

ops_array *ops_array_convolution_transposed(const ops_convolution_options *options, ops_array *x,
                                            ops_array *w, ops_array *bias, const int64_t *lengths)
{
    ops_array *const operands[3] = {x, w, bias};
    ops_arrays *arrays =
        ops_compose_begin("ops_array_convolution_transposed", operands, bias ? 3 : 2);
    return arrays ? ops_compose_end(arrays, convolve_transposed(options, x, w, bias, lengths))
                  : NULL;
}

static ops_array *weights(const ops_convolution_options *options, ops_array *x, ops_array *dy,
                          const int64_t *window)
{
    const char *function = "ops_array_convolution_weights";
    ops_convolution_form f;
    char text[2][OPS_TEXT_BYTES];
    if (ops_convolution_begin(function, options, x->view.rank - 2, &f)) {
        return NULL;
    }
    bool fits = window && dy->view.rank == x->view.rank && dy->view.type == x->view.type &&
                hal_type_is_float(x->view.type);
    if (fits) {
        x = ops_convolution_channels_second(&f, x);
        dy = ops_convolution_channels_second(&f, dy);
        if (!x || !dy) {
            return NULL;
        }
        memcpy(f.window, window, f.rank * sizeof *window);
        memcpy(f.length, x->view.shape + 2, f.rank * sizeof *window);
        if (ops_convolution_places(&f)) {
            return NULL;
        }
        fits = x->view.shape[0] == dy->view.shape[0] && x->view.shape[1] % f.groups == 0 &&
               dy->view.shape[1] % f.groups == 0 && x->view.shape[1] > 0 &&
               memcmp(f.places, dy->view.shape + 2, f.rank * sizeof *window) == 0;
    }
    if (!fits) {
        ops_invalid("%s: dy: expected the gradient of the convolution of x %s, and a window, got "
                    "%s",
                    function, ops_describe(&x->view, text[0]), ops_describe(&dy->view, text[1]));
        return NULL;
    }
    int64_t shape[OPS_MAX_RANK] = {dy->view.shape[1], x->view.shape[1] / f.groups};
    memcpy(shape + 2, window, f.rank * sizeof *window);
    f.images = x->view.shape[0];
    f.inputs = x->view.shape[1] / f.groups;
    f.outputs = dy->view.shape[1] / f.groups;
    uint64_t bytes;
    if (ops_check_shape(function, x->view.type, f.rank + 2, shape, &bytes)) {
        return NULL;
    }
    if (f.images == 0 || f.outputs == 0) {
        return ops_array_full(x->owner->context, x->view.type, f.rank + 2, shape, 0);
    }
    if (!ops_convolution_weights_at_once(&f, x) && ops_convolution_is_implicit(&f, x, true)) {
        return ops_convolution_implicit_weights(&f, x, dy);
    }
    return ops_convolution_weights(&f, x, dy);
}

ops_array *ops_array_convolution_weights(const ops_convolution_options *options, ops_array *x,
                                         ops_array *dy, const int64_t *window)
{
    ops_array *const operands[2] = {x, dy};
    ops_arrays *arrays = ops_compose_begin("ops_array_convolution_weights", operands, 2);
    return arrays ? ops_compose_end(arrays, weights(options, x, dy, window)) : NULL;
}
