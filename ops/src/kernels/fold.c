/* Folds inside kernels, see fold.h. */
#include "fold.h"

#include "tensor/context.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps from which a sum has two levels, and those of the lower level: the error of a sum of n
 * steps grows with n. */
#define MIN_NESTED_STEPS 512
#define BLOCK_STEPS 256

/* `size` halved until it is at most `most`; at least 1. */
static uint32_t halved_to(uint32_t size, uint32_t most)
{
    while (size > 1 && size > most) {
        size /= 2;
    }
    return size;
}

static uint32_t power_of_two(uint64_t length, uint32_t least, uint32_t most)
{
    uint32_t size = least;
    while (size < most && size < length) {
        size *= 2;
    }
    return size;
}

/* An even share of `count` outputs among groups of at most `items` work-items: whole vectors if
 * possible, whose accesses need no masks. */
static uint32_t share_of_vectors(uint32_t vector, uint64_t count, uint32_t items)
{
    for (uint32_t whole = items / vector * vector; whole > items / 4; whole -= vector) {
        if (count % whole == 0) {
            return whole;
        }
    }
    return ops_even_share(count, items);
}

/* The work-items of a row of a group with several rows: whole vectors, their number a power of two,
 * that cover `count` outputs with the least work. */
static uint32_t row_of_vectors(const ops_fold_tuning *tuning, uint64_t count, uint32_t items)
{
    uint32_t best = tuning->vector_items;
    uint64_t least = UINT64_MAX;
    for (uint32_t row = tuning->vector_items; row <= items; row *= 2) {
        const uint64_t work = (count + row - 1) / row * (row + tuning->row_items);
        if (work < least) {
            least = work;
            best = row;
        }
    }
    return best;
}

/* For an axis that is contiguous in memory, OPS_FOLD_BY_VECTORS: combining the values of many lanes
 * costs more than a few more steps along the axis. Work-items side by side use whole cache lines,
 * and softmax reads a row several times. */
static void group_along_axis_by_vectors(const ops_fold_tuning *tuning, int64_t outputs,
                                        int64_t length, uint32_t items, ops_reduce_layout *group)
{
    const uint32_t vector = tuning->vector_items;
    const bool is_short = outputs >= vector && length < tuning->min_shared_axis;
    if (is_short && (length < tuning->min_side_axis || items < vector * vector)) {
        group->outputs = share_of_vectors(vector, (uint64_t)outputs, items);
        return;
    }
    group->axis_first = 1;
    if (is_short) {
        group->along = vector;
        group->outputs = items / vector;
        return;
    }
    /* As few work-items as have no more elements than need no loop. */
    group->along = length < tuning->min_wide_axis ? 64 : 256;
    for (uint32_t along = tuning->max_kept_along; along >= tuning->min_kept_along; along /= 2) {
        group->along = length <= (int64_t)along * tuning->kept_chunks ? along : group->along;
    }
    group->along = group->along < items ? group->along : items;
}

/* The same for OPS_FOLD_BY_WIDE_VECTORS. The lanes of its vectors are those of dimension 0, so
 * fewer work-items than a vector has would leave lanes idle. More of them read a row only once. */
static void group_along_axis_by_wide_vectors(const ops_fold_tuning *tuning, int64_t outputs,
                                             int64_t length, uint32_t items,
                                             ops_reduce_layout *group)
{
    if (outputs >= 64 && length < tuning->min_shared_axis) {
        group->outputs = ops_even_share((uint64_t)outputs, items);
        return;
    }
    group->axis_first = 1;
    group->width = length % 4 == 0 ? 4 : length % 2 == 0 ? 2 : 1;
    group->along = power_of_two((uint64_t)length / tuning->item_elements,
                                tuning->min_along < items ? tuning->min_along : items, items);
}

