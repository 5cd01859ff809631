/* General kernels of rows, for any number of work-items along the axis, width of chunks and length
 * of steps: these are scalars, and elements are read one by one, in the order of fold.h. A group is
 * a row of work-items, which the scalars divide among outputs and axis. */
#include "rows_emitter.h"

/* States that a work-item folds between two barriers. */
#define STRAIGHT_STATES 16u

/* The work-item's output, and its place among those along the axis. */
static void find_lane(ops_row_emitter *e)
{
    hal_ir_builder *b = e->b;
    ops_reduce_lane *lane = &e->lane;
    const hal_ir_value one = hal_ir_u32(b, 1), id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value along = hal_ir_shl(b, one, e->any.along);
    const hal_ir_value outputs = hal_ir_shr(b, hal_ir_u32(b, e->pass->any.items), e->any.along);
    lane->q = hal_ir_and(b, hal_ir_shr(b, id, e->any.q), hal_ir_sub(b, along, one));
    lane->p = hal_ir_and(b, hal_ir_shr(b, id, e->any.p), hal_ir_sub(b, outputs, one));
    lane->item = hal_ir_add(b, hal_ir_shl(b, lane->p, e->any.along), lane->q);
    hal_ir_value output = hal_ir_mul(b, ops_value_cast(b, e->values.type, ops_index_group(b)),
                                     ops_value_cast(b, e->values.type, outputs));
    output = hal_ir_add(b, output, ops_value_cast(b, e->values.type, lane->p));
    lane->inside = hal_ir_lt(b, output, e->values.total);
    for (uint32_t view = 0; view < e->pass->layout.view_count; view++) {
        lane->index[view] = e->values.base[view];
    }
    ops_layout_offset(b, &e->pass->layout, &e->values, output, e->pass->layout.rank, lane->index);
}

/* The work-item's first element, from which the place of another one is the same number of elements
 * away for all work-items. */
static void find_first(ops_row_emitter *e)
{
    hal_ir_builder *b = e->b;
    const bool is_rotating = e->pass->form.any == OPS_ROW_ANY_ROTATING;
    e->from_place = hal_ir_add(b, e->start, hal_ir_shl(b, e->lane.q, e->any.width));
    for (uint32_t view = 0; is_rotating && view < e->pass->layout.view_count; view++) {
        e->from[view] = ops_axis_place(b, &e->pass->axis, e->axis_strides, e->values.type, view,
                                       e->lane.index[view], e->from_place);
    }
}

void ops_row_any_declare(ops_row_emitter *e)
{
    static const char *const names[OPS_ROW_ANY_SCALARS] = {
        "along", "width", "q", "p", "turn", "block", "pairs", "halves", "subgroups", "turns"};
    hal_ir_value values[OPS_ROW_ANY_SCALARS];
    for (uint32_t i = 0; i < OPS_ROW_ANY_SCALARS; i++) {
        values[i] = hal_ir_scalar_value(e->b, names[i], HAL_TYPE_U32);
    }
    e->any.along = values[0];
    e->any.width = values[1];
    e->any.q = values[2];
    e->any.p = values[3];
    e->any.turn = values[4];
    e->any.block = values[5];
    e->any.pairs = values[6];
    e->any.halves = values[7];
    e->any.subgroups = values[8];
    e->turns = values[9];
    const hal_ir_value one = hal_ir_u32(e->b, 1), chunk = hal_ir_shl(e->b, one, e->any.width);
    e->any.mask = hal_ir_sub(e->b, chunk, one);
    e->any.jump = hal_ir_sub(e->b, hal_ir_shl(e->b, chunk, e->any.along), e->any.mask);
    find_lane(e);
    find_first(e);
}

/* How far the work-item's element `n` is from its first one on the axis: the same for all. */
static hal_ir_value ahead_of(ops_row_emitter *e, hal_ir_value n)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value chunk = hal_ir_shr(b, n, e->any.width);
    const hal_ir_value in_chunk = hal_ir_sub(b, n, hal_ir_shl(b, chunk, e->any.width));
    const hal_ir_value step = hal_ir_add(b, e->any.along, e->any.width);
    return hal_ir_add(b, hal_ir_shl(b, chunk, step), in_chunk);
}

