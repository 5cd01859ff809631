/* Convolutions of one channel per group: each work-item sums the window of its result. */
#include "functions.h"
#include "index_task.h"
#include "tensor/dispatch.h"

#include <ops/windows.h>

#include <string.h>

/* Views; the coordinates along spatial axes that are tested follow. */
enum { VIEW_Y, VIEW_X, VIEW_W, VIEW_BIAS };

/* Scalars: the distance in x of elements that are `dilation` apart, that of elements of w, and the
 * lengths of tested axes. */
enum { X_STEP = 0, W_STEP = 3, LENGTH = 6, SCALARS = 9 };

/* Most results of a work-item, and places of a line of x that their windows reach. */
enum { DEPTHWISE_RESULTS = 4, DEPTHWISE_LINE = 256 };

/* What the kernel depends on. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct depthwise_form {
    uint32_t rank, activation;
    uint32_t window[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    uint32_t is_baked; /* steps are constants, so that all elements of a window have one address */
    uint32_t tested;   /* a bit for each spatial axis whose coordinates may be beyond x */
    uint32_t has_bias;
    int32_t x_step[OPS_MAX_SPATIAL], w_step[OPS_MAX_SPATIAL]; /* with is_baked */
    /* The results of a work-item are `repeat` neighbours along a spatial axis, whose windows are
     * `stride` apart in x, and they `y_step` apart in y. */
    uint32_t along, repeat, stride;
    int32_t y_step;
} depthwise_form;
OPS_KEY_STRUCTURES_END

/* An index of x or w, to which elements are added. */
static hal_ir_value index_add(hal_ir_builder *b, hal_ir_value index, hal_ir_value step,
                              uint32_t count)
{
    const hal_type type = hal_ir_type_of(b, index);
    return count == 0
               ? index
               : hal_ir_add(b, index,
                            count == 1 ? step
                                       : hal_ir_mul(b, step, ops_index_constant(b, type, count)));
}

/* Whether the element of x at `place`, from the first window's start, is in x along tested axes. */
static hal_ir_value is_inside(hal_ir_builder *b, const ops_element_iter *iter,
                              const ops_index_body *body, const uint32_t *place)
{
    const depthwise_form *f = body->task->form;
    const hal_type type = iter->values->type;
    uint32_t view = VIEW_BIAS + f->has_bias;
    hal_ir_value inside = iter->guard;
    for (uint32_t i = 0; i < f->rank; i++) {
        if (f->tested >> i & 1) {
            const hal_ir_value at =
                hal_ir_add(b, iter->index[view++], ops_index_constant(b, type, place[i]));
            inside = ops_guard_and(b, inside, hal_ir_lt(b, at, body->scalars[LENGTH + i]));
        }
    }
    return inside;
}

/* The element of x at `place`, from that of the first result's window on. */
static hal_ir_value emit_x(hal_ir_builder *b, const ops_element_iter *iter,
                           const ops_index_body *body, const uint32_t *place)
{
    const depthwise_form *f = body->task->form;
    hal_ir_value at = iter->index[VIEW_X];
    int32_t offset = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        offset += (int32_t)place[i] * f->x_step[i];
        at = f->is_baked ? at
                         : index_add(b, at, body->scalars[X_STEP + i], place[i] / f->dilation[i]);
    }
    return hal_ir_load_wide(b, body->task->slots[VIEW_X], at, offset, 1,
                            is_inside(b, iter, body, place));
}

/* The element `k` of the weights. */
static hal_ir_value emit_w(hal_ir_builder *b, const ops_element_iter *iter,
                           const ops_index_body *body, const uint32_t *k)
{
    const depthwise_form *f = body->task->form;
    hal_ir_value at = iter->index[VIEW_W];
    int32_t offset = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        offset += (int32_t)k[i] * f->w_step[i];
        at = f->is_baked ? at : index_add(b, at, body->scalars[W_STEP + i], k[i]);
    }
    return hal_ir_load_wide(b, body->task->slots[VIEW_W], at, offset, 1, iter->guard);
}

