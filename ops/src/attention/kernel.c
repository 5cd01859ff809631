/* The attention kernel, see kernel.h. */
#include "kernel.h"

#include "emitter.h"

#include "kernels/short_functions.h"

#include <math.h>

/* Scores may exceed the greatest one that was taken into account by that power of 2, before what
 * was added is scaled: most tiles scale nothing. */
#define MAX_EXCESS 8.0f

/* The strides of a side that are scalars: those of rows, and the mask's of columns. */
static uint32_t stride_count(uint32_t side)
{
    return side == OPS_ATTENTION_MASK ? 4 : side == OPS_ATTENTION_STATISTICS ? 2 : 3;
}

uint32_t ops_attention_sides(const ops_attention_form *form)
{
    const uint32_t inputs = 1u << OPS_ATTENTION_Q | 1u << OPS_ATTENTION_K | 1u << OPS_ATTENTION_V;
    return inputs | 1u << OPS_ATTENTION_Y |
           (form->mask_type != HAL_TYPE_NONE ? 1u << OPS_ATTENTION_MASK : 0);
}

void ops_attention_put(const ops_attention_work *work, ops_block *block)
{
    const ops_attention_form *form = &work->form;
    const hal_type accumulator = hal_type_of_value(form->type);
    ops_block_begin(block);
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (ops_attention_sides(form) >> i & 1) {
            ops_put_index(block, form->index64, work->operands[i].base);
            for (uint32_t k = 0; k < stride_count(i); k++) {
                ops_put_index(block, form->index64, work->operands[i].strides[k]);
            }
        }
    }
    ops_put_number(block, accumulator, work->factor);
    ops_put_number(block, accumulator, work->mask_factor);
    ops_put_u32(block, work->queries);
    ops_put_u32(block, work->keys);
    ops_put_u32(block, work->d);
    ops_put_u32(block, work->e);
    ops_put_u32(block, work->batches);
    ops_put_u32(block, work->blocks);
}

/* ---- The group's place ---- */

/* Scalars of a side. */
typedef struct side_scalars {
    hal_ir_value base, strides[4];
} side_scalars;

static void declare_sides(ops_attention_emitter *e, side_scalars *scalars)
{
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (!(ops_attention_sides(e->form) >> i & 1)) {
            continue;
        }
        scalars[i].base = ops_scalar(e->b, "base", i, 0, e->index);
        for (uint32_t k = 0; k < stride_count(i); k++) {
            scalars[i].strides[k] = ops_scalar(e->b, "stride", i, k, e->index);
        }
    }
}

static hal_ir_value matrix_base(ops_attention_emitter *e, const side_scalars *scalars,
                                hal_ir_value outer, hal_ir_value batch)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value far = hal_ir_mul(b, ops_value_cast(b, e->index, outer), scalars->strides[0]);
    const hal_ir_value near =
        hal_ir_mul(b, ops_value_cast(b, e->index, batch), scalars->strides[1]);
    return hal_ir_add(b, hal_ir_add(b, scalars->base, far), near);
}

static void place_sides(ops_attention_emitter *e, const side_scalars *scalars, hal_ir_value outer,
                        hal_ir_value batch)
{
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (!(ops_attention_sides(e->form) >> i & 1)) {
            continue;
        }
        const bool of_keys = i == OPS_ATTENTION_K || i == OPS_ATTENTION_V ||
                             i == OPS_ATTENTION_DK || i == OPS_ATTENTION_DV;
        const bool is_narrow = i == OPS_ATTENTION_Q || i == OPS_ATTENTION_K ||
                               i == OPS_ATTENTION_DQ || i == OPS_ATTENTION_DK;
        e->sides[i] = (ops_attention_side){.memory = e->form->slots[i],
                                           .base = matrix_base(e, &scalars[i], outer, batch),
                                           .stride = scalars[i].strides[2],
                                           .rows = of_keys ? e->keys : e->queries,
                                           .width = is_narrow ? e->d : e->e};
    }
    e->mask_column = scalars[OPS_ATTENTION_MASK].strides[3];
}

