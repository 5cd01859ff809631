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

/* What the kernel depends on. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct depthwise_form {
    uint32_t rank, activation;
    uint32_t window[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    uint32_t is_baked; /* steps are constants, so that all elements of a window have one address */
    uint32_t tested;   /* a bit for each spatial axis whose coordinates may be beyond x */
    uint32_t has_bias;
    int32_t x_step[OPS_MAX_SPATIAL], w_step[OPS_MAX_SPATIAL]; /* with is_baked */
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

/* Whether element k of the window is in x along the tested axes. */
static hal_ir_value is_inside(hal_ir_builder *b, const ops_element_iter *iter,
                              const ops_index_body *body, const uint32_t *k)
{
    const depthwise_form *f = body->task->form;
    const hal_type type = iter->values->type;
    uint32_t view = VIEW_BIAS + f->has_bias;
    hal_ir_value inside = iter->guard;
    for (uint32_t i = 0; i < f->rank; i++) {
        if (f->tested >> i & 1) {
            const hal_ir_value at = hal_ir_add(b, iter->index[view++],
                                               ops_index_constant(b, type, k[i] * f->dilation[i]));
            inside = ops_guard_and(b, inside, hal_ir_lt(b, at, body->scalars[LENGTH + i]));
        }
    }
    return inside;
}

/* The element `k` of the window, of x and w. */
static void emit_element(hal_ir_builder *b, const ops_element_iter *iter,
                         const ops_index_body *body, const uint32_t *k, hal_ir_value *x,
                         hal_ir_value *w)
{
    const ops_index_task *t = body->task;
    const depthwise_form *f = t->form;
    hal_ir_value at_x = iter->index[VIEW_X], at_w = iter->index[VIEW_W];
    int32_t offset_x = 0, offset_w = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        offset_x += (int32_t)k[i] * f->x_step[i];
        offset_w += (int32_t)k[i] * f->w_step[i];
        at_x = f->is_baked ? at_x : index_add(b, at_x, body->scalars[X_STEP + i], k[i]);
        at_w = f->is_baked ? at_w : index_add(b, at_w, body->scalars[W_STEP + i], k[i]);
    }
    if (x) {
        *x = hal_ir_load_wide(b, t->slots[VIEW_X], at_x, offset_x, 1, is_inside(b, iter, body, k));
    } else {
        *w = hal_ir_load_wide(b, t->slots[VIEW_W], at_w, offset_w, 1, iter->guard);
    }
}

