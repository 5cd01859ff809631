/* What a kernel of rows does for a batch of elements, see rows_emitter.h. */
#include "rows_emitter.h"

#include "short_functions.h"

const uint8_t *ops_row_operands(const ops_row_emitter *e, uint32_t value)
{
    return e->program->operands + ops_row_step_of(e->program, value)->first_operand;
}

bool ops_row_reduces(const ops_row_emitter *e, uint32_t value)
{
    return value >= e->program->input_count &&
           ops_row_is_reduction(ops_row_step_of(e->program, value));
}

/* Whether the loop of a phase computes a reduction. */
bool ops_row_is_reduced_in(const ops_row_emitter *e, uint32_t value, uint32_t phase)
{
    return ops_row_reduces(e, value) && e->pass->schedule.ready[value] == phase + 1;
}

/* A reduction of single elements to greatest and sum goes by batches, in one chain. */
uint32_t ops_row_chain_count(const ops_row_emitter *e, uint32_t value)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    return step->kind == OPS_FOLD_SOFTMAX && step->operand_count == 1 ? 1 : e->pass->group.chains;
}

bool ops_row_is_nested(const ops_row_emitter *e, uint32_t value)
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
uint32_t ops_row_batch_offset(const ops_row_emitter *e, uint32_t c, uint32_t j)
{
    return c * e->pass->group.along * e->pass->group.width + j;
}

/* The index of a view's element at the start of a batch. */
static hal_ir_value batch_index(ops_row_emitter *e, uint32_t view, const ops_row_batch *batch)
{
    return ops_axis_place(e->b, &e->pass->axis, e->axis_strides, e->values.type, view,
                          batch->is_ahead ? e->from[view] : e->lane.index[view],
                          batch->is_ahead ? batch->ahead : batch->first);
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

static hal_ir_value chunk_guard(ops_row_emitter *e, const ops_row_batch *batch, uint32_t c)
{
    return ops_guard_and(e->b, e->lane.inside, batch->inside[c]);
}

/* The index in shared memory of the first element of a batch. Only the work-item that stores an
 * element loads it, so that no barrier is needed; but in emit_parts, whose first steps begin before
 * the row. */
static hal_ir_value cache_index(ops_row_emitter *e, uint32_t length, const ops_row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    if (group->axis_first) {
        hal_ir_value row = hal_ir_mul(b, e->lane.p, hal_ir_u32(b, length));
        if (e->pass->form.parts) {
            row = hal_ir_add(b, row, hal_ir_u32(b, OPS_ROW_PART));
        }
        return hal_ir_add(b, row, batch->first);
    }
    hal_ir_value place = hal_ir_mul(b, batch->first, hal_ir_u32(b, group->outputs));
    return hal_ir_add(b, place, e->lane.p);
}

/* Elements of a value in shared memory, which has room for rows of that length. */
typedef struct row_cache {
    hal_ir_memory_id memory;
    uint32_t length, width; /* elements; those of a vector */
    uint32_t value;
} row_cache;

/* Loads a value's elements from shared memory, or stores them there. */
static void cache_access(ops_row_emitter *e, const row_cache *cache, const ops_row_batch *batch,
                         int stores)
{
    hal_ir_builder *b = e->b;
    const ops_reduce_layout *group = &e->pass->group;
    const uint32_t width = cache->width, apart = group->axis_first ? 1 : group->outputs;
    const hal_ir_value first = cache_index(e, cache->length, batch);
    for (uint32_t c = 0; c < batch->chunks; c++) {
        const hal_ir_value guard = chunk_guard(e, batch, c);
        for (uint32_t j = 0; j < group->width; j += width) {
            hal_ir_value *elements = e->element[cache->value] + c * group->width + j;
            const int32_t offset = (int32_t)(ops_row_batch_offset(e, c, j) * apart);
            if (stores) {
                const hal_ir_value packed =
                    width == 1 ? elements[0] : hal_ir_pack(b, width, elements);
                hal_ir_store_wide(b, cache->memory, first, offset, guard, packed);
                continue;
            }
            const hal_ir_value loaded =
                hal_ir_load_wide(b, cache->memory, first, offset, width, guard);
            for (uint32_t i = 0; i < width; i++) {
                elements[i] = width == 1 ? loaded : hal_ir_extract(b, loaded, i);
            }
        }
    }
}

/* The same of an input. */
static void input_cache_access(ops_row_emitter *e, uint32_t view, const ops_row_batch *batch,
                               int stores)
{
    const ops_row_form *form = &e->pass->form;
    const row_cache cache = {.memory = e->cache[view],
                             .length = form->cached_length,
                             .width = form->is_vector[view] ? e->pass->group.width : 1,
                             .value = view};
    cache_access(e, &cache, batch, stores);
}

/* Loads a view's elements as those of a value. */
static void load_view(ops_row_emitter *e, uint32_t view, uint32_t value, const ops_row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const uint32_t width = e->pass->group.width, slot = e->pass->slots[view];
    hal_ir_value first = batch_index(e, view, batch);
    int32_t offset;
    for (uint32_t c = 0; c < batch->chunks; c++) {
        hal_ir_value guard = chunk_guard(e, batch, c);
        hal_ir_value *elements = e->element[value] + c * width;
        if (e->pass->form.is_vector[view]) {
            hal_ir_value index = index_step(e, view, first, ops_row_batch_offset(e, c, 0), &offset);
            hal_ir_value vector = hal_ir_load_wide(b, slot, index, offset, width, guard);
            for (uint32_t j = 0; j < width; j++) {
                elements[j] = hal_ir_extract(b, vector, j);
            }
            continue;
        }
        for (uint32_t j = 0; j < width; j++) {
            hal_ir_value index = index_step(e, view, first, ops_row_batch_offset(e, c, j), &offset);
            elements[j] = hal_ir_load_wide(b, slot, index, offset, 1, guard);
        }
    }
}

static void store_view(ops_row_emitter *e, uint32_t view, uint32_t value,
                       const ops_row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const uint32_t width = e->pass->group.width, slot = e->pass->slots[view];
    hal_ir_value first = batch_index(e, view, batch);
    int32_t offset;
    for (uint32_t c = 0; c < batch->chunks; c++) {
        hal_ir_value guard = chunk_guard(e, batch, c), elements[OPS_ROW_CHAINS];
        for (uint32_t j = 0; j < width; j++) {
            elements[j] = value_at(e, value, c * width + j);
        }
        if (e->pass->form.is_vector[view]) {
            hal_ir_value index = index_step(e, view, first, ops_row_batch_offset(e, c, 0), &offset);
            hal_ir_store_wide(b, slot, index, offset, guard, hal_ir_pack(b, width, elements));
            continue;
        }
        for (uint32_t j = 0; j < width; j++) {
            hal_ir_value index = index_step(e, view, first, ops_row_batch_offset(e, c, j), &offset);
            hal_ir_store_wide(b, slot, index, offset, guard, elements[j]);
        }
    }
}

hal_ir_value ops_row_emit_map(ops_row_emitter *e, uint32_t value, uint32_t slot)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    const uint8_t *operands = ops_row_operands(e, value);
    hal_ir_value in[OPS_MAX_INPUTS];
    for (uint32_t i = 0; i < step->operand_count; i++) {
        in[i] = value_at(e, operands[i], slot);
    }
    return step->function(e->b, step->user, in);
}

