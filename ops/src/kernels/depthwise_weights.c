/* See depthwise_weights.h. A work-item has a channel and a place of the last axis, which are its
 * neighbours in memory, keeps sums for the window of some results, and goes through the others. */
#include "depthwise_weights.h"

#include "index_task.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Views; the numbers of the parts follow, and the place along the last axis. */
enum { VIEW_SUMS, VIEW_X, VIEW_DY, VIEW_IMAGES, VIEW_LINES, VIEW_LAST };

/* Axes of the kernel's space: parts of images and of lines, groups, results of a group that have
 * work-items of their own, its channels, places along the last axis. */
enum { PART_IMAGES, PART_LINES, GROUP, RESULTS, CHANNEL, PLACE, SPACE_RANK };

/* Scalars: the number of images, distances of images; of elements of the window and of results in
 * the sums, and of results in dy; of each axis the length of x, the number of places, the distance
 * of places in x and dy, and of elements of the window in x. */
enum {
    IMAGES,
    X_IMAGE,
    DY_IMAGE,
    SUM_STEP,
    SUM_RESULT,
    DY_RESULT,
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
    uint32_t results; /* of a work-item */
    uint32_t ahead;   /* steps of its innermost loop whose loads are in flight at once */
    uint32_t tested;  /* a bit for each spatial axis whose coordinates may be beyond x */
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

/* A loop over images, or over places of an axis. */
typedef struct weights_loop {
    hal_ir_value number, end;
    hal_ir_value x_step, dy_step;
    uint32_t axis; /* the rank: images */
} weights_loop;

/* What a step of the innermost loop loads. */
typedef struct weights_step {
    hal_ir_value x[OPS_DEPTHWISE_ELEMENTS], dy[OPS_DEPTHWISE_SUMS];
} weights_step;

enum { MOST_AHEAD = 4, MOST_LOADED = 48 };

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

/* Begins the loop over a part of `most` of `all` numbers, `step` apart. */
static void begin_part(const weights_emitter *e, hal_ir_value part, uint32_t most, hal_ir_value all,
                       uint32_t step, weights_loop *loop)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value each = hal_ir_u32(b, most), end = ops_value_cast(b, HAL_TYPE_U32, all);
    hal_ir_value first = hal_ir_mul(b, ops_value_cast(b, HAL_TYPE_U32, part), each);
    first = hal_ir_min(b, first, end);
    loop->end = hal_ir_min(b, hal_ir_add(b, first, each), end);
    loop->number = hal_ir_for(b, first, loop->end, hal_ir_u32(b, step));
}

/* Moves to a number of a loop. */
static void loop_enter(weights_emitter *e, const weights_loop *loop, hal_ir_value number)
{
    e->x = index_add(e, e->x, number, loop->x_step);
    e->dy = index_add(e, e->dy, number, loop->dy_step);
    if (loop->axis < e->form->rank) {
        emit_inside(e, loop->axis, number);
    }
}

/* Begins the loops over images and all axes but the last one, as many as the rank; `inner` is the
 * innermost one, which is not entered. */
static void begin_loops(weights_emitter *e, weights_loop *inner)
{
    hal_ir_builder *b = e->b;
    const ops_element_iter *iter = e->iter;
    const hal_ir_value *scalars = e->body->scalars;
    const uint32_t loops = e->form->rank, ahead = e->form->ahead;
    weights_loop loop = {.x_step = scalars[X_IMAGE], .dy_step = scalars[DY_IMAGE], .axis = loops};
    begin_part(e, iter->index[VIEW_IMAGES], e->form->images, scalars[IMAGES],
               loops == 1 ? ahead : 1, &loop);
    for (uint32_t i = 0; i + 1 < loops; i++) {
        const hal_ir_value places = scalar_of(e, i, PLACES);
        const uint32_t step = i + 2 == loops ? ahead : 1;
        loop_enter(e, &loop, loop.number);
        loop = (weights_loop){
            .x_step = scalar_of(e, i, X_PLACE), .dy_step = scalar_of(e, i, DY_PLACE), .axis = i};
        if (i == 0) {
            begin_part(e, iter->index[VIEW_LINES], e->form->lines, places, step, &loop);
        } else {
            loop.end = ops_value_cast(b, HAL_TYPE_U32, places);
            loop.number = hal_ir_for(b, hal_ir_u32(b, 0), loop.end, hal_ir_u32(b, step));
        }
    }
    *inner = loop;
}

