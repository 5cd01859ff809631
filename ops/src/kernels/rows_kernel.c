/* The kernel of a row program, see rows.h. */
#include "rows_kernel.h"

#include "short_functions.h"

#include <string.h>

#define MAX_CHAINS 4u

/* Parts of a step in which a row's rest is computed; each has elements for every chain. */
#define REST_PARTS 4u

/* A batch: chunks of a work-item that are loaded together. */
typedef struct row_batch {
    uint32_t chunks;
    uint32_t slot;                      /* of the first element in the step of the loop */
    hal_ir_value first;                 /* U32, place of the first element on the axis */
    hal_ir_value inside[OPS_ROW_SLOTS]; /* BOOL, of each chunk; HAL_IR_NONE: always */
} row_batch;

struct ops_row_emitter {
    hal_ir_builder *b;
    const ops_row_pass *pass;
    const ops_row_program *program;
    ops_layout_values values;
    hal_ir_value axis_strides[OPS_MAX_VIEWS];
    ops_reduce_lane lane;
    hal_ir_value start, end; /* of the slice, U32 */
    hal_ir_value length;     /* of the row, U32 */
    hal_ir_value slice_offset;
    hal_ir_value divisor[OPS_ROW_VALUES]; /* of means */
    hal_ir_value row[OPS_ROW_VALUES];     /* values of the row; of a reduction its value */
    hal_ir_value place[OPS_ROW_VALUES];   /* of a reduction */
    hal_ir_value element[OPS_ROW_VALUES][OPS_ROW_SLOTS];
    ops_state chain[OPS_ROW_VALUES][MAX_CHAINS]; /* values, or variables in a kernel that loops */
    ops_state total[OPS_ROW_VALUES];             /* variables, with blocks */
    ops_fold_memory memory[OPS_ROW_VALUES];
    uint8_t memory_owner[OPS_ROW_VALUES]; /* the first reduction with the same memory */
    uint8_t memory_used[OPS_ROW_VALUES];
    hal_ir_memory_id cache[OPS_MAX_VIEWS]; /* of cached inputs: their elements */
};

static const uint8_t *step_operands(const ops_row_emitter *e, uint32_t value)
{
    return e->program->operands + ops_row_step_of(e->program, value)->first_operand;
}

static bool is_reduction(const ops_row_emitter *e, uint32_t value)
{
    return value >= e->program->input_count &&
           ops_row_is_reduction(ops_row_step_of(e->program, value));
}

/* Whether the loop of a phase computes a reduction. */
static bool is_reduced_in(const ops_row_emitter *e, uint32_t value, uint32_t phase)
{
    return is_reduction(e, value) && e->pass->schedule.ready[value] == phase + 1;
}

/* A reduction of single elements to greatest and sum goes by batches, in one chain. */
static uint32_t chain_count(const ops_row_emitter *e, uint32_t value)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    return step->kind == OPS_FOLD_SOFTMAX && step->operand_count == 1 ? 1 : e->pass->group.chains;
}

static bool is_nested(const ops_row_emitter *e, uint32_t value)
{
    const uint32_t kind = ops_row_step_of(e->program, value)->kind;
    return e->pass->group.blocks && !e->pass->form.chunks &&
           (kind == OPS_REDUCE_SUM || kind == OPS_REDUCE_MEAN);
}

static hal_ir_value value_at(const ops_row_emitter *e, uint32_t value, uint32_t slot)
{
    return e->pass->schedule.is_element[value] ? e->element[value][slot] : e->row[value];
}

/* Place of element `j` of chunk `c`, relative to the batch's first element. */
static uint32_t batch_offset(const ops_row_emitter *e, uint32_t c, uint32_t j)
{
    return c * e->pass->group.along * e->pass->group.width + j;
}

/* The index of a view's element at the start of a batch. */
static hal_ir_value batch_index(ops_row_emitter *e, uint32_t view, const row_batch *batch)
{
    return ops_axis_place(e->b, &e->pass->axis, e->axis_strides, e->values.type, view,
                          e->lane.index[view], batch->first);
}

