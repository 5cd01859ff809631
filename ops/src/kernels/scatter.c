/* Scattering. Indices are sorted, so the updates of one element follow one another in their order,
 * and one work-item combines them. On processors, whose work-items wait for each other in any case,
 * one for each line goes through all updates instead, unless that takes much memory. Where the
 * order does not matter, GPUs combine them by atomic operations (scatter_atomic.c). */
#include "axis_last.h"
#include "index_task.h"
#include "scatter_few.h"
#include "sort_call.h"
#include "tensor/allocation.h"
#include "tensor/dispatch.h"
#include "tensor/loop_limit.h"

#include <ops/index.h>
#include <ops/pointwise.h>
#include <ops/sort.h>

#include <string.h>

/* The views of the kernel; the last one is the coordinate along the axis. */
enum { VIEW_UPDATES, VIEW_Y, VIEW_SORTED, VIEW_PLACES, VIEW_COORDINATE };
enum { LENGTH, LIMIT, Y_STRIDE, UPDATES_STRIDE, STEPS };

/* The elements of one call, of which `updates` and `indices` may be a part along the axis. */
typedef struct scatter_call {
    ops_scatter_kind kind;
    uint32_t axis;
    ops_tensor indices, updates, y;
    ops_tensor sorted, places; /* of the indices; the axis is last in memory */
} scatter_call;

/* How many neighbours from `first` on have its index `target`; the search keeps `least` of them
 * and at most `most`. */
static hal_ir_value emit_count(hal_ir_builder *b, const ops_index_body *body, hal_ir_value first,
                               hal_ir_value target, hal_ir_value rest, hal_ir_value is_first)
{
    const hal_type type = hal_ir_type_of(b, rest);
    const hal_ir_value one = ops_index_constant(b, type, 1);
    const hal_ir_value least = hal_ir_var(b, one), most = hal_ir_var(b, rest);
    const hal_ir_value steps = hal_ir_cast(b, HAL_TYPE_U32, body->scalars[STEPS]);
    hal_ir_for(b, hal_ir_u32(b, 0), steps, hal_ir_u32(b, 1));
    const hal_ir_value low = hal_ir_get(b, least), high = hal_ir_get(b, most);
    const hal_ir_value active = hal_ir_and(b, is_first, hal_ir_lt(b, low, high));
    const hal_ir_value middle = hal_ir_add(b, low, hal_ir_shr(b, hal_ir_sub(b, high, low), one));
    const hal_ir_value found = hal_ir_load_wide(b, body->task->slots[VIEW_SORTED],
                                                hal_ir_add(b, first, middle), 0, 1, active);
    const hal_ir_value is_same = hal_ir_eq(b, found, target);
    const hal_ir_value up = hal_ir_and(b, active, is_same);
    const hal_ir_value down = hal_ir_and(b, active, hal_ir_not(b, is_same));
    hal_ir_set(b, least, hal_ir_select(b, up, hal_ir_add(b, middle, one), low));
    hal_ir_set(b, most, hal_ir_select(b, down, middle, high));
    hal_ir_end(b);
    return hal_ir_get(b, least);
}

static hal_ir_value emit_update(hal_ir_builder *b, const ops_element_iter *iter,
                                const ops_index_body *body, hal_ir_value number, hal_ir_value guard)
{
    const uint8_t *slots = body->task->slots;
    const hal_type type = iter->values->type;
    hal_ir_value place = hal_ir_load_wide(
        b, slots[VIEW_PLACES], hal_ir_add(b, iter->index[VIEW_PLACES], number), 0, 1, guard);
    place = hal_ir_mul(b, ops_value_cast(b, type, place), body->scalars[UPDATES_STRIDE]);
    return hal_ir_load_wide(b, slots[VIEW_UPDATES], hal_ir_add(b, iter->index[VIEW_UPDATES], place),
                            0, 1, guard);
}

