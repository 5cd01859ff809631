/* The kernel of a row program, see rows.h. */
#include "rows_kernel.h"

#include "rows_emitter.h"

#include <string.h>

/* Parts of a step in which a row's rest is computed; each has elements for every chain. */
#define REST_PARTS 4u

/* Chunks of a step of a phase's loop. */
static uint32_t loop_chunks(const ops_row_emitter *e, uint32_t phase)
{
    const ops_row_pass *pass = e->pass;
    return phase == pass->schedule.last ? pass->form.last_unroll : pass->group.unroll;
}

/* With `backwards`, the steps come in the opposite order. */
static void emit_steps(ops_row_emitter *e, uint32_t phase, const uint8_t *needed, hal_ir_value from,
                       hal_ir_value to, int backwards)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    ops_row_batch batch = {.chunks = loop_chunks(e, phase)};
    hal_ir_value step = hal_ir_u32(b, group->along * group->width * batch.chunks);
    hal_ir_value base = hal_ir_for(b, from, to, step);
    if (backwards) {
        base = hal_ir_sub(b, hal_ir_add(b, from, hal_ir_sub(b, to, step)), base);
    }
    batch.first = hal_ir_add(b, base, hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
    for (uint32_t c = 0; c < batch.chunks; c++) {
        batch.inside[c] = HAL_IR_NONE;
    }
    ops_row_emit_batch(e, phase, needed, &batch);
    hal_ir_end(b);
}

/* Sums of many steps: the chains are emptied into a total after each block of steps. */
static void emit_blocks(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                        hal_ir_value whole)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    const uint32_t step = group->along * group->width * group->unroll;
    hal_ir_value block = hal_ir_u32(b, group->blocks * step);
    hal_ir_value from = hal_ir_for(b, e->start, whole, block);
    emit_steps(e, phase, needed, from, hal_ir_min(b, hal_ir_add(b, from, block), whole), 0);
    ops_row_flush_chains(e, phase);
    hal_ir_end(b);
}

/* The last, partial step, with a branch for each chunk that all work-items take alike. */
static void emit_rest_chunks(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                             hal_ir_value whole)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    const uint32_t chunks = group->along == 1 ? group->unroll - 1 : group->unroll;
    for (uint32_t c = 0; c < chunks; c++) {
        ops_row_batch rest = {.chunks = 1, .slot = c * group->width};
        hal_ir_value start = hal_ir_add(b, whole, hal_ir_u32(b, ops_row_batch_offset(e, c, 0)));
        hal_ir_if(b, hal_ir_lt(b, start, e->end));
        rest.first = hal_ir_add(b, start, hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
        rest.inside[0] = group->along == 1 ? HAL_IR_NONE : hal_ir_lt(b, rest.first, e->end);
        ops_row_emit_batch(e, phase, needed, &rest);
        hal_ir_end(b);
    }
}

/* The last, partial step of a loop from `whole` on. It goes by parts of a step, because every
 * element of a part costs as much as one inside the row. */
static void emit_rest(ops_row_emitter *e, uint32_t phase, const uint8_t *needed, hal_ir_value whole)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    if (e->pass->form.rest_by_chunks) {
        emit_rest_chunks(e, phase, needed, whole);
        return;
    }
    const uint32_t chunks = loop_chunks(e, phase);
    ops_row_batch rest = {.chunks = chunks / REST_PARTS};
    while (rest.chunks < chunks && rest.chunks * group->width < group->chains) {
        rest.chunks++;
    }
    const hal_ir_value step = hal_ir_u32(b, group->along * group->width * rest.chunks);
    const hal_ir_value part = hal_ir_for(b, whole, e->end, step);
    rest.first = hal_ir_add(b, part, hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
    for (uint32_t c = 0; c < rest.chunks; c++) {
        hal_ir_value first =
            hal_ir_add(b, rest.first, hal_ir_u32(b, ops_row_batch_offset(e, c, 0)));
        rest.inside[c] = hal_ir_lt(b, first, e->end);
    }
    ops_row_emit_batch(e, phase, needed, &rest);
    hal_ir_end(b);
}

