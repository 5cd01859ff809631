/* The forward kernel: y, a tile of queries for each group. */
#include "passes.h"

#include "scores.h"

/* Where tiles are in shared memory. */
typedef struct forward_layout {
    ops_attention_tile q, k, v; /* k and v: of the first stage */
    uint32_t stage, scores, total;
} forward_layout;

static forward_layout forward_place(const ops_attention_form *form)
{
    forward_layout l = {.total = 0};
    uint32_t total = 0, none = 0;
    l.q = ops_attention_tile_reserve(form, form->rows, form->d, false,
                                     form->keeps_rows ? &none : &total);
    const uint32_t first = total;
    l.k = ops_attention_tile_reserve(form, form->keys, form->d, false, &total);
    l.v = ops_attention_tile_reserve(form, form->keys, form->e, true, &total);
    l.stage = total - first;
    total = first + form->stages * l.stage;
    l.scores = total;
    l.total = total + (form->matrix ? 0 : form->rows * ops_attention_plain_pitch(form->keys));
    return l;
}

uint32_t ops_attention_forward_shared(const ops_attention_form *form)
{
    return forward_place(form).total;
}

/* Copies a tile of keys and one of values to a stage. */
static void copy_stage(ops_attention_emitter *e, const ops_attention_unit *unit, forward_layout *l,
                       hal_ir_value first, hal_ir_value stage)
{
    l->k.stage = l->v.stage = stage;
    unit->copy(e, &l->k, first);
    unit->copy(e, &l->v, first);
    hal_ir_async_commit(e->b);
}

static void emit_tile(ops_attention_emitter *e, const ops_attention_unit *unit,
                      const forward_layout *l, const ops_attention_rows *q, hal_ir_value first,
                      ops_attention_state *state, const ops_attention_result *y)
{
    hal_ir_builder *b = e->b;
    ops_attention_scores scores;
    hal_ir_value factors[OPS_ATTENTION_MAX_ROWS];
    unit->multiply(e, q, &l->k, &scores);
    ops_attention_emit_mask(e, unit, first, &scores);
    ops_attention_emit_limit(e, unit, first, &scores);
    const hal_ir_value changes = ops_attention_emit_powers(e, unit, state, &scores, factors);
    if (e->form->power == OPS_ATTENTION_EXP2) {
        hal_ir_if(b, changes);
        ops_attention_result_scale(e, y, factors);
        hal_ir_end(b);
    } else {
        ops_attention_result_scale(e, y, factors);
    }
    unit->accumulate(e, &scores, &l->v, y);
}

void ops_attention_emit_forward(ops_attention_emitter *e, const ops_attention_unit *unit)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value zero = hal_ir_u32(b, 0), step = hal_ir_u32(b, e->form->keys);
    forward_layout l = forward_place(e->form);
    ops_attention_state state;
    ops_attention_result y;
    hal_ir_value factors[OPS_ATTENTION_MAX_ROWS];
    l.q.side = &e->sides[OPS_ATTENTION_Q];
    l.k.side = &e->sides[OPS_ATTENTION_K];
    l.v.side = &e->sides[OPS_ATTENTION_V];
    e->scores_begin = l.scores;
    ops_attention_rows q = {.tile = l.q};
    if (e->form->keeps_rows) {
        unit->keep(e, &q, e->first_row);
    } else {
        unit->copy(e, &q.tile, e->first_row);
    }
    ops_attention_state_open(e, &state);
    ops_attention_result_open(e, &y, e->form->e);
    const bool is_ahead = e->form->stages == 2;
    const hal_ir_value end = ops_attention_key_end(e);
    hal_ir_value stage = HAL_IR_NONE;
    if (is_ahead) {
        stage = hal_ir_var(b, zero);
        copy_stage(e, unit, &l, zero, HAL_IR_NONE);
    }
    const hal_ir_value first = hal_ir_for(b, zero, end, step);
    if (is_ahead) {
        const hal_ir_value now = hal_ir_get(b, stage);
        const hal_ir_value next = hal_ir_sub(b, hal_ir_u32(b, l.stage), now);
        hal_ir_set(b, stage, next);
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
        copy_stage(e, unit, &l, hal_ir_add(b, first, step), next);
        l.k.stage = l.v.stage = now;
    } else {
        hal_ir_barrier(b);
        copy_stage(e, unit, &l, first, HAL_IR_NONE);
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
    }
    emit_tile(e, unit, &l, &q, first, &state, &y);
    hal_ir_end(b);
    for (uint32_t i = 0; i < e->rows; i++) {
        const hal_ir_value sum = unit->combine(e, HAL_IR_ADD, hal_ir_get(b, state.sum[i]));
        factors[i] = hal_ir_div(b, hal_ir_number(b, e->accumulator, 1), sum);
    }
    unit->store(e, &y, &e->sides[OPS_ATTENTION_Y], factors);
}