/* The same for OPS_FOLD_BY_LANES. Each work-item more is one more state to combine. */
static void group_along_axis(const ops_context *context, int64_t outputs, int64_t length,
                             uint32_t items, uint32_t most, ops_reduce_layout *group)
{
    const ops_fold_tuning *tuning = &context->tuning->fold;
    const int64_t enough_elements = tuning->item_elements;
    group->width = length % 4 == 0 ? 4 : length % 2 == 0 ? 2 : 1;
    if (outputs > 1 && length < tuning->min_shared_axis) {
        group->outputs = power_of_two((uint64_t)outputs, 16 < items ? 16 : items, items);
        return;
    }
    group->axis_first = 1;
    const uint64_t chunks = (uint64_t)length / group->width;
    const uint32_t side = power_of_two(chunks, 1, tuning->min_side / group->width);
    const uint32_t usual = halved_to(tuning->usual_items, most);
    const bool fits_whole =
        length > 2 * enough_elements * usual && length <= 2 * enough_elements * most;
    const uint64_t many = tuning->many_elements;
    const double enough =
        (double)context->info->compute_units * tuning->many_items * tuning->many_elements;
    const bool is_many =
        length >= tuning->min_many_axis && (double)outputs * (double)length >= enough;
    const uint64_t share =
        is_many ? ((uint64_t)length + many - 1) / many : (uint64_t)length / tuning->item_elements;
    group->along = power_of_two(share, side, fits_whole ? most : usual);
    if (outputs > 1 && group->along < items) {
        group->outputs = power_of_two((uint64_t)outputs, 1, items / group->along);
    }
}

/* Several short rows of outputs for a group, each whole vectors of work-items: idle lanes cost less
 * than lanes that are not side by side. A step of a group costs as much as some vectors, that many
 * rows share it, unless compute units are idle then. False: one row is enough work. */
static bool group_layers(const ops_context *context, const ops_space *space, int64_t length,
                         uint32_t items, ops_reduce_layout *group)
{
    const ops_fold_tuning *tuning = &context->tuning->fold;
    const uint32_t vector = tuning->vector_items;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint64_t busy = (uint64_t)context->info->compute_units * tuning->layers_groups;
    if (tuning->max_layered == 0 || space->rank != 2 || inner > tuning->max_layered ||
        items < vector * vector) {
        return false;
    }
    const uint32_t row = power_of_two(inner, vector, items);
    const int64_t vectors = row / vector, work = vectors * (length > 0 ? length : 1);
    if (inner >= tuning->min_row && work > tuning->layers_work / 2) {
        return false;
    }
    group->rows = 1;
    group->outputs = row;
    while (group->layers < items / row && (2 * group->layers * work <= tuning->layers_work ||
                                           (uint64_t)space->size[0] >= 2 * group->layers * busy)) {
        group->layers *= 2;
    }
    return true;
}

/* Work-items across contiguous outputs where the axis has more elements than a work-item keeps. */
static uint32_t items_across(const ops_context *context, uint64_t outputs, int64_t length,
                             uint32_t items)
{
    const hal_device_info *info = context->info;
    const ops_fold_tuning *tuning = &context->tuning->fold;
    while (length >= tuning->min_long_across && 2 * items <= info->max_group_items &&
           2 * items <= info->max_group_size[0] && 2 * items <= tuning->max_across &&
           outputs >= 2 * (uint64_t)items * info->compute_units) {
        items *= 2;
    }
    return items;
}

/* For outputs that are contiguous in memory, OPS_FOLD_BY_VECTORS and _WIDE_VECTORS. */
static void group_across_outputs_by_vectors(const ops_context *context, const ops_space *space,
                                            int64_t length, uint32_t items,
                                            ops_reduce_layout *group)
{
    const ops_fold_tuning *tuning = &context->tuning->fold;
    if (group_layers(context, space, length, items, group)) {
        return;
    }
    const uint64_t outputs = (uint64_t)ops_space_elements(space);
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint32_t vector = tuning->vector_items;
    items = items_across(context, outputs, length, items);
    /* Rows are contiguous together, but combining the work-items' values costs much. */
    const bool is_narrow = inner < tuning->min_row && (int64_t)inner * length >= tuning->min_narrow;
    const int64_t steps = is_narrow ? tuning->min_narrow_steps : tuning->min_shared_steps;
    group->rows = space->rank > 1 && (is_narrow || inner >= tuning->min_row);
    const uint64_t count = group->rows ? inner : outputs;
    group->outputs = share_of_vectors(vector, count, items);
    if (count >= tuning->min_row && items >= 2 * group->outputs &&
        length >= tuning->min_shared_steps) {
        group->outputs = row_of_vectors(tuning, count, items);
    }
    if (tuning->min_steep_axis > 0 && space->rank == 1 && inner < tuning->min_row && !is_narrow &&
        length >= tuning->min_steep_axis && items >= vector * vector) {
        group->outputs = group->along = vector;
        return;
    }
    const uint32_t spare = items / group->outputs;
    while (2 * group->along <= spare && length >= steps * (int64_t)group->along) {
        group->along *= 2;
    }
}