/* One work-item combines the updates of a line in turn. The views are updates, y and indices. */
static void emit_in_turn(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    enum { INDICES = VIEW_SORTED, INDICES_STRIDE = STEPS };
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const ops_scatter_kind kind = (ops_scatter_kind)t->variant;
    const hal_type type = iter->values->type;
    const hal_ir_value length = ops_value_cast(b, HAL_TYPE_U32, body->scalars[LENGTH]);
    hal_ir_value i = hal_ir_for(b, hal_ir_u32(b, 0), length, hal_ir_u32(b, 1));
    i = ops_value_cast(b, type, i);
    hal_ir_value limit = body->scalars[LIMIT];
    hal_ir_value place = hal_ir_mul(b, i, body->scalars[INDICES_STRIDE]);
    place = hal_ir_load_wide(b, t->slots[INDICES], hal_ir_add(b, iter->index[INDICES], place), 0, 1,
                             iter->guard);
    place = ops_index_comparable(b, iter, place, &limit);
    const hal_ir_value inside = ops_guard_and(b, iter->guard, hal_ir_lt(b, place, limit));
    place = hal_ir_mul(b, ops_value_cast(b, type, place), body->scalars[Y_STRIDE]);
    place = hal_ir_add(b, iter->index[VIEW_Y], place);
    hal_ir_value update = hal_ir_mul(b, i, body->scalars[UPDATES_STRIDE]);
    update = hal_ir_load_wide(b, t->slots[VIEW_UPDATES],
                              hal_ir_add(b, iter->index[VIEW_UPDATES], update), 0, 1, iter->guard);
    if (kind != OPS_SCATTER_ASSIGN) {
        const hal_ir_value y = hal_ir_load_wide(b, t->slots[VIEW_Y], place, 0, 1, inside);
        update = ops_scatter_combine(b, kind, y, update);
    }
    hal_ir_store_wide(b, t->slots[VIEW_Y], place, 0, inside, update);
    hal_ir_end(b);
}

/* The first of the neighbours with one index combines them. */
static void emit_scatter(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const ops_scatter_kind kind = (ops_scatter_kind)t->variant;
    const hal_type type = iter->values->type;
    const hal_ir_value zero = ops_index_constant(b, type, 0), one = ops_index_constant(b, type, 1);
    const hal_ir_value sorted = iter->index[VIEW_SORTED], place = iter->index[VIEW_COORDINATE];
    const hal_ir_value target =
        hal_ir_load_wide(b, t->slots[VIEW_SORTED], sorted, 0, 1, iter->guard);
    const hal_ir_value has_before = ops_guard_and(b, iter->guard, hal_ir_lt(b, zero, place));
    const hal_ir_value before =
        hal_ir_load_wide(b, t->slots[VIEW_SORTED], hal_ir_sub(b, sorted, one), 0, 1, has_before);
    hal_ir_value limit = body->scalars[LIMIT];
    const hal_ir_value index = ops_index_comparable(b, iter, target, &limit);
    hal_ir_value is_first = hal_ir_or(b, hal_ir_eq(b, place, zero), hal_ir_ne(b, before, target));
    is_first = hal_ir_and(b, is_first, hal_ir_lt(b, index, limit));
    is_first = ops_guard_and(b, iter->guard, is_first);
    const hal_ir_value rest = hal_ir_sub(b, body->scalars[LENGTH], place);
    hal_ir_value count = emit_count(b, body, sorted, target, rest, is_first);
    const hal_ir_value step =
        hal_ir_mul(b, ops_value_cast(b, type, index), body->scalars[Y_STRIDE]);
    const hal_ir_value y = hal_ir_add(b, iter->index[VIEW_Y], step);
    if (kind == OPS_SCATTER_ASSIGN) {
        const hal_ir_value last = emit_update(b, iter, body, hal_ir_sub(b, count, one), is_first);
        hal_ir_store_wide(b, t->slots[VIEW_Y], y, 0, is_first, last);
        return;
    }
    count = hal_ir_select(b, is_first, ops_value_cast(b, HAL_TYPE_U32, count), hal_ir_u32(b, 0));
    const hal_ir_value result =
        hal_ir_var(b, hal_ir_load_wide(b, t->slots[VIEW_Y], y, 0, 1, is_first));
    const hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), count, hal_ir_u32(b, 1));
    const hal_ir_value update = emit_update(b, iter, body, ops_value_cast(b, type, k), HAL_IR_NONE);
    hal_ir_set(b, result, ops_scatter_combine(b, kind, hal_ir_get(b, result), update));
    hal_ir_end(b);
    hal_ir_store_wide(b, t->slots[VIEW_Y], y, 0, is_first, hal_ir_get(b, result));
}