/* What is left of whole steps of a general kernel: one chunk after the other. Then accumulators
 * that chunks take in turns return to their places. */
static void emit_rest_in_turns(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                               hal_ir_value whole)
{
    hal_ir_builder *b = e->b;
    const uint32_t along = e->pass->group.along;
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value base = hal_ir_for(b, whole, e->end, hal_ir_u32(b, along));
    ops_row_batch rest = {.chunks = 1, .first = hal_ir_add(b, base, e->lane.q)};
    rest.inside[0] = along == 1 ? HAL_IR_NONE : hal_ir_lt(b, rest.first, e->end);
    ops_row_emit_batch(e, phase, needed, &rest);
    ops_row_take_turns(e, phase);
    hal_ir_end(b);
    if (ops_row_reduces_in(e, phase)) {
        hal_ir_value count = hal_ir_sub(b, e->end, whole);
        count = hal_ir_div(b, hal_ir_add(b, count, hal_ir_u32(b, along - 1)), hal_ir_u32(b, along));
        hal_ir_for(b, zero, hal_ir_and(b, hal_ir_sub(b, zero, count), e->turns), one);
        ops_row_rotate_chains(e, phase);
        hal_ir_end(b);
    }
}

/* Where the whole steps of a loop end. */
static hal_ir_value whole_steps(ops_row_emitter *e, uint32_t phase)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    const uint32_t step = group->along * group->width * loop_chunks(e, phase);
    hal_ir_value count = hal_ir_sub(b, e->end, e->start);
    count = hal_ir_and(b, count, hal_ir_u32(b, ~(step - 1)));
    if (e->pass->form.takes_turns && ops_row_reduces_in(e, phase)) {
        const hal_ir_value zero = hal_ir_u32(b, 0);
        count = hal_ir_select(b, hal_ir_lt(b, zero, e->turns), count, zero);
    }
    return hal_ir_add(b, e->start, count);
}

/* Loop bounds are the same for all work-items; the last, partial step is guarded. */
static void emit_loop(ops_row_emitter *e, uint32_t phase, const uint8_t *needed)
{
    const ops_row_form *form = &e->pass->form;
    const int backwards = form->ends_backwards && phase == e->pass->schedule.last;
    const hal_ir_value whole = whole_steps(e, phase);
    int nested = 0;
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        nested |= ops_row_is_reduced_in(e, v, phase) && ops_row_is_nested(e, v);
    }
    if (backwards && !form->is_exact) {
        emit_rest(e, phase, needed, whole);
    }
    if (nested) {
        emit_blocks(e, phase, needed, whole);
    } else {
        emit_steps(e, phase, needed, e->start, whole, backwards);
    }
    if (form->takes_turns) {
        emit_rest_in_turns(e, phase, needed, whole);
    } else if (!backwards && !form->is_exact) {
        emit_rest(e, phase, needed, whole);
    }
}

/* The distance, whole widths, from the row's start back to a multiple of OPS_ROW_PART in the
 * output's memory, or to less than a width after it; less where an index of a view would be
 * negative, and 0 where rows share a view from index 0 on. */
static hal_ir_value parts_distance(ops_row_emitter *e)
{
    hal_ir_builder *b = e->b;
    const uint32_t view = e->pass->form.parts - 1u, width = e->pass->group.width;
    const uint32_t count = e->program->input_count + e->program->output_count;
    hal_ir_value distance = hal_ir_and(b, ops_value_cast(b, HAL_TYPE_U32, e->lane.index[view]),
                                       hal_ir_u32(b, OPS_ROW_PART - width));
    for (uint32_t v = 0; v < count; v++) {
        if (v != view && e->pass->axis.step[v] == OPS_INNER_ONE) {
            hal_ir_value most = ops_value_cast(b, HAL_TYPE_U32, e->lane.index[v]);
            most = hal_ir_and(b, most, hal_ir_u32(b, ~(width - 1)));
            distance = hal_ir_min(b, distance, most);
        }
    }
    return distance;
}

