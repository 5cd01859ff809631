/* The kernel of a reduction, see reduce.h. */
#include "reduce.h"

/* Steps of an accumulator of a nested sum before it is added to the total. */
#define BLOCK_STEPS 256u

typedef struct emitter {
    hal_ir_builder *b;
    const ops_reduce_pass *pass;
    ops_layout_values values;
    hal_ir_value axis_strides[OPS_MAX_VIEWS];
    ops_reduce_lane lane;
    hal_ir_value start, end; /* of the slice, U32 */
    hal_ir_value slice_stride, mean_length;
    ops_state total;   /* variables */
    ops_state part[8]; /* variables of the unrolled loop's accumulators */
} emitter;

static void emit_scalars(emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_pass *pass = e->pass;
    ops_layout_declare(b, &pass->space, &pass->layout, &e->values);
    ops_axis_declare(b, &pass->axis, &pass->layout, e->axis_strides);
    hal_ir_value length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    e->start = hal_ir_u32(b, 0);
    e->end = length;
    if (pass->form.to_partials) {
        hal_ir_value slice = hal_ir_scalar_value(b, "slice", HAL_TYPE_U32);
        e->slice_stride = hal_ir_scalar_value(b, "slice_stride", e->values.type);
        e->start = hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 2), slice);
        e->end = hal_ir_min(b, hal_ir_add(b, e->start, slice), length);
    } else if (pass->form.kind == OPS_REDUCE_MEAN) {
        e->mean_length = hal_ir_scalar_value(b, "count", pass->form.type);
    }
}

static ops_state variables_create(emitter *e)
{
    ops_state identity = ops_fold_identity(e->b, e->pass->form.kind, e->pass->form.type);
    ops_state variables = {hal_ir_var(e->b, identity.value), HAL_IR_NONE};
    if (e->pass->form.kind == OPS_REDUCE_ARGMAX) {
        variables.place = hal_ir_var(e->b, identity.place);
    }
    return variables;
}

static void variables_set(emitter *e, ops_state variables, ops_state state)
{
    hal_ir_set(e->b, variables.value, state.value);
    if (e->pass->form.kind == OPS_REDUCE_ARGMAX) {
        hal_ir_set(e->b, variables.place, state.place);
    }
}

/* The value at k on the axis, after the prologue. */
static ops_state emit_element(emitter *e, hal_ir_value k, hal_ir_value guard)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_pass *pass = e->pass;
    hal_ir_value loaded[OPS_REDUCE_MAX_IN];
    for (uint32_t i = 0; i < pass->form.input_count; i++) {
        hal_ir_value place =
            ops_axis_place(b, &pass->axis, e->axis_strides, e->values.type, i, e->lane.index[i], k);
        loaded[i] = hal_ir_load_wide(b, pass->slots[i], place, 0, 1, guard);
    }
    ops_state state = {loaded[0], HAL_IR_NONE};
    if (pass->form.kind == OPS_REDUCE_ARGMAX) {
        state.place = pass->form.from_partials ? loaded[1] : k;
    }
    if (pass->prologue) {
        hal_ir_splice(b, pass->prologue->fragment, loaded, pass->form.input_count, &state.value, 1);
    }
    return state;
}

static ops_state variables_get(emitter *e, ops_state variables)
{
    ops_state state = {hal_ir_get(e->b, variables.value), HAL_IR_NONE};
    if (e->pass->form.kind == OPS_REDUCE_ARGMAX) {
        state.place = hal_ir_get(e->b, variables.place);
    }
    return state;
}

static void emit_steps(emitter *e, hal_ir_value from, hal_ir_value to, uint32_t step)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_pass *pass = e->pass;
    hal_ir_value base = hal_ir_for(b, from, to, hal_ir_u32(b, step));
    hal_ir_value k = hal_ir_add(b, base, e->lane.q);
    for (uint32_t i = 0; i < pass->form.unroll; i++) {
        hal_ir_value own = i ? hal_ir_add(b, k, hal_ir_u32(b, i * pass->group.along)) : k;
        ops_state next = emit_element(e, own, e->lane.inside);
        variables_set(e, e->part[i],
                      ops_fold(b, pass->form.kind, variables_get(e, e->part[i]), next));
    }
    hal_ir_end(b);
}

/* Folds the accumulators of the unrolled loop pairwise, and the result into the total. */
static void fold_parts(emitter *e)
{
    ops_state states[8];
    uint32_t count = e->pass->form.unroll;
    for (uint32_t i = 0; i < count; i++) {
        states[i] = variables_get(e, e->part[i]);
    }
    for (; count > 1; count /= 2) {
        for (uint32_t i = 0; i < count / 2; i++) {
            states[i] = ops_fold(e->b, e->pass->form.kind, states[2 * i], states[2 * i + 1]);
        }
    }
    variables_set(e, e->total,
                  ops_fold(e->b, e->pass->form.kind, variables_get(e, e->total), states[0]));
}

