/* See depthwise_weights.h. A work-item has a channel and a place of the last axis, which are its
 * neighbours in memory, keeps a sum for each element of the window, and goes through the others. */
#include "depthwise_weights.h"

#include "index_task.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Views; the numbers of the parts follow, and the place along the last axis. */
enum { VIEW_SUMS, VIEW_X, VIEW_DY, VIEW_IMAGES, VIEW_LINES, VIEW_LAST };

/* Scalars: the number of images, distances of images and elements of the window; of each axis the
 * length of x, the number of places, the distance of places in x and dy, and of elements of the
 * window in x. */
enum {
    IMAGES,
    X_IMAGE,
    DY_IMAGE,
    SUM_STEP,
    AXIS_SCALARS,
    LENGTH = 0,
    PLACES,
    X_PLACE,
    DY_PLACE,
    X_STEP,
    SCALARS_OF_AXIS,
    SCALARS = AXIS_SCALARS + OPS_MAX_SPATIAL * SCALARS_OF_AXIS
};

OPS_KEY_STRUCTURES_BEGIN
typedef struct weights_kernel_form {
    uint32_t rank, images, lines;
    uint32_t tested; /* a bit for each spatial axis whose coordinates may be beyond x */
    uint32_t window[OPS_MAX_SPATIAL], stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    uint32_t before[OPS_MAX_SPATIAL];
} weights_kernel_form;
OPS_KEY_STRUCTURES_END

/* A kernel that is emitted. */
typedef struct weights_emitter {
    hal_ir_builder *b;
    const ops_element_iter *iter;
    const ops_index_body *body;
    const weights_kernel_form *form;
    hal_ir_value inside[OPS_MAX_SPATIAL][OPS_DEPTHWISE_ELEMENTS]; /* HAL_IR_NONE: all are */
    hal_ir_value x, dy; /* indices of the place that is multiplied */
} weights_emitter;

static hal_ir_value scalar_of(const weights_emitter *e, uint32_t axis, uint32_t which)
{
    return e->body->scalars[AXIS_SCALARS + axis * SCALARS_OF_AXIS + which];
}

static hal_ir_value index_add(const weights_emitter *e, hal_ir_value index, hal_ir_value count,
                              hal_ir_value step)
{
    const hal_ir_value number = ops_value_cast(e->b, e->iter->values->type, count);
    return hal_ir_add(e->b, index, hal_ir_mul(e->b, number, step));
}

/* Tests the coordinates of the window's elements along an axis, at a place. */
static void emit_inside(weights_emitter *e, uint32_t axis, hal_ir_value place)
{
    hal_ir_builder *b = e->b;
    const weights_kernel_form *f = e->form;
    const hal_ir_value length = ops_value_cast(b, HAL_TYPE_U32, scalar_of(e, axis, LENGTH));
    hal_ir_value first = hal_ir_mul(b, place, hal_ir_u32(b, f->stride[axis]));
    first = hal_ir_sub(b, first, hal_ir_u32(b, f->before[axis])); /* wraps before x */
    for (uint32_t k = 0; k < f->window[axis]; k++) {
        const hal_ir_value at = hal_ir_add(b, first, hal_ir_u32(b, k * f->dilation[axis]));
        e->inside[axis][k] = f->tested >> axis & 1 ? hal_ir_lt(b, at, length) : HAL_IR_NONE;
    }
}

/* Begins the loop over a part of `most` of `all` numbers; returns the number. */
static hal_ir_value begin_part(const weights_emitter *e, hal_ir_value part, uint32_t most,
                               hal_ir_value all)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value step = hal_ir_u32(b, most), end = ops_value_cast(b, HAL_TYPE_U32, all);
    hal_ir_value first = hal_ir_mul(b, ops_value_cast(b, HAL_TYPE_U32, part), step);
    first = hal_ir_min(b, first, end);
    const hal_ir_value last = hal_ir_min(b, hal_ir_add(b, first, step), end);
    return hal_ir_for(b, first, last, hal_ir_u32(b, 1));
}

