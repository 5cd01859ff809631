/* See resize.h. A work-item computes neighbours along an axis after the resized ones by vectors,
 * or else the same place in several planes, which are even distances apart along an axis that is
 * not resized: they have the coordinates in common. All divisions are multiplications by magic
 * numbers. */
#include "resize.h"

#include "bits.h"
#include "index_task.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Views; the coordinates along the resized axes follow. */
enum { VIEW_Y, VIEW_X, VIEW_COUNT };

/* Scalars: the distances in x and y of a work-item's planes, and of each axis the distance in x,
 * the coordinate with its divisions, the number of the last element of x, and elements of the
 * result. */
enum {
    PLANE_X,
    PLANE_Y,
    AXIS_SCALARS,
    STEP = 0,
    SLOPE,
    START,
    DIVISOR,
    DIVISOR_MAGIC,
    DIVISOR_SHIFT,
    SLOPE_MAGIC,
    SLOPE_SHIFT,
    LAST,
    RESULTS,
    SCALARS_OF_AXIS,
    SCALARS = AXIS_SCALARS + OPS_RESIZE_AXES * SCALARS_OF_AXIS
};

/* Planes of a work-item, elements of all its planes, and of a line that its gradient adds without
 * a loop. */
enum { MOST_PLANES = 4, MOST_ELEMENTS = OPS_MAX_WIDTH, MOST_UNROLLED = 8 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct resize_kernel_form {
    uint32_t axes, is_linear, is_gradient;
    uint16_t planes;    /* of a work-item; 1 where its elements are neighbours */
    uint16_t is_ragged; /* some work-items do not have the last one */
    uint32_t unrolled;  /* elements of the last axis that a gradient adds at most; 0: any number */
} resize_kernel_form;
OPS_KEY_STRUCTURES_END

/* A kernel that is emitted. */
typedef struct resize_emitter {
    hal_ir_builder *b;
    const ops_element_iter *iter;
    const ops_index_body *body;
    const resize_kernel_form *form;
    hal_type type; /* of values */
} resize_emitter;

/* The neighbours in x of an element of the result along an axis, U32, and the share of `high`. */
typedef struct axis_neighbours {
    hal_ir_value low, high, share;
} axis_neighbours;

static hal_ir_value scalar_of(const resize_emitter *e, uint32_t axis, uint32_t which)
{
    const hal_ir_value scalar = e->body->scalars[AXIS_SCALARS + axis * SCALARS_OF_AXIS + which];
    return ops_value_cast(e->b, HAL_TYPE_U32, scalar);
}

/* By the magic number of ops_magic_division, which its shift follows. */
static hal_ir_value divide(const resize_emitter *e, uint32_t axis, uint32_t magic, hal_ir_value x)
{
    const hal_ir_value high = hal_ir_mulhi(e->b, x, scalar_of(e, axis, magic));
    return hal_ir_shr(e->b, high, scalar_of(e, axis, magic + 1));
}

/* An index and the elements up to number `count` of an axis of x. */
static hal_ir_value index_along(const resize_emitter *e, uint32_t axis, hal_ir_value index,
                                hal_ir_value count)
{
    const hal_type type = e->iter->values->type;
    const hal_ir_value step = e->body->scalars[AXIS_SCALARS + axis * SCALARS_OF_AXIS + STEP];
    return hal_ir_add(e->b, index, hal_ir_mul(e->b, step, ops_value_cast(e->b, type, count)));
}

static axis_neighbours emit_neighbours(const resize_emitter *e, uint32_t axis, hal_ir_value i)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value last = scalar_of(e, axis, LAST), divisor = scalar_of(e, axis, DIVISOR);
    hal_ir_value number =
        hal_ir_add(b, hal_ir_mul(b, i, scalar_of(e, axis, SLOPE)), scalar_of(e, axis, START));
    number = hal_ir_max(b, hal_ir_bitcast(b, HAL_TYPE_I32, number), hal_ir_i32(b, 0));
    number = hal_ir_bitcast(b, HAL_TYPE_U32, number);
    const hal_ir_value quotient = divide(e, axis, DIVISOR_MAGIC, number);
    axis_neighbours n = {hal_ir_min(b, quotient, last), HAL_IR_NONE, HAL_IR_NONE};
    if (e->form->is_linear) {
        const hal_ir_value rest = hal_ir_sub(b, number, hal_ir_mul(b, quotient, divisor));
        const hal_ir_value share =
            hal_ir_div(b, hal_ir_cast(b, e->type, rest), hal_ir_cast(b, e->type, divisor));
        n.high = hal_ir_min(b, hal_ir_add(b, n.low, hal_ir_u32(b, 1)), last);
        n.share =
            hal_ir_select(b, hal_ir_lt(b, quotient, last), share, hal_ir_number(b, e->type, 0));
    }
    return n;
}

