/* Copies whose elements follow affine coordinates. */
#include "bits.h"
#include "index_task.h"
#include "tensor/dispatch.h"

#include <ops/windows.h>

#include <string.h>

/* Views; the coordinates along axes of x that are tested follow. The scalars are the lengths of
 * these axes, then, with several planes, the distances of planes in y and x. */
enum { VIEW_Y, VIEW_X, VIEW_OUTSIDE, VIEW_COUNT };

/* Elements of a work-item that are planes apart, along an axis of y that tests do not need. */
enum { MOST_PLANES = 8 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct unfold_form {
    uint32_t planes;
} unfold_form;
OPS_KEY_STRUCTURES_END

/* Loads, or stores, the elements of a view in all planes. */
static void emit_planes(hal_ir_builder *b, const ops_element_iter *iter, const ops_index_body *body,
                        uint32_t view, bool stores, hal_ir_value *elements)
{
    const ops_index_task *t = body->task;
    const unfold_form *form = t->form;
    ops_element_iter plane = *iter;
    for (uint32_t i = 0; i < form->planes; i++) {
        hal_ir_value *const each = elements + i * iter->width;
        if (stores) {
            ops_element_store(b, &plane, view, t->slots[view], each);
        } else {
            ops_element_load(b, &plane, view, t->slots[view], each);
        }
        plane.index[view] = form->planes > 1
                                ? hal_ir_add(b, plane.index[view], body->scalars[t->variant + view])
                                : plane.index[view];
    }
}

static void emit_unfold(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    hal_ir_value inside = HAL_IR_NONE;
    for (uint32_t i = 0; i < t->variant; i++) {
        const hal_ir_value at = iter->index[VIEW_COUNT + i];
        inside = ops_guard_and(b, inside, hal_ir_lt(b, at, body->scalars[i]));
    }
    ops_element_iter source = *iter;
    hal_ir_value elements[OPS_MAX_ELEMENTS];
    const unfold_form *form = t->form;
    source.guard = ops_guard_and(b, iter->guard, inside);
    emit_planes(b, &source, body, VIEW_X, false, elements);
    if (inside != HAL_IR_NONE) {
        const hal_ir_value outside = hal_ir_load_wide(b, t->slots[VIEW_OUTSIDE],
                                                      iter->index[VIEW_OUTSIDE], 0, 1, iter->guard);
        for (uint32_t i = 0; i < iter->width * form->planes; i++) {
            elements[i] = hal_ir_select(b, inside, elements[i], outside);
        }
    }
    emit_planes(b, iter, body, VIEW_Y, true, elements);
}

/* The range of coordinates of y along an axis of x. False for more than 62 bits. */
static bool coordinate_range(const ops_unfold_places *places, const ops_tensor *y, uint32_t axis,
                             int64_t *least, int64_t *most)
{
    const int64_t limit = INT64_C(1) << 62;
    bool fits = places->origin[axis] > -limit && places->origin[axis] < limit;
    *least = *most = places->origin[axis];
    for (uint32_t d = 0; d < y->rank && fits; d++) {
        int64_t reach;
        if (places->axis[d] != axis || y->shape[d] == 0) {
            continue;
        }
        int64_t *bound = places->step[d] < 0 ? least : most;
        fits = !__builtin_mul_overflow(places->step[d], y->shape[d] - 1, &reach) &&
               !__builtin_add_overflow(*bound, reach, bound) && *bound > -limit && *bound < limit;
    }
    return fits;
}

static hal_status check_unfold(const ops_context *context, const ops_unfold_places *places,
                               const ops_tensor *x, const ops_tensor *outside, const ops_tensor *y)
{
    static const char function[] = "ops_unfold";
    char text[3][OPS_TEXT_BYTES];
    HAL_TRY(ops_check_tensor(context, function, "x", x));
    HAL_TRY(ops_check_tensor(context, function, "outside", outside));
    HAL_TRY(ops_check_output(context, function, "y", y));
    if (!places) {
        return ops_invalid("%s: places: expected a pointer, got null", function);
    }
    HAL_TRY(ops_check_size(function, "places", places->size, sizeof *places));
    if (x->type != y->type || outside->type != y->type ||
        ops_tensor_get_element_count(outside) != 1) {
        return ops_invalid("%s: outside: expected x, one element and y of one type, got %s, %s and "
                           "%s",
                           function, ops_describe(x, text[0]), ops_describe(outside, text[1]),
                           ops_describe(y, text[2]));
    }
    for (uint32_t d = 0; d < y->rank; d++) {
        if (places->axis[d] >= x->rank) {
            return ops_invalid("%s: places.axis[%u]: expected an axis of x %s, got %u", function, d,
                               ops_describe(x, text[0]), places->axis[d]);
        }
    }
    HAL_TRY(ops_check_apart(function, "x", x, y));
    return ops_check_apart(function, "outside", outside, y);
}

/* sum + x y modulo 2^64: places beyond x may be so far, and are not read. */
static int64_t add_wrapping(int64_t sum, int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)sum + (uint64_t)x * (uint64_t)y);
}