/* Begins the loops over images and all axes but the last one; returns how many. */
static uint32_t begin_loops(weights_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_element_iter *iter = e->iter;
    const hal_ir_value *scalars = e->body->scalars;
    const uint32_t loops = e->form->rank;
    const hal_ir_value image =
        begin_part(e, iter->index[VIEW_IMAGES], e->form->images, scalars[IMAGES]);
    e->x = index_add(e, e->x, image, scalars[X_IMAGE]);
    e->dy = index_add(e, e->dy, image, scalars[DY_IMAGE]);
    for (uint32_t i = 0; i + 1 < loops; i++) {
        const hal_ir_value places = scalar_of(e, i, PLACES);
        const hal_ir_value place =
            i == 0 ? begin_part(e, iter->index[VIEW_LINES], e->form->lines, places)
                   : hal_ir_for(b, hal_ir_u32(b, 0), ops_value_cast(b, HAL_TYPE_U32, places),
                                hal_ir_u32(b, 1));
        e->x = index_add(e, e->x, place, scalar_of(e, i, X_PLACE));
        e->dy = index_add(e, e->dy, place, scalar_of(e, i, DY_PLACE));
        emit_inside(e, i, place);
    }
    return loops;
}

/* Loads the element of x that element n of the window has. */
static hal_ir_value emit_x(const weights_emitter *e, uint32_t n)
{
    hal_ir_value at = e->x, inside = e->iter->guard;
    for (uint32_t i = e->form->rank, rest = n; i-- > 0; rest /= e->form->window[i]) {
        const uint32_t k = rest % e->form->window[i];
        at = k == 0 ? at : index_add(e, at, hal_ir_u32(e->b, k), scalar_of(e, i, X_STEP));
        inside = ops_guard_and(e->b, inside, e->inside[i][k]);
    }
    return hal_ir_load_wide(e->b, e->body->task->slots[VIEW_X], at, 0, 1, inside);
}

static void emit_weights(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    weights_emitter e = {.b = b, .iter = iter, .body = body, .form = t->form};
    hal_ir_value sums[OPS_DEPTHWISE_ELEMENTS];
    uint32_t volume = 1;
    for (uint32_t i = 0; i < e.form->rank; i++) {
        volume *= e.form->window[i];
    }
    for (uint32_t n = 0; n < volume; n++) {
        sums[n] = hal_ir_var(b, hal_ir_number(b, t->storage, 0));
    }
    e.x = iter->index[VIEW_X];
    e.dy = iter->index[VIEW_DY];
    emit_inside(&e, e.form->rank - 1, ops_value_cast(b, HAL_TYPE_U32, iter->index[VIEW_LAST]));
    const uint32_t loops = begin_loops(&e);
    const hal_ir_value dy = hal_ir_load_wide(b, t->slots[VIEW_DY], e.dy, 0, 1, iter->guard);
    for (uint32_t n = 0; n < volume; n++) {
        hal_ir_set(b, sums[n], hal_ir_fma(b, emit_x(&e, n), dy, hal_ir_get(b, sums[n])));
    }
    for (uint32_t i = 0; i < loops; i++) {
        hal_ir_end(b);
    }
    hal_ir_value at = iter->index[VIEW_SUMS];
    for (uint32_t n = 0; n < volume; n++) {
        hal_ir_store_wide(b, t->slots[VIEW_SUMS], at, 0, iter->guard, hal_ir_get(b, sums[n]));
        at = hal_ir_add(b, at, body->scalars[SUM_STEP]);
    }
}

/* A view in the space [parts of images, of lines, C, m, places of the last axis], without strides
 * for parts. */
static ops_tensor spread(const ops_tensor *space, const ops_tensor *of, int64_t channel,
                         int64_t multiple, int64_t place)
{
    ops_tensor view = *space;
    view.buffer = of->buffer;
    view.type = of->type;
    view.offset = of->offset;
    memset(view.stride, 0, sizeof view.stride);
    view.stride[2] = channel;
    view.stride[3] = multiple;
    view.stride[4] = place;
    return view;
}