/* Declares scalars in the order of ops_attention_put, and finds the group's matrix and rows. With
 * causal scores the last rows, which have most columns, come first. */
static void emit_place(ops_attention_emitter *e)
{
    hal_ir_builder *b = e->b;
    side_scalars scalars[OPS_ATTENTION_SIDES] = {{0}};
    declare_sides(e, scalars);
    e->factor = hal_ir_scalar_value(b, "factor", e->accumulator);
    e->mask_factor = hal_ir_scalar_value(b, "mask_factor", e->accumulator);
    e->queries = hal_ir_scalar_value(b, "queries", HAL_TYPE_U32);
    e->keys = hal_ir_scalar_value(b, "keys", HAL_TYPE_U32);
    e->d = hal_ir_scalar_value(b, "d", HAL_TYPE_U32);
    e->e = hal_ir_scalar_value(b, "e", HAL_TYPE_U32);
    const hal_ir_value batches = hal_ir_scalar_value(b, "batches", HAL_TYPE_U32);
    const hal_ir_value blocks = hal_ir_scalar_value(b, "blocks", HAL_TYPE_U32);
    const hal_ir_value number = ops_index_group(b);
    const hal_ir_value matrix = hal_ir_div(b, number, blocks);
    hal_ir_value block = hal_ir_rem(b, number, blocks);
    if (e->form->causal) {
        block = hal_ir_sub(b, hal_ir_sub(b, blocks, hal_ir_u32(b, 1)), block);
    }
    e->first_row = ops_attention_times(e, block, e->form->rows);
    e->shift = hal_ir_cast(b, HAL_TYPE_I32, hal_ir_sub(b, e->keys, e->queries));
    place_sides(e, scalars, hal_ir_div(b, matrix, batches), hal_ir_rem(b, matrix, batches));
}

/* ---- Scores ---- */

static hal_ir_value emit_power(ops_attention_emitter *e, hal_ir_value x)
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

static bool adds_mask(const ops_attention_form *form)
{
    return form->mask_type != HAL_TYPE_NONE && form->mask_type != HAL_TYPE_BOOL;
}

/* Scales scores and adds the mask, or leaves out what a mask of bool does. */
static void emit_mask(ops_attention_emitter *e, const ops_attention_unit *unit,
                      hal_ir_value first_column, ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const ops_attention_side *mask = &e->sides[OPS_ATTENTION_MASK];
    const hal_ir_value least = hal_ir_number(b, e->accumulator, -INFINITY);
    for (uint32_t i = 0; i < e->rows && e->form->mask_type != HAL_TYPE_NONE; i++) {
        const hal_ir_value row = hal_ir_add(b, e->first_row, unit->row(e, i));
        const hal_ir_value is_row = hal_ir_lt(b, row, e->queries);
        for (uint32_t j = 0; j < e->columns; j++) {
            const hal_ir_value column = hal_ir_add(b, first_column, unit->column(e, j));
            const hal_ir_value has = hal_ir_and(b, is_row, hal_ir_lt(b, column, e->keys));
            const hal_ir_value along =
                hal_ir_mul(b, ops_value_cast(b, e->index, column), e->mask_column);
            hal_ir_value at = hal_ir_mul(b, ops_value_cast(b, e->index, row), mask->stride);
            at = hal_ir_add(b, hal_ir_add(b, mask->base, at), along);
            const hal_ir_value x = hal_ir_load_wide(b, mask->memory, at, 0, 1, has);
            hal_ir_value *score = &scores->of[i][j];
            *score = adds_mask(e->form)
                         ? ops_attention_fma(e, *score, e->factor, hal_ir_mul(b, x, e->mask_factor))
                         : hal_ir_select(b, x, *score, least);
        }
    }
}

/* Leaves out columns beyond the keys and, causal, beyond those of a row, in the tiles that have
 * such columns. */