/* The index of a view's element `distance` further on: the returned one plus *offset. */
static hal_ir_value index_step(ops_row_emitter *e, uint32_t view, hal_ir_value index,
                               uint32_t distance, int32_t *offset)
{
    if (e->pass->axis.step[view] == OPS_INNER_ONE) {
        *offset = (int32_t)distance;
        return index;
    }
    *offset = 0;
    if (distance == 0) {
        return index;
    }
    hal_ir_value step = ops_index_constant(e->b, e->values.type, distance);
    return hal_ir_add(e->b, index, hal_ir_mul(e->b, e->axis_strides[view], step));
}

static hal_ir_value chunk_guard(ops_row_emitter *e, const row_batch *batch, uint32_t c)
{
    return ops_guard_and(e->b, e->lane.inside, batch->inside[c]);
}

/* The index in shared memory of the first element of a batch. Only the work-item that stores an
 * element loads it, so that no barrier is needed; but in emit_parts, whose first steps begin before
 * the row. */
static hal_ir_value cache_index(ops_row_emitter *e, const row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    if (group->axis_first) {
        hal_ir_value row = hal_ir_mul(b, e->lane.p, hal_ir_u32(b, e->pass->form.cached_length));
        if (e->pass->form.parts) {
            row = hal_ir_add(b, row, hal_ir_u32(b, OPS_ROW_PART));
        }
        return hal_ir_add(b, row, batch->first);
    }
    hal_ir_value place = hal_ir_mul(b, batch->first, hal_ir_u32(b, group->outputs));
    return hal_ir_add(b, place, e->lane.p);
}

/* Loads a view's elements from shared memory, or stores them there. */
static void cache_access(ops_row_emitter *e, uint32_t view, const row_batch *batch, int stores)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    const uint32_t width = e->pass->form.is_vector[view] ? group->width : 1;
    const uint32_t apart = group->axis_first ? 1 : group->outputs;
    const hal_ir_value first = cache_index(e, batch);
    for (uint32_t c = 0; c < batch->chunks; c++) {
        const hal_ir_value guard = chunk_guard(e, batch, c);
        for (uint32_t j = 0; j < group->width; j += width) {
            hal_ir_value *elements = e->element[view] + c * group->width + j;
            const int32_t offset = (int32_t)(batch_offset(e, c, j) * apart);
            if (stores) {
                const hal_ir_value packed =
                    width == 1 ? elements[0] : hal_ir_pack(b, width, elements);
                hal_ir_store_wide(b, e->cache[view], first, offset, guard, packed);
                continue;
            }
            const hal_ir_value loaded =
                hal_ir_load_wide(b, e->cache[view], first, offset, width, guard);
            for (uint32_t i = 0; i < width; i++) {
                elements[i] = width == 1 ? loaded : hal_ir_extract(b, loaded, i);
            }
        }
    }
}

/* Loads a view's elements as those of a value. */
static void load_view(ops_row_emitter *e, uint32_t view, uint32_t value, const row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const uint32_t width = e->pass->group.width, slot = e->pass->slots[view];
    hal_ir_value first = batch_index(e, view, batch);
    int32_t offset;
    for (uint32_t c = 0; c < batch->chunks; c++) {
        hal_ir_value guard = chunk_guard(e, batch, c);
        hal_ir_value *elements = e->element[value] + c * width;
        if (e->pass->form.is_vector[view]) {
            hal_ir_value index = index_step(e, view, first, batch_offset(e, c, 0), &offset);
            hal_ir_value vector = hal_ir_load_wide(b, slot, index, offset, width, guard);
            for (uint32_t j = 0; j < width; j++) {
                elements[j] = hal_ir_extract(b, vector, j);
            }
            continue;
        }
        for (uint32_t j = 0; j < width; j++) {
            hal_ir_value index = index_step(e, view, first, batch_offset(e, c, j), &offset);
            elements[j] = hal_ir_load_wide(b, slot, index, offset, 1, guard);
        }
    }
}