/* The same for OPS_FOLD_BY_LANES: too few words side by side waste the cache's lines. */
static void group_across_outputs(const ops_context *context, const ops_space *space, int64_t length,
                                 uint32_t items, uint32_t most, ops_reduce_layout *group)
{
    const ops_fold_tuning *tuning = &context->tuning->fold;
    const uint32_t line_words = tuning->cache_line_words;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint64_t outputs = (uint64_t)ops_space_elements(space);
    group->rows = space->rank > 1 && inner >= line_words;
    const uint64_t lanes = group->rows ? inner : outputs;
    const uint32_t line = power_of_two(lanes, 1, line_words < items ? line_words : items);
    const uint64_t groups = (outputs + line - 1) / line;
    const uint32_t usual = halved_to(tuning->usual_items, most);
    const uint32_t limit = groups >= 2 * (uint64_t)context->info->compute_units ||
                                   length <= tuning->item_elements * (int64_t)usual / line
                               ? usual
                               : most;
    group->along = power_of_two((uint64_t)length / tuning->item_elements, 1, limit / line);
    group->outputs =
        power_of_two(lanes, line, items / group->along > line ? items / group->along : line);
}

static hal_ir_value extreme_value(hal_ir_builder *b, hal_type type, int lowest)
{
    switch (type) {
    case HAL_TYPE_I32:
        return hal_ir_i32(b, lowest ? INT32_MIN : INT32_MAX);
    case HAL_TYPE_U32:
        return hal_ir_u32(b, lowest ? 0 : UINT32_MAX);
    case HAL_TYPE_I64:
        return hal_ir_i64(b, lowest ? INT64_MIN : INT64_MAX);
    case HAL_TYPE_U64:
        return hal_ir_u64(b, lowest ? 0 : UINT64_MAX);
    default:
        return hal_ir_number(b, type, (double)(lowest ? -INFINITY : INFINITY));
    }
}

static ops_state state_shuffle(hal_ir_builder *b, uint32_t kind, ops_state state, uint32_t mask)
{
    ops_state other = {hal_ir_shuffle_xor(b, state.value, mask), HAL_IR_NONE};
    if (ops_fold_has_place(kind)) {
        other.place = hal_ir_shuffle_xor(b, state.place, mask);
    }
    return other;
}

static void state_store(hal_ir_builder *b, uint32_t kind, ops_fold_memory shared,
                        hal_ir_value index, hal_ir_value guard, ops_state state)
{
    hal_ir_store_wide(b, shared.values, index, 0, guard, state.value);
    if (ops_fold_has_place(kind)) {
        hal_ir_store_wide(b, shared.places, index, 0, guard, state.place);
    }
}

static ops_state state_load(hal_ir_builder *b, uint32_t kind, ops_fold_memory shared,
                            hal_ir_value index)
{
    ops_state state = {hal_ir_load(b, shared.values, index), HAL_IR_NONE};
    if (ops_fold_has_place(kind)) {
        state.place = hal_ir_load(b, shared.places, index);
    }
    return state;
}

/* A tree through shared memory: the upper half of the work-items is folded into the lower one. */
static ops_state fold_by_halves(hal_ir_builder *b, const ops_reduce_layout *group,
                                const ops_reduce_lane *lane, uint32_t kind, ops_state state,
                                ops_fold_memory shared)
{
    hal_ir_value row = hal_ir_mul(b, lane->q, hal_ir_u32(b, group->outputs));
    hal_ir_value own = hal_ir_add(b, row, lane->p);
    state_store(b, kind, shared, own, HAL_IR_NONE, state);
    hal_ir_barrier(b);
    for (uint32_t half = group->along / 2; half > 0; half /= 2) {
        hal_ir_if(b, hal_ir_lt(b, lane->q, hal_ir_u32(b, half)));
        hal_ir_value other = hal_ir_add(b, own, hal_ir_u32(b, half * group->outputs));
        ops_state sum =
            ops_fold(b, kind, state_load(b, kind, shared, own), state_load(b, kind, shared, other));
        state_store(b, kind, shared, own, HAL_IR_NONE, sum);
        hal_ir_end(b);
        hal_ir_barrier(b);
    }
    return state_load(b, kind, shared, lane->p);
}