/* A guard for one of a work-item's planes. Of the last one, the coordinate counts from the first
 * that does not have it. */
static hal_ir_value plane_guard(const resize_emitter *e, uint32_t plane, hal_ir_value guard)
{
    if (plane + 1 < e->form->planes || !e->form->is_ragged) {
        return guard;
    }
    const hal_ir_value beyond = e->iter->index[VIEW_COUNT + e->form->axes];
    const hal_ir_value at =
        hal_ir_bitcast(e->b, HAL_TYPE_I32, ops_value_cast(e->b, HAL_TYPE_U32, beyond));
    return ops_guard_and(e->b, guard, hal_ir_lt(e->b, at, hal_ir_i32(e->b, 0)));
}

/* Loads a work-item's elements from an index of x on. */
static void load_elements(const resize_emitter *e, hal_ir_value index, hal_ir_value guard,
                          hal_ir_value *elements)
{
    const uint32_t memory = e->body->task->slots[VIEW_X], planes = e->form->planes;
    if (planes == 1) {
        ops_neighbours_load(e->b, memory, index, e->iter->width, guard, elements);
        return;
    }
    for (uint32_t i = 0; i < planes; i++) {
        index = i == 0 ? index : hal_ir_add(e->b, index, e->body->scalars[PLANE_X]);
        elements[i] = hal_ir_load_wide(e->b, memory, index, 0, 1, plane_guard(e, i, guard));
    }
}

static void store_elements(const resize_emitter *e, const hal_ir_value *elements)
{
    const uint32_t memory = e->body->task->slots[VIEW_Y], planes = e->form->planes;
    hal_ir_value index = e->iter->index[VIEW_Y];
    if (planes == 1) {
        ops_neighbours_store(e->b, memory, index, e->iter->width, e->iter->guard, elements);
        return;
    }
    for (uint32_t i = 0; i < planes; i++) {
        index = i == 0 ? index : hal_ir_add(e->b, index, e->body->scalars[PLANE_Y]);
        hal_ir_store_wide(e->b, memory, index, 0, plane_guard(e, i, e->iter->guard), elements[i]);
    }
}

static hal_ir_value coordinate_of(const resize_emitter *e, uint32_t axis)
{
    return ops_value_cast(e->b, HAL_TYPE_U32, e->iter->index[VIEW_COUNT + axis]);
}

