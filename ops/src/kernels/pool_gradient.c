/* The gradient of pooling, see pool.h: each work-item adds what the windows of its elements give.
 * An element at p, counted from the start of the padding, is in window p / stride and in those
 * before it that reach it. */
#include "pool.h"

#include "functions.h"
#include "spatial.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Views; `places` may be missing. The coordinates along each spatial axis follow, and with places
 * the element's own place. */
enum { VIEW_DX, VIEW_DY, VIEW_PLACES };

/* Scalars of each spatial axis: the distance of windows in dy and in `places`, their number, and
 * where the elements that an average counts begin and end, from the start of the padding. */
enum { DY_STEP = 0, PLACE_STEP = 3, WINDOWS = 6, LOW = 9, HIGH = 12, SCALARS = 15 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct gradient_form {
    uint32_t rank, divisor;
    uint32_t window[OPS_MAX_SPATIAL], stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    uint32_t counted; /* a bit for each spatial axis of which windows count different numbers */
} gradient_form;
OPS_KEY_STRUCTURES_END

/* A window of one axis that an element may be in. */
typedef struct axis_window {
    hal_ir_value number, is_in;
    hal_ir_value count; /* U32; HAL_IR_NONE: the window's length */
} axis_window;

/* The elements of x that windows of one axis reach, from the first one on. */
static uint32_t reach_of(const gradient_form *f, uint32_t axis)
{
    return (f->window[axis] - 1) * f->dilation[axis] + 1;
}

static uint32_t windows_along(const gradient_form *f, uint32_t axis)
{
    return (reach_of(f, axis) + f->stride[axis] - 1) / f->stride[axis];
}

/* ceil((end - start) / dilation), 0 if that is negative. */
static hal_ir_value elements_before(hal_ir_builder *b, hal_ir_value start, hal_ir_value end,
                                    uint32_t dilation)
{
    hal_ir_value more = hal_ir_add(b, hal_ir_sub(b, end, start), hal_ir_u32(b, dilation - 1));
    more = ops_divide_by_constant(b, dilation, &more);
    return hal_ir_select(b, hal_ir_lt(b, start, end), more, hal_ir_u32(b, 0));
}

/* The elements that an average over a window counts along an axis. */
static hal_ir_value emit_count(hal_ir_builder *b, const ops_index_body *body, uint32_t axis,
                               hal_ir_value number)
{
    const gradient_form *f = body->task->form;
    const uint32_t dilation = f->dilation[axis];
    const hal_ir_value start = hal_ir_mul(b, number, hal_ir_u32(b, f->stride[axis]));
    const hal_ir_value low = ops_value_cast(b, HAL_TYPE_U32, body->scalars[LOW + axis]);
    const hal_ir_value high = ops_value_cast(b, HAL_TYPE_U32, body->scalars[HIGH + axis]);
    const hal_ir_value end =
        hal_ir_min(b, elements_before(b, start, high, dilation), hal_ir_u32(b, f->window[axis]));
    return hal_ir_sub(b, end, elements_before(b, start, low, dilation));
}

/* The windows of an axis that may have the element at `place`, in ascending order. */
static void emit_windows(hal_ir_builder *b, const ops_index_body *body, uint32_t axis,
                         hal_ir_value place, axis_window *windows)
{
    const gradient_form *f = body->task->form;
    const uint32_t count = windows_along(f, axis), stride = f->stride[axis];
    const uint32_t reach = reach_of(f, axis), dilation = f->dilation[axis];
    hal_ir_value rest = ops_value_cast(b, HAL_TYPE_U32, place);
    const hal_ir_value last = ops_divide_by_constant(b, stride, &rest);
    const hal_ir_value all = ops_value_cast(b, HAL_TYPE_U32, body->scalars[WINDOWS + axis]);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t back = count - 1 - k;
        axis_window *w = &windows[k];
        w->number = hal_ir_sub(b, last, hal_ir_u32(b, back)); /* wraps below 0 */
        w->is_in = hal_ir_lt(b, w->number, all);
        hal_ir_value offset = hal_ir_add(b, rest, hal_ir_u32(b, back * stride));
        if (stride * count > reach) {
            const hal_ir_value reaches = hal_ir_lt(b, offset, hal_ir_u32(b, reach));
            w->is_in = hal_ir_and(b, w->is_in, reaches);
        }
        if (dilation > 1) {
            ops_divide_by_constant(b, dilation, &offset);
            w->is_in = hal_ir_and(b, w->is_in, hal_ir_eq(b, offset, hal_ir_u32(b, 0)));
        }
        w->count = f->counted >> axis & 1 ? emit_count(b, body, axis, w->number) : HAL_IR_NONE;
    }
}