void ops_reduce_layout_set_length(const ops_context *context, int64_t length, hal_type type,
                                  ops_reduce_layout *group)
{
    const ops_fold_tuning *tuning = &context->tuning->fold;
    const int64_t chunks = ops_reduce_layout_chunks(group, length);
    if (tuning->step_bytes == 0) {
        group->unroll = chunks * group->width >= 8 ? tuning->max_chains / group->width : 1;
    } else {
        const uint32_t size = hal_type_size(type) > 4 ? hal_type_size(type) : 4;
        group->unroll = tuning->step_bytes / size / group->width;
    }
    const uint32_t step = group->unroll * group->width;
    group->chains = step < tuning->max_chains ? step : tuning->max_chains;
    group->blocks =
        hal_type_is_float(type) && chunks / group->unroll > MIN_NESTED_STEPS ? BLOCK_STEPS : 0;
}

void ops_reduce_layout_choose(const ops_context *context, const ops_space *space,
                              const ops_axis *axis, hal_type type, ops_reduce_layout *group)
{
    const hal_device_info *info = context->info;
    int64_t outputs = ops_space_elements(space);
    int64_t across = llabs(space->stride[0][space->rank - 1]);
    int64_t along = llabs(axis->stride[0]);
    const ops_fold_tuning *tuning = &context->tuning->fold;
    const uint32_t items = halved_to(tuning->group_items, info->max_group_items);
    const uint32_t most = halved_to(tuning->max_items, info->max_group_items);
    *group = (ops_reduce_layout){.outputs = 1, .along = 1, .width = 1, .layers = 1};
    if (outputs == 1 || across == 0 || along < across) {
        if (tuning->groups == OPS_FOLD_BY_VECTORS) {
            group_along_axis_by_vectors(tuning, outputs, axis->length, items, group);
        } else if (tuning->groups == OPS_FOLD_BY_WIDE_VECTORS) {
            group_along_axis_by_wide_vectors(tuning, outputs, axis->length, items, group);
        } else {
            group_along_axis(context, outputs, axis->length, items, most, group);
        }
    } else if (tuning->groups == OPS_FOLD_BY_LANES) {
        group_across_outputs(context, space, axis->length, items, most, group);
    } else {
        group_across_outputs_by_vectors(context, space, axis->length, items, group);
    }
    /* fold_by_halves needs a power of two along the axis. */
    const uint32_t *limit = info->max_group_size;
    group->along = halved_to(group->along, limit[group->axis_first ? 0 : 1]);
    if (group->outputs > limit[group->axis_first ? 1 : 0]) {
        group->outputs = limit[group->axis_first ? 1 : 0];
    }
    group->layers = group->layers < limit[1] ? group->layers : limit[1];
    uint32_t lanes = info->subgroup_width;
    if (group->axis_first && lanes > 1 && (lanes & (lanes - 1)) == 0) {
        group->subgroup = group->along < lanes ? group->along : lanes;
    }
    ops_reduce_layout_set_length(context, axis->length, type, group);
}

void ops_reduce_layout_keep(const ops_context *context, const ops_space *space,
                            const ops_axis *axis, uint32_t size, hal_type type,
                            ops_reduce_layout *group)
{
    const ops_fold_tuning *tuning = &context->tuning->fold;
    const hal_device_info *info = context->info;
    if (tuning->kept_line_words == 0) {
        return;
    }
    const int64_t items = halved_to(tuning->usual_items, info->max_group_items);
    const int64_t least = tuning->min_kept_line_words;
    int64_t line = tuning->kept_line_words;
    if (group->axis_first || size != 4 || group->outputs < tuning->cache_line_words ||
        info->max_group_size[1] < (uint32_t)(items / least)) {
        return;
    }
    while (line > least && axis->length > items / line * OPS_KEPT_ELEMENTS) {
        line /= 2;
    }
    bool fits = axis->length <= items / line * OPS_KEPT_ELEMENTS && axis->stride[0] % line == 0;
    for (uint32_t i = 0; i + 1 < space->rank; i++) {
        fits &= space->stride[0][i] % line == 0;
    }
    if (fits) {
        group->outputs = (uint32_t)line;
        group->along = power_of_two((uint64_t)axis->length / tuning->item_elements, 1,
                                    (uint32_t)(items / line));
        ops_reduce_layout_set_length(context, axis->length, type, group);
    }
}