/* Sums of a work-item's results, and the weights, which they have in common. */
typedef struct window_sums {
    hal_ir_value sum[DEPTHWISE_RESULTS], w[OPS_DEPTHWISE_ELEMENTS];
} window_sums;

/* Places along `along` that the windows of a work-item's results reach. */
static uint32_t places_along(const depthwise_form *f)
{
    return (f->repeat - 1) * f->stride + (f->window[f->along] - 1) * f->dilation[f->along] + 1;
}

/* Whether result r has an element of its window at a place along `along`, and which. */
static bool has_element(const depthwise_form *f, uint32_t place, uint32_t r, uint32_t *element)
{
    const uint32_t first = r * f->stride, dilation = f->dilation[f->along];
    *element = place >= first ? (place - first) / dilation : 0;
    return place >= first && (place - first) % dilation == 0 && *element < f->window[f->along];
}

/* The number, of those that a work-item loads of a line of x, of element i of the window of result
 * r: the place, where results are neighbours along the line. */
static uint32_t number_in_line(const depthwise_form *f, uint32_t r, uint32_t i)
{
    const uint32_t last = f->rank - 1;
    return f->repeat > 1 && f->along == last ? r * f->stride + i * f->dilation[last] : i;
}

/* Adds the products of a line of the window of one result with elements of x. */
static void emit_line(hal_ir_builder *b, const ops_element_iter *iter, const ops_index_body *body,
                      uint32_t *k, uint32_t r, const hal_ir_value *x, window_sums *sums)
{
    const depthwise_form *f = body->task->form;
    const uint32_t last = f->rank - 1;
    uint32_t first = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        first = first * f->window[i] + (i < last ? k[i] : 0);
    }
    for (k[last] = 0; k[last] < f->window[last]; k[last]++) {
        hal_ir_value *w = &sums->w[first + k[last]];
        *w = *w == HAL_IR_NONE ? emit_w(b, iter, body, k) : *w;
    }
    for (uint32_t i = 0; i < f->window[last]; i++) {
        const hal_ir_value at = x[number_in_line(f, r, i)], w = sums->w[first + i];
        hal_ir_value *sum = &sums->sum[r];
        *sum = *sum == HAL_IR_NONE ? hal_ir_mul(b, at, w) : hal_ir_fma(b, at, w, *sum);
    }
}

/* Loads a line of x, whose elements may share an address, and adds its products to the results.
 * Where results are neighbours along an axis before the last one, k[along] is the line's place. */
static void emit_line_of_x(hal_ir_builder *b, const ops_element_iter *iter,
                           const ops_index_body *body, const uint32_t *k, window_sums *sums)
{
    const depthwise_form *f = body->task->form;
    const uint32_t last = f->rank - 1, results = f->along == last ? f->repeat : 1;
    hal_ir_value x[DEPTHWISE_LINE];
    uint32_t place[OPS_MAX_SPATIAL] = {0}, of[OPS_MAX_SPATIAL];
    for (uint32_t i = 0; i < last; i++) {
        place[i] = i == f->along ? k[i] : k[i] * f->dilation[i];
    }
    for (uint32_t i = 0; i < DEPTHWISE_LINE; i++) {
        x[i] = HAL_IR_NONE;
    }
    for (uint32_t r = 0; r < results; r++) {
        for (uint32_t i = 0; i < f->window[last]; i++) {
            hal_ir_value *at = &x[number_in_line(f, r, i)];
            place[last] = r * f->stride + i * f->dilation[last];
            *at = *at == HAL_IR_NONE ? emit_x(b, iter, body, place) : *at;
        }
    }
    for (uint32_t r = 0; r < f->repeat; r++) {
        memcpy(of, k, sizeof of);
        if (f->along == last || has_element(f, k[f->along], r, &of[f->along])) {
            emit_line(b, iter, body, of, r, x, sums);
        }
    }
}