static void emit_forward(const resize_emitter *e, uint32_t count)
{
    hal_ir_builder *b = e->b;
    const uint32_t axes = e->form->axes, corners = e->form->is_linear ? 1u << axes : 1;
    axis_neighbours n[OPS_RESIZE_AXES];
    hal_ir_value values[1u << OPS_RESIZE_AXES][MOST_ELEMENTS];
    for (uint32_t i = 0; i < axes; i++) {
        n[i] = emit_neighbours(e, i, coordinate_of(e, i));
    }
    for (uint32_t k = 0; k < corners; k++) { /* bit i: the high neighbour along axis i */
        hal_ir_value index = e->iter->index[VIEW_X];
        for (uint32_t i = 0; i < axes; i++) {
            index = index_along(e, i, index, k >> i & 1 ? n[i].high : n[i].low);
        }
        load_elements(e, index, e->iter->guard, values[k]);
    }
    for (uint32_t i = 0; e->form->is_linear && i < axes; i++) {
        const hal_ir_value rest = hal_ir_sub(b, hal_ir_number(b, e->type, 1), n[i].share);
        for (uint32_t k = 0; k < corners; k += 2u << i) {
            for (uint32_t v = 0; v < count; v++) {
                const hal_ir_value low = hal_ir_mul(b, values[k][v], rest);
                const hal_ir_value high = hal_ir_mul(b, values[k + (1u << i)][v], n[i].share);
                values[k][v] = hal_ir_add(b, low, high);
            }
        }
    }
    store_elements(e, values[0]);
}

/* The first element of the result whose coordinate is not below `at`, which is at least 0. */
static hal_ir_value first_result(const resize_emitter *e, uint32_t axis, hal_ir_value at)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value slope = scalar_of(e, axis, SLOPE), results = scalar_of(e, axis, RESULTS);
    hal_ir_value distance = hal_ir_mul(b, at, scalar_of(e, axis, DIVISOR));
    distance = hal_ir_sub(b, distance, scalar_of(e, axis, START));
    distance = hal_ir_add(b, distance, hal_ir_sub(b, slope, hal_ir_u32(b, 1)));
    distance = hal_ir_max(b, hal_ir_bitcast(b, HAL_TYPE_I32, distance), hal_ir_i32(b, 0));
    distance = hal_ir_bitcast(b, HAL_TYPE_U32, distance);
    return hal_ir_min(b, divide(e, axis, SLOPE_MAGIC, distance), results);
}

/* The elements of the result that come from the work-item's element of x along an axis. */
static void results_of(const resize_emitter *e, uint32_t axis, hal_ir_value *start,
                       hal_ir_value *end)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value own = coordinate_of(e, axis), last = scalar_of(e, axis, LAST);
    *start = e->form->is_linear ? hal_ir_sub(b, hal_ir_max(b, own, one), one) : own;
    *start = hal_ir_select(b, hal_ir_eq(b, *start, zero), zero, first_result(e, axis, *start));
    *end = first_result(e, axis, hal_ir_add(b, own, one));
    *end = hal_ir_select(b, hal_ir_lt(b, own, last), *end, scalar_of(e, axis, RESULTS));
    if (e->iter->guard != HAL_IR_NONE) {
        *end = hal_ir_select(b, e->iter->guard, *end, zero);
    }
}

/* The work-item's share of element i of the result along an axis; HAL_IR_NONE: all of it. */
static hal_ir_value share_of(const resize_emitter *e, uint32_t axis, hal_ir_value i)
{
    hal_ir_builder *b = e->b;
    if (!e->form->is_linear) {
        return HAL_IR_NONE;
    }
    const axis_neighbours n = emit_neighbours(e, axis, i);
    const hal_ir_value rest = hal_ir_sub(b, hal_ir_number(b, e->type, 1), n.share);
    return hal_ir_select(b, hal_ir_eq(b, n.low, coordinate_of(e, axis)), rest, n.share);
}

static hal_ir_value product_of(const resize_emitter *e, hal_ir_value x, hal_ir_value y)
{
    return x == HAL_IR_NONE ? y : y == HAL_IR_NONE ? x : hal_ir_mul(e->b, x, y);
}

/* The elements of the last axis, which a loop or the kernel's text adds. */
typedef struct last_axis {
    uint32_t count;
    hal_ir_value number[MOST_UNROLLED], is_in[MOST_UNROLLED], share[MOST_UNROLLED];
} last_axis;