/* The element that windows give, one of each axis. */
typedef struct joint_window {
    hal_ir_value is_in, dy, place; /* indices */
    hal_ir_value count;            /* in the type of sums; HAL_IR_NONE: `known` */
    double known;                  /* elements along axes whose windows are all whole */
} joint_window;

static joint_window emit_joint(hal_ir_builder *b, const ops_element_iter *iter,
                               const ops_index_body *body, axis_window windows[][OPS_POOL_ELEMENTS],
                               uint32_t n, hal_type type)
{
    const gradient_form *f = body->task->form;
    const bool has_places = f->divisor == OPS_POOL_PLACES;
    joint_window joint = {.is_in = iter->guard,
                          .dy = iter->index[VIEW_DY],
                          .place = has_places ? iter->index[VIEW_PLACES] : HAL_IR_NONE,
                          .count = HAL_IR_NONE,
                          .known = 1};
    for (uint32_t i = f->rank, rest = n; i-- > 0; rest /= windows_along(f, i)) {
        const axis_window *w = &windows[i][rest % windows_along(f, i)];
        const hal_ir_value number = ops_value_cast(b, iter->values->type, w->number);
        joint.is_in = ops_guard_and(b, joint.is_in, w->is_in);
        joint.dy = hal_ir_add(b, joint.dy, hal_ir_mul(b, number, body->scalars[DY_STEP + i]));
        if (has_places) {
            const hal_ir_value step = hal_ir_mul(b, number, body->scalars[PLACE_STEP + i]);
            joint.place = hal_ir_add(b, joint.place, step);
        } else if (w->count == HAL_IR_NONE) {
            joint.known *= (double)f->window[i];
        } else {
            const hal_ir_value count = hal_ir_cast(b, type, w->count);
            joint.count = joint.count == HAL_IR_NONE ? count : hal_ir_mul(b, joint.count, count);
        }
    }
    return joint;
}

/* Adds what the windows give to the sums, unless their maxima are elsewhere. */
static void emit_sums(hal_ir_builder *b, const ops_element_iter *iter, const ops_index_body *body,
                      const joint_window *joint, hal_ir_value own, hal_ir_value *sums)
{
    const ops_index_task *t = body->task;
    const gradient_form *f = t->form;
    const bool has_places = f->divisor == OPS_POOL_PLACES;
    hal_ir_value dy[OPS_MAX_WIDTH], places[OPS_MAX_WIDTH];
    ops_neighbours_load(b, t->slots[VIEW_DY], joint->dy, iter->width, joint->is_in, dy);
    if (has_places) {
        ops_neighbours_load(b, t->slots[VIEW_PLACES], joint->place, iter->width, joint->is_in,
                            places);
    }
    const hal_type type = hal_ir_type_of(b, dy[0]);
    const hal_ir_value zero = hal_ir_number(b, type, 0);
    hal_ir_value divisor = HAL_IR_NONE;
    if (!has_places) {
        divisor = hal_ir_number(b, type, joint->known);
        divisor = joint->count == HAL_IR_NONE ? divisor : hal_ir_mul(b, joint->count, divisor);
    }
    for (uint32_t i = 0; i < iter->width; i++) {
        const hal_ir_value is_given =
            has_places ? hal_ir_and(b, joint->is_in, hal_ir_eq(b, places[i], own)) : joint->is_in;
        hal_ir_value given = has_places ? dy[i] : ops_binary_value(b, OPS_DIV, dy[i], divisor);
        given = hal_ir_select(b, is_given, given, zero);
        sums[i] = sums[i] == HAL_IR_NONE ? given : hal_ir_add(b, sums[i], given);
    }
}

static void emit_gradient(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const gradient_form *f = t->form;
    const bool has_places = f->divisor == OPS_POOL_PLACES;
    const uint32_t coordinates = has_places ? VIEW_PLACES + 1 : VIEW_PLACES;
    const hal_type type = hal_type_of_value(t->storage);
    axis_window windows[OPS_MAX_SPATIAL][OPS_POOL_ELEMENTS];
    hal_ir_value sums[OPS_MAX_WIDTH], own = HAL_IR_NONE;
    uint32_t count = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        count *= windows_along(f, i);
        emit_windows(b, body, i, iter->index[coordinates + i], windows[i]);
    }
    if (has_places) {
        own = ops_value_cast(b, HAL_TYPE_I64, iter->index[coordinates + f->rank]);
    }
    for (uint32_t i = 0; i < iter->width; i++) {
        sums[i] = HAL_IR_NONE;
    }
    for (uint32_t n = 0; n < count; n++) {
        const joint_window joint = emit_joint(b, iter, body, windows, n, type);
        emit_sums(b, iter, body, &joint, own, sums);
    }
    ops_neighbours_store(b, t->slots[VIEW_DX], iter->index[VIEW_DX], iter->width, iter->guard,
                         sums);
}

