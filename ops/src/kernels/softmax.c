/* Softmax and its logarithm along an axis: one kernel that finds the maximum, sums, and writes.
 * Rows that fit are held in registers; longer ones are read three times. */
#include "tensor/overlap.h"
#include "tensor/context.h"
#include "fold.h"
#include "tensor/dispatch.h"

/* Elements of a row that a work-item holds at most. */
#define MOST_RESIDENT 8u

typedef struct plan {
    hal_type type;
    uint8_t logarithm;
    uint8_t elements_per_item; /* of the axis, kept in registers; 0: too many, read again */
    uint8_t slots[2];
    ops_bindings bindings;
    ops_space space;
    ops_axis axis;
    ops_reduce_layout team;
    ops_layout layout;
} plan;

typedef struct emitter {
    hal_ir_builder *b;
    const plan *p;
    ops_layout_values values;
    hal_ir_value strides[OPS_MAX_VIEWS];
    ops_reduce_lane member;
    hal_ir_value length;
} emitter;

static hal_status check(const ops_context *context, const char *function, int32_t given_axis,
                        uint32_t axis, const ops_tensor *x, const ops_tensor *y)
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
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: x is %s, y is %s; both are floats of one value type", function,
                              ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (!ops_same_shape(x, y) || axis >= x->rank || x->shape[axis] > INT32_MAX) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: x %s and y %s are of one shape that has axis %d, with a length "
                              "below 2^31",
                              function, ops_describe(x, text[0]), ops_describe(y, text[1]),
                              given_axis);
    }
    if (ops_overlap(x, y) && !ops_same_view(x, y)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: y overlaps x without being the same view of the buffer",
                              function);
    }
    return HAL_OK;
}

static void make_plan(const ops_context *context, uint32_t axis, const ops_tensor *x,
                      const ops_tensor *y, plan *p)
{
    p->bindings.count = 0;
    p->slots[1] = (uint8_t)ops_bind(context, &p->bindings, y, HAL_ACCESS_WRITE);
    p->slots[0] = (uint8_t)ops_bind(context, &p->bindings, x, HAL_ACCESS_READ);
    ops_space_begin(&p->space, x->rank, x->shape);
    ops_space_add(&p->space, x, ops_base(&p->bindings, p->slots[0], x));
    ops_space_add(&p->space, y, ops_base(&p->bindings, p->slots[1], y));
    ops_axis_take(&p->space, axis, &p->axis);
    ops_space_collapse(&p->space, 1);
    ops_reduce_layout_choose(context, &p->space, &p->axis, 1, &p->team);
    ops_layout_choose(context, &p->space, 32, ops_axis_reach(&p->axis, 2), &p->layout);
    int64_t share = (p->axis.length + p->team.along - 1) / p->team.along;
    p->elements_per_item = share <= MOST_RESIDENT ? (uint8_t)share : 0;
}

static void sign(const plan *p, ops_cache_key *signature)
{
    ops_cache_key_append(signature, OPS_FAMILY_SOFTMAX);
    ops_cache_key_append(signature, p->logarithm | (uint64_t)p->elements_per_item << 8 |
                                        (uint64_t)p->type << 16);
    ops_bindings_key(&p->bindings, p->slots, 2, signature);
    ops_reduce_layout_key(&p->team, signature);
    ops_axis_key(&p->axis, 2, signature);
    ops_layout_key(&p->space, &p->layout, signature);
}

static hal_ir_value load(emitter *e, hal_ir_value k, hal_ir_value guard)
{
    hal_ir_value place =
        ops_axis_place(e->b, &e->p->axis, e->strides, e->values.type, 0, e->member.index[0], k);
    return hal_ir_load_wide(e->b, e->p->slots[0], place, 0, 1, guard);
}

/* The value inside of the row, what does not change a fold beyond it. */
static hal_ir_value keep(emitter *e, hal_ir_value in_row, hal_ir_value value, ops_reduction kind)
{
    ops_state identity = ops_fold_identity(e->b, kind, e->p->type);
    return hal_ir_select(e->b, in_row, value, identity.value);
}

static hal_ir_value fold(emitter *e, ops_reduction kind, hal_ir_value value, ops_fold_memory shared)
{
    ops_state state = {value, HAL_IR_NONE};
    return ops_fold_group(e->b, &e->p->team, &e->member, kind, state, shared).value;
}

static hal_ir_value exponential(emitter *e, hal_ir_value x)
{
    return hal_ir_math(e->b, HAL_IR_EXP, x, HAL_IR_NONE, 0);
}

static void store(emitter *e, hal_ir_value k, hal_ir_value guard, hal_ir_value value)
{
    hal_ir_value place =
        ops_axis_place(e->b, &e->p->axis, e->strides, e->values.type, 1, e->member.index[1], k);
    hal_ir_store_wide(e->b, e->p->slots[1], place, 0, guard, value);
}

static hal_ir_value result(emitter *e, hal_ir_value shifted, hal_ir_value power, hal_ir_value sum)
{
    if (e->p->logarithm) {
        hal_ir_value log = hal_ir_math(e->b, HAL_IR_LOG, sum, HAL_IR_NONE, 0);
        return hal_ir_sub(e->b, shifted, log);
    }
    return hal_ir_div(e->b, power, sum);
}

