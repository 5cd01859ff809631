/* Pooling by windows, see pool.h: each work-item combines the window of its result. */
#include "pool.h"

#include "functions.h"
#include "index_task.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Views; the coordinates along tested axes follow. */
enum { VIEW_Y, VIEW_X, VIEW_COUNT };

/* Scalars of each spatial axis: the distance in x of elements that are `dilation` apart, the length
 * of x, the padding before it, and the length of both with the padding that counts. */
enum { X_STEP = 0, LENGTH = 3, BEFORE = 6, COUNTED = 9, SCALARS = 12 };

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

static void emit_pool(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const pool_kernel_form *f = t->form;
    pool_window w;
    uint32_t volume = 1, view = VIEW_COUNT;
    for (uint32_t i = 0; i < f->rank; i++) {
        volume *= f->window[i];
        w.count[i] = HAL_IR_NONE;
        if (f->tested >> i & 1) {
            emit_axis(b, iter, body, i, view++, &w);
        }
    }
    hal_ir_value result = HAL_IR_NONE;
    for (uint32_t n = 0; n < volume; n++) {
        hal_ir_value at = iter->index[VIEW_X], inside = HAL_IR_NONE;
        for (uint32_t i = f->rank, rest = n; i-- > 0; rest /= f->window[i]) {
            const uint32_t k = rest % f->window[i];
            const hal_type type = iter->values->type;
            if (k > 0) {
                at = hal_ir_add(
                    b, at,
                    hal_ir_mul(b, body->scalars[X_STEP + i], ops_index_constant(b, type, k)));
            }
            inside = f->tested >> i & 1 ? ops_guard_and(b, inside, w.inside[i][k]) : inside;
        }
        hal_ir_value x =
            hal_ir_load_wide(b, t->slots[VIEW_X], at, 0, 1, ops_guard_and(b, iter->guard, inside));
        if (f->divisor == OPS_POOL_MAXIMA && inside != HAL_IR_NONE) {
            x = hal_ir_select(b, inside, x, hal_ir_number(b, hal_ir_type_of(b, x), f->least));
        }
        result = result == HAL_IR_NONE           ? x
                 : f->divisor == OPS_POOL_MAXIMA ? ops_binary_value(b, OPS_MAXIMUM, result, x)
                                                 : hal_ir_add(b, result, x);
    }
    if (f->divisor != OPS_POOL_MAXIMA) {
        const hal_type type = hal_ir_type_of(b, result);
        result = ops_binary_value(b, OPS_DIV, result, emit_divisor(b, f, &w, type));
    }
    hal_ir_store_wide(b, t->slots[VIEW_Y], iter->index[VIEW_Y], 0, iter->guard, result);
}

/* A view of the results' shape that has these strides along spatial axes. */
static ops_tensor spatial_view(const ops_tensor *y, const ops_tensor *of, int64_t image,
                               int64_t channel)
{
    ops_tensor view = *y;
    view.buffer = of->buffer;
    view.type = of->type;
    view.offset = of->offset;
    memset(view.stride, 0, sizeof view.stride);
    view.stride[0] = image;
    view.stride[1] = channel;
    return view;
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
                                         "before2", "counted0", "counted1", "counted2"}};
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    ops_tensor view = spatial_view(y, x, x->stride[0], x->stride[1]);
    ops_span(x, &first, &end);
    t.reach = end - first;
    for (uint32_t i = 0; i < form->rank; i++) {
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
    }
    ops_space_begin(&t.space, y->rank, y->shape);
    ops_index_add(context, &t, y, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, x, &view, HAL_ACCESS_READ);
    for (uint32_t i = 0; i < form->rank; i++) {
        if (f.tested >> i & 1) {
            ops_tensor at = spatial_view(y, y, 0, 0);
            at.stride[i + 2] = form->stride[i];
            ops_space_add(&t.space, &at, -form->before[i]);
        }
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    for (uint32_t i = 0; i < SCALARS; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