hal_status ops_reduce_layout_grid(const ops_context *context, const char *function,
                                  const ops_space *space, ops_reduce_layout *group,
                                  uint32_t grid[3])
{
    uint64_t outputs = (uint64_t)ops_space_elements(space);
    /* A processor masks its last vectors anyway, and makes fewer kernels so. Compilers move loads
     * without a guard ahead of the arithmetic, for which devices with few registers lack room. */
    const bool may_be_whole =
        context->tuning->fold.has_whole_groups && context->info->item_register_bytes == 0;
    if (!group->rows) {
        const uint64_t groups = (outputs + group->outputs - 1) / group->outputs;
        const hal_status status = ops_grid_spread(context, function, groups, grid);
        group->is_whole = may_be_whole && status == HAL_OK && outputs % group->outputs == 0 &&
                          (uint64_t)grid[0] * grid[1] == groups;
        return status;
    }
    const uint32_t *limit = context->info->max_grid;
    uint64_t inner = (uint64_t)space->size[space->rank - 1], rows = outputs / inner;
    uint64_t columns = (inner + group->outputs - 1) / group->outputs;
    rows = (rows + group->layers - 1) / group->layers;
    uint64_t layers = (rows + limit[1] - 1) / limit[1];
    if (columns > limit[0] || layers > limit[2]) {
        return hal_status_set(
            HAL_ERROR_UNSUPPORTED, "%s: %llu rows of %llu groups do not fit the grid of %s",
            function, (unsigned long long)rows, (unsigned long long)columns, context->info->name);
    }
    grid[0] = (uint32_t)columns;
    grid[1] = (uint32_t)((rows + layers - 1) / layers);
    grid[2] = (uint32_t)layers;
    group->grid_may_overrun = layers > 1;
    group->is_whole =
        may_be_whole && inner % group->outputs == 0 && layers == 1 && group->layers == 1;
    return HAL_OK;
}

void ops_reduce_layout_declare(hal_ir_builder *b, const ops_reduce_layout *group)
{
    hal_ir_group_size(b, group->axis_first ? group->along : group->outputs,
                      group->axis_first   ? group->outputs
                      : group->layers > 1 ? group->layers
                                          : group->along,
                      1);
}

