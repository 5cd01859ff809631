/* A layer of GRU and its gradient over all time steps, see recurrent.h. */
#include "recurrent.h"

#include "tensor/shape.h"

#include <ops/recurrent.h>

#define GATES 3u
#define VALUES 4u /* that the gradient reads: of the gates, and the sums of h of gate NEW */

enum { GATE_RESET, GATE_UPDATE, GATE_NEW, VALUE_SUM };

/* Tensors of the two kernels. */
enum { GRU_W, GRU_BIAS, GRU_X, GRU_H0, GRU_H, GRU_GATES };
enum { BACK_W, BACK_GH, BACK_LAST_H, BACK_H, BACK_GATES, BACK_GX, BACK_GS, BACK_GH0 };

static hal_ir_value plus(const ops_recurrent_kernel *k, hal_ir_value index, uint32_t value)
{
    return hal_ir_add(k->b, index, ops_recurrent_constant(k, value));
}

/* Value `value` of hidden value j in the memory of all gates. */
static void store_value(const ops_recurrent_kernel *k, hal_ir_value step, uint32_t value,
                        hal_ir_value x)
{
    const uint32_t hidden = k->call->form.hidden;
    const hal_ir_value at = ops_recurrent_index(k, GRU_GATES, step, VALUES * hidden, k->j);
    hal_ir_store_wide(k->b, k->call->slots[GRU_GATES], at, (int32_t)(value * hidden), k->is_first,
                      x);
}

static void emit_gru(hal_ir_builder *b, const void *user)
{
    const ops_recurrent_call *call = user;
    const ops_recurrent_kernel k = ops_recurrent_begin(b, call);
    const uint32_t hidden = call->form.hidden, all = GATES * hidden;
    const hal_type type = (hal_type)call->form.type;
    const hal_ir_memory_id state = hal_ir_shared(b, "state", type, hidden);
    const hal_ir_memory_id gates = hal_ir_shared(b, "gates", type, all);
    const hal_ir_value zero = ops_recurrent_constant(&k, 0);
    const hal_ir_value carried = hal_ir_var(b, ops_recurrent_initial(&k, GRU_H0));
    const hal_ir_value bias =
        call->tensors[GRU_BIAS]
            ? hal_ir_load(b, call->slots[GRU_BIAS], hal_ir_add(b, k.base[GRU_BIAS], k.item))
            : ops_recurrent_number(&k, 0);
    hal_ir_store_wide(b, state, k.j, 0, k.is_first, hal_ir_get(b, carried));
    ops_recurrent_store(&k, GRU_H, ops_recurrent_first_state(&k), hal_ir_get(b, carried));
    hal_ir_barrier(b);
    const hal_ir_value i = hal_ir_for(b, zero, k.steps, ops_recurrent_constant(&k, 1));
    const hal_ir_value step = ops_recurrent_step(&k, i);
    const hal_ir_value x = ops_recurrent_load(&k, GRU_X, step, all, k.item);
    const hal_ir_value at = hal_ir_add(b, k.base[GRU_W], k.item);
    const hal_ir_value sum =
        hal_ir_add(b, ops_recurrent_dot(&k, state, zero, GRU_W, at, all), bias);
    const hal_ir_value is_new = hal_ir_eq(b, k.gate, ops_recurrent_constant(&k, GATE_NEW));
    const hal_ir_value value =
        hal_ir_select(b, is_new, sum, ops_recurrent_sigmoid(&k, hal_ir_add(b, x, sum)));
    hal_ir_store(b, gates, k.item, value);
    hal_ir_barrier(b);
    const hal_ir_value r = hal_ir_load(b, gates, k.j);
    const hal_ir_value z = hal_ir_load(b, gates, plus(&k, k.j, hidden));
    const hal_ir_value hn = hal_ir_load(b, gates, plus(&k, k.j, 2 * hidden));
    const hal_ir_value xn = ops_recurrent_load(&k, GRU_X, step, all, plus(&k, k.j, 2 * hidden));
    const hal_ir_value n = ops_recurrent_tanh(&k, hal_ir_add(b, xn, hal_ir_mul(b, r, hn)));
    const hal_ir_value change = hal_ir_sub(b, hal_ir_get(b, carried), n);
    const hal_ir_value h = hal_ir_add(b, n, hal_ir_mul(b, z, change));
    hal_ir_set(b, carried, h);
    hal_ir_store_wide(b, state, k.j, 0, k.is_first, h);
    ops_recurrent_store(&k, GRU_H, ops_recurrent_state(&k, step, true), h);
    store_value(&k, step, GATE_RESET, r);
    store_value(&k, step, GATE_UPDATE, z);
    store_value(&k, step, GATE_NEW, n);
    store_value(&k, step, VALUE_SUM, hn);
    hal_ir_barrier(b);
    hal_ir_end(b);
}