ops_state ops_row_chain_get(ops_row_emitter *e, const ops_state *chain)
{
    ops_state state = *chain;
    if (!e->pass->form.chunks) {
        state.value = hal_ir_get(e->b, chain->value);
        state.place = chain->place == HAL_IR_NONE ? HAL_IR_NONE : hal_ir_get(e->b, chain->place);
    }
    return state;
}

void ops_row_chain_set(ops_row_emitter *e, ops_state *chain, ops_state state)
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

ops_state ops_row_chain_create(ops_row_emitter *e, uint32_t value)
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
static ops_state element_state(ops_row_emitter *e, uint32_t value, const ops_row_batch *batch,
                               uint32_t slot)
{
    hal_ir_builder *b = e->b;
    const ops_row_step *step = ops_row_step_of(e->program, value);
    const uint8_t *operands = ops_row_operands(e, value);
    const uint32_t width = e->pass->group.width, c = slot / width;
    ops_state state = {value_at(e, operands[0], slot), HAL_IR_NONE};
    if (step->operand_count > 1) {
        state.place = value_at(e, operands[1], slot);
    } else if (ops_fold_finds_place(step->kind)) {
        uint32_t distance = ops_row_batch_offset(e, c, slot % width);
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
static void fold_exponentials(ops_row_emitter *e, uint32_t value, const ops_row_batch *batch)
{
    hal_ir_builder *b = e->b;
    const uint32_t count = batch->chunks * e->pass->group.width;
    ops_state before = ops_row_chain_get(e, &e->chain[value][0]), after;
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
    ops_row_chain_set(e, &e->chain[value][0], after);
}

static void fold_batch(ops_row_emitter *e, uint32_t value, const ops_row_batch *batch)
{
    const ops_row_step *step = ops_row_step_of(e->program, value);
    if (step->kind == OPS_FOLD_SOFTMAX && step->operand_count == 1) {
        fold_exponentials(e, value, batch);
        return;
    }
    const uint32_t chains = ops_row_chain_count(e, value),
                   count = batch->chunks * e->pass->group.width;
    ops_state state[OPS_ROW_CHAINS];
    for (uint32_t slot = 0; slot < count; slot++) {
        const uint32_t i = (batch->slot + slot) % chains;
        state[i] = slot < chains ? ops_row_chain_get(e, &e->chain[value][i]) : state[i];
        state[i] = ops_fold_next(e->b, step->kind, state[i], element_state(e, value, batch, slot));
    }
    for (uint32_t slot = 0; slot < count && slot < chains; slot++) {
        const uint32_t i = (batch->slot + slot) % chains;
        ops_row_chain_set(e, &e->chain[value][i], state[i]);
    }
}

/* The value that memory holds between its first loop and the last one. */
static void stored_access(ops_row_emitter *e, const ops_row_batch *batch, int stores)
{
    const uint32_t output = e->program->input_count, value = e->pass->form.stored - 1u;
    const row_cache cache = {
        .memory = e->stored, .length = e->pass->form.stored_length, .width = 1, .value = value};
    if (cache.length > 0) {
        cache_access(e, &cache, batch, stores);
    } else if (stores) {
        store_view(e, output, value, batch);
    } else {
        load_view(e, output, value, batch);
    }
}

/* The inputs and stored values that a phase needs: marks what is left to compute. */
static void load_needed(ops_row_emitter *e, uint32_t phase, const ops_row_batch *batch,
                        uint8_t *computes)
{
    const ops_row_schedule *schedule = &e->pass->schedule;
    const uint32_t stored = e->pass->form.stored;
    for (uint32_t v = 0; v < e->program->value_count; v++) {
        const bool is_input = v < e->program->input_count;
        const bool is_cached = is_input && e->pass->form.is_cached[v];
        if (computes[v] && is_cached && phase > schedule->first_need[v]) {
            input_cache_access(e, v, batch, 0);
        } else if (computes[v] && is_input) {
            load_view(e, v, v, batch);
            if (is_cached) {
                input_cache_access(e, v, batch, 1);
            }
        } else if (computes[v] && v + 1 == stored && phase > schedule->first_need[v]) {
            stored_access(e, batch, 0);
            computes[v] = 0;
        }
    }
}

/* The work of a phase for one batch. What an earlier phase left in registers is used again. */
void ops_row_emit_batch(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                        const ops_row_batch *batch)
{
    const ops_row_schedule *schedule = &e->pass->schedule;
    const uint32_t slots = batch->chunks * e->pass->group.width;
    const bool is_kept = e->pass->form.chunks != 0;
    const uint32_t first_output = e->program->input_count, stored = e->pass->form.stored;
    uint8_t computes[OPS_ROW_VALUES] = {0};
    for (uint32_t v = 0; v < e->program->value_count; v++) {
        computes[v] = needed[v] && (!is_kept || schedule->first_need[v] == phase);
    }
    load_needed(e, phase, batch, computes);
    for (uint32_t slot = 0; slot < slots; slot++) {
        for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
            if (computes[v]) {
                e->element[v][slot] = ops_row_emit_map(e, v, slot);
            }
        }
    }
    if (stored > 0 && computes[stored - 1]) {
        stored_access(e, batch, 1);
    }
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (ops_row_is_reduced_in(e, v, phase)) {
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
ops_state ops_row_fold_chains(ops_row_emitter *e, uint32_t value)
{
    const uint32_t kind = ops_row_step_of(e->program, value)->kind;
    ops_state states[OPS_ROW_CHAINS];
    uint32_t count = ops_row_chain_count(e, value);
    for (uint32_t i = 0; i < count; i++) {
        states[i] = ops_row_chain_get(e, &e->chain[value][i]);
    }
    for (; count > 1; count /= 2) {
        for (uint32_t i = 0; i < count / 2; i++) {
            states[i] = ops_fold(e->b, kind, states[2 * i], states[2 * i + 1]);
        }
    }
    return states[0];
}

void ops_row_flush_chains(ops_row_emitter *e, uint32_t phase)
{
    for (uint32_t v = e->program->input_count; v < e->program->value_count; v++) {
        if (!ops_row_is_reduced_in(e, v, phase) || !ops_row_is_nested(e, v)) {
            continue;
        }
        const ops_row_step *reduction = ops_row_step_of(e->program, v);
        ops_state neutral = ops_fold_identity(e->b, reduction->kind, reduction->type);
        ops_state sum = ops_row_chain_get(e, &e->total[v]);
        sum = ops_fold(e->b, reduction->kind, sum, ops_row_fold_chains(e, v));
        ops_row_chain_set(e, &e->total[v], sum);
        for (uint32_t i = 0; i < ops_row_chain_count(e, v); i++) {
            ops_row_chain_set(e, &e->chain[v][i], neutral);
        }
    }
}