int64_t ops_pool_windows_of_element(const ops_pool_form *form)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < form->rank && count <= OPS_POOL_ELEMENTS; i++) {
        const int64_t reach = (form->window[i] - 1) * form->dilation[i] + 1;
        count *= (reach + form->stride[i] - 1) / form->stride[i];
    }
    return count;
}

/* Sets what depends on an axis: the form, its scalars and views of coordinates. */
static void add_axis(const ops_pool_form *form, uint32_t i, const ops_tensor *dy,
                     const ops_tensor *places, const ops_tensor *dx, gradient_form *f,
                     int64_t scalars[SCALARS], ops_index_task *t)
{
    const int64_t before = form->before[i], end = before + dx->shape[i + 2];
    const int64_t reach =
        (dy->shape[i + 2] - 1) * form->stride[i] + (form->window[i] - 1) * form->dilation[i];
    const bool counts_padding = form->divisor == OPS_POOL_COUNTED;
    ops_tensor at = ops_spatial_view(dx, NULL);
    at.stride[i + 2] = 1;
    ops_space_add(&t->space, &at, before);
    f->window[i] = (uint32_t)form->window[i];
    f->stride[i] = (uint32_t)form->stride[i];
    f->dilation[i] = (uint32_t)form->dilation[i];
    scalars[DY_STEP + i] = dy->stride[i + 2];
    scalars[PLACE_STEP + i] = places ? places->stride[i + 2] : 0;
    scalars[WINDOWS + i] = dy->shape[i + 2];
    scalars[LOW + i] = counts_padding ? 0 : before;
    scalars[HIGH + i] = counts_padding ? end + form->counted[i] : end;
    f->counted |= (uint32_t)(form->divisor == OPS_POOL_COUNTED || form->divisor == OPS_POOL_INSIDE
                                 ? scalars[LOW + i] > 0 || reach >= scalars[HIGH + i]
                                 : 0)
                  << i;
}

hal_status ops_pool_gradient(ops_context *context, const ops_pool_form *form, const ops_tensor *dy,
                             const ops_tensor *places, const ops_tensor *dx)
{
    gradient_form f = {.rank = form->rank, .divisor = form->divisor};
    int64_t scalars[SCALARS] = {0}, first, end;
    ops_index_task t = {.function = "ops_pool_gradient",
                        .name = "pool_gradient",
                        .family = OPS_FAMILY_POOL_GRADIENT,
                        .body = emit_gradient,
                        .form = &f,
                        .form_bytes = sizeof f,
                        .storage = dx->type,
                        .repeatable = 1,
                        .scalar_names = {"dy0", "dy1", "dy2", "p0", "p1", "p2", "n0", "n1", "n2",
                                         "low0", "low1", "low2", "high0", "high1", "high2"}};
    if (ops_tensor_get_element_count(dx) == 0) {
        return HAL_OK;
    }
    uint32_t widest = ops_spatial_widest(context, dy, dx);
    const ops_tensor given = ops_spatial_view(dx, dy);
    ops_span(dy, &first, &end);
    t.reach = end - first;
    ops_space_begin(&t.space, dx->rank, dx->shape);
    ops_index_add(context, &t, dx, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, dy, &given, HAL_ACCESS_READ);
    if (places) {
        const ops_tensor at = ops_spatial_view(dx, places);
        const uint32_t most = ops_spatial_widest(context, places, dx);
        widest = most < widest ? most : widest;
        ops_span(places, &first, &end);
        t.reach = end - first > t.reach ? end - first : t.reach;
        ops_index_add_view(context, &t, places, &at, HAL_ACCESS_READ);
    }
    int64_t scale = 1;
    ops_tensor own = ops_spatial_view(dx, NULL);
    for (uint32_t i = form->rank; i-- > 0; scale *= dx->shape[i + 2]) {
        own.stride[i + 2] = scale;
        widest = ops_spatial_aligned(widest, dy->stride[i + 2]);
        widest = ops_spatial_aligned(widest, places ? places->stride[i + 2] : 0);
    }
    for (uint32_t i = 0; i < form->rank; i++) {
        add_axis(form, i, dy, places, dx, &f, scalars, &t);
    }
    if (places) {
        ops_space_add(&t.space, &own, 0);
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, widest, &block, &entry));
    for (uint32_t i = 0; i < SCALARS; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