/* The place on the axis of the work-item's element `n`. */
static hal_ir_value place_of(ops_row_emitter *e, hal_ir_value n)
{
    return hal_ir_add(e->b, e->from_place, ahead_of(e, n));
}

/* The place of the element `n`, from that of the one before. */
static hal_ir_value place_after(ops_row_emitter *e, hal_ir_value before, hal_ir_value n)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value in_chunk = hal_ir_and(b, n, e->any.mask);
    const hal_ir_value begins = hal_ir_eq(b, in_chunk, hal_ir_u32(b, 0));
    return hal_ir_add(b, before, hal_ir_select(b, begins, e->any.jump, hal_ir_u32(b, 1)));
}

bool ops_row_reduces_in(const ops_row_emitter *e, uint32_t phase)
{
    bool reduces = false;
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        reduces |= ops_row_is_reduced_in(e, v, phase);
    }
    return reduces;
}

void ops_row_rotate_chains(ops_row_emitter *e, uint32_t phase)
{
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!ops_row_is_reduced_in(e, v, phase)) {
            continue;
        }
        ops_state *chain = e->chain[v], first = ops_row_chain_get(e, &chain[0]);
        const uint32_t last = ops_row_chain_count(e, v) - 1;
        for (uint32_t i = 0; i < last; i++) {
            ops_row_chain_set(e, &chain[i], ops_row_chain_get(e, &chain[i + 1]));
        }
        ops_row_chain_set(e, &chain[last], first);
    }
}

void ops_row_take_turns(ops_row_emitter *e, uint32_t phase)
{
    const bool takes_turns = e->pass->form.takes_turns && ops_row_reduces_in(e, phase);
    if (takes_turns) {
        hal_ir_if(e->b, hal_ir_lt(e->b, hal_ir_u32(e->b, 0), e->turns));
    }
    ops_row_rotate_chains(e, phase);
    if (takes_turns) {
        hal_ir_end(e->b);
    }
}

/* The work-item's elements from number `from` to `to`, in whole rounds of the chains, of which the
 * next one is always the first. */
static void emit_rotating(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                          hal_ir_value from, hal_ir_value to)
{
    hal_ir_builder *b = e->b;
    const bool reduces = ops_row_reduces_in(e, phase);
    const bool takes_turns = reduces && e->pass->form.takes_turns;
    const uint32_t rest = reduces ? e->pass->group.chains - 1 : 0; /* a power of two less one */
    const hal_ir_value turns = takes_turns ? e->turns : hal_ir_u32(b, rest);
    const hal_ir_value rounds = takes_turns ? hal_ir_not(b, turns) : hal_ir_u32(b, ~rest);
    hal_ir_value count = hal_ir_add(b, hal_ir_sub(b, to, from), turns);
    count = hal_ir_and(b, count, rounds);
    hal_ir_value n = hal_ir_for(b, from, hal_ir_add(b, from, count), hal_ir_u32(b, 1));
    ops_row_batch batch = {.chunks = 1, .is_ahead = true, .ahead = ahead_of(e, n)};
    batch.first = hal_ir_add(b, e->from_place, batch.ahead);
    batch.inside[0] = hal_ir_lt(b, batch.first, e->end);
    ops_row_emit_batch(e, phase, needed, &batch);
    ops_row_take_turns(e, phase);
    hal_ir_end(b);
}

/* The work-item's elements from number `from` to `to`, one for each chain at a time. */
static void emit_elements(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                          hal_ir_value from, hal_ir_value to)
{
    hal_ir_builder *b = e->b;
    const uint32_t chains = e->pass->group.chains;
    if (e->pass->form.any == OPS_ROW_ANY_ROTATING) {
        emit_rotating(e, phase, needed, from, to);
        return;
    }
    hal_ir_value n = hal_ir_for(b, from, to, hal_ir_u32(b, chains)), place = HAL_IR_NONE;
    for (uint32_t i = 0; i < chains; i++) {
        ops_row_batch batch = {.chunks = 1, .slot = i};
        place = i == 0 ? place_of(e, n) : place_after(e, place, hal_ir_add(b, n, hal_ir_u32(b, i)));
        batch.first = place;
        batch.inside[0] = hal_ir_lt(b, batch.first, e->end);
        ops_row_emit_batch(e, phase, needed, &batch);
    }
    hal_ir_end(b);
}