/* Sets what depends on the axes. */
static void add_axes(const ops_depthwise_weights_form *form, const ops_tensor *x,
                     const ops_tensor *dy, weights_kernel_form *f, int64_t *scalars,
                     ops_index_task *t, ops_tensor *view)
{
    for (uint32_t i = 0; i < form->rank; i++) {
        const int64_t step = x->stride[i + 2], length = x->shape[i + 2];
        const int64_t reach =
            (dy->shape[i + 2] - 1) * form->stride[i] + (form->window[i] - 1) * form->dilation[i];
        int64_t *of_axis = scalars + AXIS_SCALARS + i * SCALARS_OF_AXIS;
        of_axis[LENGTH] = length;
        of_axis[PLACES] = dy->shape[i + 2];
        of_axis[X_PLACE] = step * form->stride[i];
        of_axis[DY_PLACE] = dy->stride[i + 2];
        of_axis[X_STEP] = step * form->dilation[i];
        view->offset -= step * form->before[i];
        f->window[i] = (uint32_t)form->window[i];
        f->stride[i] = (uint32_t)form->stride[i];
        f->dilation[i] = (uint32_t)form->dilation[i];
        f->before[i] = (uint32_t)form->before[i];
        f->tested |= (uint32_t)(form->before[i] > 0 || reach - form->before[i] >= length) << i;
        t->reach += (reach + form->before[i]) * (step < 0 ? -step : step);
    }
}

hal_status ops_depthwise_weights(ops_context *context, const ops_depthwise_weights_form *form,
                                 const ops_tensor *x, const ops_tensor *dy, const ops_tensor *sums)
{
    static const char *const names[SCALARS] = {
        "images", "x_image", "dy_image", "sum", "l0", "n0", "x0", "dy0", "s0", "l1",
        "n1",     "x1",      "dy1",      "s1",  "l2", "n2", "x2", "dy2", "s2"};
    weights_kernel_form f = {.rank = form->rank, .images = form->images, .lines = form->lines};
    const uint32_t last = form->rank - 1;
    const int64_t channels = x->shape[1], multiple = channels > 0 ? dy->shape[1] / channels : 0;
    int64_t scalars[SCALARS] = {dy->shape[0], x->stride[0], dy->stride[0], sums->stride[3]};
    ops_index_task t = {.function = "ops_depthwise_weights",
                        .name = "depthwise_weights",
                        .family = OPS_FAMILY_DEPTHWISE_WEIGHTS,
                        .body = emit_weights,
                        .form = &f,
                        .form_bytes = sizeof f,
                        .storage = sums->type,
                        .repeatable = 1};
    if (ops_tensor_get_element_count(sums) == 0) {
        return HAL_OK;
    }
    memcpy(t.scalar_names, names, sizeof names);
    ops_tensor space = *sums;
    space.rank = 5;
    space.shape[2] = channels;
    space.shape[3] = multiple;
    space.stride[2] = sums->stride[2] * multiple;
    space.stride[3] = sums->stride[2];
    int64_t first, end, first_dy, end_dy;
    ops_span(x, &first, &end);
    ops_span(dy, &first_dy, &end_dy);
    t.reach = (end - first) + (end_dy - first_dy) +
              sums->shape[3] * (sums->stride[3] < 0 ? -sums->stride[3] : sums->stride[3]);
    ops_tensor from = spread(&space, x, x->stride[1], 0, x->stride[last + 2] * form->stride[last]);
    const ops_tensor given =
        spread(&space, dy, dy->stride[1] * multiple, dy->stride[1], dy->stride[last + 2]);
    add_axes(form, x, dy, &f, scalars, &t, &from);
    ops_space_begin(&t.space, space.rank, space.shape);
    ops_index_add_view(context, &t, sums, &space, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, x, &from, HAL_ACCESS_READ);
    ops_index_add_view(context, &t, dy, &given, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, 0);
    ops_space_add_coordinate(&t.space, 1);
    ops_space_add_coordinate(&t.space, 4);
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    for (uint32_t i = 0; i < SCALARS; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
