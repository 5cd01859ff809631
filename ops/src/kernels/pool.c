/* Pooling by windows, see pool.h: each work-item combines the windows of its results, which are
 * neighbours along channels where these are last. */
#include "pool.h"

#include "functions.h"
#include "spatial.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Views; the coordinates along tested axes follow, and the place of the first element. */
enum { VIEW_Y, VIEW_X, VIEW_COUNT };

/* Scalars of each spatial axis: the distance in x of elements that are `dilation` apart, the length
 * of x, the padding before it, the length of both with the padding that counts, and the distance of
 * the places of such elements. */
enum { X_STEP = 0, LENGTH = 3, BEFORE = 6, COUNTED = 9, PLACE_STEP = 12, SCALARS = 15 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct pool_kernel_form {
    uint32_t rank, divisor;
    uint32_t window[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    uint32_t tested; /* a bit for each spatial axis whose coordinates may be beyond x */
    uint32_t reserved;
    double least; /* of the type */
} pool_kernel_form;
OPS_KEY_STRUCTURES_END

/* What is known of the elements of a window along each axis. */
typedef struct pool_window {
    hal_ir_value inside[OPS_MAX_SPATIAL][OPS_POOL_ELEMENTS]; /* HAL_IR_NONE: all are */
    hal_ir_value count[OPS_MAX_SPATIAL];                     /* U32; HAL_IR_NONE: all */
} pool_window;

static void emit_axis(hal_ir_builder *b, const ops_element_iter *iter, const ops_index_body *body,
                      uint32_t axis, uint32_t view, pool_window *w)
{
    const pool_kernel_form *f = body->task->form;
    const hal_type type = iter->values->type;
    hal_ir_value count = hal_ir_u32(b, 0);
    for (uint32_t k = 0; k < f->window[axis]; k++) {
        const hal_ir_value at =
            hal_ir_add(b, iter->index[view], ops_index_constant(b, type, k * f->dilation[axis]));
        w->inside[axis][k] = hal_ir_lt(b, at, body->scalars[LENGTH + axis]);
        const hal_ir_value counts =
            f->divisor == OPS_POOL_COUNTED
                ? hal_ir_lt(b, hal_ir_add(b, at, body->scalars[BEFORE + axis]),
                            body->scalars[COUNTED + axis])
                : w->inside[axis][k];
        count = hal_ir_add(b, count, hal_ir_select(b, counts, hal_ir_u32(b, 1), hal_ir_u32(b, 0)));
    }
    w->count[axis] = count;
}

/* The elements that count, in the type of sums. */
static hal_ir_value emit_divisor(hal_ir_builder *b, const pool_kernel_form *f, const pool_window *w,
                                 hal_type type)
{
    double known = 1;
    hal_ir_value counted = HAL_IR_NONE;
    for (uint32_t i = 0; i < f->rank; i++) {
        if (f->divisor == OPS_POOL_VOLUME || w->count[i] == HAL_IR_NONE) {
            known *= (double)f->window[i];
        } else {
            const hal_ir_value count = hal_ir_cast(b, type, w->count[i]);
            counted = counted == HAL_IR_NONE ? count : hal_ir_mul(b, counted, count);
        }
    }
    const hal_ir_value volume = hal_ir_number(b, type, known);
    return counted == HAL_IR_NONE ? volume : hal_ir_mul(b, counted, volume);
}

/* The value and the place of a work-item's results so far; `found`: whether there is an element. */
typedef struct pool_results {
    hal_ir_value value[OPS_MAX_WIDTH], place[OPS_MAX_WIDTH], found;
} pool_results;

/* Combines one more element of each window; `inside` may be HAL_IR_NONE. */
static void combine_values(hal_ir_builder *b, const pool_kernel_form *f, uint32_t width,
                           hal_ir_value inside, const hal_ir_value *x, pool_results *results)
{
    const hal_type type = hal_ir_type_of(b, x[0]);
    const bool is_max = f->divisor == OPS_POOL_MAXIMA;
    for (uint32_t i = 0; i < width; i++) {
        const hal_ir_value given =
            is_max && inside != HAL_IR_NONE
                ? hal_ir_select(b, inside, x[i], hal_ir_number(b, type, f->least))
                : x[i];
        hal_ir_value *value = &results->value[i];
        *value = *value == HAL_IR_NONE ? given
                 : is_max              ? ops_binary_value(b, OPS_MAXIMUM, *value, given)
                                       : hal_ir_add(b, *value, given);
    }
}

/* The same of the greatest element's place: the first one, or that of the last NaN. */
static void combine_places(hal_ir_builder *b, uint32_t width, hal_ir_value inside,
                           hal_ir_value place, const hal_ir_value *x, pool_results *results)
{
    const bool is_first = results->value[0] == HAL_IR_NONE;
    const bool is_float = hal_type_is_float(hal_ir_type_of(b, x[0]));
    for (uint32_t i = 0; i < width; i++) {
        hal_ir_value *value = &results->value[i], *at = &results->place[i];
        if (is_first) {
            *value = x[i];
            *at = place;
            continue;
        }
        hal_ir_value is_better = hal_ir_lt(b, *value, x[i]);
        is_better = is_float ? hal_ir_or(b, is_better, hal_ir_ne(b, x[i], x[i])) : is_better;
        is_better = results->found == HAL_IR_NONE
                        ? is_better
                        : hal_ir_or(b, is_better, hal_ir_not(b, results->found));
        is_better = ops_guard_and(b, is_better, inside);
        *value = hal_ir_select(b, is_better, x[i], *value);
        *at = hal_ir_select(b, is_better, place, *at);
    }
    results->found = inside == HAL_IR_NONE || results->found == HAL_IR_NONE
                         ? (is_first ? inside : HAL_IR_NONE)
                         : hal_ir_or(b, results->found, inside);
}

/* An index and, with `step`, k times the scalar of an axis. */
static hal_ir_value index_add(hal_ir_builder *b, hal_ir_value index, hal_ir_value step, uint32_t k)
{
    const hal_type type = hal_ir_type_of(b, index);
    return k == 0 ? index
                  : hal_ir_add(b, index, hal_ir_mul(b, step, ops_index_constant(b, type, k)));
}

/* Loads element n of the windows and combines it. */
static void emit_element(hal_ir_builder *b, const ops_element_iter *iter,
                         const ops_index_body *body, const pool_window *w, uint32_t n,
                         uint32_t place_view, pool_results *results)
{
    const ops_index_task *t = body->task;
    const pool_kernel_form *f = t->form;
    hal_ir_value at = iter->index[VIEW_X], inside = HAL_IR_NONE, x[OPS_MAX_WIDTH];
    hal_ir_value place = f->divisor == OPS_POOL_PLACES ? iter->index[place_view] : HAL_IR_NONE;
    for (uint32_t i = f->rank, rest = n; i-- > 0; rest /= f->window[i]) {
        const uint32_t k = rest % f->window[i];
        at = index_add(b, at, body->scalars[X_STEP + i], k);
        place =
            place == HAL_IR_NONE ? place : index_add(b, place, body->scalars[PLACE_STEP + i], k);
        inside = f->tested >> i & 1 ? ops_guard_and(b, inside, w->inside[i][k]) : inside;
    }
    ops_neighbours_load(b, t->slots[VIEW_X], at, iter->width, ops_guard_and(b, iter->guard, inside),
                        x);
    if (place == HAL_IR_NONE) {
        combine_values(b, f, iter->width, inside, x, results);
    } else {
        combine_places(b, iter->width, inside, place, x, results);
    }
}

static void emit_pool(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const pool_kernel_form *f = t->form;
    pool_results results = {.found = HAL_IR_NONE};
    pool_window w;
    uint32_t volume = 1, view = VIEW_COUNT;
    for (uint32_t i = 0; i < f->rank; i++) {
        volume *= f->window[i];
        w.count[i] = HAL_IR_NONE;
        if (f->tested >> i & 1) {
            emit_axis(b, iter, body, i, view++, &w);
        }
    }
    for (uint32_t i = 0; i < iter->width; i++) {
        results.value[i] = results.place[i] = HAL_IR_NONE;
    }
    for (uint32_t n = 0; n < volume; n++) {
        emit_element(b, iter, body, &w, n, view, &results);
    }
    const hal_type type = hal_ir_type_of(b, results.value[0]);
    const bool is_average = f->divisor == OPS_POOL_VOLUME || f->divisor == OPS_POOL_INSIDE ||
                            f->divisor == OPS_POOL_COUNTED;
    const hal_ir_value divisor = is_average ? emit_divisor(b, f, &w, type) : HAL_IR_NONE;
    for (uint32_t i = 0; i < iter->width; i++) {
        hal_ir_value *value = &results.value[i];
        *value = is_average                      ? ops_binary_value(b, OPS_DIV, *value, divisor)
                 : f->divisor == OPS_POOL_PLACES ? ops_value_cast(b, HAL_TYPE_I64, results.place[i])
                                                 : *value;
    }
    ops_neighbours_store(b, t->slots[VIEW_Y], iter->index[VIEW_Y], iter->width, iter->guard,
                         results.value);
}

hal_status ops_pool_windows(ops_context *context, const ops_pool_form *form, const ops_tensor *x,
                            const ops_tensor *y)
{
    pool_kernel_form f = {.rank = form->rank, .divisor = form->divisor, .least = form->least};
    int64_t scalars[SCALARS] = {0}, first, end;
    ops_index_task t = {.function = "ops_pool",
                        .name = "pool",
                        .family = OPS_FAMILY_POOL,
                        .body = emit_pool,
                        .form = &f,
                        .form_bytes = sizeof f,
                        .repeatable = 1,
                        .scalar_names = {"x0", "x1", "x2", "l0", "l1", "l2", "before0", "before1",
                                         "before2", "counted0", "counted1", "counted2", "place0",
                                         "place1", "place2"}};
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    ops_tensor view = ops_spatial_view(y, x);
    ops_span(x, &first, &end);
    t.reach = end - first;
    uint32_t widest = ops_spatial_widest(context, x, y);
    int64_t scale = 1;
    ops_tensor place = ops_spatial_view(y, NULL);
    for (uint32_t i = form->rank; i-- > 0; scale *= x->shape[i + 2]) {
        const int64_t step = x->stride[i + 2], length = x->shape[i + 2];
        const int64_t reach =
            (y->shape[i + 2] - 1) * form->stride[i] + (form->window[i] - 1) * form->dilation[i];
        f.window[i] = (uint32_t)form->window[i];
        f.dilation[i] = (uint32_t)form->dilation[i];
        view.stride[i + 2] = step * form->stride[i];
        view.offset -= step * form->before[i];
        scalars[X_STEP + i] = step * form->dilation[i];
        scalars[LENGTH + i] = length;
        scalars[BEFORE + i] = form->before[i];
        scalars[COUNTED + i] = form->before[i] + length + form->counted[i];
        f.tested |= (uint32_t)(form->before[i] > 0 || reach - form->before[i] >= length) << i;
        t.reach += (reach + form->before[i]) * (step < 0 ? -step : step) + form->counted[i];
        widest = ops_spatial_aligned(widest, form->window[i] > 1 ? scalars[X_STEP + i] : 0);
        scalars[PLACE_STEP + i] = scale * form->dilation[i];
        place.stride[i + 2] = scale * form->stride[i];
        place.offset -= scale * form->before[i];
    }
    ops_space_begin(&t.space, y->rank, y->shape);
    ops_index_add(context, &t, y, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, x, &view, HAL_ACCESS_READ);
    for (uint32_t i = 0; i < form->rank; i++) {
        if (f.tested >> i & 1) {
            ops_tensor at = ops_spatial_view(y, NULL);
            at.stride[i + 2] = form->stride[i];
            ops_space_add(&t.space, &at, -form->before[i]);
        }
    }
    if (form->divisor == OPS_POOL_PLACES) {
        ops_space_add(&t.space, &place, place.offset);
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, widest, &block, &entry));
    for (uint32_t i = 0; i < SCALARS; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