/* Loads the element of x that element n of the window has. */
static hal_ir_value emit_x(const weights_emitter *e, uint32_t n, hal_ir_value guard)
{
    hal_ir_value at = e->x, inside = guard;
    for (uint32_t i = e->form->rank, rest = n; i-- > 0; rest /= e->form->window[i]) {
        const uint32_t k = rest % e->form->window[i];
        at = k == 0 ? at : index_add(e, at, hal_ir_u32(e->b, k), scalar_of(e, i, X_STEP));
        inside = ops_guard_and(e->b, inside, e->inside[i][k]);
    }
    return hal_ir_load_wide(e->b, e->body->task->slots[VIEW_X], at, 0, 1, inside);
}

/* Loads what number + ahead of the innermost loop multiplies, or zeros beyond its end. */
static void emit_loads(const weights_emitter *outer, const weights_loop *loop, uint32_t ahead,
                       uint32_t volume, weights_step *step)
{
    weights_emitter e = *outer;
    hal_ir_builder *b = e.b;
    hal_ir_value number = loop->number, guard = e.iter->guard;
    if (ahead > 0) {
        number = hal_ir_add(b, number, hal_ir_u32(b, ahead));
        guard = ops_guard_and(b, guard, hal_ir_lt(b, number, loop->end));
    }
    loop_enter(&e, loop, number);
    hal_ir_value at = e.dy;
    for (uint32_t r = 0; r < e.form->results; r++) {
        at = r == 0 ? at : hal_ir_add(b, at, e.body->scalars[DY_RESULT]);
        step->dy[r] = hal_ir_load_wide(b, e.body->task->slots[VIEW_DY], at, 0, 1, guard);
    }
    for (uint32_t n = 0; n < volume; n++) {
        step->x[n] = emit_x(&e, n, guard);
    }
}

/* Adds the products of some places to the sums, result by result. */
static void emit_products(const weights_emitter *e, const weights_loop *loop, uint32_t volume,
                          const hal_ir_value *sums)
{
    hal_ir_builder *b = e->b;
    weights_step steps[MOST_AHEAD];
    for (uint32_t i = 0; i < e->form->ahead; i++) {
        emit_loads(e, loop, i, volume, &steps[i]);
    }
    for (uint32_t n = 0; n < volume * e->form->results; n++) {
        hal_ir_value sum = hal_ir_get(b, sums[n]);
        for (uint32_t i = 0; i < e->form->ahead; i++) {
            sum = hal_ir_fma(b, steps[i].x[n % volume], steps[i].dy[n / volume], sum);
        }
        hal_ir_set(b, sums[n], sum);
    }
}

static void emit_stores(const weights_emitter *e, uint32_t volume, const hal_ir_value *sums)
{
    hal_ir_builder *b = e->b;
    hal_ir_value first = e->iter->index[VIEW_SUMS];
    for (uint32_t r = 0; r < e->form->results; r++) {
        first = r == 0 ? first : hal_ir_add(b, first, e->body->scalars[SUM_RESULT]);
        hal_ir_value at = first;
        for (uint32_t n = 0; n < volume; n++) {
            hal_ir_store_wide(b, e->body->task->slots[VIEW_SUMS], at, 0, e->iter->guard,
                              hal_ir_get(b, sums[r * volume + n]));
            at = hal_ir_add(b, at, e->body->scalars[SUM_STEP]);
        }
    }
}