/* The last loop with steps that begin by parts_distance before the row, all of them guarded: a
 * slice ends where the next one begins. */
static void emit_parts(ops_row_emitter *e, uint32_t phase, const uint8_t *needed)
{
    hal_ir_builder *b = e->b;
    const ops_row_form *form = &e->pass->form;
    const ops_reduce_layout *group = &e->pass->group;
    ops_row_batch batch = {.chunks = loop_chunks(e, phase)};
    const uint32_t step = group->along * group->width * batch.chunks;
    hal_ir_value distance = parts_distance(e);
    hal_ir_value from = hal_ir_sub(b, e->start, distance);
    hal_ir_value to =
        hal_ir_select(b, hal_ir_eq(b, e->end, e->length), e->end, hal_ir_sub(b, e->end, distance));
    hal_ir_value all = hal_ir_add(b, hal_ir_sub(b, to, from), hal_ir_u32(b, step - 1));
    all = hal_ir_and(b, all, hal_ir_u32(b, ~(step - 1)));
    if (form->cached_length) {
        hal_ir_barrier(b);
    }
    hal_ir_value base = hal_ir_for(b, hal_ir_u32(b, 0), all, hal_ir_u32(b, step));
    if (form->ends_backwards) {
        base = hal_ir_sub(b, hal_ir_sub(b, all, hal_ir_u32(b, step)), base);
    }
    batch.first = hal_ir_add(b, hal_ir_add(b, from, base),
                             hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
    for (uint32_t c = 0; c < batch.chunks; c++) {
        /* Elements before the row have places of nearly 2^32. */
        hal_ir_value first =
            hal_ir_add(b, batch.first, hal_ir_u32(b, ops_row_batch_offset(e, c, 0)));
        batch.inside[c] = hal_ir_lt(b, first, to);
    }
    ops_row_emit_batch(e, phase, needed, &batch);
    hal_ir_end(b);
}

/* All chunks but the last one are inside the row. */
static void emit_kept(ops_row_emitter *e, uint32_t phase, const uint8_t *needed)
{
    hal_ir_builder *b = e->b;
    ops_row_batch batch = {.chunks = e->pass->form.chunks};
    batch.first = hal_ir_mul(b, e->lane.q, hal_ir_u32(b, e->pass->group.width));
    for (uint32_t c = 0; c < batch.chunks; c++) {
        batch.inside[c] = HAL_IR_NONE;
    }
    if (!e->pass->form.is_exact) {
        const uint32_t last = batch.chunks - 1;
        hal_ir_value first =
            hal_ir_add(b, batch.first, hal_ir_u32(b, ops_row_batch_offset(e, last, 0)));
        batch.inside[last] = hal_ir_lt(b, first, e->end);
    }
    ops_row_emit_batch(e, phase, needed, &batch);
}

/* Combines the work-items' states of the reductions of a phase. */
static void emit_reductions(ops_row_emitter *e, uint32_t phase)
{
    hal_ir_builder *b = e->b;
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!ops_row_is_reduced_in(e, v, phase)) {
            continue;
        }
        const ops_row_step *step = ops_row_step_of(e->program, v);
        ops_state state = ops_row_fold_chains(e, v);
        if (ops_row_is_nested(e, v)) {
            state = ops_fold(b, step->kind, ops_row_chain_get(e, &e->total[v]), state);
        }
        const uint32_t owner = e->memory_owner[v];
        if (e->memory_used[owner] && e->memory[owner].values != HAL_IR_NONE) {
            hal_ir_barrier(b);
        }
        e->memory_used[owner] = 1;
        state = e->pass->form.any ? ops_row_any_fold(e, step->kind, state, e->memory[owner])
                                  : ops_fold_group(b, &e->pass->group, &e->lane, step->kind, state,
                                                   e->memory[owner]);
        e->place[v] = state.place;
        e->row[v] =
            step->kind == OPS_REDUCE_MEAN ? hal_ir_div(b, state.value, e->divisor[v]) : state.value;
    }
}

