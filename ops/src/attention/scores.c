/* Scores of attention kernels, see scores.h. */
#include "scores.h"

#include "kernels/short_functions.h"

#include <math.h>

/* Scores may exceed the greatest one that was taken into account by that power of 2, before what
 * was added is scaled: most tiles scale nothing. */
#define MAX_EXCESS 8.0f

void ops_attention_state_open(ops_attention_emitter *e, ops_attention_state *state)
{
    for (uint32_t i = 0; i < e->rows; i++) {
        state->greatest[i] = hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, -INFINITY));
        state->sum[i] = hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, 0));
    }
}

hal_ir_value ops_attention_emit_power(const ops_attention_emitter *e, hal_ir_value x)
{
    switch (e->form->power) {
    case OPS_ATTENTION_EXP2:
        return hal_ir_math(e->b, HAL_IR_EXP2, x, HAL_IR_NONE, HAL_IR_FAST);
    case OPS_ATTENTION_EXP:
        return hal_ir_unary(e->b, HAL_IR_EXP, x);
    default:
        return ops_exp_below(e->b, x, e->form->power == OPS_ATTENTION_EXP_NARROW);
    }
}

bool ops_attention_adds_mask(const ops_attention_form *form)
{
    return form->mask_type != HAL_TYPE_NONE && form->mask_type != HAL_TYPE_BOOL;
}

/* The query and the key of element (i, j) of the tile. */
static void element_find(ops_attention_emitter *e, const ops_attention_unit *unit,
                         hal_ir_value first_column, uint32_t i, uint32_t j, hal_ir_value *query,
                         hal_ir_value *key)
{
    const hal_ir_value row = hal_ir_add(e->b, e->first_row, unit->row(e, i));
    const hal_ir_value column = hal_ir_add(e->b, first_column, unit->column(e, j));
    const bool by_keys = e->form->kind == OPS_ATTENTION_BY_KEYS;
    *query = by_keys ? column : row;
    *key = by_keys ? row : column;
}

void ops_attention_emit_mask(ops_attention_emitter *e, const ops_attention_unit *unit,
                             hal_ir_value first_column, ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const ops_attention_side *mask = &e->sides[OPS_ATTENTION_MASK];
    const hal_ir_value least = hal_ir_number(b, e->accumulator, -INFINITY);
    if (e->form->mask_type == HAL_TYPE_NONE) {
        return;
    }
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        hal_ir_value query, key, *score = &scores->of[n / e->columns][n % e->columns];
        element_find(e, unit, first_column, n / e->columns, n % e->columns, &query, &key);
        const hal_ir_value is_query = hal_ir_lt(b, query, e->queries);
        const hal_ir_value has = hal_ir_and(b, is_query, hal_ir_lt(b, key, e->keys));
        const hal_ir_value along = hal_ir_mul(b, ops_value_cast(b, e->index, key), e->mask_column);
        hal_ir_value at = hal_ir_mul(b, ops_value_cast(b, e->index, query), mask->stride);
        at = hal_ir_add(b, hal_ir_add(b, mask->base, at), along);
        const hal_ir_value x = hal_ir_load_wide(b, mask->memory, at, 0, 1, has);
        *score = ops_attention_adds_mask(e->form)
                     ? ops_attention_fma(e, *score, e->factor, hal_ir_mul(b, x, e->mask_factor))
                     : hal_ir_select(b, x, *score, least);
    }
}

/* Whether some element of the tile is left out. NONE: none ever is. Queries beyond the last one
 * need no limit: they add zeros. */
static hal_ir_value tile_has_limit(ops_attention_emitter *e, hal_ir_value first_column)
{
    hal_ir_builder *b = e->b;
    const bool by_keys = e->form->kind == OPS_ATTENTION_BY_KEYS;
    const hal_ir_value end_column = ops_attention_plus(e, first_column, e->form->keys);
    const hal_ir_value end_row = ops_attention_plus(e, e->first_row, e->form->rows);
    const hal_ir_value beyond = by_keys ? HAL_IR_NONE : hal_ir_lt(b, e->keys, end_column);
    if (!e->form->causal) {
        return beyond;
    }
    const hal_ir_value first = by_keys ? first_column : e->first_row;
    hal_ir_value end = hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I32, first), e->shift);
    end = hal_ir_add(b, end, hal_ir_i32(b, 1)); /* of the first query's keys */
    const hal_ir_value cut =
        hal_ir_lt(b, end, hal_ir_cast(b, HAL_TYPE_I32, by_keys ? end_row : end_column));
    return beyond == HAL_IR_NONE ? cut : hal_ir_or(b, beyond, cut);
}

