/* See scatter_atomic.h. Integers that one atomic operation updates need one kernel. Else each
 * element of y has a code, of which the updates make the greatest:
 *
 *             code             then
 *  ASSIGN     place            the update of that place is stored
 *  MAX, MIN   ops_order_key    it is the result
 *  ADD        ops_fixed_class  the updates are added as multiples of the class' unit
 *
 * Codes and sums begin for each element of y; where these are many, for those with updates. */
#include "scatter_atomic.h"

#include "fixed_sum.h"
#include "index_task.h"
#include "tensor/allocation.h"
#include "tensor/dispatch.h"

#include <string.h>

typedef enum scatter_scheme { SCHEME_NONE, SCHEME_DIRECT, SCHEME_CODE, SCHEME_SUM } scatter_scheme;

typedef enum scatter_step { STEP_DIRECT, STEP_BEGIN, STEP_MOST, STEP_SUM, STEP_END } scatter_step;

/* What a kernel has views of. COORDINATE is the update's place along the axis. */
enum { UPDATES, INDICES, X, Y, CODES, SUMS, COORDINATE, ROLES };
enum { LIMIT, Y_STRIDE, CODE_STRIDE, GUARD, COPY_STRIDE };

/* The finished code of an element whose result one of its updates has taken. */
#define TAKEN UINT32_MAX

/* Updates of few elements have copies of the sums, so that fewer of them wait for each other. */
enum { SUM_COPIES = 32, MIN_COPIED = 256, MAX_COPIED_ELEMENTS = 8192 };