/* The values of the row that are ready now. */
static void emit_row_values(ops_row_emitter *e, uint32_t phase)
{
    const ops_row_schedule *schedule = &e->pass->schedule;
    for (uint32_t v = 0; v < e->program->value_count; v++) {
        if (schedule->is_element[v] || schedule->ready[v] != phase || ops_row_reduces(e, v)) {
            continue;
        }
        if (v < e->program->input_count) {
            e->row[v] =
                hal_ir_load_wide(e->b, e->pass->slots[v], e->lane.index[v], 0, 1, e->lane.inside);
        } else if (ops_row_step_of(e->program, v)->kind == OPS_ROW_PLACE) {
            e->row[v] = e->place[ops_row_operands(e, v)[0]];
        } else {
            e->row[v] = ops_row_emit_map(e, v, 0);
        }
    }
}

static void emit_row_outputs(ops_row_emitter *e)
{
    hal_ir_builder *b = e->b;
    hal_ir_value guard = e->lane.inside;
    if (!e->pass->form.all_store) {
        guard = ops_guard_and(b, guard, hal_ir_eq(b, e->lane.q, hal_ir_u32(b, 0)));
    }
    for (uint32_t i = 0; i < e->program->output_count; i++) {
        const uint32_t view = e->program->input_count + i;
        if (e->pass->axis.step[view] != OPS_INNER_ZERO) {
            continue;
        }
        hal_ir_value index = e->lane.index[view];
        if (e->pass->form.is_sliced) {
            index = hal_ir_add(b, index, e->slice_offset);
        }
        hal_ir_store_wide(b, e->pass->slots[view], index, 0, guard, e->row[e->program->outputs[i]]);
    }
}

/* Reductions of one kind and type share their memory. */
static void declare_memory(ops_row_emitter *e)
{
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!ops_row_reduces(e, v)) {
            continue;
        }
        const ops_row_step *step = ops_row_step_of(e->program, v);
        uint32_t owner = e->program->input_count;
        while (owner < v) {
            const ops_row_step *other = ops_row_step_of(e->program, owner);
            if (ops_row_reduces(e, owner) && other->type == step->type &&
                ops_fold_has_place(other->kind) == ops_fold_has_place(step->kind) &&
                (!ops_fold_has_place(step->kind) || other->kind == step->kind)) {
                break;
            }
            owner++;
        }
        e->memory_owner[v] = (uint8_t)owner;
        if (owner == v) {
            const ops_reduce_layout all = {.outputs = 1, .along = e->pass->any.items};
            e->memory[v] = ops_fold_shared(e->b, e->pass->form.any ? &all : &e->pass->group,
                                           step->kind, step->type);
        }
    }
}

static void declare_cache(ops_row_emitter *e)
{
    const ops_row_pass *pass = e->pass;
    if (pass->form.stored_length > 0) {
        e->stored = hal_ir_shared(e->b, "stored", e->program->costly_type,
                                  pass->form.stored_length * pass->group.outputs);
    }
    for (uint32_t view = 0; view < e->program->input_count; view++) {
        if (pass->form.is_cached[view]) {
            char name[] = "cache_00";
            name[6] = (char)('0' + view / 10);
            name[7] = (char)('0' + view % 10);
            e->cache[view] = hal_ir_shared(e->b, name, pass->bindings.types[pass->slots[view]],
                                           pass->form.cached_length * pass->group.outputs +
                                               (pass->form.parts ? OPS_ROW_PART : 0));
        }
    }
}

static void declare_scalars(ops_row_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_row_pass *pass = e->pass;
    ops_layout_declare(b, &pass->space, &pass->layout, &e->values);
    ops_axis_declare(b, &pass->axis, &pass->layout, e->axis_strides);
    hal_ir_value length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    e->start = hal_ir_u32(b, 0);
    e->end = e->length = length;
    if (pass->form.is_sliced) {
        hal_ir_value slice = hal_ir_scalar_value(b, "slice", HAL_TYPE_U32);
        hal_ir_value stride = hal_ir_scalar_value(b, "slice_stride", e->values.type);
        hal_ir_value z = hal_ir_id(b, HAL_IR_GROUP_ID, 2);
        e->start = hal_ir_mul(b, z, slice);
        e->end = hal_ir_min(b, hal_ir_add(b, e->start, slice), length);
        e->slice_offset = hal_ir_mul(b, ops_value_cast(b, e->values.type, z), stride);
    }
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(e->program, v);
        if (step->kind == OPS_REDUCE_MEAN) {
            e->divisor[v] = ops_scalar(b, "count", v, 0, step->type);
        }
    }
}