static void store_view(ops_row_emitter *e, uint32_t view, uint32_t value, const row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const uint32_t width = e->pass->group.width, slot = e->pass->slots[view];
    hal_ir_value first = batch_index(e, view, batch);
    int32_t offset;
    for (uint32_t c = 0; c < batch->chunks; c++) {
        hal_ir_value guard = chunk_guard(e, batch, c), elements[MAX_CHAINS];
        for (uint32_t j = 0; j < width; j++) {
            elements[j] = value_at(e, value, c * width + j);
        }
        if (e->pass->form.is_vector[view]) {
            hal_ir_value index = index_step(e, view, first, batch_offset(e, c, 0), &offset);
            hal_ir_store_wide(b, slot, index, offset, guard, hal_ir_pack(b, width, elements));
            continue;
        }
        for (uint32_t j = 0; j < width; j++) {
            hal_ir_value index = index_step(e, view, first, batch_offset(e, c, j), &offset);
            hal_ir_store_wide(b, slot, index, offset, guard, elements[j]);
        }
    }
}

static hal_ir_value map_emit(ops_row_emitter *e, uint32_t value, uint32_t slot)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    const uint8_t *operands = step_operands(e, value);
    hal_ir_value in[OPS_MAX_INPUTS];
    for (uint32_t i = 0; i < step->operand_count; i++) {
        in[i] = value_at(e, operands[i], slot);
    }
    return step->function(e->b, step->user, in);
}

static ops_state chain_get(ops_row_emitter *e, const ops_state *chain)
{
    ops_state state = *chain;
    if (!e->pass->form.chunks) {
        state.value = hal_ir_get(e->b, chain->value);
        state.place = chain->place == HAL_IR_NONE ? HAL_IR_NONE : hal_ir_get(e->b, chain->place);
    }
    return state;
}

static void chain_set(ops_row_emitter *e, ops_state *chain, ops_state state)
{
    if (e->pass->form.chunks) {
        *chain = state;
        return;
    }
    hal_ir_set(e->b, chain->value, state.value);
    if (chain->place != HAL_IR_NONE) {
        hal_ir_set(e->b, chain->place, state.place);
    }
}

static ops_state chain_create(ops_row_emitter *e, uint32_t value)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    ops_state state = ops_fold_identity(e->b, step->kind, step->type);
    if (!e->pass->form.chunks) {
        state.value = hal_ir_var(e->b, state.value);
        state.place = state.place == HAL_IR_NONE ? HAL_IR_NONE : hal_ir_var(e->b, state.place);
    }
    return state;
}

/* The state of one element: neutral beyond the row. */
static ops_state element_state(ops_row_emitter *e, uint32_t value, const row_batch *batch,
                               uint32_t slot)
{
    hal_ir_builder *b = e->b;
    const ops_row_step *step = ops_row_step_of(e->program, value);
    const uint8_t *operands = step_operands(e, value);
    const uint32_t width = e->pass->group.width, c = slot / width;
    ops_state state = {value_at(e, operands[0], slot), HAL_IR_NONE};
    if (step->operand_count > 1) {
        state.place = value_at(e, operands[1], slot);
    } else if (ops_fold_finds_place(step->kind)) {
        uint32_t distance = batch_offset(e, c, slot % width);
        state.place = hal_ir_add(b, batch->first, hal_ir_u32(b, distance));
    }
    if (batch->inside[c] != HAL_IR_NONE) {
        ops_state neutral = ops_fold_identity(b, step->kind, step->type);
        state.value = hal_ir_select(b, batch->inside[c], state.value, neutral.value);
        if (state.place != HAL_IR_NONE) {
            state.place = hal_ir_select(b, batch->inside[c], state.place, neutral.place);
        }
    }
    return state;
}

static hal_ir_value exponential(ops_row_emitter *e, hal_ir_value x)
{
    const uint32_t form = e->program->exponential;
    return form == OPS_ROW_EXP_FULL ? hal_ir_math(e->b, HAL_IR_EXP, x, HAL_IR_NONE, 0)
                                    : ops_exp_below(e->b, x, form == OPS_ROW_EXP_NARROW);
}