/* Whether a phase has nested sums: they are emptied after each block of whole steps, and what is
 * left of the last step is added at the end, as in the special kernel. */
static bool has_nested(const ops_row_emitter *e, uint32_t phase)
{
    bool is_nested = false;
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        is_nested |= ops_row_is_reduced_in(e, v, phase) && ops_row_is_nested(e, v);
    }
    return is_nested;
}

/* The turn after the last block takes what is left, so that the text has the elements once. */
void ops_row_any_loop(ops_row_emitter *e, uint32_t phase, const uint8_t *needed)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1), block = e->any.block;
    const hal_ir_value count = hal_ir_sub(b, e->end, e->start);
    const hal_ir_value chunk = hal_ir_add(b, e->any.along, e->any.width);
    hal_ir_value all = hal_ir_sub(b, hal_ir_shl(b, one, chunk), one);
    all = hal_ir_shr(b, hal_ir_add(b, count, all), chunk);
    all = hal_ir_shl(b, all, e->any.width);
    if (!has_nested(e, phase)) {
        emit_elements(e, phase, needed, zero, all);
        return;
    }
    const hal_ir_value step = hal_ir_add(b, e->any.along, e->any.turn);
    const hal_ir_value whole = hal_ir_shl(b, hal_ir_shr(b, count, step), e->any.turn);
    const hal_ir_value turn = hal_ir_for(b, zero, hal_ir_add(b, whole, block), block);
    const hal_ir_value is_block = hal_ir_lt(b, turn, whole);
    const hal_ir_value to = hal_ir_min(b, hal_ir_add(b, turn, block), whole);
    emit_elements(e, phase, needed, hal_ir_min(b, turn, whole),
                  hal_ir_select(b, is_block, to, all));
    hal_ir_if(b, is_block);
    ops_row_flush_chains(e, phase);
    hal_ir_end(b);
    hal_ir_end(b);
}

static void state_store(ops_row_emitter *e, uint32_t kind, ops_fold_memory shared,
                        hal_ir_value guard, ops_state state)
{
    hal_ir_store_wide(e->b, shared.values, e->lane.item, 0, guard, state.value);
    if (ops_fold_has_place(kind)) {
        hal_ir_store_wide(e->b, shared.places, e->lane.item, 0, guard, state.place);
    }
}

static ops_state state_load(ops_row_emitter *e, uint32_t kind, ops_fold_memory shared,
                            hal_ir_value index, hal_ir_value guard)
{
    ops_state state = {hal_ir_load_wide(e->b, shared.values, index, 0, 1, guard), HAL_IR_NONE};
    if (ops_fold_has_place(kind)) {
        state.place = hal_ir_load_wide(e->b, shared.places, index, 0, 1, guard);
    }
    return state;
}

/* Folds the state `distance` further into the work-item's own. */
static void fold_at(ops_row_emitter *e, uint32_t kind, ops_fold_memory shared,
                    hal_ir_value distance, hal_ir_value guard)
{
    ops_state x = state_load(e, kind, shared, e->lane.item, guard);
    hal_ir_value other = hal_ir_add(e->b, e->lane.item, distance);
    ops_state y = state_load(e, kind, shared, other, guard);
    state_store(e, kind, shared, guard, ops_fold(e->b, kind, x, y));
    hal_ir_barrier(e->b);
}

/* Neighbours pairwise at each level of a subgroup; without subgroups, the upper half of the
 * work-items along the axis into the lower one. */
static void fold_levels(ops_row_emitter *e, uint32_t kind, ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value by_pairs = hal_ir_lt(b, zero, e->any.pairs);
    const hal_ir_value levels = hal_ir_add(b, e->any.pairs, e->any.halves);
    const hal_ir_value level = hal_ir_for(b, zero, levels, one);
    const hal_ir_value left = hal_ir_sub(b, hal_ir_sub(b, levels, level), one);
    const hal_ir_value distance = hal_ir_shl(b, one, hal_ir_select(b, by_pairs, level, left));
    const hal_ir_value rest = hal_ir_sub(b, hal_ir_add(b, distance, distance), one);
    const hal_ir_value is_first = hal_ir_eq(b, hal_ir_and(b, e->lane.q, rest), zero);
    const hal_ir_value is_lower = hal_ir_lt(b, e->lane.q, distance);
    const hal_ir_value guard = hal_ir_or(b, hal_ir_and(b, by_pairs, is_first),
                                         hal_ir_and(b, hal_ir_not(b, by_pairs), is_lower));
    fold_at(e, kind, shared, distance, guard);
    hal_ir_end(b);
}