static void emit_gradient(hal_ir_builder *b, const void *user)
{
    const ops_recurrent_call *call = user;
    const ops_recurrent_kernel k = ops_recurrent_begin(b, call);
    const uint32_t hidden = call->form.hidden, all = GATES * hidden;
    const hal_type type = (hal_type)call->form.type;
    const hal_ir_memory_id sums = hal_ir_shared(b, "sums", type, all);
    const hal_ir_memory_id parts = hal_ir_shared(b, "parts", type, all);
    const hal_ir_value one = ops_recurrent_constant(&k, 1), zero = ops_recurrent_constant(&k, 0);
    const hal_ir_value next =
        hal_ir_var(b, ops_recurrent_load(&k, BACK_LAST_H, HAL_IR_NONE, hidden, k.j));
    const hal_ir_value i = hal_ir_for(b, zero, k.steps, one);
    const hal_ir_value step = ops_recurrent_step(&k, hal_ir_sub(b, hal_ir_sub(b, k.steps, one), i));
    hal_ir_value of[VALUES];
    for (uint32_t v = 0; v < VALUES; v++) {
        const hal_ir_value at = ops_recurrent_index(&k, BACK_GATES, step, VALUES * hidden, k.j);
        of[v] =
            hal_ir_load_wide(b, call->slots[BACK_GATES], at, (int32_t)(v * hidden), 1, HAL_IR_NONE);
    }
    const hal_ir_value r = of[GATE_RESET], z = of[GATE_UPDATE], n = of[GATE_NEW];
    const hal_ir_value before =
        ops_recurrent_load(&k, BACK_H, ops_recurrent_state(&k, step, false), hidden, k.j);
    const hal_ir_value h =
        hal_ir_add(b, hal_ir_get(b, next), ops_recurrent_load(&k, BACK_GH, step, hidden, k.j));
    const hal_ir_value rest = hal_ir_sub(b, ops_recurrent_number(&k, 1), z);
    hal_ir_value of_gate[GATES];
    of_gate[GATE_UPDATE] = hal_ir_mul(b, hal_ir_mul(b, h, hal_ir_sub(b, before, n)),
                                      ops_recurrent_sigmoid_slope(&k, z));
    of_gate[GATE_NEW] = hal_ir_mul(b, hal_ir_mul(b, h, rest), ops_recurrent_tanh_slope(&k, n));
    of_gate[GATE_RESET] = hal_ir_mul(b, hal_ir_mul(b, of_gate[GATE_NEW], of[VALUE_SUM]),
                                     ops_recurrent_sigmoid_slope(&k, r));
    const hal_ir_value of_x = ops_recurrent_select(&k, of_gate);
    of_gate[GATE_NEW] = hal_ir_mul(b, of_gate[GATE_NEW], r);
    const hal_ir_value of_sum = ops_recurrent_select(&k, of_gate);
    hal_ir_store(b, sums, k.item, of_sum);
    hal_ir_store(b, call->slots[BACK_GX], ops_recurrent_index(&k, BACK_GX, step, all, k.item),
                 of_x);
    hal_ir_store(b, call->slots[BACK_GS], ops_recurrent_index(&k, BACK_GS, step, all, k.item),
                 of_sum);
    hal_ir_barrier(b);
    const hal_ir_value back = ops_recurrent_back(&k, sums, parts, BACK_W);
    hal_ir_set(b, next, hal_ir_add(b, back, hal_ir_mul(b, h, z)));
    hal_ir_end(b);
    ops_recurrent_store(&k, BACK_GH0, HAL_IR_NONE, hal_ir_get(b, next));
}

