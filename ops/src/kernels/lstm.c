/* A layer of LSTM and its gradient over all time steps, see recurrent.h. */
#include "recurrent.h"

#include "tensor/shape.h"

#include <ops/recurrent.h>

#define GATES 4u

enum { GATE_IN, GATE_FORGET, GATE_CELL, GATE_OUT };

/* Tensors of the two kernels. */
enum { LSTM_W, LSTM_X, LSTM_H0, LSTM_C0, LSTM_H, LSTM_C, LSTM_GATES };
enum { BACK_W, BACK_GH, BACK_LAST_H, BACK_LAST_C, BACK_C, BACK_GATES, BACK_GX, BACK_GH0, BACK_GC0 };

static void emit_lstm(hal_ir_builder *b, const void *user)
{
    const ops_recurrent_call *call = user;
    const ops_recurrent_kernel k = ops_recurrent_begin(b, call);
    const uint32_t hidden = call->form.hidden, all = GATES * hidden;
    const hal_type type = (hal_type)call->form.type;
    const hal_ir_memory_id state = hal_ir_shared(b, "state", type, hidden);
    const hal_ir_memory_id gates = hal_ir_shared(b, "gates", type, all);
    const hal_ir_value first = ops_recurrent_first_state(&k), zero = ops_recurrent_constant(&k, 0);
    const hal_ir_value h0 = ops_recurrent_initial(&k, LSTM_H0);
    const hal_ir_value carried = hal_ir_var(b, ops_recurrent_initial(&k, LSTM_C0));
    hal_ir_store_wide(b, state, k.j, 0, k.is_first, h0);
    ops_recurrent_store(&k, LSTM_H, first, h0);
    ops_recurrent_store(&k, LSTM_C, first, hal_ir_get(b, carried));
    hal_ir_barrier(b);
    const hal_ir_value i = hal_ir_for(b, zero, k.steps, ops_recurrent_constant(&k, 1));
    const hal_ir_value step = ops_recurrent_step(&k, i);
    const hal_ir_value x = ops_recurrent_load(&k, LSTM_X, step, all, k.item);
    const hal_ir_value at = hal_ir_add(b, k.base[LSTM_W], k.item);
    const hal_ir_value sum = hal_ir_add(b, ops_recurrent_dot(&k, state, zero, LSTM_W, at, all), x);
    const hal_ir_value is_cell = hal_ir_eq(b, k.gate, ops_recurrent_constant(&k, GATE_CELL));
    const hal_ir_value value =
        hal_ir_select(b, is_cell, ops_recurrent_tanh(&k, sum), ops_recurrent_sigmoid(&k, sum));
    hal_ir_store(b, gates, k.item, value);
    hal_ir_store(b, call->slots[LSTM_GATES], ops_recurrent_index(&k, LSTM_GATES, step, all, k.item),
                 value);
    hal_ir_barrier(b);
    hal_ir_value of[GATES];
    for (uint32_t g = 0; g < GATES; g++) {
        of[g] = hal_ir_load_wide(b, gates, k.j, (int32_t)(g * hidden), 1, HAL_IR_NONE);
    }
    const hal_ir_value c = hal_ir_add(b, hal_ir_mul(b, of[GATE_FORGET], hal_ir_get(b, carried)),
                                      hal_ir_mul(b, of[GATE_IN], of[GATE_CELL]));
    const hal_ir_value h = hal_ir_mul(b, of[GATE_OUT], ops_recurrent_tanh(&k, c));
    const hal_ir_value after = ops_recurrent_state(&k, step, true);
    hal_ir_set(b, carried, c);
    hal_ir_store_wide(b, state, k.j, 0, k.is_first, h);
    ops_recurrent_store(&k, LSTM_H, after, h);
    ops_recurrent_store(&k, LSTM_C, after, c);
    hal_ir_barrier(b);
    hal_ir_end(b);
}

