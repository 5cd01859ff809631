/* Softmax and its logarithm along an axis: one kernel computes maximum, sum and result. Short rows
 * are kept in registers; longer ones are read three times. */
#include "tensor/overlap.h"
#include "tensor/context.h"
#include "fold.h"
#include "softmax_long.h"
#include "tensor/dispatch.h"
#include "tensor/loop_limit.h"

/* Elements of a row that a work-item keeps in registers. */
#define MAX_RESIDENT 8u

/* What the kernel depends on, apart from bindings, layout, group and axis. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct softmax_form {
    hal_type type;
    uint8_t logarithm;
    uint8_t elements_per_item; /* of the axis, kept in registers; 0: too many, read again */
} softmax_form;
OPS_KEY_STRUCTURES_END

typedef struct softmax_plan {
    softmax_form form;
    uint8_t slots[2];
    ops_bindings bindings;
    ops_space space;
    ops_axis axis;
    ops_reduce_layout group;
    ops_layout layout;
} softmax_plan;

typedef struct emitter {
    hal_ir_builder *b;
    const softmax_plan *p;
    ops_layout_values values;
    hal_ir_value strides[OPS_MAX_VIEWS];
    ops_reduce_lane lane;
    hal_ir_value length;
} emitter;

static hal_status check_arguments(const ops_context *context, const char *function,
                                  int32_t given_axis, uint32_t axis, const ops_tensor *x,
                                  const ops_tensor *y)
{
    hal_status status = ops_check_tensor(context, function, "x", x);
    if (!status) {
        status = ops_check_output(context, function, "y", y);
    }
    if (status) {
        return status;
    }
    char text[2][OPS_TEXT_BYTES];
    if (!hal_type_is_float(x->type) || hal_type_of_value(x->type) != hal_type_of_value(y->type)) {
        return ops_invalid("%s: y: expected floats of the value type of x, got x %s and y %s",
                           function, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (!ops_same_shape(x, y) || axis >= x->rank || x->shape[axis] > INT32_MAX) {
        return ops_invalid(
            "%s: y: expected the shape of x, with an axis %d below 2^31, got x %s and y %s",
            function, given_axis, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (ops_overlap(x, y) && !ops_same_view(x, y)) {
        return ops_invalid("%s: y: expected x itself or other memory, got an overlap with x",
                           function);
    }
    return HAL_OK;
}

static void softmax_plan_init(const ops_context *context, uint32_t axis, const ops_tensor *x,
                              const ops_tensor *y, softmax_plan *p)
{
    p->bindings.count = 0;
    p->slots[1] = (uint8_t)ops_bind(context, &p->bindings, y, HAL_ACCESS_WRITE);
    p->slots[0] = (uint8_t)ops_bind(context, &p->bindings, x, HAL_ACCESS_READ);
    ops_space_begin(&p->space, x->rank, x->shape);
    ops_space_add(&p->space, x, ops_base(&p->bindings, p->slots[0], x));
    ops_space_add(&p->space, y, ops_base(&p->bindings, p->slots[1], y));
    ops_axis_take(&p->space, axis, &p->axis);
    ops_space_collapse(&p->space, 1);
    ops_reduce_layout_choose(context, &p->space, &p->axis, 1, &p->group);
    ops_layout_choose(context, &p->space, 32, ops_axis_reach(&p->axis, 2), &p->layout);
    int64_t share = (p->axis.length + p->group.along - 1) / p->group.along;
    p->form.elements_per_item = share <= MAX_RESIDENT ? (uint8_t)share : 0;
}

/* A work-item executes three loops over its elements of the row. */
static int loops_are_too_long(const ops_context *context, const softmax_plan *p)
{
    return p->axis.length / p->group.along >= ops_loop_limit(context, 0, 0) / 3;
}

static hal_ir_value element_load(emitter *e, hal_ir_value k, hal_ir_value guard)
{
    hal_ir_value place =
        ops_axis_place(e->b, &e->p->axis, e->strides, e->values.type, 0, e->lane.index[0], k);
    return hal_ir_load_wide(e->b, e->p->slots[0], place, 0, 1, guard);
}

/* The value within the row, the neutral value beyond it. */
static hal_ir_value element_or_identity(emitter *e, hal_ir_value in_row, hal_ir_value value,
                                        ops_reduction kind)
{
    ops_state identity = ops_fold_identity(e->b, kind, e->p->form.type);
    return hal_ir_select(e->b, in_row, value, identity.value);
}

static hal_ir_value group_fold(emitter *e, ops_reduction kind, hal_ir_value value,
                               ops_fold_memory shared)
{
    ops_state state = {value, HAL_IR_NONE};
    return ops_fold_group(e->b, &e->p->group, &e->lane, kind, state, shared).value;
}

static hal_ir_value exponential(emitter *e, hal_ir_value x)
{
    return hal_ir_math(e->b, HAL_IR_EXP, x, HAL_IR_NONE, 0);
}

static void element_store(emitter *e, hal_ir_value k, hal_ir_value guard, hal_ir_value value)
{
    hal_ir_value place =
        ops_axis_place(e->b, &e->p->axis, e->strides, e->values.type, 1, e->lane.index[1], k);
    hal_ir_store_wide(e->b, e->p->slots[1], place, 0, guard, value);
}

static hal_ir_value element_result(emitter *e, hal_ir_value shifted, hal_ir_value power,
                                   hal_ir_value sum)
{
    if (e->p->form.logarithm) {
        hal_ir_value log = hal_ir_math(e->b, HAL_IR_LOG, sum, HAL_IR_NONE, 0);
        return hal_ir_sub(e->b, shifted, log);
    }
    return hal_ir_div(e->b, power, sum);
}

static void emit_resident(emitter *e, ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    uint32_t count = e->p->form.elements_per_item;
    hal_ir_value k[MAX_RESIDENT], in_row[MAX_RESIDENT], guard[MAX_RESIDENT];
    hal_ir_value x[MAX_RESIDENT], power[MAX_RESIDENT], top = HAL_IR_NONE, sum = HAL_IR_NONE;
    for (uint32_t i = 0; i < count; i++) {
        k[i] = hal_ir_add(b, e->lane.q, hal_ir_u32(b, i * e->p->group.along));
        in_row[i] = hal_ir_lt(b, k[i], e->length);
        guard[i] = hal_ir_and(b, e->lane.inside, in_row[i]);
        x[i] = element_load(e, k[i], guard[i]);
        hal_ir_value kept = element_or_identity(e, in_row[i], x[i], OPS_REDUCE_MAX);
        top = i ? hal_ir_max(b, top, kept) : kept;
    }
    top = group_fold(e, OPS_REDUCE_MAX, top, shared);
    for (uint32_t i = 0; i < count; i++) {
        x[i] = hal_ir_sub(b, x[i], top);
        power[i] = exponential(e, x[i]);
        hal_ir_value kept = element_or_identity(e, in_row[i], power[i], OPS_REDUCE_SUM);
        sum = i ? hal_ir_add(b, sum, kept) : kept;
    }
    hal_ir_barrier(b);
    sum = group_fold(e, OPS_REDUCE_SUM, sum, shared);
    for (uint32_t i = 0; i < count; i++) {
        element_store(e, k[i], guard[i], element_result(e, x[i], power[i], sum));
    }
}

/* Opens a loop over the row and returns the work-item's index in it. */
static hal_ir_value row_loop_begin(emitter *e, hal_ir_value *in_row)
{
    hal_ir_builder *b = e->b;
    hal_ir_value base =
        hal_ir_for(b, hal_ir_u32(b, 0), e->length, hal_ir_u32(b, e->p->group.along));
    hal_ir_value k = hal_ir_add(b, base, e->lane.q);
    *in_row = hal_ir_lt(b, k, e->length);
    return k;
}

static void emit_looping(emitter *e, ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    hal_ir_value in_row, k;
    hal_ir_value top_variable =
        hal_ir_var(b, ops_fold_identity(b, OPS_REDUCE_MAX, e->p->form.type).value);
    hal_ir_value sum_variable = hal_ir_var(b, hal_ir_number(b, e->p->form.type, 0));
    k = row_loop_begin(e, &in_row);
    hal_ir_value x = element_load(e, k, hal_ir_and(b, e->lane.inside, in_row));
    x = element_or_identity(e, in_row, x, OPS_REDUCE_MAX);
    hal_ir_set(b, top_variable, hal_ir_max(b, hal_ir_get(b, top_variable), x));
    hal_ir_end(b);
    hal_ir_value top = group_fold(e, OPS_REDUCE_MAX, hal_ir_get(b, top_variable), shared);

    k = row_loop_begin(e, &in_row);
    x = element_load(e, k, hal_ir_and(b, e->lane.inside, in_row));
    hal_ir_value power = exponential(e, hal_ir_sub(b, x, top));
    power = element_or_identity(e, in_row, power, OPS_REDUCE_SUM);
    hal_ir_set(b, sum_variable, hal_ir_add(b, hal_ir_get(b, sum_variable), power));
    hal_ir_end(b);
    hal_ir_barrier(b);
    hal_ir_value sum = group_fold(e, OPS_REDUCE_SUM, hal_ir_get(b, sum_variable), shared);

    k = row_loop_begin(e, &in_row);
    hal_ir_value guard = hal_ir_and(b, e->lane.inside, in_row);
    x = hal_ir_sub(b, element_load(e, k, guard), top);
    element_store(e, k, guard,
                  element_result(e, x, e->p->form.logarithm ? x : exponential(e, x), sum));
    hal_ir_end(b);
}

static void emit_softmax(hal_ir_builder *b, const void *user)
{
    const softmax_plan *p = user;
    ops_declare_bindings(b, &p->bindings);
    emitter e = {.b = b, .p = p};
    ops_reduce_layout_declare(b, &p->group);
    ops_fold_memory shared = ops_fold_shared(b, &p->group, OPS_REDUCE_MAX, p->form.type);
    ops_layout_declare(b, &p->space, &p->layout, &e.values);
    ops_axis_declare(b, &p->axis, &p->layout, e.strides);
    e.length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    ops_reduce_layout_emit(b, &p->group, &p->layout, &e.values, &e.lane);
    if (p->form.elements_per_item) {
        emit_resident(&e, shared);
    } else {
        emit_looping(&e, shared);
    }
}

static hal_status softmax_record(ops_context *context, const char *function, int32_t given_axis,
                                 const ops_tensor *x, const ops_tensor *y, uint8_t logarithm)
{
    const uint32_t axis = x ? ops_axis_number(given_axis, x->rank) : UINT32_MAX;
    hal_status status = check_arguments(context, function, given_axis, axis, x, y);
    if (status || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    softmax_plan p = {.form = {.logarithm = logarithm, .type = hal_type_of_value(x->type)}};
    uint32_t grid[3];
    softmax_plan_init(context, axis, x, y, &p);
    if (loops_are_too_long(context, &p)) {
        return ops_softmax_long(context, axis, x, y, logarithm);
    }
    status = ops_reduce_layout_grid(context, function, &p.space, &p.group, grid);
    if (status) {
        return status;
    }
    ops_cache_key key;
    ops_entry *entry;
    ops_cache_key_begin(&key, OPS_FAMILY_SOFTMAX);
    ops_cache_key_append(&key, &p.form, sizeof p.form);
    ops_bindings_key(&p.bindings, p.slots, 2, &key);
    ops_fold_key(&p.space, &p.layout, &p.group, &p.axis, &key);
    status = ops_cache_get(context, &key, logarithm ? "log_softmax" : "softmax", emit_softmax, &p,
                           &entry);
    if (status) {
        return status;
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&p.space, &p.layout, &block);
    ops_axis_put(&p.axis, &p.layout, &block);
    ops_put_u32(&block, (uint32_t)p.axis.length);
    return ops_dispatch(context, entry, grid, &p.bindings, &block);
}

hal_status ops_softmax(ops_context *context, int32_t axis, const ops_tensor *x, const ops_tensor *y)
{
    return softmax_record(context, "ops_softmax", axis, x, y, 0);
}

hal_status ops_log_softmax(ops_context *context, int32_t axis, const ops_tensor *x,
                           const ops_tensor *y)
{
    return softmax_record(context, "ops_log_softmax", axis, x, y, 1);
}