static void emit_weights(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    weights_emitter e = {.b = b, .iter = iter, .body = body, .form = t->form};
    hal_ir_value sums[OPS_DEPTHWISE_SUMS];
    uint32_t volume = 1;
    for (uint32_t i = 0; i < e.form->rank; i++) {
        volume *= e.form->window[i];
    }
    for (uint32_t n = 0; n < volume * e.form->results; n++) {
        sums[n] = hal_ir_var(b, hal_ir_number(b, t->storage, 0));
    }
    e.x = iter->index[VIEW_X];
    e.dy = iter->index[VIEW_DY];
    emit_inside(&e, e.form->rank - 1, ops_value_cast(b, HAL_TYPE_U32, iter->index[VIEW_LAST]));
    weights_loop inner;
    begin_loops(&e, &inner);
    emit_products(&e, &inner, volume, sums);
    for (uint32_t i = 0; i < e.form->rank; i++) {
        hal_ir_end(b);
    }
    emit_stores(&e, volume, sums);
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

/* Results of a work-item: as many of a group as have room for their sums. */
static int64_t results_together(const ops_depthwise_weights_form *form, int64_t outputs)
{
    int64_t volume = 1, results = outputs;
    for (uint32_t i = 0; i < form->rank; i++) {
        volume *= form->window[i];
    }
    while (results * volume > OPS_DEPTHWISE_SUMS || outputs % results) {
        results--;
    }
    return results;
}

/* Steps of the innermost loop at once: their loads take registers next to the sums. */
static uint32_t steps_ahead(const ops_depthwise_weights_form *form, const ops_tensor *dy,
                            int64_t results)
{
    const int64_t most = form->rank == 1   ? form->images
                         : form->rank == 2 ? form->lines
                                           : dy->shape[3]; /* its places along the middle axis */
    int64_t volume = 1, ahead = MOST_AHEAD;
    for (uint32_t i = 0; i < form->rank; i++) {
        volume *= form->window[i];
    }
    while (ahead > 1 && (ahead > most || ahead * (volume + results) > MOST_LOADED)) {
        ahead /= 2;
    }
    return (uint32_t)ahead;
}

/* The space of work-items as a view of their first sums. */
static ops_tensor space_of(const ops_depthwise_weights_form *form, const ops_tensor *sums,
                           int64_t inputs, int64_t outputs, int64_t results)
{
    const int64_t channel = sums->stride[2], result = inputs * channel;
    const int64_t shape[SPACE_RANK] = {sums->shape[0],    sums->shape[1], form->groups,
                                       outputs / results, inputs,         sums->shape[4]};
    const int64_t stride[SPACE_RANK] = {sums->stride[0],  sums->stride[1], result * outputs,
                                        result * results, channel,         sums->stride[4]};
    ops_tensor space = *sums;
    space.rank = SPACE_RANK;
    memcpy(space.shape, shape, sizeof shape);
    memcpy(space.stride, stride, sizeof stride);
    return space;
}

hal_status ops_depthwise_weights(ops_context *context, const ops_depthwise_weights_form *form,
                                 const ops_tensor *x, const ops_tensor *dy, const ops_tensor *sums)
{
    static const char *const names[SCALARS] = {
        "images", "x_image", "dy_image", "sum", "sum_result", "dy_result", "l0",
        "n0",     "x0",      "dy0",      "s0",  "l1",         "n1",        "x1",
        "dy1",    "s1",      "l2",       "n2",  "x2",         "dy2",       "s2"};
    const uint32_t last = form->rank - 1;
    const int64_t inputs = x->shape[1] / form->groups, outputs = dy->shape[1] / form->groups;
    const int64_t results = outputs > 0 ? results_together(form, outputs) : 1;
    weights_kernel_form f = {.rank = form->rank,
                             .images = form->images,
                             .lines = form->lines,
                             .results = (uint32_t)results,
                             .ahead = steps_ahead(form, dy, results)};
    int64_t scalars[SCALARS] = {
        dy->shape[0], x->stride[0], dy->stride[0], sums->stride[3], sums->stride[2] * inputs,
        dy->stride[1]};
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
    const ops_tensor space = space_of(form, sums, inputs, outputs, results);
    int64_t first, end, first_dy, end_dy;
    ops_span(x, &first, &end);
    ops_span(dy, &first_dy, &end_dy);
    /* The last steps ahead may be beyond, and are not loaded. */
    t.reach = (1 + MOST_AHEAD) * ((end - first) + (end_dy - first_dy)) +
              sums->shape[3] * (sums->stride[3] < 0 ? -sums->stride[3] : sums->stride[3]) +
              results * inputs * (sums->stride[2] < 0 ? -sums->stride[2] : sums->stride[2]);
    const int64_t of_x[SPACE_RANK] = {
        [GROUP] = inputs * x->stride[1],
        [CHANNEL] = x->stride[1],
        [PLACE] = x->stride[last + 2] * form->stride[last],
    };
    const int64_t of_dy[SPACE_RANK] = {
        [GROUP] = outputs * dy->stride[1],
        [RESULTS] = results * dy->stride[1],
        [PLACE] = dy->stride[last + 2],
    };
    ops_tensor from = ops_index_spread(&space, x, SPACE_RANK, of_x);
    const ops_tensor given = ops_index_spread(&space, dy, SPACE_RANK, of_dy);
    add_axes(form, x, dy, &f, scalars, &t, &from);
    ops_space_begin(&t.space, space.rank, space.shape);
    ops_index_add_view(context, &t, sums, &space, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, x, &from, HAL_ACCESS_READ);
    ops_index_add_view(context, &t, dy, &given, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, PART_IMAGES);
    ops_space_add_coordinate(&t.space, PART_LINES);
    ops_space_add_coordinate(&t.space, PLACE);
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    for (uint32_t i = 0; i < SCALARS; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