void ops_attention_emit_limit(ops_attention_emitter *e, const ops_attention_unit *unit,
                              hal_ir_value first_column, ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value least = hal_ir_number(b, e->accumulator, -INFINITY);
    const hal_ir_value has_limit = tile_has_limit(e, first_column);
    ops_attention_scores changed;
    if (has_limit == HAL_IR_NONE) {
        return;
    }
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        changed.of[i][j] = hal_ir_var(b, scores->of[i][j]);
    }
    hal_ir_if(b, has_limit);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        hal_ir_value query, key;
        element_find(e, unit, first_column, i, j, &query, &key);
        hal_ir_value has = hal_ir_lt(b, key, e->keys);
        if (e->form->causal) {
            const hal_ir_value last = hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I32, query), e->shift);
            has = hal_ir_and(b, has, hal_ir_le(b, hal_ir_cast(b, HAL_TYPE_I32, key), last));
        }
        hal_ir_set(b, changed.of[i][j], hal_ir_select(b, has, scores->of[i][j], least));
    }
    hal_ir_end(b);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        scores->of[i][j] = hal_ir_get(b, changed.of[i][j]);
    }
}

hal_ir_value ops_attention_emit_powers(ops_attention_emitter *e, const ops_attention_unit *unit,
                                       ops_attention_state *state, ops_attention_scores *scores,
                                       hal_ir_value *factors)
{
    hal_ir_builder *b = e->b;
    const bool is_scaled = ops_attention_adds_mask(e->form); /* ops_attention_emit_mask did */
    const hal_ir_value least = hal_ir_number(b, e->accumulator, -INFINITY);
    const hal_ir_value one = hal_ir_number(b, e->accumulator, 1);
    const hal_ir_value factor = is_scaled ? one : e->factor;
    hal_ir_value changes = HAL_IR_NONE;
    for (uint32_t i = 0; i < e->rows; i++) {
        hal_ir_value top = scores->of[i][0];
        for (uint32_t j = 1; j < e->columns; j++) {
            top = hal_ir_max(b, top, scores->of[i][j]);
        }
        top = unit->combine(e, HAL_IR_MAX, top);
        top = is_scaled ? top : hal_ir_mul(b, top, factor);
        const hal_ir_value before = hal_ir_get(b, state->greatest[i]);
        hal_ir_value now = hal_ir_max(b, before, top);
        if (e->form->power == OPS_ATTENTION_EXP2) {
            const hal_ir_value limit = hal_ir_add(b, before, hal_ir_f32(b, MAX_EXCESS));
            now = hal_ir_select(b, hal_ir_lt(b, limit, top), top, before);
        }
        hal_ir_set(b, state->greatest[i], now);
        const hal_ir_value is_none = hal_ir_eq(b, now, least);
        const hal_ir_value zero = hal_ir_number(b, e->accumulator, 0);
        const hal_ir_value base = hal_ir_neg(b, hal_ir_select(b, is_none, zero, now));
        factors[i] = ops_attention_emit_power(e, hal_ir_add(b, before, base));
        const hal_ir_value differs = hal_ir_ne(b, before, now);
        changes = i ? hal_ir_or(b, changes, differs) : differs;
        hal_ir_value sum = zero;
        for (uint32_t j = 0; j < e->columns; j++) {
            hal_ir_value *score = &scores->of[i][j];
            *score =
                ops_attention_emit_power(e, is_scaled ? hal_ir_add(b, *score, base)
                                                      : ops_attention_fma(e, *score, factor, base));
            sum = j ? hal_ir_add(b, sum, *score) : *score;
        }
        hal_ir_set(b, state->sum[i],
                   ops_attention_fma(e, hal_ir_get(b, state->sum[i]), factors[i], sum));
    }
    return changes;
}