/* Elements of y for an update from which the kernels that begin and end go through the updates. */
enum { MANY_ELEMENTS = 4 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct step_form {
    uint32_t step, kind;
    uint32_t by_updates; /* work-items are updates; else elements of y */
    uint32_t copies;     /* of the sums */
    uint32_t view[ROLES];
    uint32_t reserved;
} step_form;
OPS_KEY_STRUCTURES_END

typedef struct atomic_call {
    const ops_scatter_call *call;
    scatter_scheme scheme;
    bool by_updates; /* begins and ends */
    uint32_t copies, guard;
    ops_tensor once; /* the indices, without repetitions for ASSIGN */
    ops_tensor codes, sums;
    ops_tensor all_sums; /* with copies, of rank 1 */
} atomic_call;

/* ---- Kernels ---- */

/* The element of y that a work-item updates or is of. */
typedef struct scatter_target {
    const step_form *form;
    const ops_index_body *body;
    const ops_element_iter *iter;
    hal_ir_value guard, pick;
} scatter_target;

static scatter_target emit_target(hal_ir_builder *b, const ops_element_iter *iter,
                                  const ops_index_body *body)
{
    scatter_target t = {.form = body->task->form, .body = body, .iter = iter, .guard = iter->guard};
    if (t.form->by_updates) {
        const uint32_t view = t.form->view[INDICES];
        const hal_ir_value index =
            hal_ir_load_wide(b, body->task->slots[view], iter->index[view], 0, 1, iter->guard);
        hal_ir_value limit = body->scalars[LIMIT];
        const hal_ir_value pick = ops_index_comparable(b, iter, index, &limit);
        t.guard = ops_guard_and(b, iter->guard, hal_ir_lt(b, pick, limit));
        t.pick = ops_value_cast(b, iter->values->type, pick);
    }
    return t;
}

static hal_ir_memory_id memory_of(const scatter_target *t, uint32_t role)
{
    return t->body->task->slots[t->form->view[role]];
}

static hal_ir_value index_of(hal_ir_builder *b, const scatter_target *t, uint32_t role)
{
    const hal_ir_value index = t->iter->index[t->form->view[role]];
    if (!t->form->by_updates || role == UPDATES) {
        return index;
    }
    const hal_ir_value stride =
        t->body->scalars[role == CODES || role == SUMS ? CODE_STRIDE : Y_STRIDE];
    return hal_ir_add(b, index, hal_ir_mul(b, t->pick, stride));
}

static hal_ir_value load(hal_ir_builder *b, const scatter_target *t, uint32_t role,
                         hal_ir_value index, hal_ir_value guard)
{
    return hal_ir_load_wide(b, memory_of(t, role), index, 0, 1, guard);
}

static hal_ir_value atomic(hal_ir_builder *b, const scatter_target *t, uint32_t kind, uint32_t role,
                           hal_ir_value index, hal_ir_value guard, hal_ir_value operand)
{
    return hal_ir_atomic(b, kind, memory_of(t, role), index, guard, operand, HAL_IR_NONE);
}

/* The place of an update along the axis, from 1 on. */
static hal_ir_value place_of(hal_ir_builder *b, const scatter_target *t)
{
    const hal_ir_value place = t->iter->index[t->form->view[COORDINATE]];
    return hal_ir_add(b, ops_value_cast(b, HAL_TYPE_U32, place), hal_ir_u32(b, 1));
}

static hal_ir_value code_of(hal_ir_builder *b, const scatter_target *t, hal_ir_value value)
{
    return t->form->kind == OPS_SCATTER_ADD
               ? ops_fixed_class(b, value)
               : ops_order_key(b, value, t->form->kind == OPS_SCATTER_MIN);
}

/* The index of sums in one of their copies. */
static hal_ir_value copy_of(hal_ir_builder *b, const scatter_target *t, hal_ir_value index,
                            hal_ir_value copy)
{
    copy = ops_value_cast(b, t->iter->values->type, copy);
    return hal_ir_add(b, index, hal_ir_mul(b, copy, t->body->scalars[COPY_STRIDE]));
}

static void emit_direct(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const scatter_target t = emit_target(b, iter, user);
    const hal_ir_value y = index_of(b, &t, Y);
    const hal_ir_value update = load(b, &t, UPDATES, index_of(b, &t, UPDATES), t.guard);
    if (t.form->kind == OPS_SCATTER_ADD) {
        atomic(b, &t, HAL_IR_ATOMIC_ADD, Y, y, t.guard, update);
        return;
    }
    /* Values only grow, or only fall: an old one does no harm. */
    const bool is_max = t.form->kind == OPS_SCATTER_MAX;
    const hal_ir_value seen = load(b, &t, Y, y, t.guard);
    const hal_ir_value better = is_max ? hal_ir_lt(b, seen, update) : hal_ir_lt(b, update, seen);
    atomic(b, &t, is_max ? HAL_IR_ATOMIC_MAX : HAL_IR_ATOMIC_MIN, Y, y,
           ops_guard_and(b, t.guard, better), update);
}

static void emit_begin(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const scatter_target t = emit_target(b, iter, user);
    const bool is_sum = t.form->kind == OPS_SCATTER_ADD;
    const hal_ir_value zero = hal_ir_u64(b, 0), codes = index_of(b, &t, CODES);
    const hal_ir_value code = t.form->kind == OPS_SCATTER_ASSIGN
                                  ? hal_ir_u32(b, 0)
                                  : code_of(b, &t, load(b, &t, X, index_of(b, &t, X), t.guard));
    if (t.form->by_updates) { /* those of one element write the same */
        atomic(b, &t, HAL_IR_ATOMIC_EXCHANGE, CODES, codes, t.guard, code);
        if (is_sum) {
            atomic(b, &t, HAL_IR_ATOMIC_EXCHANGE, SUMS, index_of(b, &t, SUMS), t.guard, zero);
        }
        return;
    }
    hal_ir_store_wide(b, memory_of(&t, CODES), codes, 0, t.guard, code);
    for (uint32_t i = 0; is_sum && i < t.form->copies; i++) {
        hal_ir_value index = index_of(b, &t, SUMS);
        index = i ? copy_of(b, &t, index, hal_ir_u32(b, i)) : index;
        hal_ir_store_wide(b, memory_of(&t, SUMS), index, 0, t.guard, zero);
    }
}

static void emit_most(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const scatter_target t = emit_target(b, iter, user);
    const hal_ir_value codes = index_of(b, &t, CODES);
    const hal_ir_value code =
        t.form->kind == OPS_SCATTER_ASSIGN
            ? place_of(b, &t)
            : code_of(b, &t, load(b, &t, UPDATES, index_of(b, &t, UPDATES), t.guard));
    const hal_ir_value more = hal_ir_lt(b, load(b, &t, CODES, codes, t.guard), code);
    atomic(b, &t, HAL_IR_ATOMIC_MAX, CODES, codes, ops_guard_and(b, t.guard, more), code);
}

static void emit_sum(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const scatter_target t = emit_target(b, iter, user);
    const hal_ir_value none = hal_ir_u64(b, 0);
    const hal_ir_value update = load(b, &t, UPDATES, index_of(b, &t, UPDATES), t.guard);
    const hal_ir_value code = load(b, &t, CODES, index_of(b, &t, CODES), t.guard);
    hal_ir_value sums = index_of(b, &t, SUMS);
    if (t.form->copies > 1) {
        sums =
            copy_of(b, &t, sums, hal_ir_and(b, place_of(b, &t), hal_ir_u32(b, t.form->copies - 1)));
    }
    const hal_ir_value special = ops_fixed_special(b, update);
    atomic(b, &t, HAL_IR_ATOMIC_OR, SUMS, sums,
           ops_guard_and(b, t.guard, hal_ir_ne(b, special, none)), special);
    const hal_ir_value bits =
        ops_value_cast(b, HAL_TYPE_U32, ((const ops_index_body *)user)->scalars[GUARD]);
    const hal_ir_value member = ops_fixed_member(b, update, code, bits);
    const hal_ir_value counts = hal_ir_and(b, hal_ir_ne(b, member, none),
                                           hal_ir_lt(b, code, hal_ir_u32(b, OPS_FIXED_SPECIAL)));
    atomic(b, &t, HAL_IR_ATOMIC_ADD, SUMS, sums, ops_guard_and(b, t.guard, counts), member);
}

/* x plus the sum of its updates, whose class is `code`. */
static hal_ir_value emit_value(hal_ir_builder *b, const scatter_target *t, hal_ir_value x,
                               hal_ir_value code, hal_ir_value guard)
{
    const hal_ir_value first = index_of(b, t, SUMS);
    hal_ir_value sum = load(b, t, SUMS, first, guard), special = sum;
    for (uint32_t i = 1; i < t->form->copies; i++) {
        const hal_ir_value index = copy_of(b, t, first, hal_ir_u32(b, i));
        const hal_ir_value part = load(b, t, SUMS, index, guard);
        sum = hal_ir_add(b, sum, part);
        special = hal_ir_or(b, special, part);
    }
    const hal_ir_value bits = ops_value_cast(b, HAL_TYPE_U32, t->body->scalars[GUARD]);
    sum = hal_ir_add(b, sum, ops_fixed_member(b, x, code, bits));
    const bool is_narrow = t->body->task->bindings.types[memory_of(t, Y)] != HAL_TYPE_F32;
    return hal_ir_select(b, hal_ir_lt(b, code, hal_ir_u32(b, OPS_FIXED_SPECIAL)),
                         ops_fixed_value(b, sum, code, bits, is_narrow),
                         ops_fixed_special_value(b, x, special));
}

/* Of several updates the one that finds the code not taken ends the element. */
static hal_ir_value emit_take(hal_ir_builder *b, const scatter_target *t, hal_ir_value *guard)
{
    const hal_ir_value taken = hal_ir_u32(b, TAKEN), codes = index_of(b, t, CODES);
    if (!t->form->by_updates) {
        return load(b, t, CODES, codes, t->guard);
    }
    const hal_ir_value seen = load(b, t, CODES, codes, t->guard);
    const hal_ir_value is_open = ops_guard_and(b, t->guard, hal_ir_ne(b, seen, taken));
    const hal_ir_value code = atomic(b, t, HAL_IR_ATOMIC_EXCHANGE, CODES, codes, is_open, taken);
    *guard = hal_ir_and(b, is_open, hal_ir_ne(b, code, taken));
    return code;
}

static void emit_end(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const scatter_target t = emit_target(b, iter, user);
    hal_ir_value guard = t.guard, value;
    if (t.form->kind == OPS_SCATTER_ASSIGN) {
        const hal_ir_value last = load(b, &t, CODES, index_of(b, &t, CODES), t.guard);
        guard = ops_guard_and(b, guard, hal_ir_eq(b, last, place_of(b, &t)));
        value = load(b, &t, UPDATES, index_of(b, &t, UPDATES), guard);
    } else {
        const hal_ir_value code = emit_take(b, &t, &guard);
        const hal_ir_value x = load(b, &t, X, index_of(b, &t, X), guard);
        if (t.form->kind == OPS_SCATTER_ADD) {
            value = emit_value(b, &t, x, code, guard);
        } else { /* a NaN that stays keeps its bits */
            const bool is_min = t.form->kind == OPS_SCATTER_MIN;
            value = ops_order_value(b, hal_ir_type_of(b, x), code, is_min);
            value = hal_ir_select(b, hal_ir_eq(b, code, ops_order_key(b, x, is_min)), x, value);
        }
    }
    hal_ir_store_wide(b, memory_of(&t, Y), index_of(b, &t, Y), 0, guard, value);
}

/* ---- Recording ---- */

static void role_add(const ops_context *context, ops_index_task *t, step_form *form, uint32_t role,
                     const ops_tensor *tensor, const ops_tensor *view, uint32_t access)
{
    form->view[role] = t->space.view_count;
    ops_index_add_view(context, t, tensor, view, access);
}

/* The views of a step. An element of y is found from the update's place on the other axes. */
static void step_views(const ops_context *context, const atomic_call *a, ops_index_task *t,
                       step_form *form)
{
    const ops_scatter_call *c = a->call;
    const scatter_step step = (scatter_step)form->step;
    const bool is_assign = c->kind == OPS_SCATTER_ASSIGN, is_sum = a->scheme == SCHEME_SUM;
    const bool by_once = is_assign && (step == STEP_BEGIN || step == STEP_MOST);
    const uint32_t both = HAL_ACCESS_READ | HAL_ACCESS_WRITE;
    const ops_tensor *shape = form->by_updates     ? by_once ? &a->once : &c->updates
                              : step == STEP_BEGIN ? &a->codes
                                                   : &c->y;
    ops_space_begin(&t->space, shape->rank, shape->shape);
    const bool has_updates = step == STEP_DIRECT || step == STEP_SUM ||
                             (step == STEP_MOST && !is_assign) || (step == STEP_END && is_assign);
    if (has_updates) {
        role_add(context, t, form, UPDATES, &c->updates, &c->updates, HAL_ACCESS_READ);
    }
    if (form->by_updates) {
        const ops_tensor *indices = by_once ? &a->once : &c->indices;
        role_add(context, t, form, INDICES, indices, indices, HAL_ACCESS_READ);
    }
    const uint32_t first = t->space.view_count;
    if (step == STEP_DIRECT || step == STEP_END) {
        role_add(context, t, form, Y, &c->y, &c->y,
                 step == STEP_DIRECT || (form->by_updates && !is_assign) ? both : HAL_ACCESS_WRITE);
    }
    if ((step == STEP_BEGIN || step == STEP_END) && !is_assign) {
        const ops_tensor *x = form->by_updates ? &c->y : &c->x;
        form->view[X] = form->view[Y];
        if (!form->by_updates || step == STEP_BEGIN) {
            role_add(context, t, form, X, x, x, HAL_ACCESS_READ);
        }
    }
    if (step != STEP_DIRECT) {
        const bool is_read = step == STEP_SUM || (step == STEP_END && !form->by_updates) ||
                             (step == STEP_END && is_assign);
        const bool is_written = step == STEP_BEGIN && !form->by_updates;
        role_add(context, t, form, CODES, &a->codes, &a->codes,
                 is_read      ? HAL_ACCESS_READ
                 : is_written ? HAL_ACCESS_WRITE
                              : both);
        if (is_sum && step != STEP_MOST) {
            role_add(context, t, form, SUMS, &a->all_sums, &a->sums,
                     step == STEP_END ? HAL_ACCESS_READ
                     : is_written     ? HAL_ACCESS_WRITE
                                      : both);
        }
    }
    for (uint32_t view = first; form->by_updates && view < t->space.view_count; view++) {
        t->space.stride[view][c->axis] = 0;
    }
    if (form->by_updates && (is_assign || step == STEP_SUM)) {
        form->view[COORDINATE] = ops_space_add_coordinate(&t->space, c->axis);
    }
}

static int64_t extent_of(const ops_tensor *tensor)
{
    int64_t first, end;
    ops_span(tensor, &first, &end);
    return end - first;
}

static hal_status record_step(ops_context *context, const atomic_call *a, scatter_step step)
{
    static const struct {
        const char *name;
        ops_elementwise_body body;
    } steps[] = {[STEP_DIRECT] = {"scatter_direct", emit_direct},
                 [STEP_BEGIN] = {"scatter_begin", emit_begin},
                 [STEP_MOST] = {"scatter_most", emit_most},
                 [STEP_SUM] = {"scatter_sum", emit_sum},
                 [STEP_END] = {"scatter_end", emit_end}};
    const ops_scatter_call *c = a->call;
    const bool is_edge = step == STEP_BEGIN || step == STEP_END;
    step_form form = {.step = step,
                      .kind = (uint32_t)c->kind,
                      .by_updates = !is_edge || a->by_updates ||
                                    (step == STEP_END && c->kind == OPS_SCATTER_ASSIGN),
                      .copies = a->copies};
    ops_index_task t = {
        .function = "ops_scatter",
        .name = steps[step].name,
        .family = OPS_FAMILY_SCATTER_ATOMIC,
        .variant = (uint32_t)a->scheme,
        .form = &form,
        .form_bytes = sizeof form,
        .body = steps[step].body,
        .scalar_names = {"limit", "y_stride", "code_stride", "guard", "copy_stride"}};
    step_views(context, a, &t, &form);
    const uint32_t axis = c->axis;
    const int64_t y_length = c->y.shape[axis], extent = extent_of(&c->y);
    const int64_t count = ops_tensor_get_element_count(&c->y) * a->copies;
    t.reach = (extent > count ? extent : count) + y_length;
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    const bool index64 = t.plan.layout.index64;
    ops_put_index(&block, index64, y_length);
    ops_put_index(&block, index64, y_length > 1 ? c->y.stride[axis] : 0);
    ops_put_index(&block, index64, a->codes.stride[axis]);
    ops_put_index(&block, index64, a->guard);
    ops_put_index(&block, index64, ops_tensor_get_element_count(&a->sums));
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

static scatter_scheme scheme_of(ops_scatter_kind kind, hal_type type)
{
    const bool has_atomics = type == HAL_TYPE_I32 || type == HAL_TYPE_U32 || type == HAL_TYPE_I64 ||
                             type == HAL_TYPE_U64;
    const bool is_f32 = type == HAL_TYPE_F32 || (hal_type_is_float(type) && type != HAL_TYPE_F64);
    switch (kind) {
    case OPS_SCATTER_ASSIGN:
        return SCHEME_CODE;
    case OPS_SCATTER_ADD:
        return has_atomics ? SCHEME_DIRECT : is_f32 ? SCHEME_SUM : SCHEME_NONE;
    case OPS_SCATTER_MAX:
    case OPS_SCATTER_MIN:
        return has_atomics ? SCHEME_DIRECT : type == HAL_TYPE_F64 ? SCHEME_NONE : SCHEME_CODE;
    default:
        return SCHEME_NONE;
    }
}

/* A tensor of the shape, row-major in new memory; of `copies` at once *all has all elements. */
static hal_status scratch_create(ops_context *context, const ops_tensor *shape, hal_type type,
                                 uint32_t copies, ops_tensor *made, ops_tensor *all)
{
    *made = *shape;
    made->type = type;
    made->offset = 0;
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        made->stride[i] = stride;
        stride *= shape->shape[i];
    }
    *all = (ops_tensor){.type = type, .rank = 1, .shape = {stride * copies}, .stride = {1}};
    const hal_status status =
        ops_buffer_create(context, (uint64_t)stride * copies * hal_type_size(type), &all->buffer);
    made->buffer = all->buffer = status == HAL_OK ? all->buffer : NULL;
    return status;
}

static uint32_t guard_bits(int64_t members)
{
    uint32_t bits = 1;
    while (INT64_C(1) << bits < members) {
        bits++;
    }
    return bits;
}

bool ops_scatter_is_sparse(const ops_scatter_call *c)
{
    return ops_tensor_get_element_count(&c->y) / MANY_ELEMENTS >
           ops_tensor_get_element_count(&c->updates);
}

static void plan_call(const ops_scatter_call *c, atomic_call *a)
{
    const int64_t elements = ops_tensor_get_element_count(&c->y);
    const int64_t length = c->updates.shape[c->axis];
    *a = (atomic_call){.call = c,
                       .scheme = scheme_of(c->kind, c->y.type),
                       .by_updates = ops_scatter_is_sparse(c),
                       .copies = 1,
                       .guard = guard_bits(length + 1),
                       .once = c->indices};
    const bool is_shared =
        elements <= MAX_COPIED_ELEMENTS && length / c->y.shape[c->axis] >= MIN_COPIED;
    a->copies = a->scheme == SCHEME_SUM && is_shared ? SUM_COPIES : 1;
    for (uint32_t i = 0; c->kind == OPS_SCATTER_ASSIGN && i < c->indices.rank; i++) {
        a->once.shape[i] = i != c->axis && c->indices.stride[i] == 0 ? 1 : a->once.shape[i];
    }
}

/* Of the codes, of which whole rows have one each where they are assigned. */
static ops_tensor codes_shape(const atomic_call *a)
{
    ops_tensor shape = a->call->y;
    for (uint32_t i = 0; a->call->kind == OPS_SCATTER_ASSIGN && i < shape.rank; i++) {
        shape.shape[i] = i == a->call->axis ? shape.shape[i] : a->once.shape[i];
    }
    return shape;
}

/* Memory for elements that have no updates is limited. */
static bool scratch_is_small(const atomic_call *a)
{
    const ops_tensor codes = codes_shape(a);
    uint64_t bytes = (uint64_t)ops_tensor_get_element_count(&codes) * sizeof(uint32_t);
    bytes += a->scheme == SCHEME_SUM ? 2 * bytes : 0;
    return a->scheme == SCHEME_DIRECT || !a->by_updates || bytes <= OPS_SCATTER_BYTES;
}

bool ops_scatter_is_atomic(const ops_context *context, const ops_scatter_call *call)
{
    const scatter_scheme scheme = scheme_of(call->kind, call->y.type);
    const bool is_64 = scheme == SCHEME_SUM ||
                       (scheme == SCHEME_DIRECT && hal_type_size(call->y.type) == sizeof(int64_t));
    const uint64_t most = context->info->max_binding / sizeof(uint64_t);
    const bool can = scheme != SCHEME_NONE && call->updates.shape[call->axis] <= INT32_MAX &&
                     (!is_64 || (context->info->features & HAL_FEATURE_ATOMIC_64)) &&
                     (uint64_t)ops_tensor_get_element_count(&call->y) <= most;
    if (!can || call->order == OPS_SCATTER_ATOMIC) {
        return can;
    }
    atomic_call a;
    plan_call(call, &a);
    return context->tuning->scatter_atomics && scratch_is_small(&a) &&
           (scheme != SCHEME_SUM || call->order == OPS_SCATTER_UNORDERED);
}

static hal_status record_steps(ops_context *context, const atomic_call *a)
{
    HAL_TRY(record_step(context, a, STEP_BEGIN));
    HAL_TRY(record_step(context, a, STEP_MOST));
    if (a->scheme == SCHEME_SUM) {
        HAL_TRY(record_step(context, a, STEP_SUM));
    }
    return record_step(context, a, STEP_END);
}

static hal_status x_copy(ops_context *context, const ops_scatter_call *c)
{
    return c->in_place ? HAL_OK : ops_copy(context, &c->x, &c->y);
}

hal_status ops_scatter_by_atomics(ops_context *context, const ops_scatter_call *c, bool *done)
{
    atomic_call a;
    plan_call(c, &a);
    *done = true;
    const bool reads_x =
        a.scheme != SCHEME_DIRECT && c->kind != OPS_SCATTER_ASSIGN && !a.by_updates;
    if (a.scheme == SCHEME_DIRECT) {
        HAL_TRY(x_copy(context, c));
        return record_step(context, &a, STEP_DIRECT);
    }
    const ops_tensor shape = codes_shape(&a);
    ops_tensor codes;
    *done = scratch_create(context, &shape, HAL_TYPE_U32, 1, &a.codes, &codes) == HAL_OK &&
            (a.scheme != SCHEME_SUM || scratch_create(context, &c->y, HAL_TYPE_U64, a.copies,
                                                      &a.sums, &a.all_sums) == HAL_OK);
    hal_status status = *done && !reads_x ? x_copy(context, c) : HAL_OK;
    if (*done && status == HAL_OK) {
        status = record_steps(context, &a);
    }
    hal_buffer_release(a.codes.buffer);
    hal_buffer_release(a.all_sums.buffer);
    return status;
}