/* The products of a result are added in the order of its window, so that its bits do not depend on
 * the other results of the work-item. */
static void emit_sums(hal_ir_builder *b, const ops_element_iter *iter, const ops_index_body *body,
                      window_sums *sums)
{
    const depthwise_form *f = body->task->form;
    const uint32_t last = f->rank - 1;
    uint32_t lines = 1, length[OPS_MAX_SPATIAL];
    for (uint32_t i = 0; i < OPS_DEPTHWISE_ELEMENTS; i++) {
        sums->w[i] = HAL_IR_NONE;
    }
    for (uint32_t i = 0; i < DEPTHWISE_RESULTS; i++) {
        sums->sum[i] = HAL_IR_NONE;
    }
    for (uint32_t i = 0; i < last; i++) {
        length[i] = i == f->along ? places_along(f) : f->window[i];
        lines *= length[i];
    }
    for (uint32_t n = 0; n < lines; n++) {
        uint32_t k[OPS_MAX_SPATIAL] = {0}, rest = n;
        for (uint32_t i = last; i-- > 0; rest /= length[i]) {
            k[i] = rest % length[i];
        }
        emit_line_of_x(b, iter, body, k, sums);
    }
}

/* The body's expression of the activation. */
typedef struct depthwise_call {
    depthwise_form form; /* first: what the kernel depends on */
    const ops_expression *activation;
} depthwise_call;

static void emit_depthwise(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const depthwise_call *call = t->form;
    window_sums sums;
    hal_ir_value bias = HAL_IR_NONE;
    emit_sums(b, iter, body, &sums);
    if (call->form.has_bias) {
        bias = hal_ir_load_wide(b, t->slots[VIEW_BIAS], iter->index[VIEW_BIAS], 0, 1, iter->guard);
    }
    for (uint32_t r = 0; r < call->form.repeat; r++) {
        hal_ir_value sum = sums.sum[r];
        sum = bias == HAL_IR_NONE ? sum : hal_ir_add(b, sum, bias);
        if (call->activation) {
            hal_ir_splice(b, call->activation->fragment, &sum, 1, &sum, 1);
        }
        hal_ir_store_wide(b, t->slots[VIEW_Y], iter->index[VIEW_Y], (int32_t)r * call->form.y_step,
                          iter->guard, sum);
    }
}

static hal_status check_options(const ops_depthwise_options *o)
{
    static const char function[] = "ops_depthwise";
    if (!o) {
        return ops_invalid("%s: options: expected a pointer, got null", function);
    }
    HAL_TRY(ops_check_size(function, "options", o->size, sizeof *o));
    if (o->rank < 1 || o->rank > OPS_MAX_SPATIAL || o->activation >= OPS_UNARY_COUNT) {
        return ops_invalid("%s: options: expected 1 to %u spatial axes and an ops_unary_function, "
                           "got %u and %u",
                           function, OPS_MAX_SPATIAL, o->rank, o->activation);
    }
    for (uint32_t i = 0; i < o->rank; i++) {
        if (o->stride[i] < 1 || o->stride[i] > INT32_MAX || o->dilation[i] < 1 ||
            o->dilation[i] > INT32_MAX || o->before[i] < 0 || o->before[i] > INT32_MAX) {
            return ops_invalid("%s: options: expected stride and dilation of 1, and before of 0, "
                               "to 2^31 - 1 along axis %u, got %lld, %lld and %lld",
                               function, i, (long long)o->stride[i], (long long)o->dilation[i],
                               (long long)o->before[i]);
        }
    }
    return HAL_OK;
}