/* reach + |stride| count, or INT64_MAX where that is more. */
static int64_t add_reach(int64_t reach, int64_t stride, int64_t count)
{
    int64_t far;
    return stride == INT64_MIN ||
                   __builtin_mul_overflow(stride < 0 ? -stride : stride, count, &far) ||
                   __builtin_add_overflow(reach, far, &reach)
               ? INT64_MAX
               : reach;
}

/* x as a view of y's shape; its elements may be beyond x. Sets how far they are. */
static ops_tensor view_of(const ops_unfold_places *places, const ops_tensor *x, const ops_tensor *y,
                          int64_t *reach)
{
    ops_tensor view = *y;
    int64_t first, end;
    ops_span(x, &first, &end);
    view.buffer = x->buffer;
    view.offset = x->offset;
    *reach = end - first;
    for (uint32_t a = 0; a < x->rank; a++) {
        view.offset = add_wrapping(view.offset, places->origin[a], x->stride[a]);
    }
    for (uint32_t d = 0; d < y->rank; d++) {
        view.stride[d] = add_wrapping(0, places->step[d], x->stride[places->axis[d]]);
        *reach = add_reach(*reach, view.stride[d], y->shape[d] - 1);
    }
    return view;
}

/* Neighbours of a work-item, with the same coordinates along the `tested` axes of x: channels, if
 * these are last. A space of one dimension, whose kernel has a tail, gets none. */
static uint32_t widest_of(const ops_unfold_places *places, const ops_tensor *x, const ops_tensor *y,
                          uint32_t tested)
{
    uint32_t widest = 1;
    for (uint32_t d = 0; d < y->rank; d++) {
        const uint32_t axis = places->axis[d];
        if (y->shape[d] > 1 && y->stride[d] == 1 && places->step[d] == 1 && x->stride[axis] == 1 &&
            !(tested >> axis & 1) && ops_tensor_get_element_count(y) > y->shape[d]) {
            widest = OPS_MAX_WIDTH;
        }
    }
    return widest;
}

/* The dimension of y along which a GPU's work-items have planes, and their number: the longest one
 * that no test and no vector needs, where they fill the device. */
static uint32_t planes_of(const ops_context *context, const ops_unfold_places *places,
                          const ops_tensor *y, uint32_t tested, uint32_t *dimension)
{
    enum { UNIT_ITEMS = 2048 };
    const int64_t busy = (int64_t)context->info->compute_units * UNIT_ITEMS;
    uint32_t planes = MOST_PLANES;
    *dimension = y->rank;
    for (uint32_t d = 0; d < y->rank; d++) {
        const bool is_free = !(tested >> places->axis[d] & 1) && y->stride[d] > 1;
        if (is_free && (*dimension == y->rank || y->shape[d] > y->shape[*dimension])) {
            *dimension = d;
        }
    }
    if (*dimension == y->rank || context->info->kind == HAL_DEVICE_CPU || tested == 0) {
        return 1;
    }
    while (planes > 1 && (y->shape[*dimension] % planes != 0 ||
                          ops_tensor_get_element_count(y) / planes < busy)) {
        planes /= 2;
    }
    return planes;
}