void ops_reduce_layout_emit(hal_ir_builder *b, const ops_reduce_layout *group,
                            const ops_layout *layout, const ops_layout_values *values,
                            ops_reduce_lane *lane)
{
    uint32_t axis_dimension = group->axis_first ? 0 : 1;
    hal_ir_value zero = hal_ir_u32(b, 0);
    lane->q = group->along > 1 ? hal_ir_id(b, HAL_IR_LOCAL_ID, axis_dimension) : zero;
    lane->p = group->outputs > 1 ? hal_ir_id(b, HAL_IR_LOCAL_ID, 1 - axis_dimension) : zero;
    uint32_t x_items = group->axis_first ? group->along : group->outputs;
    hal_ir_value x = group->axis_first ? lane->q : lane->p;
    hal_ir_value y = group->axis_first ? lane->p : lane->q;
    lane->item = hal_ir_add(b, hal_ir_mul(b, y, hal_ir_u32(b, x_items)), x);

    for (uint32_t view = 0; view < layout->view_count; view++) {
        lane->index[view] = values->base[view];
    }
    hal_ir_value group_id = group->rows ? hal_ir_id(b, HAL_IR_GROUP_ID, 0) : ops_index_group(b);
    hal_ir_value output = ops_value_cast(b, values->type, group_id);
    if (group->outputs > 1) {
        output = hal_ir_mul(b, output, ops_index_constant(b, values->type, group->outputs));
        output = hal_ir_add(b, output, ops_value_cast(b, values->type, lane->p));
    }
    if (!group->rows) {
        lane->inside = group->is_whole ? HAL_IR_NONE : hal_ir_lt(b, output, values->total);
        ops_layout_offset(b, layout, values, output, layout->rank, lane->index);
        return;
    }
    uint32_t last = layout->rank - 1;
    hal_ir_value row = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 1));
    lane->inside = group->is_whole ? HAL_IR_NONE : hal_ir_lt(b, output, values->size[last]);
    if (group->grid_may_overrun) {
        hal_ir_value z = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
        hal_ir_value rows = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_COUNT, 1));
        row = hal_ir_add(b, row, hal_ir_mul(b, z, rows));
    }
    if (group->layers > 1) {
        row = hal_ir_mul(b, row, ops_index_constant(b, values->type, group->layers));
        row = hal_ir_add(b, row, ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_LOCAL_ID, 1)));
        hal_ir_value rows = hal_ir_div(b, values->total, values->size[last]);
        lane->inside = hal_ir_and(b, lane->inside, hal_ir_lt(b, row, rows));
    } else if (group->grid_may_overrun) {
        hal_ir_value start = hal_ir_mul(b, row, values->size[last]);
        lane->inside = hal_ir_and(b, lane->inside, hal_ir_lt(b, start, values->total));
    }
    ops_layout_offset(b, layout, values, row, last, lane->index);
    for (uint32_t view = 0; view < layout->view_count; view++) {
        lane->index[view] = ops_layout_step(b, layout, values, view, lane->index[view], output);
    }
}

void ops_axis_take(ops_space *space, uint32_t axis, ops_axis *out)
{
    out->length = space->size[axis];
    ops_space_take_axis(space, axis, out->stride);
    for (uint32_t view = 0; view < space->view_count; view++) {
        int64_t stride = out->length > 1 ? out->stride[view] : 0;
        out->stride[view] = stride;
        out->step[view] = ops_inner_step(stride);
    }
}

int64_t ops_axis_reach(const ops_axis *axis, uint32_t view_count)
{
    int64_t reach = axis->length;
    for (uint32_t view = 0; view < view_count; view++) {
        int64_t own = (axis->length - 1) * axis->stride[view];
        reach = own > reach ? own : reach;
    }
    return reach;
}

void ops_fold_key(const ops_space *space, const ops_layout *layout, const ops_reduce_layout *group,
                  const ops_axis *axis, ops_cache_key *key)
{
    ops_layout_key(space, layout, key);
    ops_cache_key_append(key, group, sizeof *group);
    ops_cache_key_append(key, axis->step, layout->view_count);
}

void ops_axis_put(const ops_axis *axis, const ops_layout *layout, ops_block *block)
{
    for (uint32_t view = 0; view < layout->view_count; view++) {
        if (axis->step[view] != OPS_INNER_ANY) {
            continue;
        }
        ops_put_index(block, layout->index64, axis->stride[view]);
    }
}

void ops_axis_declare(hal_ir_builder *b, const ops_axis *axis, const ops_layout *layout,
                      hal_ir_value *strides)
{
    for (uint32_t view = 0; view < layout->view_count; view++) {
        strides[view] = axis->step[view] == OPS_INNER_ANY
                            ? ops_scalar(b, "axis_stride", view, 0,
                                         layout->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32)
                            : HAL_IR_NONE;
    }
}

hal_ir_value ops_axis_place(hal_ir_builder *b, const ops_axis *axis, const hal_ir_value *strides,
                            hal_type type, uint32_t view, hal_ir_value index, hal_ir_value k)
{
    if (axis->step[view] == OPS_INNER_ZERO) {
        return index;
    }
    hal_ir_value step = ops_value_cast(b, type, k);
    step = axis->step[view] == OPS_INNER_ONE ? step : hal_ir_mul(b, step, strides[view]);
    return hal_ir_add(b, index, step);
}

hal_ir_value ops_fold_reference(hal_ir_builder *b, hal_ir_value greatest)
{
    const hal_type type = hal_ir_type_of(b, greatest);
    hal_ir_value none = hal_ir_eq(b, greatest, extreme_value(b, type, 1));
    return hal_ir_select(b, none, hal_ir_number(b, type, 0), greatest);
}