static hal_status check_depthwise(const ops_context *context, const ops_depthwise_options *o,
                                  const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                                  const ops_tensor *y)
{
    static const char function[] = "ops_depthwise";
    char text[3][OPS_TEXT_BYTES];
    HAL_TRY(ops_check_tensor(context, function, "x", x));
    HAL_TRY(ops_check_tensor(context, function, "w", w));
    HAL_TRY(ops_check_output(context, function, "y", y));
    HAL_TRY(check_options(o));
    bool fits = x->rank == o->rank + 2 && w->rank == o->rank + 1 && y->rank == o->rank + 2 &&
                x->type == y->type && w->type == y->type && hal_type_is_float(y->type) &&
                x->shape[0] == y->shape[0] && w->shape[0] == y->shape[1] && x->shape[1] > 0 &&
                y->shape[1] % x->shape[1] == 0;
    int64_t volume = 1;
    for (uint32_t i = 0; i < o->rank && fits; i++) {
        fits = w->shape[i + 1] >= 1 && w->shape[i + 1] <= OPS_DEPTHWISE_ELEMENTS;
        volume *= w->shape[i + 1];
    }
    if (!fits || volume > OPS_DEPTHWISE_ELEMENTS) {
        return ops_invalid("%s: w: expected [C m, window] of at most %u elements for y [N, C m, "
                           "places] %s and x %s of one float type, got %s",
                           function, OPS_DEPTHWISE_ELEMENTS, ops_describe(y, text[0]),
                           ops_describe(x, text[1]), ops_describe(w, text[2]));
    }
    if (bias) {
        HAL_TRY(ops_check_tensor(context, function, "bias", bias));
        if (bias->rank != 1 || bias->type != y->type || bias->shape[0] != y->shape[1]) {
            return ops_invalid("%s: bias: expected one number for each channel of y %s, got %s",
                               function, ops_describe(y, text[0]), ops_describe(bias, text[1]));
        }
        HAL_TRY(ops_check_apart(function, "bias", bias, y));
    }
    HAL_TRY(ops_check_apart(function, "x", x, y));
    return ops_check_apart(function, "w", w, y);
}

/* Splits the channels of y, w or a bias at an axis: [C, m]. */
static ops_tensor split_channels(const ops_tensor *x, uint32_t axis, int64_t channels)
{
    ops_tensor split = *x;
    const uint32_t after = x->rank - axis - 1;
    memmove(split.shape + axis + 2, x->shape + axis + 1, after * sizeof *x->shape);
    memmove(split.stride + axis + 2, x->stride + axis + 1, after * sizeof *x->stride);
    split.rank = x->rank + 1;
    split.shape[axis] = channels;
    split.shape[axis + 1] = x->shape[axis] / channels;
    split.stride[axis] = x->stride[axis] * split.shape[axis + 1];
    split.stride[axis + 1] = x->stride[axis];
    return split;
}

/* Adds x, and the coordinates that may be beyond it; sets the form and the scalars of both. */
static void add_x(ops_context *context, ops_index_task *t, const ops_depthwise_options *o,
                  const ops_tensor *x, const ops_tensor *y, depthwise_form *f,
                  int64_t scalars[SCALARS])
{
    ops_tensor view = ops_index_spread(y, x, 2, x->stride); /* in [N, C, m, places] */
    int64_t first, end;
    ops_span(x, &first, &end);
    t->reach = end - first;
    for (uint32_t i = 0; i < o->rank; i++) {
        const int64_t step = x->stride[i + 2], length = x->shape[i + 2];
        const int64_t reach =
            (y->shape[i + 3] * (f->along == i ? f->repeat : 1) - 1) * o->stride[i] +
            (int64_t)(f->window[i] - 1) * o->dilation[i];
        view.stride[i + 3] = step * o->stride[i] * (f->along == i ? f->repeat : 1);
        view.offset -= step * o->before[i];
        scalars[X_STEP + i] = step * o->dilation[i];
        scalars[LENGTH + i] = length;
        f->tested |= (uint32_t)(o->before[i] > 0 || reach - o->before[i] >= length) << i;
        t->reach += (reach + o->before[i]) * (step < 0 ? -step : step);
    }
    ops_index_add_view(context, t, x, &view, HAL_ACCESS_READ);
}