/* The gradient of the work-item's gate, before its function, from those of h and c. */
static hal_ir_value emit_gate_gradient(const ops_recurrent_kernel *k, const hal_ir_value of[GATES],
                                       hal_ir_value before, hal_ir_value squashed, hal_ir_value h,
                                       hal_ir_value c)
{
    hal_ir_builder *b = k->b;
    const hal_ir_value by[GATES] = {hal_ir_mul(b, c, of[GATE_CELL]), hal_ir_mul(b, c, before),
                                    hal_ir_mul(b, c, of[GATE_IN]), hal_ir_mul(b, h, squashed)};
    hal_ir_value of_gate[GATES];
    for (uint32_t g = 0; g < GATES; g++) {
        of_gate[g] = hal_ir_mul(b, by[g],
                                g == GATE_CELL ? ops_recurrent_tanh_slope(k, of[g])
                                               : ops_recurrent_sigmoid_slope(k, of[g]));
    }
    return ops_recurrent_select(k, of_gate);
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
    const hal_ir_value next_c =
        hal_ir_var(b, ops_recurrent_load(&k, BACK_LAST_C, HAL_IR_NONE, hidden, k.j));
    const hal_ir_value next_h =
        hal_ir_var(b, ops_recurrent_load(&k, BACK_LAST_H, HAL_IR_NONE, hidden, k.j));
    const hal_ir_value i = hal_ir_for(b, zero, k.steps, one);
    const hal_ir_value step = ops_recurrent_step(&k, hal_ir_sub(b, hal_ir_sub(b, k.steps, one), i));
    hal_ir_value of[GATES];
    for (uint32_t g = 0; g < GATES; g++) {
        const hal_ir_value at = ops_recurrent_index(&k, BACK_GATES, step, all, k.j);
        of[g] =
            hal_ir_load_wide(b, call->slots[BACK_GATES], at, (int32_t)(g * hidden), 1, HAL_IR_NONE);
    }
    const hal_ir_value before =
        ops_recurrent_load(&k, BACK_C, ops_recurrent_state(&k, step, false), hidden, k.j);
    const hal_ir_value after =
        ops_recurrent_load(&k, BACK_C, ops_recurrent_state(&k, step, true), hidden, k.j);
    const hal_ir_value squashed = ops_recurrent_tanh(&k, after);
    const hal_ir_value h =
        hal_ir_add(b, hal_ir_get(b, next_h), ops_recurrent_load(&k, BACK_GH, step, hidden, k.j));
    const hal_ir_value along =
        hal_ir_mul(b, hal_ir_mul(b, h, of[GATE_OUT]), ops_recurrent_tanh_slope(&k, squashed));
    const hal_ir_value c = hal_ir_add(b, along, hal_ir_get(b, next_c));
    const hal_ir_value own = emit_gate_gradient(&k, of, before, squashed, h, c);
    hal_ir_store(b, sums, k.item, own);
    hal_ir_store(b, call->slots[BACK_GX], ops_recurrent_index(&k, BACK_GX, step, all, k.item), own);
    hal_ir_set(b, next_c, hal_ir_mul(b, c, of[GATE_FORGET]));
    hal_ir_barrier(b);
    hal_ir_set(b, next_h, ops_recurrent_back(&k, sums, parts, BACK_W));
    hal_ir_end(b);
    ops_recurrent_store(&k, BACK_GH0, HAL_IR_NONE, hal_ir_get(b, next_h));
    ops_recurrent_store(&k, BACK_GC0, HAL_IR_NONE, hal_ir_get(b, next_c));
}

static hal_status call_begin(const ops_context *context, const ops_lstm_layer *layer,
                             ops_recurrent_call *call)
{
    if (!layer) {
        return ops_invalid("%s: layer: expected a pointer, got null", call->function);
    }
    call->family = OPS_FAMILY_LSTM;
    call->form.gates = GATES;
    return ops_recurrent_check_layer(context, layer->size, sizeof *layer, layer->is_reversed,
                                     &layer->gates, call);
}

hal_status ops_lstm(ops_context *context, const ops_tensor *w, const ops_tensor *h0,
                    const ops_tensor *c0, const ops_lstm_layer *layer)
{
    ops_recurrent_call call = {.function = "ops_lstm",
                               .kernel = "lstm",
                               .emit = emit_lstm,
                               .first_output = LSTM_H,
                               .strided = 1u << LSTM_H0 | 1u << LSTM_C0};
    HAL_TRY(call_begin(context, layer, &call));
    const int64_t hidden = call.form.hidden, all = GATES * hidden;
    const int64_t weights[2] = {hidden, all}, state[2] = {call.batch, hidden};
    const int64_t states[3] = {call.steps + 1, call.batch, hidden};
    if (!w || !h0 || !c0) {
        return ops_invalid("ops_lstm: w, h0, c0: expected tensors, got null");
    }
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_W, "w", w, 2, weights));
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_X, "layer.x", &layer->x, 3, layer->gates.shape));
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_H0, "h0", h0, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_C0, "c0", c0, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_H, "layer.h", &layer->h, 3, states));
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_C, "layer.c", &layer->c, 3, states));
    HAL_TRY(ops_recurrent_add(context, &call, LSTM_GATES, "layer.gates", &layer->gates, 3,
                              layer->gates.shape));
    return ops_recurrent_record(context, &call);
}

hal_status ops_lstm_gradient(ops_context *context, const ops_tensor *w, const ops_tensor *gh,
                             const ops_tensor *last_h, const ops_tensor *last_c,
                             const ops_lstm_layer *layer, const ops_tensor *gx,
                             const ops_tensor *gh0, const ops_tensor *gc0)
{
    ops_recurrent_call call = {.function = "ops_lstm_gradient",
                               .kernel = "lstm_gradient",
                               .emit = emit_gradient,
                               .form.is_gradient = 1,
                               .first_output = BACK_GX};
    HAL_TRY(call_begin(context, layer, &call));
    const int64_t hidden = call.form.hidden, all = GATES * hidden;
    const int64_t weights[2] = {all, hidden}, state[2] = {call.batch, hidden};
    const int64_t steps[3] = {call.steps, call.batch, hidden};
    const int64_t states[3] = {call.steps + 1, call.batch, hidden};
    if (!w || !gx || !gh0 || !gc0) {
        return ops_invalid("ops_lstm_gradient: w, gx, gh0, gc0: expected tensors, got null");
    }
    HAL_TRY(ops_recurrent_add(context, &call, BACK_W, "w", w, 2, weights));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GH, "gh", gh, 3, steps));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_LAST_H, "last_h", last_h, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_LAST_C, "last_c", last_c, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_C, "layer.c", &layer->c, 3, states));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GATES, "layer.gates", &layer->gates, 3,
                              layer->gates.shape));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GX, "gx", gx, 3, layer->gates.shape));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GH0, "gh0", gh0, 2, state));
    HAL_TRY(ops_recurrent_add(context, &call, BACK_GC0, "gc0", gc0, 2, state));
    return ops_recurrent_record(context, &call);
}