/* Adds the elements of a line of dy to the sums. */
static void add_line(const resize_emitter *e, const last_axis *line, hal_ir_value index,
                     hal_ir_value weight, uint32_t count, const hal_ir_value *sums)
{
    hal_ir_builder *b = e->b;
    const uint32_t last = e->form->axes - 1;
    hal_ir_value dy[MOST_ELEMENTS], parts[MOST_ELEMENTS];
    for (uint32_t k = 0; k < line->count; k++) {
        load_elements(e, index_along(e, last, index, line->number[k]), line->is_in[k], dy);
        for (uint32_t v = 0; v < count; v++) {
            const hal_ir_value given = product_of(e, dy[v], line->share[k]);
            parts[v] = k == 0 ? given : hal_ir_add(b, parts[v], given);
        }
    }
    for (uint32_t v = 0; v < count; v++) {
        const hal_ir_value given = product_of(e, parts[v], weight);
        hal_ir_set(b, sums[v], hal_ir_add(b, hal_ir_get(b, sums[v]), given));
    }
}

static void emit_gradient(const resize_emitter *e, uint32_t count)
{
    hal_ir_builder *b = e->b;
    const uint32_t last = e->form->axes - 1;
    hal_ir_value sums[MOST_ELEMENTS], start, end;
    hal_ir_value index = e->iter->index[VIEW_X], weight = HAL_IR_NONE;
    last_axis line = {.count = e->form->unrolled > 0 ? e->form->unrolled : 1};
    for (uint32_t v = 0; v < count; v++) {
        sums[v] = hal_ir_var(b, hal_ir_number(b, e->type, 0));
    }
    results_of(e, last, &start, &end);
    for (uint32_t k = 0; k < e->form->unrolled; k++) {
        line.number[k] = hal_ir_add(b, start, hal_ir_u32(b, k));
        line.is_in[k] = hal_ir_lt(b, line.number[k], end);
        line.share[k] = share_of(e, last, line.number[k]);
    }
    for (uint32_t i = 0; i < last; i++) {
        hal_ir_value from, to;
        results_of(e, i, &from, &to);
        const hal_ir_value at = hal_ir_for(b, from, to, hal_ir_u32(b, 1));
        index = index_along(e, i, index, at);
        weight = product_of(e, weight, share_of(e, i, at));
    }
    if (e->form->unrolled == 0) {
        line.number[0] = hal_ir_for(b, start, end, hal_ir_u32(b, 1));
        line.is_in[0] = e->iter->guard;
        line.share[0] = share_of(e, last, line.number[0]);
    }
    add_line(e, &line, index, weight, count, sums);
    for (uint32_t i = 0; i < last + (e->form->unrolled == 0); i++) {
        hal_ir_end(b);
    }
    for (uint32_t v = 0; v < count; v++) {
        sums[v] = hal_ir_get(b, sums[v]);
    }
    store_elements(e, sums);
}

static void emit_resize(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const resize_kernel_form *form = body->task->form;
    const resize_emitter e = {b, iter, body, form, hal_type_of_value(body->task->storage)};
    const uint32_t count = form->planes > 1 ? form->planes : iter->width;
    if (form->is_gradient) {
        emit_gradient(&e, count);
    } else {
        emit_forward(&e, count);
    }
}

bool ops_resize_fits(const ops_resize_coordinate *along, int64_t from, int64_t to)
{
    const int64_t most = INT32_MAX, most_side = most / 8;
    const int64_t start = along->start < 0 ? -along->start : along->start;
    return from <= most_side && to <= most_side && along->slope <= most && along->divisor <= most &&
           (from + 1) * along->divisor + along->slope + start <= most &&
           to * along->slope + start <= most;
}