static void add_coordinates(ops_index_task *t, const ops_depthwise_options *o, const ops_tensor *y,
                            uint32_t tested)
{
    for (uint32_t i = 0; i < o->rank; i++) {
        if (tested >> i & 1) {
            ops_tensor at = ops_index_spread(y, y, 0, NULL);
            at.stride[i + 3] = o->stride[i];
            ops_space_add(&t->space, &at, -o->before[i]);
        }
    }
}

/* Whether offsets of 32 bits reach all elements of a window. */
static bool steps_fit(const ops_depthwise_options *o, const ops_tensor *x, const ops_tensor *w)
{
    const int64_t most = INT32_MAX / (OPS_MAX_SPATIAL * OPS_DEPTHWISE_ELEMENTS);
    bool fits = true;
    for (uint32_t i = 0; i < o->rank && fits; i++) {
        const int64_t of_x = x->stride[i + 2], of_w = w->stride[i + 1];
        fits = of_x <= most / o->dilation[i] && of_x >= -most / o->dilation[i] && of_w <= most &&
               of_w >= -most;
    }
    return fits;
}

/* Makes constants of the steps. */
static void bake_steps(const ops_tensor *x, const ops_tensor *w, depthwise_form *f)
{
    f->is_baked = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        f->x_step[i] = (int32_t)x->stride[i + 2];
        f->w_step[i] = (int32_t)w->stride[i + 1];
    }
}