/* Folds `count` states of work-items that are `stride` apart, from one on, at all levels that the
 * work-items along the axis have. Others are the first one's: a guard would be a branch. */
static ops_state fold_strided(ops_row_emitter *e, uint32_t kind, ops_fold_memory shared,
                              hal_ir_value first, hal_ir_value q, uint32_t stride, uint32_t count)
{
    hal_ir_builder *b = e->b;
    ops_state states[STRAIGHT_STATES];
    const hal_ir_value along = hal_ir_shl(b, hal_ir_u32(b, 1), e->any.halves);
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_value distance = hal_ir_u32(b, i * stride);
        const hal_ir_value guard = hal_ir_lt(b, hal_ir_add(b, q, distance), along);
        const hal_ir_value index = hal_ir_select(b, guard, hal_ir_add(b, first, distance), first);
        states[i] = state_load(e, kind, shared, i == 0 ? first : index, HAL_IR_NONE);
    }
    for (uint32_t half = count / 2; half > 0; half /= 2) {
        const hal_ir_value has_level = hal_ir_lt(b, hal_ir_u32(b, half * stride), along);
        for (uint32_t i = 0; i < half; i++) {
            const ops_state sum = ops_fold(b, kind, states[i], states[i + half]);
            states[i].value = hal_ir_select(b, has_level, sum.value, states[i].value);
            if (ops_fold_has_place(kind)) {
                states[i].place = hal_ir_select(b, has_level, sum.place, states[i].place);
            }
        }
    }
    return states[0];
}

/* The halves of fold_levels with few barriers and no loop: each work-item has several levels. */
static ops_state fold_straight(ops_row_emitter *e, uint32_t kind, ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    const uint32_t items = e->pass->any.items;
    const uint32_t side = items < STRAIGHT_STATES ? items : STRAIGHT_STATES;
    for (uint32_t count = items / side; count > 1;) {
        const uint32_t part = count < STRAIGHT_STATES ? count : STRAIGHT_STATES;
        count /= part;
        const uint32_t stride = side * count;
        const ops_state sum = fold_strided(e, kind, shared, e->lane.item, e->lane.q, stride, part);
        state_store(e, kind, shared, hal_ir_lt(b, e->lane.q, hal_ir_u32(b, stride)), sum);
        hal_ir_barrier(b);
    }
    const hal_ir_value first = hal_ir_shl(b, e->lane.p, e->any.along);
    return fold_strided(e, kind, shared, first, hal_ir_u32(b, 0), 1, side);
}

/* In the order of ops_fold_group: neighbours pairwise within a subgroup, then one subgroup after
 * the other; without subgroups, the upper half of the work-items into the lower one. */
ops_state ops_row_any_fold(ops_row_emitter *e, uint32_t kind, ops_state state,
                           ops_fold_memory shared)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value one = hal_ir_u32(b, 1);
    state_store(e, kind, shared, HAL_IR_NONE, state);
    hal_ir_barrier(b);
    if (e->pass->form.any == OPS_ROW_ANY_STRAIGHT) {
        return fold_straight(e, kind, shared);
    }
    fold_levels(e, kind, shared);
    const hal_ir_value first = hal_ir_shl(b, e->lane.p, e->any.along);
    state = state_load(e, kind, shared, first, HAL_IR_NONE);
    ops_state sum = {hal_ir_var(b, state.value), HAL_IR_NONE};
    sum.place = state.place == HAL_IR_NONE ? HAL_IR_NONE : hal_ir_var(b, state.place);
    hal_ir_value i = hal_ir_for(b, one, e->any.subgroups, one);
    hal_ir_value at = hal_ir_add(b, first, hal_ir_shl(b, i, e->any.pairs));
    ops_state next =
        ops_fold(b, kind, ops_row_chain_get(e, &sum), state_load(e, kind, shared, at, HAL_IR_NONE));
    ops_row_chain_set(e, &sum, next);
    hal_ir_end(b);
    return ops_row_chain_get(e, &sum);
}