static void emit_phase(ops_row_emitter *e, uint32_t phase)
{
    const ops_row_schedule *schedule = &e->pass->schedule;
    uint8_t needed[OPS_ROW_VALUES];
    emit_row_values(e, phase);
    if (phase == schedule->last && !schedule->stores_elements) {
        return;
    }
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!ops_row_is_reduced_in(e, v, phase)) {
            continue;
        }
        for (uint32_t i = 0; i < ops_row_chain_count(e, v); i++) {
            e->chain[v][i] = ops_row_chain_create(e, v);
        }
        if (ops_row_is_nested(e, v)) {
            e->total[v] = ops_row_chain_create(e, v);
        }
    }
    ops_row_needs(e->program, schedule, phase, &e->pass->axis, e->pass->form.stored, needed);
    if (e->pass->form.any) {
        ops_row_any_loop(e, phase, needed);
    } else if (e->pass->form.chunks) {
        emit_kept(e, phase, needed);
    } else if (e->pass->form.parts && phase == schedule->last) {
        emit_parts(e, phase, needed);
    } else {
        emit_loop(e, phase, needed);
    }
    emit_reductions(e, phase);
}

size_t ops_row_emitter_bytes(void)
{
    return sizeof(ops_row_emitter);
}

void ops_row_emit(hal_ir_builder *b, const void *user)
{
    const ops_row_pass *pass = user;
    ops_row_emitter *e = pass->emitter; /* large, and filled in as far as it is used */
    e->b = b;
    e->pass = pass;
    e->program = pass->program;
    memset(e->memory_used, 0, sizeof e->memory_used);
    ops_declare_bindings(b, &pass->bindings);
    if (pass->form.any) {
        hal_ir_group_size(b, pass->any.items, 1, 1);
    } else {
        ops_reduce_layout_declare(b, &pass->group);
    }
    hal_ir_groups_per_unit(b, pass->form.full_groups);
    declare_memory(e);
    declare_cache(e);
    declare_scalars(e);
    if (pass->form.any) {
        ops_row_any_declare(e);
    } else {
        if (pass->form.takes_turns) {
            e->turns = hal_ir_scalar_value(b, "turns", HAL_TYPE_U32);
        }
        ops_reduce_layout_emit(b, &pass->group, &pass->layout, &e->values, &e->lane);
    }
    for (uint32_t phase = 0; phase <= pass->schedule.last; phase++) {
        emit_phase(e, phase);
    }
    emit_row_outputs(e);
}

void ops_row_put(const ops_row_pass *pass, ops_block *block)
{
    const ops_row_program *program = pass->program;
    ops_layout_put(&pass->space, &pass->layout, block);
    ops_axis_put(&pass->axis, &pass->layout, block);
    ops_put_u32(block, (uint32_t)pass->axis.length);
    if (pass->form.is_sliced) {
        ops_put_u32(block, pass->slice_length);
        ops_put_index(block, pass->layout.index64, pass->slice_stride);
    }
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        if (step->kind == OPS_REDUCE_MEAN) {
            ops_put_number(block, step->type, (double)pass->mean_length);
        }
    }
    if (pass->form.any) {
        const ops_row_any *any = &pass->any;
        const uint32_t numbers[OPS_ROW_ANY_SCALARS] = {
            any->along, any->width, any->q,      any->p,         any->turn,
            any->block, any->pairs, any->halves, any->subgroups, any->turns};
        for (uint32_t n = 0; n < OPS_ROW_ANY_SCALARS; n++) {
            ops_put_u32(block, numbers[n]);
        }
    } else if (pass->form.takes_turns) {
        ops_put_u32(block, pass->any.turns);
    }
}