ops_state ops_fold_identity(hal_ir_builder *b, uint32_t kind, hal_type type)
{
    ops_state state = {HAL_IR_NONE, HAL_IR_NONE};
    switch (kind) {
    case OPS_REDUCE_MAX:
        state.value = extreme_value(b, type, 1);
        break;
    case OPS_REDUCE_MIN:
        state.value = extreme_value(b, type, 0);
        break;
    case OPS_REDUCE_ARGMAX:
    case OPS_REDUCE_ARGMIN:
        state.value = extreme_value(b, type, kind == OPS_REDUCE_ARGMAX);
        state.place = hal_ir_u32(b, UINT32_MAX);
        break;
    case OPS_REDUCE_PRODUCT:
        state.value = hal_ir_number(b, type, 1);
        break;
    case OPS_FOLD_SOFTMAX:
        state.value = extreme_value(b, type, 1);
        state.place = hal_ir_number(b, type, 0);
        break;
    default:
        state.value = hal_ir_number(b, type, 0);
        break;
    }
    return state;
}

/* The greatest of both, and their sums as multiples of exp of it. */
static ops_state fold_softmax(hal_ir_builder *b, ops_state x, ops_state y)
{
    ops_state state = {hal_ir_max(b, x.value, y.value), HAL_IR_NONE};
    hal_ir_value reference = ops_fold_reference(b, state.value);
    hal_ir_value from_x = hal_ir_sub(b, x.value, reference);
    hal_ir_value from_y = hal_ir_sub(b, y.value, reference);
    from_x = hal_ir_mul(b, x.place, hal_ir_math(b, HAL_IR_EXP, from_x, HAL_IR_NONE, 0));
    from_y = hal_ir_mul(b, y.place, hal_ir_math(b, HAL_IR_EXP, from_y, HAL_IR_NONE, 0));
    state.place = hal_ir_add(b, from_x, from_y);
    return state;
}

/* Whether x is at least as far in the direction of a kind as y; false with NaN. */
static hal_ir_value is_as_far(hal_ir_builder *b, uint32_t kind, ops_state x, ops_state y)
{
    return kind == OPS_REDUCE_ARGMAX ? hal_ir_le(b, y.value, x.value)
                                     : hal_ir_le(b, x.value, y.value);
}

/* y wins where it is farther, or where both are alike and it comes first; NaN is farthest. Few
 * operations, of which few wait for each other: a processor's masks are few and slow. */
static ops_state fold_place(hal_ir_builder *b, uint32_t kind, ops_state x, ops_state y)
{
    ops_state state;
    hal_ir_value not_farther = is_as_far(b, kind, x, y);
    hal_ir_value not_nearer = is_as_far(b, kind, y, x);
    if (hal_type_is_float(hal_ir_type_of(b, x.value))) {
        not_farther = hal_ir_or(b, not_farther, hal_ir_ne(b, x.value, x.value));
        not_nearer = hal_ir_or(b, not_nearer, hal_ir_ne(b, y.value, y.value));
    }
    hal_ir_value earlier = hal_ir_and(b, not_nearer, hal_ir_lt(b, y.place, x.place));
    hal_ir_value wins = hal_ir_or(b, hal_ir_not(b, not_farther), earlier);
    state.value = hal_ir_select(b, wins, y.value, x.value);
    state.place = hal_ir_select(b, wins, y.place, x.place);
    return state;
}

ops_state ops_fold(hal_ir_builder *b, uint32_t kind, ops_state x, ops_state y)
{
    ops_state state = {HAL_IR_NONE, HAL_IR_NONE};
    switch (kind) {
    case OPS_REDUCE_MAX:
        state.value = hal_ir_max(b, x.value, y.value);
        return state;
    case OPS_REDUCE_MIN:
        state.value = hal_ir_min(b, x.value, y.value);
        return state;
    case OPS_REDUCE_ARGMAX:
    case OPS_REDUCE_ARGMIN:
        return fold_place(b, kind, x, y);
    case OPS_REDUCE_PRODUCT:
        state.value = hal_ir_mul(b, x.value, y.value);
        return state;
    case OPS_FOLD_SOFTMAX:
        return fold_softmax(b, x, y);
    default:
        state.value = hal_ir_add(b, x.value, y.value);
        return state;
    }
}