/* Adds the coordinate along an axis of x to the views. */
static void add_coordinate(ops_index_task *t, const ops_unfold_places *places, const ops_tensor *y,
                           uint32_t axis)
{
    ops_tensor coordinate = *y;
    for (uint32_t d = 0; d < y->rank; d++) {
        coordinate.stride[d] = places->axis[d] == axis ? places->step[d] : 0;
    }
    ops_space_add(&t->space, &coordinate, places->origin[axis]);
}

/* Adds the coordinates along axes of x that are tested, whose lengths are set; a bit for each. */
static hal_status add_tests(const ops_unfold_places *places, const ops_tensor *x,
                            const ops_tensor *y, ops_index_task *t, int64_t *lengths,
                            uint32_t *tested)
{
    static const char *const names[] = {"l0", "l1", "l2",  "l3",  "l4",  "l5",  "l6",  "l7",
                                        "l8", "l9", "l10", "l11", "l12", "l13", "l14", "l15"};
    for (uint32_t a = 0; a < x->rank; a++) {
        int64_t least, most;
        if (!coordinate_range(places, y, a, &least, &most)) {
            return ops_invalid("ops_unfold: places: expected coordinates of at most 62 bits, got "
                               "more along axis %u of x",
                               a);
        }
        if (least < 0 || most >= x->shape[a]) {
            t->scalar_names[t->variant] = names[t->variant];
            lengths[t->variant++] = x->shape[a];
            *tested |= 1u << a;
            t->reach = most > t->reach ? most : -least > t->reach ? -least : t->reach;
        }
    }
    return HAL_OK;
}

hal_status ops_unfold(ops_context *context, const ops_unfold_places *places, const ops_tensor *x,
                      const ops_tensor *outside, const ops_tensor *y)
{
    int64_t scalars[OPS_MAX_RANK + 2];
    uint32_t tested = 0, axis;
    HAL_TRY(check_unfold(context, places, x, outside, y));
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    ops_tensor from = *x, one = *outside, to = *y;
    from.type = one.type = to.type = ops_bits_type(context, x->type);
    one.rank = 0;
    unfold_form form = {.planes = 1};
    ops_index_task t = {.function = "ops_unfold",
                        .name = "unfold",
                        .family = OPS_FAMILY_UNFOLD,
                        .form = &form,
                        .form_bytes = sizeof form,
                        .body = emit_unfold,
                        .repeatable = 1};
    ops_tensor view = view_of(places, &from, &to, &t.reach), first = to;
    HAL_TRY(add_tests(places, x, y, &t, scalars, &tested));
    const uint32_t widest = widest_of(places, x, y, tested);
    form.planes = widest > 1 ? 1 : planes_of(context, places, y, tested, &axis);
    uint32_t count = t.variant;
    if (form.planes > 1) {
        const int64_t apart = to.shape[axis] / form.planes, last = to.shape[axis] - apart;
        t.reach = add_reach(t.reach, first.stride[axis], last); /* view_of has that of x */
        first.shape[axis] = view.shape[axis] = apart;
        t.scalar_names[count] = "y_plane";
        scalars[count++] = apart * first.stride[axis];
        t.scalar_names[count] = "x_plane";
        scalars[count++] = apart * view.stride[axis];
    }
    ops_space_begin(&t.space, first.rank, first.shape);
    ops_index_add_view(context, &t, &to, &first, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, &from, &view, HAL_ACCESS_READ);
    ops_index_add(context, &t, &one, HAL_ACCESS_READ);
    for (uint32_t a = 0; a < x->rank; a++) {
        if (tested >> a & 1) {
            add_coordinate(&t, places, &first, a);
        }
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, widest, &block, &entry));
    for (uint32_t i = 0; i < count; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