static void emit_blocks(emitter *e, hal_ir_value whole, uint32_t step)
{
    hal_ir_builder *b = e->b;
    hal_ir_value block = hal_ir_u32(b, BLOCK_STEPS * step);
    hal_ir_value from = hal_ir_for(b, e->start, whole, block);
    ops_state identity = ops_fold_identity(b, e->pass->form.kind, e->pass->form.type);
    for (uint32_t i = 0; i < e->pass->form.unroll; i++) {
        variables_set(e, e->part[i], identity);
    }
    emit_steps(e, from, hal_ir_min(b, hal_ir_add(b, from, block), whole), step);
    fold_parts(e);
    hal_ir_end(b);
}

static void emit_rest(emitter *e, hal_ir_value whole)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_pass *pass = e->pass;
    hal_ir_value base = hal_ir_for(b, whole, e->end, hal_ir_u32(b, pass->group.along));
    hal_ir_value k = hal_ir_add(b, base, e->lane.q);
    hal_ir_value in_slice = hal_ir_lt(b, k, e->end);
    ops_state next = emit_element(e, k, hal_ir_and(b, e->lane.inside, in_slice));
    ops_state identity = ops_fold_identity(b, pass->form.kind, pass->form.type);
    next.value = hal_ir_select(b, in_slice, next.value, identity.value);
    if (pass->form.kind == OPS_REDUCE_ARGMAX) {
        next.place = hal_ir_select(b, in_slice, next.place, identity.place);
    }
    variables_set(e, e->total, ops_fold(b, pass->form.kind, variables_get(e, e->total), next));
    hal_ir_end(b);
}

/* Loop bounds are the same for all work-items; a second loop has the last, partial step. */
static void emit_loops(emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_pass *pass = e->pass;
    uint32_t step = pass->group.along * pass->form.unroll;
    hal_ir_value count = hal_ir_sub(b, e->end, e->start);
    hal_ir_value even = hal_ir_and(b, count, hal_ir_u32(b, ~(step - 1)));
    hal_ir_value whole = hal_ir_add(b, e->start, even);
    e->total = variables_create(e);
    for (uint32_t i = 0; i < pass->form.unroll; i++) {
        e->part[i] = variables_create(e);
    }
    if (pass->form.nested) {
        emit_blocks(e, whole, step);
    } else {
        emit_steps(e, e->start, whole, step);
        fold_parts(e);
    }
    if (step > 1) {
        emit_rest(e, whole);
    }
}

static void emit_result(emitter *e, ops_state state)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_pass *pass = e->pass;
    hal_ir_value guard = hal_ir_and(b, e->lane.inside, hal_ir_eq(b, e->lane.q, hal_ir_u32(b, 0)));
    const hal_ir_value *index = e->lane.index;
    uint32_t out = pass->form.input_count;
    if (pass->form.to_partials) {
        hal_ir_value slice = ops_value_cast(b, e->values.type, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
        hal_ir_value offset = hal_ir_mul(b, slice, e->slice_stride);
        hal_ir_store_wide(b, pass->slots[out], hal_ir_add(b, index[out], offset), 0, guard,
                          state.value);
        if (pass->form.kind == OPS_REDUCE_ARGMAX) {
            hal_ir_store_wide(b, pass->slots[out + 1], hal_ir_add(b, index[out + 1], offset), 0,
                              guard, state.place);
        }
        return;
    }
    hal_ir_value result = state.value;
    if (pass->form.kind == OPS_REDUCE_ARGMAX) {
        result = hal_ir_cast(b, pass->form.result, state.place);
    } else if (pass->form.kind == OPS_REDUCE_MEAN) {
        result = hal_ir_div(b, state.value, e->mean_length);
    }
    if (pass->epilogue) {
        hal_ir_value inputs[OPS_REDUCE_MAX_IN] = {result};
        for (uint32_t i = 0; i < pass->form.further_count; i++) {
            inputs[1 + i] =
                hal_ir_load_wide(b, pass->slots[out + 1 + i], index[out + 1 + i], 0, 1, guard);
        }
        hal_ir_splice(b, pass->epilogue->fragment, inputs, 1 + pass->form.further_count, &result,
                      1);
    }
    hal_ir_store_wide(b, pass->slots[out], index[out], 0, guard, result);
}

void ops_reduce_emit(hal_ir_builder *b, const void *user)
{
    const ops_reduce_pass *pass = user;
    emitter e = {.b = b, .pass = pass};
    ops_declare_bindings(b, &pass->bindings);
    ops_reduce_layout_declare(b, &pass->group);
    ops_fold_memory shared = ops_fold_shared(b, &pass->group, pass->form.kind, pass->form.type);
    emit_scalars(&e);
    ops_reduce_layout_emit(b, &pass->group, &pass->layout, &e.values, &e.lane);
    emit_loops(&e);
    emit_result(&e, ops_fold_group(b, &pass->group, &e.lane, pass->form.kind,
                                   variables_get(&e, e.total), shared));
}

void ops_reduce_put(const ops_reduce_pass *pass, ops_block *block)
{
    ops_layout_put(&pass->space, &pass->layout, block);
    ops_axis_put(&pass->axis, &pass->layout, block);
    ops_put_u32(block, (uint32_t)pass->axis.length);
    if (pass->form.to_partials) {
        ops_put_u32(block, pass->slice_length);
        ops_put_index(block, pass->layout.index64, pass->slice_stride);
    } else if (pass->form.kind == OPS_REDUCE_MEAN) {
        ops_put_number(block, pass->form.type, (double)pass->mean_length);
    }
}