ops_state ops_fold_next(hal_ir_builder *b, uint32_t kind, ops_state x, ops_state y)
{
    if (!ops_fold_finds_place(kind)) {
        return ops_fold(b, kind, x, y);
    }
    ops_state state;
    hal_ir_value wins = hal_ir_not(b, is_as_far(b, kind, x, y));
    if (hal_type_is_float(hal_ir_type_of(b, x.value))) {
        wins = hal_ir_and(b, wins, hal_ir_eq(b, x.value, x.value));
    }
    state.value = hal_ir_select(b, wins, y.value, x.value);
    state.place = hal_ir_select(b, wins, y.place, x.place);
    return state;
}

ops_fold_memory ops_fold_shared(hal_ir_builder *b, const ops_reduce_layout *group, uint32_t kind,
                                hal_type type)
{
    ops_fold_memory shared = {HAL_IR_NONE, HAL_IR_NONE};
    char name[32], place_name[32];
    snprintf(name, sizeof name, "values_%s_%u", hal_type_name(type), kind);
    snprintf(place_name, sizeof place_name, "places_%s_%u", hal_type_name(type), kind);
    if (group->along > (group->subgroup ? group->subgroup : 1)) {
        uint32_t count = group->outputs * group->along;
        shared.values = hal_ir_shared(b, name, type, count);
        if (ops_fold_has_place(kind)) {
            shared.places = hal_ir_shared(b, place_name, ops_fold_place_type(kind, type), count);
        }
    }
    return shared;
}

static ops_state group_fold(hal_ir_builder *b, const ops_reduce_layout *group,
                            const ops_reduce_lane *lane, uint32_t kind, ops_state state,
                            ops_fold_memory shared)
{
    for (uint32_t mask = 1; mask < group->subgroup; mask *= 2) {
        state = ops_fold(b, kind, state, state_shuffle(b, kind, state, mask));
    }
    uint32_t lanes = group->subgroup ? group->subgroup : 1;
    if (group->along == lanes) {
        return state;
    }
    if (lanes == 1) {
        return fold_by_halves(b, group, lane, kind, state, shared);
    }
    /* Every work-item stores its subgroup's value, which is cheaper than a branch, and folds one
     * value of each subgroup in the same order. */
    uint32_t parts = group->along / lanes;
    hal_ir_value start = hal_ir_mul(b, lane->p, hal_ir_u32(b, group->along));
    state_store(b, kind, shared, lane->item, HAL_IR_NONE, state);
    hal_ir_barrier(b);
    state = state_load(b, kind, shared, start);
    for (uint32_t i = 1; i < parts; i++) {
        hal_ir_value index = hal_ir_add(b, start, hal_ir_u32(b, i * lanes));
        state = ops_fold(b, kind, state, state_load(b, kind, shared, index));
    }
    return state;
}

/* The greatest value first, then the sums of all work-items as multiples of exp of it: each needs
 * one exp, where a fold of two states needs two. */
ops_state ops_fold_group(hal_ir_builder *b, const ops_reduce_layout *group,
                         const ops_reduce_lane *lane, uint32_t kind, ops_state state,
                         ops_fold_memory shared)
{
    if (kind != OPS_FOLD_SOFTMAX) {
        return group_fold(b, group, lane, kind, state, shared);
    }
    const ops_fold_memory greatest = {shared.values, HAL_IR_NONE};
    const ops_fold_memory sums = {shared.places, HAL_IR_NONE};
    ops_state most = {state.value, HAL_IR_NONE}, sum = {state.place, HAL_IR_NONE};
    most = group_fold(b, group, lane, OPS_REDUCE_MAX, most, greatest);
    hal_ir_value scale = hal_ir_sub(b, state.value, ops_fold_reference(b, most.value));
    sum.value = hal_ir_mul(b, sum.value, hal_ir_math(b, HAL_IR_EXP, scale, HAL_IR_NONE, 0));
    sum = group_fold(b, group, lane, OPS_REDUCE_SUM, sum, sums);
    return (ops_state){most.value, sum.value};
}