static void emit_resident(emitter *e, ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    uint32_t count = e->p->elements_per_item;
    hal_ir_value k[MOST_RESIDENT], in_row[MOST_RESIDENT], guard[MOST_RESIDENT];
    hal_ir_value x[MOST_RESIDENT], power[MOST_RESIDENT], top = HAL_IR_NONE, sum = HAL_IR_NONE;
    for (uint32_t i = 0; i < count; i++) {
        k[i] = hal_ir_add(b, e->member.q, hal_ir_u32(b, i * e->p->team.along));
        in_row[i] = hal_ir_lt(b, k[i], e->length);
        guard[i] = hal_ir_and(b, e->member.inside, in_row[i]);
        x[i] = load(e, k[i], guard[i]);
        hal_ir_value kept = keep(e, in_row[i], x[i], OPS_REDUCE_MAX);
        top = i ? hal_ir_max(b, top, kept) : kept;
    }
    top = fold(e, OPS_REDUCE_MAX, top, shared);
    for (uint32_t i = 0; i < count; i++) {
        x[i] = hal_ir_sub(b, x[i], top);
        power[i] = exponential(e, x[i]);
        hal_ir_value kept = keep(e, in_row[i], power[i], OPS_REDUCE_SUM);
        sum = i ? hal_ir_add(b, sum, kept) : kept;
    }
    hal_ir_barrier(b);
    sum = fold(e, OPS_REDUCE_SUM, sum, shared);
    for (uint32_t i = 0; i < count; i++) {
        store(e, k[i], guard[i], result(e, x[i], power[i], sum));
    }
}

/* A loop over the row; gives the work-item's place in it. */
static hal_ir_value begin_steps(emitter *e, hal_ir_value *in_row)
{
    hal_ir_builder *b = e->b;
    hal_ir_value base = hal_ir_for(b, hal_ir_u32(b, 0), e->length, hal_ir_u32(b, e->p->team.along));
    hal_ir_value k = hal_ir_add(b, base, e->member.q);
    *in_row = hal_ir_lt(b, k, e->length);
    return k;
}

static void emit_looping(emitter *e, ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    hal_ir_value in_row, k;
    hal_ir_value top_variable =
        hal_ir_var(b, ops_fold_identity(b, OPS_REDUCE_MAX, e->p->type).value);
    hal_ir_value sum_variable = hal_ir_var(b, hal_ir_number(b, e->p->type, 0));
    k = begin_steps(e, &in_row);
    hal_ir_value x = load(e, k, hal_ir_and(b, e->member.inside, in_row));
    x = keep(e, in_row, x, OPS_REDUCE_MAX);
    hal_ir_set(b, top_variable, hal_ir_max(b, hal_ir_get(b, top_variable), x));
    hal_ir_end(b);
    hal_ir_value top = fold(e, OPS_REDUCE_MAX, hal_ir_get(b, top_variable), shared);

    k = begin_steps(e, &in_row);
    x = load(e, k, hal_ir_and(b, e->member.inside, in_row));
    hal_ir_value power = exponential(e, hal_ir_sub(b, x, top));
    power = keep(e, in_row, power, OPS_REDUCE_SUM);
    hal_ir_set(b, sum_variable, hal_ir_add(b, hal_ir_get(b, sum_variable), power));
    hal_ir_end(b);
    hal_ir_barrier(b);
    hal_ir_value sum = fold(e, OPS_REDUCE_SUM, hal_ir_get(b, sum_variable), shared);

    k = begin_steps(e, &in_row);
    hal_ir_value guard = hal_ir_and(b, e->member.inside, in_row);
    x = hal_ir_sub(b, load(e, k, guard), top);
    store(e, k, guard, result(e, x, e->p->logarithm ? x : exponential(e, x), sum));
    hal_ir_end(b);
}

static void emit(hal_ir_builder *b, const plan *p)
{
    emitter e = {.b = b, .p = p};
    ops_reduce_layout_declare(b, &p->team);
    ops_fold_memory shared = ops_fold_shared(b, &p->team, OPS_REDUCE_MAX, p->type);
    ops_layout_declare(b, &p->space, &p->layout, &e.values);
    ops_axis_declare(b, &p->axis, &p->layout, e.strides);
    e.length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    ops_reduce_layout_emit(b, &p->team, &p->layout, &e.values, &e.member);
    if (p->elements_per_item) {
        emit_resident(&e, shared);
    } else {
        emit_looping(&e, shared);
    }
}

static hal_status softmax(ops_context *context, const char *function, int32_t given_axis,
                          const ops_tensor *x, const ops_tensor *y, uint8_t logarithm)
{
    const uint32_t axis = x ? ops_axis_number(given_axis, x->rank) : UINT32_MAX;
    hal_status status = check(context, function, given_axis, axis, x, y);
    if (status || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    plan p = {.logarithm = logarithm, .type = hal_type_of_value(x->type)};
    uint32_t grid[3];
    make_plan(context, axis, x, y, &p);
    status = ops_reduce_layout_grid(context, function, &p.space, &p.team, grid);
    if (status) {
        return status;
    }
    ops_cache_key signature;
    uint64_t key[2];
    signature.count = 0;
    sign(&p, &signature);
    ops_entry *entry = ops_cache_find(context, &signature, key);
    if (!entry) {
        hal_ir_builder *b;
        status = hal_ir_builder_create(logarithm ? "log_softmax" : "softmax", &b);
        if (status) {
            return status;
        }
        ops_declare_bindings(b, &p.bindings);
        emit(b, &p);
        status = ops_cache_build(context, key, b, &entry);
        if (status) {
            return status;
        }
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
    return softmax(context, "ops_softmax", axis, x, y, 0);
}

hal_status ops_log_softmax(ops_context *context, int32_t axis, const ops_tensor *x,
                           const ops_tensor *y)
{
    return softmax(context, "ops_log_softmax", axis, x, y, 1);
}
