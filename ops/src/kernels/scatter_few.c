/* See scatter_few.h. */
#include "scatter_few.h"

#include "index_task.h"
#include "tensor/dispatch.h"
#include "tensor/loop_limit.h"

enum { Y, X, INDICES, UPDATES, COORDINATE };
enum { LENGTH, INDICES_STRIDE, UPDATES_STRIDE };

hal_ir_value ops_scatter_combine(hal_ir_builder *b, ops_scatter_kind kind, hal_ir_value x,
                                 hal_ir_value update)
{
    return kind == OPS_SCATTER_ADD        ? hal_ir_add(b, x, update)
           : kind == OPS_SCATTER_MULTIPLY ? hal_ir_mul(b, x, update)
           : kind == OPS_SCATTER_MAX      ? hal_ir_max(b, x, update)
                                          : hal_ir_min(b, x, update);
}

static void emit_few(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const uint8_t *slots = body->task->slots;
    const ops_scatter_kind kind = (ops_scatter_kind)body->task->variant;
    const hal_type type = iter->values->type;
    const hal_ir_value result =
        hal_ir_var(b, hal_ir_load_wide(b, slots[X], iter->index[X], 0, 1, iter->guard));
    const hal_ir_value length = ops_value_cast(b, HAL_TYPE_U32, body->scalars[LENGTH]);
    const hal_ir_value turn = hal_ir_for(b, hal_ir_u32(b, 0), length, hal_ir_u32(b, 1));
    const hal_ir_value i = ops_value_cast(b, type, turn);
    hal_ir_value place = hal_ir_mul(b, i, body->scalars[INDICES_STRIDE]);
    place = hal_ir_add(b, iter->index[INDICES], place);
    hal_ir_value own = iter->index[COORDINATE];
    const hal_ir_value pick = ops_index_comparable(
        b, iter, hal_ir_load_wide(b, slots[INDICES], place, 0, 1, iter->guard), &own);
    const hal_ir_value is_own = ops_guard_and(b, iter->guard, hal_ir_eq(b, pick, own));
    place = hal_ir_mul(b, i, body->scalars[UPDATES_STRIDE]);
    place = hal_ir_add(b, iter->index[UPDATES], place);
    const hal_ir_value update = hal_ir_load_wide(b, slots[UPDATES], place, 0, 1, is_own);
    const hal_ir_value before = hal_ir_get(b, result);
    const hal_ir_value after =
        kind == OPS_SCATTER_ASSIGN ? update : ops_scatter_combine(b, kind, before, update);
    hal_ir_set(b, result, hal_ir_select(b, is_own, after, before));
    hal_ir_end(b);
    hal_ir_store_wide(b, slots[Y], iter->index[Y], 0, iter->guard, hal_ir_get(b, result));
}

bool ops_scatter_is_few(const ops_context *context, const ops_scatter_call *call)
{
    const int64_t length = call->updates.shape[call->axis];
    return call->order != OPS_SCATTER_ATOMIC && length <= context->tuning->scatter_few &&
           length <= ops_loop_limit(context, 0, 0) &&
           ops_tensor_get_element_count(&call->y) <= context->tuning->scatter_few_looks / length;
}

hal_status ops_scatter_by_few(ops_context *context, const ops_scatter_call *c)
{
    ops_index_task t = {.function = "ops_scatter",
                        .name = "scatter_few",
                        .family = OPS_FAMILY_SCATTER_FEW,
                        .variant = (uint32_t)c->kind,
                        .body = emit_few,
                        .scalar_names = {"length", "indices_stride", "updates_stride"}};
    const uint32_t axis = c->axis;
    const int64_t length = c->updates.shape[axis];
    ops_space_begin(&t.space, c->y.rank, c->y.shape);
    ops_index_add(context, &t, &c->y, HAL_ACCESS_WRITE);
    ops_index_add(context, &t, &c->x, HAL_ACCESS_READ);
    ops_index_add(context, &t, &c->indices, HAL_ACCESS_READ);
    ops_index_add(context, &t, &c->updates, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, axis);
    t.space.stride[INDICES][axis] = t.space.stride[UPDATES][axis] = 0;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t first, end;
        ops_span(i ? &c->indices : &c->updates, &first, &end);
        t.reach = end - first + length > t.reach ? end - first + length : t.reach;
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    const bool index64 = t.plan.layout.index64;
    ops_put_index(&block, index64, length);
    ops_put_index(&block, index64, length > 1 ? c->indices.stride[axis] : 0);
    ops_put_index(&block, index64, length > 1 ? c->updates.stride[axis] : 0);
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