static hal_status call_begin(const ops_context *context, const ops_gru_layer *layer,
                             ops_recurrent_call *call)
{
    if (!layer) {
        return ops_invalid("%s: layer: expected a pointer, got null", call->function);
    }
    call->family = OPS_FAMILY_GRU;
    call->form.gates = GATES;
    return ops_recurrent_check_layer(context, layer->size, sizeof *layer, layer->is_reversed,
                                     &layer->gates, call);
}

hal_status ops_gru(ops_context *context, const ops_tensor *w, const ops_tensor *bias,
                   const ops_tensor *h0, const ops_gru_layer *layer)
{
    ops_recurrent_call call = {.function = "ops_gru",
                               .kernel = "gru",
                               .emit = emit_gru,
                               .first_output = GRU_H,
                               .strided = 1u << GRU_H0};
    HAL_TRY(call_begin(context, layer, &call));
    const int64_t hidden = call.form.hidden, all = GATES * hidden;
    const int64_t weights[2] = {hidden, all}, state[2] = {call.batch, hidden};
    const int64_t sums[3] = {call.steps, call.batch, all};
    const int64_t states[3] = {call.steps + 1, call.batch, hidden};
    if (!w || !h0) {
        return ops_invalid("ops_gru: w, h0: expected tensors, got null");
    }
    HAL_TRY(ops_recurrent_add(context, &call, GRU_W, "w", w, 2, weights));
    HAL_TRY(ops_recurrent_add(context, &call, GRU_BIAS, "bias", bias, 1, &all));
    HAL_TRY(ops_recurrent_add(context, &call, GRU_X, "layer.x", &layer->x, 3, sums));
    HAL_TRY(ops_recurrent_add(context, &call, GRU_H0, "h0", h0, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, GRU_H, "layer.h", &layer->h, 3, states));
    HAL_TRY(ops_recurrent_add(context, &call, GRU_GATES, "layer.gates", &layer->gates, 3,
                              layer->gates.shape));
    return ops_recurrent_record(context, &call);
}

hal_status ops_gru_gradient(ops_context *context, const ops_tensor *w, const ops_tensor *gh,
                            const ops_tensor *last_h, const ops_gru_layer *layer,
                            const ops_tensor *gx, const ops_tensor *gs, const ops_tensor *gh0)
{
    ops_recurrent_call call = {.function = "ops_gru_gradient",
                               .kernel = "gru_gradient",
                               .emit = emit_gradient,
                               .form.is_gradient = 1,
                               .first_output = BACK_GX};
    HAL_TRY(call_begin(context, layer, &call));
    const int64_t hidden = call.form.hidden, all = GATES * hidden;
    const int64_t weights[2] = {all, hidden}, state[2] = {call.batch, hidden};
    const int64_t sums[3] = {call.steps, call.batch, all};
    const int64_t steps[3] = {call.steps, call.batch, hidden};
    const int64_t states[3] = {call.steps + 1, call.batch, hidden};
    if (!w || !gx || !gs || !gh0) {
        return ops_invalid("ops_gru_gradient: w, gx, gs, gh0: expected tensors, got null");
    }
    HAL_TRY(ops_recurrent_add(context, &call, BACK_W, "w", w, 2, weights));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GH, "gh", gh, 3, steps));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_LAST_H, "last_h", last_h, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_H, "layer.h", &layer->h, 3, states));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GATES, "layer.gates", &layer->gates, 3,
                              layer->gates.shape));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GX, "gx", gx, 3, sums));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GS, "gs", gs, 3, sums));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GH0, "gh0", gh0, 2, state));
    return ops_recurrent_record(context, &call);
}