static void emit_limits(ops_attention_emitter *e, const ops_attention_unit *unit,
                        hal_ir_value first_column, ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value least = hal_ir_number(b, e->accumulator, -INFINITY);
    const hal_ir_value end = ops_attention_plus(e, first_column, e->form->keys);
    hal_ir_value has_limit = hal_ir_lt(b, e->keys, end);
    if (e->form->causal) {
        const hal_ir_value first =
            hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I32, e->first_row), e->shift);
        const hal_ir_value is_cut =
            hal_ir_lt(b, hal_ir_add(b, first, hal_ir_i32(b, 1)), hal_ir_cast(b, HAL_TYPE_I32, end));
        has_limit = hal_ir_or(b, has_limit, is_cut);
    }
    hal_ir_value changed[OPS_ATTENTION_MAX_ROWS][OPS_ATTENTION_MAX_COLUMNS];
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        changed[i][j] = hal_ir_var(b, scores->of[i][j]);
    }
    hal_ir_if(b, has_limit);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        const hal_ir_value column = hal_ir_add(b, first_column, unit->column(e, j));
        hal_ir_value has = hal_ir_lt(b, column, e->keys);
        if (e->form->causal) {
            const hal_ir_value row = hal_ir_add(b, e->first_row, unit->row(e, i));
            const hal_ir_value last = hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I32, row), e->shift);
            has = hal_ir_and(b, has, hal_ir_le(b, hal_ir_cast(b, HAL_TYPE_I32, column), last));
        }
        hal_ir_set(b, changed[i][j], hal_ir_select(b, has, scores->of[i][j], least));
    }
    hal_ir_end(b);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        scores->of[i][j] = hal_ir_get(b, changed[i][j]);
    }
}

/* ---- The forward kernel ---- */

/* What a row has so far: variables. */
typedef struct row_state {
    hal_ir_value greatest[OPS_ATTENTION_MAX_ROWS]; /* that powers are relative to */
    hal_ir_value sum[OPS_ATTENTION_MAX_ROWS];      /* of the work-item's columns */
} row_state;

static void open_state(ops_attention_emitter *e, row_state *state)
{
    for (uint32_t i = 0; i < e->rows; i++) {
        state->greatest[i] = hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, -INFINITY));
        state->sum[i] = hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, 0));
    }
}

static void open_result(ops_attention_emitter *e, ops_attention_result *result, uint32_t width)
{
    const uint32_t columns = e->form->matrix ? width / 4 : width / e->form->side_lanes;
    result->width = width;
    for (uint32_t n = 0; n < e->rows * columns; n++) {
        result->of[n / columns][n % columns] =
            hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, 0));
    }
}

static void scale_result(ops_attention_emitter *e, const ops_attention_result *result,
                         const hal_ir_value *factors)
{
    hal_ir_builder *b = e->b;
    const uint32_t columns =
        e->form->matrix ? result->width / 4 : result->width / e->form->side_lanes;
    for (uint32_t n = 0; n < e->rows * columns; n++) {
        const hal_ir_value sum = result->of[n / columns][n % columns];
        hal_ir_set(b, sum, hal_ir_mul(b, hal_ir_get(b, sum), factors[n / columns]));
    }
}

/* Replaces the scores of a row by powers relative to the greatest one so far. factors[i]: what was
 * added before is multiplied by it. Returns whether any row's is not 1. */
static hal_ir_value emit_powers(ops_attention_emitter *e, const ops_attention_unit *unit,
                                row_state *state, ops_attention_scores *scores,
                                hal_ir_value *factors)
{
    hal_ir_builder *b = e->b;
    const bool is_scaled = adds_mask(e->form); /* emit_mask did */
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
        factors[i] = emit_power(e, hal_ir_add(b, before, base));
        const hal_ir_value differs = hal_ir_ne(b, before, now);
        changes = i ? hal_ir_or(b, changes, differs) : differs;
        hal_ir_value sum = zero;
        for (uint32_t j = 0; j < e->columns; j++) {
            hal_ir_value *score = &scores->of[i][j];
            *score = emit_power(e, is_scaled ? hal_ir_add(b, *score, base)
                                             : ops_attention_fma(e, *score, factor, base));
            sum = j ? hal_ir_add(b, sum, *score) : *score;
        }
        hal_ir_set(b, state->sum[i],
                   ops_attention_fma(e, hal_ir_get(b, state->sum[i]), factors[i], sum));
    }
    return changes;
}