static uint32_t halvings(int64_t length)
{
    uint32_t steps = 1;
    while (length > 0) {
        length /= 2;
        steps++;
    }
    return steps;
}

static hal_status record_updates(ops_context *context, const scatter_call *c)
{
    ops_index_task t = {.function = "ops_scatter",
                        .name = "scatter",
                        .family = OPS_FAMILY_SCATTER,
                        .variant = (uint32_t)c->kind,
                        .body = emit_scatter,
                        .scalar_names = {"length", "limit", "y_stride", "updates_stride", "steps"}};
    const uint32_t axis = c->axis;
    const int64_t length = c->updates.shape[axis];
    ops_space_begin(&t.space, c->updates.rank, c->updates.shape);
    ops_index_add(context, &t, &c->updates, HAL_ACCESS_READ);
    ops_index_add(context, &t, &c->y,
                  HAL_ACCESS_WRITE | (c->kind == OPS_SCATTER_ASSIGN ? 0 : HAL_ACCESS_READ));
    ops_index_add(context, &t, &c->sorted, HAL_ACCESS_READ);
    ops_index_add(context, &t, &c->places, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, axis);
    /* Indices replace the coordinate. */
    t.space.stride[VIEW_Y][axis] = t.space.stride[VIEW_UPDATES][axis] = 0;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t first, end;
        ops_span(i ? &c->y : &c->updates, &first, &end);
        const int64_t reach = end - first + (i ? c->y.shape[axis] : length);
        t.reach = reach > t.reach ? reach : t.reach;
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    const bool index64 = t.plan.layout.index64;
    ops_put_index(&block, index64, length);
    ops_put_index(&block, index64, c->y.shape[axis]);
    ops_put_index(&block, index64, c->y.shape[axis] > 1 ? c->y.stride[axis] : 0);
    ops_put_index(&block, index64, length > 1 ? c->updates.stride[axis] : 0);
    ops_put_index(&block, index64, halvings(length));
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

static hal_status record_in_turn(ops_context *context, const scatter_call *c)
{
    ops_index_task t = {
        .function = "ops_scatter",
        .name = "scatter_in_turn",
        .family = OPS_FAMILY_SCATTER_IN_TURN,
        .variant = (uint32_t)c->kind,
        .body = emit_in_turn,
        .scalar_names = {"length", "limit", "y_stride", "updates_stride", "indices_stride"}};
    const ops_tensor *all[3] = {&c->updates, &c->y, &c->indices};
    const uint32_t axis = c->axis;
    const int64_t length = c->updates.shape[axis];
    int64_t shape[OPS_MAX_RANK];
    memcpy(shape, c->y.shape, sizeof shape);
    shape[axis] = 1;
    ops_space_begin(&t.space, c->y.rank, shape);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t first, end;
        ops_index_add(context, &t, all[i],
                      i != VIEW_Y                     ? HAL_ACCESS_READ
                      : c->kind != OPS_SCATTER_ASSIGN ? HAL_ACCESS_READ_WRITE
                                                      : HAL_ACCESS_WRITE);
        t.space.stride[i][axis] = 0;
        ops_span(all[i], &first, &end);
        const int64_t reach = end - first + all[i]->shape[axis];
        t.reach = reach > t.reach ? reach : t.reach;
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    const bool index64 = t.plan.layout.index64;
    ops_put_index(&block, index64, length);
    ops_put_index(&block, index64, c->y.shape[axis]);
    ops_put_index(&block, index64, c->y.shape[axis] > 1 ? c->y.stride[axis] : 0);
    ops_put_index(&block, index64, length > 1 ? c->updates.stride[axis] : 0);
    ops_put_index(&block, index64, length > 1 ? c->indices.stride[axis] : 0);
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

/* A tensor of the shape with the axis last in memory. */
static hal_status create_sorted(ops_context *context, const ops_tensor *shape, uint32_t axis,
                                hal_type type, ops_tensor *made)
{
    *made = ops_axis_last(shape, axis, type);
    const uint64_t count = (uint64_t)ops_tensor_get_element_count(made);
    return ops_buffer_create(context, count * hal_type_size(type), &made->buffer);
}

/* Sorts the indices, once where they are broadcast, and applies the updates. */
static hal_status record_part(ops_context *context, scatter_call *c)
{
    ops_tensor once = c->indices;
    for (uint32_t i = 0; i < once.rank; i++) {
        once.shape[i] = i != c->axis && once.stride[i] == 0 ? 1 : once.shape[i];
    }
    hal_status status =
        ops_sort_bounded(context, c->axis, c->y.shape[c->axis], &once, &c->sorted, &c->places);
    if (status == HAL_OK && c->sorted.buffer) {
        status = record_updates(context, c);
        hal_buffer_release(c->sorted.buffer);
        hal_buffer_release(c->places.buffer);
        return status;
    }
    HAL_TRY(status);
    c->sorted.buffer = c->places.buffer = NULL;
    status = create_sorted(context, &once, c->axis, once.type, &c->sorted);
    if (status == HAL_OK) {
        status = create_sorted(context, &once, c->axis, HAL_TYPE_I32, &c->places);
    }
    if (status == HAL_OK) {
        status = ops_sort(context, (int32_t)c->axis, 0, &once, &c->sorted, &c->places);
    }
    if (status == HAL_OK) {
        status = record_updates(context, c);
    }
    hal_buffer_release(c->sorted.buffer);
    hal_buffer_release(c->places.buffer);
    return status;
}

static hal_status check_scatter(const ops_context *context, ops_scatter_kind kind, int32_t axis,
                                const ops_tensor *indices, const ops_tensor *updates,
                                const ops_tensor *y, uint32_t *checked)
{
    char text[3][OPS_TEXT_BYTES];
    HAL_TRY(ops_check_indices(context, "ops_scatter", indices));
    HAL_TRY(ops_check_tensor(context, "ops_scatter", "updates", updates));
    HAL_TRY(ops_check_output(context, "ops_scatter", "y", y));
    HAL_TRY(ops_check_axis("ops_scatter", "axis", y, axis, checked));
    if ((uint32_t)kind >= OPS_SCATTER_KIND_COUNT) {
        return ops_invalid("ops_scatter: kind: expected an ops_scatter_kind, got %d", (int)kind);
    }
    if (kind != OPS_SCATTER_ASSIGN && y->type == HAL_TYPE_BOOL) {
        return ops_invalid("ops_scatter: y: expected numbers, got bool; only ASSIGN takes it");
    }
    bool fits =
        updates->type == y->type && updates->rank == y->rank && ops_same_shape(indices, updates);
    for (uint32_t i = 0; fits && i < y->rank; i++) {
        fits = i == *checked || updates->shape[i] == y->shape[i];
    }
    if (!fits) {
        return ops_invalid("ops_scatter: updates: expected the type of y %s and the shape of "
                           "indices %s, which differs from that of y at axis %u only, got %s",
                           ops_describe(y, text[0]), ops_describe(indices, text[1]), *checked,
                           ops_describe(updates, text[2]));
    }
    HAL_TRY(ops_check_apart("ops_scatter", "updates", updates, y));
    return ops_check_apart("ops_scatter", "indices", indices, y);
}

/* In turn y keeps results between updates: sums and products of narrow floats are kept in F32. */
static bool is_kept_wide(ops_scatter_kind kind, hal_type type)
{
    return (kind == OPS_SCATTER_ADD || kind == OPS_SCATTER_MULTIPLY) && hal_type_is_float(type) &&
           !hal_type_is_value(type);
}

/* Memory for elements that have no updates is limited. */
static bool takes_turns(const ops_context *context, const ops_scatter_call *call)
{
    const uint64_t count = (uint64_t)ops_tensor_get_element_count(&call->y);
    return context->tuning->scatter_in_turn && call->updates.shape[call->axis] <= INT32_MAX &&
           (!is_kept_wide(call->kind, call->y.type) || !ops_scatter_is_sparse(call) ||
            count * sizeof(float) <= OPS_SCATTER_BYTES);
}

static hal_status record_all_in_turn(ops_context *context, const scatter_call *c)
{
    if (!is_kept_wide(c->kind, c->y.type)) {
        return record_in_turn(context, c);
    }
    scatter_call wide = *c;
    wide.y = ops_axis_last(&c->y, c->y.rank - 1, HAL_TYPE_F32);
    const uint64_t count = (uint64_t)ops_tensor_get_element_count(&wide.y);
    HAL_TRY(ops_buffer_create(context, count * sizeof(float), &wide.y.buffer));
    hal_status status = ops_cast(context, &c->y, &wide.y);
    if (status == HAL_OK) {
        status = record_in_turn(context, &wide);
    }
    if (status == HAL_OK) {
        status = ops_cast(context, &wide.y, &c->y);
    }
    hal_buffer_release(wide.y.buffer);
    return status;
}

/* Combines the updates of each element in their order. */
static hal_status record_in_order(ops_context *context, const ops_scatter_call *call)
{
    scatter_call c = {.kind = call->kind, .axis = call->axis, .y = call->y};
    const ops_tensor *indices = &call->indices, *updates = &call->updates;
    const int32_t axis = (int32_t)call->axis;
    if (takes_turns(context, call)) {
        c.indices = *indices;
        c.updates = *updates;
        return record_all_in_turn(context, &c);
    }
    /* Parts whose updates of one element no loop's limit cuts. */
    const int64_t length = updates->shape[axis], most = ops_loop_limit(context, 0, 64);
    const int64_t part = length < most ? length : most;
    for (int64_t start = 0; start < length; start += part) {
        const int64_t count = part < length - start ? part : length - start;
        HAL_TRY(ops_tensor_slice(indices, axis, start, count, 1, &c.indices));
        HAL_TRY(ops_tensor_slice(updates, axis, start, count, 1, &c.updates));
        HAL_TRY(record_part(context, &c));
    }
    return HAL_OK;
}

static hal_status record_scatter(ops_context *context, const ops_scatter_call *call)
{
    const bool is_empty = ops_tensor_get_element_count(&call->updates) == 0 ||
                          ops_tensor_get_element_count(&call->y) == 0;
    if (!is_empty && ops_scatter_is_few(context, call)) {
        return ops_scatter_by_few(context, call);
    }
    bool done = false;
    if (!is_empty && ops_scatter_is_atomic(context, call)) {
        HAL_TRY(ops_scatter_by_atomics(context, call, &done));
    }
    if (done) {
        return HAL_OK;
    }
    if (!call->in_place) {
        HAL_TRY(ops_copy(context, &call->x, &call->y));
    }
    return is_empty ? HAL_OK : record_in_order(context, call);
}

hal_status ops_scatter(ops_context *context, ops_scatter_kind kind, int32_t axis,
                       const ops_tensor *indices, const ops_tensor *updates, const ops_tensor *y)
{
    ops_scatter_call c = {.kind = kind, .in_place = true};
    HAL_TRY(check_scatter(context, kind, axis, indices, updates, y, &c.axis));
    c.order = (ops_scatter_order)context->scatter;
    c.indices = *indices;
    c.updates = *updates;
    c.x = c.y = *y;
    return record_scatter(context, &c);
}

hal_status ops_scatter_of(ops_context *context, uint32_t function, int32_t axis,
                          const ops_tensor *x, const ops_tensor *indices, const ops_tensor *updates,
                          const ops_tensor *y)
{
    ops_scatter_call c = {.kind = (ops_scatter_kind)(function % OPS_SCATTER_KIND_COUNT),
                          .order = (ops_scatter_order)(function / OPS_SCATTER_KIND_COUNT)};
    HAL_TRY(check_scatter(context, c.kind, axis, indices, updates, y, &c.axis));
    c.indices = *indices;
    c.updates = *updates;
    c.x = *x;
    c.y = *y;
    return record_scatter(context, &c);
}
