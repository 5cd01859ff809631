/* The kernels of the gradients, which compute the scores again: one for queries (dq, after a first
 * walk over the keys that finds the norm of each row), one for keys (dk and dv). Each result has
 * one group that adds to it, in one order. */
#include "passes.h"

#include "scores.h"

/* ---- What both have ---- */

/* Where tiles are in shared memory: two first operands, and of a stage two that are read both along
 * the head and across. */
typedef struct backward_layout {
    ops_attention_tile first, second;
    ops_attention_tile near, far; /* of the first stage: the one of d elements, that of e */
    uint32_t stage, scores, total;
} backward_layout;

static backward_layout backward_place(const ops_attention_form *form)
{
    backward_layout l = {.total = 0};
    uint32_t total = 0, none = 0;
    uint32_t *rows = form->keeps_rows ? &none : &total;
    l.first = ops_attention_tile_reserve(form, form->rows, form->d, false, rows);
    l.second = ops_attention_tile_reserve(form, form->rows, form->e, false, rows);
    const uint32_t begin = total;
    l.near = ops_attention_tile_reserve(form, form->keys, form->d, true, &total);
    l.far = ops_attention_tile_reserve(form, form->keys, form->e, true, &total);
    l.stage = total - begin;
    l.scores = begin + form->stages * l.stage;
    l.total = l.scores + (form->matrix ? 0 : form->rows * ops_attention_plain_pitch(form->keys));
    return l;
}

uint32_t ops_attention_by_queries_shared(const ops_attention_form *form)
{
    return backward_place(form).total;
}

uint32_t ops_attention_by_keys_shared(const ops_attention_form *form)
{
    return backward_place(form).total;
}

static void copy_stage(ops_attention_emitter *e, const ops_attention_unit *unit, backward_layout *l,
                       hal_ir_value first, hal_ir_value stage, bool only_near)
{
    l->near.stage = l->far.stage = stage;
    unit->copy(e, &l->near, first);
    if (!only_near) {
        unit->copy(e, &l->far, first);
    }
    hal_ir_async_commit(e->b);
}

/* A walk over tiles of columns. */
typedef struct walk {
    backward_layout *layout;
    hal_ir_value stage; /* a variable; with one stage NONE */
    bool only_near;     /* the other tensor is not read */
} walk;

/* Opens the loop, in which tiles are in shared memory. Returns the first column of the tile. */
static hal_ir_value walk_open(ops_attention_emitter *e, const ops_attention_unit *unit, walk *w,
                              hal_ir_value begin, hal_ir_value end)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value step = hal_ir_u32(b, e->form->keys);
    backward_layout *l = w->layout;
    hal_ir_barrier(b); /* a walk before may read the tiles */
    if (e->form->stages == 2) {
        w->stage = hal_ir_var(b, hal_ir_u32(b, 0));
        copy_stage(e, unit, l, begin, HAL_IR_NONE, w->only_near);
    }
    const hal_ir_value first = hal_ir_for(b, begin, end, step);
    if (e->form->stages == 2) {
        const hal_ir_value now = hal_ir_get(b, w->stage);
        const hal_ir_value next = hal_ir_sub(b, hal_ir_u32(b, l->stage), now);
        hal_ir_set(b, w->stage, next);
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
        copy_stage(e, unit, l, hal_ir_add(b, first, step), next, w->only_near);
        l->near.stage = l->far.stage = now;
    } else {
        hal_ir_barrier(b);
        copy_stage(e, unit, l, first, HAL_IR_NONE, w->only_near);
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
    }
    return first;
}

/* Ends the loop; its last copy, of a tile that nothing reads, has to end before the next walk's. */
static void walk_close(ops_attention_emitter *e)
{
    hal_ir_end(e->b);
    hal_ir_async_wait(e->b, 0);
}

static void rows_open(ops_attention_emitter *e, const ops_attention_unit *unit,
                      ops_attention_rows *rows)
{
    if (e->form->keeps_rows) {
        unit->keep(e, rows, e->first_row);
    } else {
        unit->copy(e, &rows->tile, e->first_row);
    }
}

/* Scores of the tile, masked. */
static void emit_scores(ops_attention_emitter *e, const ops_attention_unit *unit,
                        const ops_attention_rows *rows, const ops_attention_tile *tile,
                        hal_ir_value first, ops_attention_scores *scores)
{
    unit->multiply(e, rows, tile, scores);
    ops_attention_emit_mask(e, unit, first, scores);
    ops_attention_emit_limit(e, unit, first, scores);
}

/* The weight of a score, relative to the norm of its query. */
static hal_ir_value emit_weight(const ops_attention_emitter *e, hal_ir_value score,
                                hal_ir_value norm)
{
    const hal_ir_value below = hal_ir_neg(e->b, norm);
    return ops_attention_emit_power(e, ops_attention_adds_mask(e->form)
                                           ? hal_ir_add(e->b, score, below)
                                           : ops_attention_fma(e, score, e->factor, below));
}

/* What the result of scores is multiplied by: the scale, which the factor has in another unit. */
static hal_ir_value scale_of(const ops_attention_emitter *e)
{
    return hal_ir_div(e->b, e->factor, e->mask_factor);
}