/* Folds a batch to greatest and sum: exp once for each element, and once for the sum before. */
static void fold_exponentials(ops_row_emitter *e, uint32_t value, const row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const uint32_t count = batch->chunks * e->pass->group.width;
    ops_state before = chain_get(e, &e->chain[value][0]), after;
    hal_ir_value x[OPS_ROW_SLOTS];
    after.value = before.value;
    for (uint32_t i = 0; i < count; i++) {
        x[i] = element_state(e, value, batch, i).value;
        after.value = hal_ir_max(b, after.value, x[i]);
    }
    hal_ir_value reference = ops_fold_reference(b, after.value);
    for (uint32_t i = 0; i < count; i++) {
        x[i] = exponential(e, hal_ir_sub(b, x[i], reference));
    }
    for (uint32_t left = count; left > 1; left = (left + 1) / 2) {
        for (uint32_t i = 0; i < left / 2; i++) {
            x[i] = hal_ir_add(b, x[2 * i], x[2 * i + 1]);
        }
        x[left / 2] = left % 2 ? x[left - 1] : x[left / 2];
    }
    hal_ir_value scale = hal_ir_sub(b, before.value, reference);
    scale = hal_ir_mul(b, before.place, hal_ir_math(b, HAL_IR_EXP, scale, HAL_IR_NONE, 0));
    after.place = hal_ir_add(b, scale, x[0]);
    chain_set(e, &e->chain[value][0], after);
}

static void fold_batch(ops_row_emitter *e, uint32_t value, const row_batch *batch)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    if (step->kind == OPS_FOLD_SOFTMAX && step->operand_count == 1) {
        fold_exponentials(e, value, batch);
        return;
    }
    const uint32_t chains = chain_count(e, value), count = batch->chunks * e->pass->group.width;
    ops_state state[MAX_CHAINS];
    for (uint32_t slot = 0; slot < count; slot++) {
        const uint32_t i = (batch->slot + slot) % chains;
        state[i] = slot < chains ? chain_get(e, &e->chain[value][i]) : state[i];
        state[i] = ops_fold_next(e->b, step->kind, state[i], element_state(e, value, batch, slot));
    }
    for (uint32_t slot = 0; slot < count && slot < chains; slot++) {
        const uint32_t i = (batch->slot + slot) % chains;
        chain_set(e, &e->chain[value][i], state[i]);
    }
}

/* The work of a phase for one batch. What an earlier phase left in registers is used again. */
static void emit_batch(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                       const row_batch *batch)
{
    const ops_row_schedule *schedule = &e->pass->schedule;
    const uint32_t slots = batch->chunks * e->pass->group.width;
    const bool is_kept = e->pass->form.chunks != 0;
    const uint32_t first_output = e->program->input_count, stored = e->pass->form.stored;
    uint8_t computes[OPS_ROW_VALUES] = {0};
    for (uint32_t v = 0; v < e->program->value_count; v++) {
        computes[v] = needed[v] && (!is_kept || schedule->first_need[v] == phase);
        const bool is_cached = v < e->program->input_count && e->pass->form.is_cached[v];
        if (computes[v] && is_cached && phase > schedule->first_need[v]) {
            cache_access(e, v, batch, 0);
        } else if (computes[v] && v < e->program->input_count) {
            load_view(e, v, v, batch);
            if (is_cached) {
                cache_access(e, v, batch, 1);
            }
        } else if (computes[v] && v + 1 == stored && phase > schedule->first_need[v]) {
            load_view(e, first_output, v, batch);
            computes[v] = 0;
        }
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
            if (computes[v]) {
                e->element[v][slot] = map_emit(e, v, slot);
            }
        }
    }
    if (stored > 0 && computes[stored - 1]) {
        store_view(e, first_output, stored - 1, batch);
    }
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (is_reduced_in(e, v, phase)) {
            fold_batch(e, v, batch);
        }
    }
    for (uint32_t i = 0; phase == schedule->last && i < e->program->output_count; i++) {
        if (e->pass->axis.step[first_output + i] != OPS_INNER_ZERO) {
            store_view(e, first_output + i, e->program->outputs[i], batch);
        }
    }
}