/* The scalars of an axis. `inner` has the axis' stride in what is read. */
static void put_axis(const ops_resize_coordinate *along, int64_t step, int64_t from, int64_t to,
                     int64_t *scalars)
{
    uint32_t magic, shift;
    scalars[STEP] = step;
    scalars[SLOPE] = along->slope;
    scalars[START] = along->start;
    scalars[DIVISOR] = along->divisor;
    ops_magic_division((uint32_t)along->divisor, &magic, &shift);
    scalars[DIVISOR_MAGIC] = magic;
    scalars[DIVISOR_SHIFT] = shift;
    ops_magic_division((uint32_t)along->slope, &magic, &shift);
    scalars[SLOPE_MAGIC] = magic;
    scalars[SLOPE_SHIFT] = shift;
    scalars[LAST] = from - 1;
    scalars[RESULTS] = to;
}

/* Elements of the result along an axis that come from one of x at most, if they are few; else 0. */
static uint32_t unrolled_of(const ops_resize_form *form)
{
    const ops_resize_coordinate *along = &form->along[form->axes - 1];
    const int64_t before = along->start < 0 ? -along->start : 0; /* coordinates that become 0 */
    const int64_t reach = (form->is_linear ? 2 : 1) * along->divisor + before;
    const int64_t most = (reach + along->slope - 1) / along->slope;
    return form->is_gradient && most <= MOST_UNROLLED ? (uint32_t)most : 0;
}

/* Neighbours of a work-item along the last axis, if it is not resized. */
static uint32_t widest_of(const ops_context *context, const ops_resize_form *form,
                          const ops_tensor *x, const ops_tensor *y)
{
    const uint32_t last = y->rank - 1;
    uint32_t widest = 1;
    if (form->first + form->axes <= last && y->shape[last] > 1 && y->stride[last] == 1 &&
        x->stride[last] == 1) {
        widest = ops_elementwise_widest(context, hal_type_size(y->type));
    }
    for (uint32_t i = 0; i < form->axes; i++) {
        while (x->stride[form->first + i] % widest != 0) {
            widest /= 2;
        }
    }
    return widest;
}

/* The axis of a work-item's planes: the last one if lanes still are neighbours along it, else one
 * before the resized axes; the rank if there is none. */
static uint32_t plane_axis(const ops_resize_form *form, const ops_tensor *y)
{
    enum { MIN_LINE = 32 };
    const uint32_t last = y->rank - 1, first = form->first;
    if (first + form->axes <= last && y->shape[last] >= MIN_LINE) {
        return last;
    }
    return first == 0 ? y->rank : first > 1 && y->shape[first - 1] == 1 ? first - 2 : first - 1;
}

/* Planes of a work-item, if they fill the device with as few work-items. */
static uint32_t planes_of(const ops_context *context, const ops_resize_form *form,
                          const ops_tensor *y)
{
    enum { GROUPS_OF_UNIT = 8 };
    const int64_t busy = (int64_t)context->info->compute_units * GROUPS_OF_UNIT *
                         (int64_t)ops_group_items(context->info);
    const uint32_t axis = plane_axis(form, y);
    uint32_t planes = axis < y->rank ? MOST_PLANES : 1;
    while (planes > 1 && ops_tensor_get_element_count(y) < busy * planes) {
        planes /= 2;
    }
    const int64_t apart = axis < y->rank ? (y->shape[axis] + planes - 1) / planes : 1;
    return planes > 1 ? (uint32_t)((y->shape[axis] + apart - 1) / apart) : 1;
}

/* Makes work-items compute `planes` planes: the tensors' axis is shorter. Returns the place along
 * it from which on work-items do not have the last one. */
static int64_t planes_split(uint32_t axis, uint32_t planes, ops_tensor *from, ops_tensor *to,
                            int64_t *scalars)
{
    const int64_t length = to->shape[axis], apart = (length + planes - 1) / planes;
    scalars[PLANE_X] = from->stride[axis] * apart;
    scalars[PLANE_Y] = to->stride[axis] * apart;
    to->shape[axis] = apart;
    return length - (planes - 1) * apart;
}