/* ---- By queries ---- */

/* The norm of each row: the greatest score and the logarithm of the sum, in the power's unit. */
static void emit_norms(ops_attention_emitter *e, const ops_attention_unit *unit, backward_layout *l,
                       const ops_attention_rows *q, hal_ir_value *norms)
{
    hal_ir_builder *b = e->b;
    walk w = {.layout = l, .only_near = true};
    ops_attention_state state;
    ops_attention_scores scores;
    hal_ir_value factors[OPS_ATTENTION_MAX_ROWS];
    ops_attention_state_open(e, &state);
    const hal_ir_value first = walk_open(e, unit, &w, hal_ir_u32(b, 0), ops_attention_key_end(e));
    emit_scores(e, unit, q, &l->near, first, &scores);
    ops_attention_emit_powers(e, unit, &state, &scores, factors);
    walk_close(e);
    for (uint32_t i = 0; i < e->rows; i++) {
        const uint32_t log = e->form->power == OPS_ATTENTION_EXP2 ? HAL_IR_LOG2 : HAL_IR_LOG;
        const hal_ir_value sum = unit->combine(e, HAL_IR_ADD, hal_ir_get(b, state.sum[i]));
        /* Of a row without keys both parts would be -inf. */
        const hal_ir_value is_empty = hal_ir_eq(b, sum, hal_ir_number(b, e->accumulator, 0));
        const hal_ir_value size = hal_ir_select(b, is_empty, sum, hal_ir_unary(b, log, sum));
        norms[i] = hal_ir_add(b, hal_ir_get(b, state.greatest[i]), size);
    }
}

/* Loads or stores the number of a query. */
static hal_ir_value query_load(ops_attention_emitter *e, uint32_t side, hal_ir_value query)
{
    hal_ir_builder *b = e->b;
    const ops_attention_side *s = &e->sides[side];
    const hal_ir_value at = hal_ir_add(b, s->base, ops_value_cast(b, e->index, query));
    return hal_ir_load_wide(b, s->memory, at, 0, 1, hal_ir_lt(b, query, e->queries));
}

/* One of the work-items that share a row stores its norm; all have the same. */
static void norms_store(ops_attention_emitter *e, const ops_attention_unit *unit,
                        const hal_ir_value *norms)
{
    hal_ir_builder *b = e->b;
    const ops_attention_side *s = &e->sides[OPS_ATTENTION_NORM];
    const hal_ir_value is_first = hal_ir_eq(b, e->lane_column, hal_ir_u32(b, 0));
    for (uint32_t i = 0; i < e->rows; i++) {
        const hal_ir_value row = hal_ir_add(b, e->first_row, unit->row(e, i));
        const hal_ir_value at = hal_ir_add(b, s->base, ops_value_cast(b, e->index, row));
        hal_ir_store_wide(b, s->memory, at, 0,
                          hal_ir_and(b, is_first, hal_ir_lt(b, row, e->queries)), norms[i]);
    }
}

/* Adds a tile's part of dq: (weights (dy v^T - delta)) k. */
static void queries_tile(ops_attention_emitter *e, const ops_attention_unit *unit,
                         backward_layout *l, const ops_attention_rows rows[2], hal_ir_value first,
                         const hal_ir_value *norms, const hal_ir_value *deltas,
                         const ops_attention_result *dq)
{
    hal_ir_builder *b = e->b;
    ops_attention_scores scores, changes;
    emit_scores(e, unit, &rows[0], &l->near, first, &scores);
    unit->multiply(e, &rows[1], &l->far, &changes);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        const hal_ir_value weight = emit_weight(e, scores.of[i][j], norms[i]);
        scores.of[i][j] = hal_ir_mul(b, weight, hal_ir_sub(b, changes.of[i][j], deltas[i]));
    }
    unit->accumulate(e, &scores, &l->near, dq);
}

void ops_attention_emit_by_queries(ops_attention_emitter *e, const ops_attention_unit *unit)
{
    hal_ir_builder *b = e->b;
    backward_layout l = backward_place(e->form);
    hal_ir_value norms[OPS_ATTENTION_MAX_ROWS], deltas[OPS_ATTENTION_MAX_ROWS],
        factors[OPS_ATTENTION_MAX_ROWS];
    ops_attention_result dq;
    l.first.side = &e->sides[OPS_ATTENTION_Q];
    l.second.side = &e->sides[OPS_ATTENTION_DY];
    l.near.side = &e->sides[OPS_ATTENTION_K];
    l.far.side = &e->sides[OPS_ATTENTION_V];
    e->scores_begin = l.scores;
    e->has_signs = true;
    ops_attention_rows rows[2] = {{.tile = l.first}, {.tile = l.second}};
    rows_open(e, unit, &rows[0]);
    rows_open(e, unit, &rows[1]);
    emit_norms(e, unit, &l, &rows[0], norms);
    norms_store(e, unit, norms);
    for (uint32_t i = 0; i < e->rows; i++) {
        deltas[i] =
            query_load(e, OPS_ATTENTION_DELTA, hal_ir_add(b, e->first_row, unit->row(e, i)));
        factors[i] = scale_of(e);
    }
    ops_attention_result_open(e, &dq, e->form->d);
    walk w = {.layout = &l};
    const hal_ir_value first = walk_open(e, unit, &w, hal_ir_u32(b, 0), ops_attention_key_end(e));
    queries_tile(e, unit, &l, rows, first, norms, deltas, &dq);
    walk_close(e);
    unit->store(e, &dq, &e->sides[OPS_ATTENTION_DQ], factors);
}