/* Folds the chains of a reduction pairwise. */
static ops_state fold_chains(ops_row_emitter *e, uint32_t value)
{
    const uint32_t kind = ops_row_step_of(e->program, value)->kind;
    ops_state states[MAX_CHAINS];
    uint32_t count = chain_count(e, value);
    for (uint32_t i = 0; i < count; i++) {
        states[i] = chain_get(e, &e->chain[value][i]);
    }
    for (; count > 1; count /= 2) {
        for (uint32_t i = 0; i < count / 2; i++) {
            states[i] = ops_fold(e->b, kind, states[2 * i], states[2 * i + 1]);
        }
    }
    return states[0];
}

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
    row_batch batch = {.chunks = loop_chunks(e, phase)};
    hal_ir_value step = hal_ir_u32(b, group->along * group->width * batch.chunks);
    hal_ir_value base = hal_ir_for(b, from, to, step);
    if (backwards) {
        base = hal_ir_sub(b, hal_ir_add(b, from, hal_ir_sub(b, to, step)), base);
    }
    batch.first = hal_ir_add(b, base, hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
    for (uint32_t c = 0; c < batch.chunks; c++) {
        batch.inside[c] = HAL_IR_NONE;
    }
    emit_batch(e, phase, needed, &batch);
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
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!is_reduced_in(e, v, phase) || !is_nested(e, v)) {
            continue;
        }
        const ops_row_step *reduction = ops_row_step_of(e->program, v);
        ops_state neutral = ops_fold_identity(b, reduction->kind, reduction->type);
        ops_state sum = chain_get(e, &e->total[v]);
        chain_set(e, &e->total[v], ops_fold(b, reduction->kind, sum, fold_chains(e, v)));
        for (uint32_t i = 0; i < chain_count(e, v); i++) {
            chain_set(e, &e->chain[v][i], neutral);
        }
    }
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
        row_batch rest = {.chunks = 1, .slot = c * group->width};
        hal_ir_value start = hal_ir_add(b, whole, hal_ir_u32(b, batch_offset(e, c, 0)));
        hal_ir_if(b, hal_ir_lt(b, start, e->end));
        rest.first = hal_ir_add(b, start, hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
        rest.inside[0] = group->along == 1 ? HAL_IR_NONE : hal_ir_lt(b, rest.first, e->end);
        emit_batch(e, phase, needed, &rest);
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
    row_batch rest = {.chunks = chunks / REST_PARTS};
    while (rest.chunks < chunks && rest.chunks * group->width < group->chains) {
        rest.chunks++;
    }
    const hal_ir_value step = hal_ir_u32(b, group->along * group->width * rest.chunks);
    const hal_ir_value part = hal_ir_for(b, whole, e->end, step);
    rest.first = hal_ir_add(b, part, hal_ir_mul(b, e->lane.q, hal_ir_u32(b, group->width)));
    for (uint32_t c = 0; c < rest.chunks; c++) {
        hal_ir_value first = hal_ir_add(b, rest.first, hal_ir_u32(b, batch_offset(e, c, 0)));
        rest.inside[c] = hal_ir_lt(b, first, e->end);
    }
    emit_batch(e, phase, needed, &rest);
    hal_ir_end(b);
}

/* Loop bounds are the same for all work-items; the last, partial step is guarded. */
static void emit_loop(ops_row_emitter *e, uint32_t phase, const uint8_t *needed)
{
    hal_ir_builder *b = e->b;
    const ops_row_form *form = &e->pass->form;
    const ops_reduce_layout *group = &e->pass->group;
    const uint32_t step = group->along * group->width * loop_chunks(e, phase);
    const int backwards = form->ends_backwards && phase == e->pass->schedule.last;
    hal_ir_value count = hal_ir_sub(b, e->end, e->start);
    hal_ir_value whole = hal_ir_add(b, e->start, hal_ir_and(b, count, hal_ir_u32(b, ~(step - 1))));
    int nested = 0;
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        nested |= is_reduced_in(e, v, phase) && is_nested(e, v);
    }
    if (backwards && !form->is_exact) {
        emit_rest(e, phase, needed, whole);
    }
    if (nested) {
        emit_blocks(e, phase, needed, whole);
    } else {
        emit_steps(e, phase, needed, e->start, whole, backwards);
    }
    if (!backwards && !form->is_exact) {
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
    row_batch batch = {.chunks = loop_chunks(e, phase)};
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
        hal_ir_value first = hal_ir_add(b, batch.first, hal_ir_u32(b, batch_offset(e, c, 0)));
        batch.inside[c] = hal_ir_lt(b, first, to);
    }
    emit_batch(e, phase, needed, &batch);
    hal_ir_end(b);
}