/* How far the last plane of a work-item is from its first one, in x or y. */
static int64_t reach_of_planes(uint32_t planes, const int64_t *scalars)
{
    const int64_t x = scalars[PLANE_X], y = scalars[PLANE_Y];
    const int64_t of_x = x < 0 ? -x : x, of_y = y < 0 ? -y : y;
    return (planes - 1) * (of_x > of_y ? of_x : of_y);
}

/* A view of x in the space of y, without strides along the resized axes. */
static ops_tensor view_of(const ops_resize_form *form, const ops_tensor *x, const ops_tensor *y)
{
    ops_tensor view = *x;
    memcpy(view.shape, y->shape, sizeof view.shape);
    for (uint32_t i = 0; i < form->axes; i++) {
        view.stride[form->first + i] = 0;
    }
    return view;
}

hal_status ops_resize(ops_context *context, const ops_resize_form *form, const ops_tensor *x,
                      const ops_tensor *y)
{
    static const char *const names[SCALARS] = {
        "plane_x", "plane_y",  "step0", "slope0",   "start0", "divisor0", "dm0",    "ds0",
        "sm0",     "ss0",      "last0", "results0", "step1",  "slope1",   "start1", "divisor1",
        "dm1",     "ds1",      "sm1",   "ss1",      "last1",  "results1", "step2",  "slope2",
        "start2",  "divisor2", "dm2",   "ds2",      "sm2",    "ss2",      "last2",  "results2",
    };
    resize_kernel_form f = {.axes = form->axes,
                            .is_linear = form->is_linear,
                            .is_gradient = form->is_gradient,
                            .planes = 1,
                            .unrolled = unrolled_of(form)};
    int64_t scalars[SCALARS] = {0}, first, end;
    const bool keeps_bits = !form->is_linear && !form->is_gradient;
    const hal_type type = keeps_bits ? ops_bits_type(context, x->type) : x->type;
    const uint32_t count = AXIS_SCALARS + form->axes * SCALARS_OF_AXIS;
    ops_tensor from = *x, to = *y;
    from.type = to.type = type;
    const ops_tensor bound_x = from, bound_y = to;
    ops_index_task t = {.function = "ops_resize",
                        .name = form->is_gradient ? "resize_gradient" : "resize",
                        .family = OPS_FAMILY_RESIZE,
                        .body = emit_resize,
                        .form = &f,
                        .form_bytes = sizeof f,
                        .storage = type,
                        .repeatable = 1};
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        t.scalar_names[i] = names[i];
    }
    const uint32_t widest = widest_of(context, form, &from, &to);
    f.planes = (uint16_t)(widest > 1 ? 1 : planes_of(context, form, &to));
    const uint32_t planes = plane_axis(form, &to);
    int64_t whole = 0;
    if (f.planes > 1) {
        whole = planes_split(planes, f.planes, &from, &to, scalars);
        f.is_ragged = whole < to.shape[planes];
    }
    const ops_tensor view = view_of(form, &from, &to);
    ops_span(x, &first, &end);
    t.reach = (end - first) + reach_of_planes(f.planes, scalars);
    ops_space_begin(&t.space, to.rank, to.shape);
    ops_index_add_view(context, &t, &bound_y, &to, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, &bound_x, &view, HAL_ACCESS_READ);
    for (uint32_t i = 0; i < form->axes; i++) {
        const uint32_t axis = form->first + i;
        const int64_t in = from.shape[axis], out = to.shape[axis];
        ops_space_add_coordinate(&t.space, axis);
        put_axis(&form->along[i], from.stride[axis], form->is_gradient ? out : in,
                 form->is_gradient ? in : out, scalars + AXIS_SCALARS + i * SCALARS_OF_AXIS);
    }
    if (f.is_ragged) {
        const uint32_t place = ops_space_add_coordinate(&t.space, planes);
        t.space.base[place] = -whole;
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, widest, &block, &entry));
    for (uint32_t i = 0; i < count; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