/* Where tiles are in shared memory. */
typedef struct forward_layout {
    ops_attention_tile q, k, v; /* k and v: of the first stage */
    uint32_t stage, scores, total;
} forward_layout;

static ops_attention_tile tile_place(const ops_attention_form *form, uint32_t rows, uint32_t width,
                                     bool by_keys, uint32_t *total)
{
    const uint32_t pitch = form->matrix ? ops_attention_matrix_pitch(width, by_keys)
                                        : ops_attention_plain_pitch(width);
    const ops_attention_tile tile = {
        .begin = *total, .pitch = pitch, .rows = rows, .width = width, .stage = HAL_IR_NONE};
    *total += rows * pitch;
    return tile;
}

static forward_layout forward_place(const ops_attention_form *form)
{
    forward_layout l = {.total = 0};
    uint32_t total = 0, none = 0;
    l.q = tile_place(form, form->rows, form->d, false, form->keeps_rows ? &none : &total);
    const uint32_t first = total;
    l.k = tile_place(form, form->keys, form->d, false, &total);
    l.v = tile_place(form, form->keys, form->e, true, &total);
    l.stage = total - first;
    total = first + form->stages * l.stage;
    l.scores = total;
    l.total = total + (form->matrix ? 0 : form->rows * ops_attention_plain_pitch(form->keys));
    return l;
}

uint32_t ops_attention_shared(const ops_attention_form *form)
{
    return forward_place(form).total;
}

/* One beyond the last column that the group's rows have. */
static hal_ir_value emit_end(ops_attention_emitter *e)
{
    hal_ir_builder *b = e->b;
    if (!e->form->causal) {
        return e->keys;
    }
    const hal_ir_value rows = ops_attention_plus(e, e->first_row, e->form->rows);
    hal_ir_value end = hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I32, rows), e->shift);
    end = hal_ir_max(b, end, hal_ir_i32(b, 0));
    return hal_ir_min(b, hal_ir_cast(b, HAL_TYPE_U32, end), e->keys);
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
                      row_state *state, const ops_attention_result *y)
{
    hal_ir_builder *b = e->b;
    ops_attention_scores scores;
    hal_ir_value factors[OPS_ATTENTION_MAX_ROWS];
    unit->multiply(e, q, &l->k, &scores);
    emit_mask(e, unit, first, &scores);
    emit_limits(e, unit, first, &scores);
    const hal_ir_value changes = emit_powers(e, unit, state, &scores, factors);
    if (e->form->power == OPS_ATTENTION_EXP2) {
        hal_ir_if(b, changes);
        scale_result(e, y, factors);
        hal_ir_end(b);
    } else {
        scale_result(e, y, factors);
    }
    unit->accumulate(e, &scores, &l->v, y);
}

static void emit_forward(ops_attention_emitter *e, const ops_attention_unit *unit)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value zero = hal_ir_u32(b, 0), step = hal_ir_u32(b, e->form->keys);
    forward_layout l = forward_place(e->form);
    row_state state;
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
    open_state(e, &state);
    open_result(e, &y, e->form->e);
    const bool is_ahead = e->form->stages == 2;
    const hal_ir_value end = emit_end(e);
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

void ops_attention_emit(hal_ir_builder *b, const ops_attention_form *form)
{
    const ops_attention_unit *unit = form->matrix ? &ops_attention_matrix : &ops_attention_plain;
    ops_attention_emitter e = {.b = b,
                               .form = form,
                               .index = form->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32,
                               .accumulator = hal_type_of_value(form->type)};
    const uint32_t items = form->matrix ? HAL_IR_MATRIX_LANES * form->subgroups
                                        : (uint32_t)form->side_lanes * form->side_lanes;
    hal_ir_group_size(b, items, 1, 1);
    e.shared = hal_ir_shared(b, "tiles", form->matrix ? HAL_TYPE_U32 : e.accumulator,
                             ops_attention_shared(form));
    e.item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    unit->begin(&e);
    emit_place(&e);
    emit_forward(&e, unit);
}