/* All chunks but the last one are inside the row. */
static void emit_kept(ops_row_emitter *e, uint32_t phase, const uint8_t *needed)
{
    hal_ir_builder *b = e->b;
    row_batch batch = {.chunks = e->pass->form.chunks};
    batch.first = hal_ir_mul(b, e->lane.q, hal_ir_u32(b, e->pass->group.width));
    for (uint32_t c = 0; c < batch.chunks; c++) {
        batch.inside[c] = HAL_IR_NONE;
    }
    if (!e->pass->form.is_exact) {
        const uint32_t last = batch.chunks - 1;
        hal_ir_value first = hal_ir_add(b, batch.first, hal_ir_u32(b, batch_offset(e, last, 0)));
        batch.inside[last] = hal_ir_lt(b, first, e->end);
    }
    emit_batch(e, phase, needed, &batch);
}

/* Combines the work-items' states of the reductions of a phase. */
static void emit_reductions(ops_row_emitter *e, uint32_t phase)
{
    hal_ir_builder *b = e->b;
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!is_reduced_in(e, v, phase)) {
            continue;
        }
        const ops_row_step *step = ops_row_step_of(e->program, v);
        ops_state state = fold_chains(e, v);
        if (is_nested(e, v)) {
            state = ops_fold(b, step->kind, chain_get(e, &e->total[v]), state);
        }
        const uint32_t owner = e->memory_owner[v];
        if (e->memory_used[owner] && e->memory[owner].values != HAL_IR_NONE) {
            hal_ir_barrier(b);
        }
        e->memory_used[owner] = 1;
        state = ops_fold_group(b, &e->pass->group, &e->lane, step->kind, state, e->memory[owner]);
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
        if (schedule->is_element[v] || schedule->ready[v] != phase || is_reduction(e, v)) {
            continue;
        }
        if (v < e->program->input_count) {
            e->row[v] =
                hal_ir_load_wide(e->b, e->pass->slots[v], e->lane.index[v], 0, 1, e->lane.inside);
        } else if (ops_row_step_of(e->program, v)->kind == OPS_ROW_PLACE) {
            e->row[v] = e->place[step_operands(e, v)[0]];
        } else {
            e->row[v] = map_emit(e, v, 0);
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
        if (!is_reduction(e, v)) {
            continue;
        }
        const ops_row_step *step = ops_row_step_of(e->program, v);
        uint32_t owner = e->program->input_count;
        while (owner < v) {
            const ops_row_step *other = ops_row_step_of(e->program, owner);
            if (is_reduction(e, owner) && other->type == step->type &&
                ops_fold_has_place(other->kind) == ops_fold_has_place(step->kind) &&
                (!ops_fold_has_place(step->kind) || other->kind == step->kind)) {
                break;
            }
            owner++;
        }
        e->memory_owner[v] = (uint8_t)owner;
        if (owner == v) {
            e->memory[v] = ops_fold_shared(e->b, &e->pass->group, step->kind, step->type);
        }
    }
}

static void declare_cache(ops_row_emitter *e)
{
    const ops_row_pass *pass = e->pass;
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
        if (!is_reduced_in(e, v, phase)) {
            continue;
        }
        for (uint32_t i = 0; i < chain_count(e, v); i++) {
            e->chain[v][i] = chain_create(e, v);
        }
        if (is_nested(e, v)) {
            e->total[v] = chain_create(e, v);
        }
    }
    ops_row_needs(e->program, schedule, phase, &e->pass->axis, e->pass->form.stored, needed);
    if (e->pass->form.chunks) {
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
    ops_reduce_layout_declare(b, &pass->group);
    hal_ir_groups_per_unit(b, pass->form.full_groups);
    declare_memory(e);
    declare_cache(e);
    declare_scalars(e);
    ops_reduce_layout_emit(b, &pass->group, &pass->layout, &e->values, &e->lane);
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
}