/* Records results of which `call->form.repeat` are computed by a work-item. */
static hal_status record_depthwise(ops_context *context, const ops_depthwise_options *o,
                                   const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                                   const ops_tensor *result, depthwise_call *call)
{
    depthwise_form *f = &call->form;
    int64_t scalars[SCALARS] = {0};
    ops_tensor y = split_channels(result, 1, x->shape[1]);
    const int64_t many = y.shape[2];
    y.shape[f->along + 3] /= f->repeat;
    y.stride[f->along + 3] *= f->repeat;
    ops_index_task t = {.function = "ops_depthwise",
                        .name = "depthwise",
                        .family = OPS_FAMILY_DEPTHWISE,
                        .body = emit_depthwise,
                        .form = call,
                        .form_bytes = sizeof *f,
                        .repeatable = 1,
                        .work = f->repeat,
                        .scalar_names = {"x0", "x1", "x2", "w0", "w1", "w2", "l0", "l1", "l2"}};
    ops_space_begin(&t.space, y.rank, y.shape);
    ops_index_add_view(context, &t, result, &y, HAL_ACCESS_WRITE);
    add_x(context, &t, o, x, &y, f, scalars);
    for (uint32_t i = 0; i < o->rank; i++) {
        scalars[W_STEP + i] = w->stride[i + 1];
        t.work *= f->window[i];
    }
    /* Indices before x wrap, which the constant that is added to one does not. */
    if (context->tuning->convolution.bakes_steps && f->tested == 0 && steps_fit(o, x, w)) {
        bake_steps(x, w, f);
    }
    const int64_t of_w[3] = {0, w->stride[0] * many, w->stride[0]};
    const ops_tensor weights = ops_index_spread(&y, w, 3, of_w);
    ops_index_add_view(context, &t, w, &weights, HAL_ACCESS_READ);
    if (bias) {
        const int64_t of_bias[3] = {0, bias->stride[0] * many, bias->stride[0]};
        const ops_tensor sums = ops_index_spread(&y, bias, 3, of_bias);
        ops_index_add_view(context, &t, bias, &sums, HAL_ACCESS_READ);
    }
    add_coordinates(&t, o, &y, f->tested);
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    for (uint32_t i = 0; i < SCALARS; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

/* The axis of y along which a work-item computes several results, which share elements of x and
 * the weights: not that of lanes, which is the last axis or the channels. Sets their number, 1 for
 * none. */
static uint32_t choose_results(const ops_context *context, const ops_depthwise_options *o,
                               const ops_tensor *x, const ops_tensor *w, const ops_tensor *y,
                               uint32_t *results)
{
    const uint32_t last = o->rank - 1;
    const bool channels_last = y->stride[1] == 1 && y->shape[1] > 1;
    const uint32_t along = channels_last || last == 0 ? last : last - 1;
    bool fits = context->tuning->convolution.bakes_steps && (channels_last || last > 0) &&
                steps_fit(o, x, w);
    for (uint32_t i = 0; i < o->rank; i++) {
        fits = fits && o->before[i] == 0 &&
               (y->shape[i + 2] - 1) * o->stride[i] + (w->shape[i + 1] - 1) * o->dilation[i] <
                   x->shape[i + 2];
    }
    const int64_t most = context->tuning->convolution.results;
    const int64_t step = y->stride[along + 2] < 0 ? -y->stride[along + 2] : y->stride[along + 2];
    fits = fits && step <= INT32_MAX / DEPTHWISE_RESULTS && o->stride[along] <= DEPTHWISE_LINE &&
           o->dilation[along] <= DEPTHWISE_LINE &&
           (most - 1) * o->stride[along] + (w->shape[along + 1] - 1) * o->dilation[along] <
               DEPTHWISE_LINE;
    *results = !fits ? 1 : (uint32_t)(y->shape[along + 2] < most ? y->shape[along + 2] : most);
    return *results > 1 ? along : last;
}

/* Records the results by work-items of several, and what is left of them. */
static hal_status record_results(ops_context *context, const ops_depthwise_options *o,
                                 const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                                 const ops_tensor *y, depthwise_call *call)
{
    const depthwise_form form = call->form;
    uint32_t results;
    const uint32_t along = choose_results(context, o, x, w, y, &results);
    const int64_t length = y->shape[along + 2];
    for (int64_t first = 0; first < length;) {
        ops_tensor part = *y, of_x = *x;
        const int64_t rest = length - first, many = rest < results ? rest : results;
        const int64_t count = many > 1 ? rest / many * many : rest;
        const int64_t at = first * o->stride[along];
        if (results > 1) {
            HAL_TRY(ops_tensor_slice(y, (int32_t)along + 2, first, count, 1, &part));
            HAL_TRY(
                ops_tensor_slice(x, (int32_t)along + 2, at, x->shape[along + 2] - at, 1, &of_x));
        }
        call->form = form;
        call->form.along = along;
        call->form.repeat = (uint32_t)many;
        call->form.stride = many > 1 ? (uint32_t)o->stride[along] : 0;
        call->form.y_step = many > 1 ? (int32_t)y->stride[along + 2] : 0;
        HAL_TRY(record_depthwise(context, o, &of_x, w, bias, &part, call));
        first += count;
    }
    return HAL_OK;
}

hal_status ops_depthwise(ops_context *context, const ops_depthwise_options *options,
                         const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                         const ops_tensor *y)
{
    HAL_TRY(check_depthwise(context, options, x, w, bias, y));
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    depthwise_call call;
    memset(&call, 0, sizeof call); /* the key has its bytes */
    call.form.rank = options->rank;
    call.form.activation = options->activation;
    call.form.has_bias = bias != NULL;
    for (uint32_t i = 0; i < options->rank; i++) {
        call.form.window[i] = (uint32_t)w->shape[i + 1];
        call.form.dilation[i] = (uint32_t)options->dilation[i];
    }
    if (options->activation != OPS_IDENTITY) {
        ops_expression *activation;
        HAL_TRY(ops_unary_expression(context, "ops_depthwise",
                                     (ops_unary_function)options->activation, y->type,
                                     &activation));
        call.activation = activation;
    }
    return record_results(context, options, x, w, bias, y, &call);
}