/* Elements of a line of the window are loaded together: they may share an address. */
static hal_ir_value emit_sum(hal_ir_builder *b, const ops_element_iter *iter,
                             const ops_index_body *body)
{
    const depthwise_form *f = body->task->form;
    const uint32_t last = f->rank - 1, line = f->window[last];
    hal_ir_value sum = HAL_IR_NONE, x[OPS_DEPTHWISE_ELEMENTS], w[OPS_DEPTHWISE_ELEMENTS];
    uint32_t lines = 1;
    for (uint32_t i = 0; i < last; i++) {
        lines *= f->window[i];
    }
    for (uint32_t n = 0; n < lines; n++) {
        uint32_t k[OPS_MAX_SPATIAL] = {0}, rest = n;
        for (uint32_t i = last; i-- > 0; rest /= f->window[i]) {
            k[i] = rest % f->window[i];
        }
        for (uint32_t pass = 0; pass < 2; pass++) {
            for (k[last] = 0; k[last] < line; k[last]++) {
                emit_element(b, iter, body, k, pass == 0 ? &x[k[last]] : NULL, &w[k[last]]);
            }
        }
        for (uint32_t i = 0; i < line; i++) {
            sum = sum == HAL_IR_NONE ? hal_ir_mul(b, x[i], w[i]) : hal_ir_fma(b, x[i], w[i], sum);
        }
    }
    return sum;
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
    hal_ir_value sum = emit_sum(b, iter, body);
    if (call->form.has_bias) {
        const hal_ir_value bias =
            hal_ir_load_wide(b, t->slots[VIEW_BIAS], iter->index[VIEW_BIAS], 0, 1, iter->guard);
        sum = hal_ir_add(b, sum, bias);
    }
    if (call->activation) {
        hal_ir_splice(b, call->activation->fragment, &sum, 1, &sum, 1);
    }
    hal_ir_store_wide(b, t->slots[VIEW_Y], iter->index[VIEW_Y], 0, iter->guard, sum);
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

/* A view in the space of results [N, C, m, places] that has the strides given, else 0. */
static ops_tensor spread(const ops_tensor *space, const ops_tensor *of, int64_t image,
                         int64_t channel, int64_t multiple)
{
    ops_tensor view = *space;
    view.buffer = of->buffer;
    view.type = of->type;
    view.offset = of->offset;
    memset(view.stride, 0, sizeof view.stride);
    view.stride[0] = image;
    view.stride[1] = channel;
    view.stride[2] = multiple;
    return view;
}

/* Adds x, and the coordinates that may be beyond it; sets the form and the scalars of both. */
static void add_x(ops_context *context, ops_index_task *t, const ops_depthwise_options *o,
                  const ops_tensor *x, const ops_tensor *y, depthwise_form *f,
                  int64_t scalars[SCALARS])
{
    ops_tensor view = spread(y, x, x->stride[0], x->stride[1], 0);
    int64_t first, end;
    ops_span(x, &first, &end);
    t->reach = end - first;
    for (uint32_t i = 0; i < o->rank; i++) {
        const int64_t step = x->stride[i + 2], length = x->shape[i + 2];
        const int64_t reach =
            (y->shape[i + 3] - 1) * o->stride[i] + (int64_t)(f->window[i] - 1) * o->dilation[i];
        view.stride[i + 3] = step * o->stride[i];
        view.offset -= step * o->before[i];
        scalars[X_STEP + i] = step * o->dilation[i];
        scalars[LENGTH + i] = length;
        f->tested |= (uint32_t)(o->before[i] > 0 || reach - o->before[i] >= length) << i;
        t->reach += (reach + o->before[i]) * (step < 0 ? -step : step);
    }
    ops_index_add_view(context, t, x, &view);
}

static void add_coordinates(ops_index_task *t, const ops_depthwise_options *o, const ops_tensor *y,
                            uint32_t tested)
{
    for (uint32_t i = 0; i < o->rank; i++) {
        if (tested >> i & 1) {
            ops_tensor at = spread(y, y, 0, 0, 0);
            at.stride[i + 3] = o->stride[i];
            ops_space_add(&t->space, &at, -o->before[i]);
        }
    }
}

/* Makes constants of the steps, where offsets of 32 bits reach all elements of a window. */
static void bake_steps(const int64_t scalars[SCALARS], depthwise_form *f)
{
    const int64_t most = INT32_MAX / (OPS_MAX_SPATIAL * OPS_DEPTHWISE_ELEMENTS);
    bool fits = true;
    for (uint32_t i = 0; i < f->rank && fits; i++) {
        const int64_t x = scalars[X_STEP + i], w = scalars[W_STEP + i];
        fits = x <= most && x >= -most && w <= most && w >= -most;
        f->x_step[i] = (int32_t)x;
        f->w_step[i] = (int32_t)w;
    }
    f->is_baked = fits;
    if (!fits) {
        memset(f->x_step, 0, sizeof f->x_step);
        memset(f->w_step, 0, sizeof f->w_step);
    }
}

static hal_status record_depthwise(ops_context *context, const ops_depthwise_options *o,
                                   const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                                   const ops_tensor *result, depthwise_call *call)
{
    depthwise_form *f = &call->form;
    int64_t scalars[SCALARS] = {0};
    const ops_tensor y = split_channels(result, 1, x->shape[1]);
    const int64_t many = y.shape[2];
    ops_index_task t = {.function = "ops_depthwise",
                        .name = "depthwise",
                        .family = OPS_FAMILY_DEPTHWISE,
                        .body = emit_depthwise,
                        .form = call,
                        .form_bytes = sizeof *f,
                        .repeatable = 1,
                        .scalar_names = {"x0", "x1", "x2", "w0", "w1", "w2", "l0", "l1", "l2"}};
    ops_space_begin(&t.space, y.rank, y.shape);
    ops_index_add(context, &t, &y, HAL_ACCESS_WRITE);
    add_x(context, &t, o, x, &y, f, scalars);
    for (uint32_t i = 0; i < o->rank; i++) {
        scalars[W_STEP + i] = w->stride[i + 1];
    }
    /* Indices before x wrap, which the constant that is added to one does not. */
    if (context->tuning->convolution.bakes_steps && f->tested == 0) {
        bake_steps(scalars, f);
    }
    const ops_tensor weights = spread(&y, w, 0, w->stride[0] * many, w->stride[0]);
    ops_index_add_view(context, &t, w, &weights);
    if (bias) {
        const ops_tensor sums = spread(&y, bias, 0, bias->stride[0] * many, bias->stride[0]);
        ops_index_add_view(context, &t, bias, &sums);
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
    return record_depthwise(context, options, x, w, bias, y, &call);
}