/* ---- By keys ---- */

/* The first tile of queries that have one of the group's keys. */
static hal_ir_value query_begin(ops_attention_emitter *e)
{
    hal_ir_builder *b = e->b;
    if (!e->form->causal) {
        return hal_ir_u32(b, 0);
    }
    hal_ir_value first = hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_I32, e->first_row), e->shift);
    first = hal_ir_cast(b, HAL_TYPE_U32, hal_ir_max(b, first, hal_ir_i32(b, 0)));
    const hal_ir_value tile = hal_ir_u32(b, e->form->keys);
    return hal_ir_mul(b, hal_ir_div(b, first, tile), tile);
}

/* Adds a tile's part of dv, weights^T dy, and of dk, (weights^T (v dy^T - delta)) q. */
static void keys_tile(ops_attention_emitter *e, const ops_attention_unit *unit, backward_layout *l,
                      const ops_attention_rows rows[2], hal_ir_value first,
                      const ops_attention_result *dk, const ops_attention_result *dv)
{
    hal_ir_builder *b = e->b;
    ops_attention_scores scores, changes;
    emit_scores(e, unit, &rows[0], &l->near, first, &scores);
    for (uint32_t j = 0; j < e->columns; j++) {
        const hal_ir_value query = hal_ir_add(b, first, unit->column(e, j));
        const hal_ir_value norm = query_load(e, OPS_ATTENTION_NORM, query);
        for (uint32_t i = 0; i < e->rows; i++) {
            scores.of[i][j] = emit_weight(e, scores.of[i][j], norm);
        }
    }
    if (e->form->has_dv) {
        e->has_signs = false;
        unit->accumulate(e, &scores, &l->far, dv);
    }
    if (!e->form->has_dk) {
        return;
    }
    unit->multiply(e, &rows[1], &l->far, &changes);
    for (uint32_t j = 0; j < e->columns; j++) {
        const hal_ir_value query = hal_ir_add(b, first, unit->column(e, j));
        const hal_ir_value delta = query_load(e, OPS_ATTENTION_DELTA, query);
        for (uint32_t i = 0; i < e->rows; i++) {
            scores.of[i][j] =
                hal_ir_mul(b, scores.of[i][j], hal_ir_sub(b, changes.of[i][j], delta));
        }
    }
    e->has_signs = true;
    unit->accumulate(e, &scores, &l->near, dk);
}

void ops_attention_emit_by_keys(ops_attention_emitter *e, const ops_attention_unit *unit,
                                void (*place)(ops_attention_emitter *e, hal_ir_value head,
                                              void *user),
                                void *user)
{
    hal_ir_builder *b = e->b;
    backward_layout l = backward_place(e->form);
    hal_ir_value scales[OPS_ATTENTION_MAX_ROWS], ones[OPS_ATTENTION_MAX_ROWS];
    ops_attention_result dk, dv;
    const ops_attention_side to_dk = e->sides[OPS_ATTENTION_DK], to_dv = e->sides[OPS_ATTENTION_DV];
    e->scores_begin = l.scores;
    if (e->form->has_dk) {
        ops_attention_result_open(e, &dk, e->form->d);
    }
    if (e->form->has_dv) {
        ops_attention_result_open(e, &dv, e->form->e);
    }
    const hal_ir_value head = hal_ir_for(b, hal_ir_u32(b, 0), e->heads, hal_ir_u32(b, 1));
    place(e, head, user);
    l.first.side = &e->sides[OPS_ATTENTION_K];
    l.second.side = &e->sides[OPS_ATTENTION_V];
    l.near.side = &e->sides[OPS_ATTENTION_Q];
    l.far.side = &e->sides[OPS_ATTENTION_DY];
    ops_attention_rows rows[2] = {{.tile = l.first}, {.tile = l.second}};
    hal_ir_barrier(b); /* the head before may read the rows */
    rows_open(e, unit, &rows[0]);
    if (e->form->has_dk) {
        rows_open(e, unit, &rows[1]);
    }
    walk w = {.layout = &l};
    const hal_ir_value first = walk_open(e, unit, &w, query_begin(e), e->queries);
    keys_tile(e, unit, &l, rows, first, &dk, &dv);
    walk_close(e);
    hal_ir_end(b);
    for (uint32_t i = 0; i < e->rows; i++) {
        scales[i] = scale_of(e);
        ones[i] = hal_ir_number(b, e->accumulator, 1);
    }
    if (e->form->has_dk) {
        unit->store(e, &dk, &to_dk, scales);
    }
    if (e->form->has_dv) {
        unit->store(e, &dv, &to_dv, ones);
    }
}
