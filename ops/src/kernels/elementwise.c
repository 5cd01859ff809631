/* The skeleton of elementwise kernels, see elementwise.h. */
#include "elementwise.h"

#include "ranges.h"
#include "transposed.h"

#include <stddef.h>

static bool width_fits(const ops_space *space, uint32_t view, uint32_t width, uint64_t start)
{
    const int64_t *stride = space->stride[view];
    if (stride[space->rank - 1] != 1) {
        return true;
    }
    bool fits = space->base[view] % width == 0 && start % width == 0;
    for (uint32_t i = 0; fits && i + 1 < space->rank; i++) {
        fits = stride[i] % width == 0;
    }
    return fits;
}

/* The largest width at which every view that steps by one is aligned at every row. */
static uint32_t usable_width(const ops_space *space, uint32_t widest, const uint64_t *starts)
{
    uint32_t width = widest;
    for (; width > 1; width /= 2) {
        bool fits = space->rank == 1 || space->size[space->rank - 1] % width == 0;
        for (uint32_t view = 0; fits && view < space->view_count; view++) {
            fits = width_fits(space, view, width, starts ? starts[view] : 0);
        }
        if (fits) {
            return width;
        }
    }
    return 1;
}

/* The multiple of `width`, at most `most` or one, of which an axis has the fewest idle lanes. */
static uint32_t whole_vectors(uint64_t inner, uint32_t width, uint32_t most)
{
    uint32_t best = width;
    uint64_t least = UINT64_MAX;
    for (uint32_t side = width; side <= most || side == width; side += width) {
        const uint64_t lanes = ops_ceil_divide(inner, side) * side;
        if (lanes <= least) {
            least = lanes;
            best = side;
        }
    }
    return best;
}

/* Groups that are tiles of the two innermost dimensions: near a square, or longer next to a short
 * dimension; where lanes are elements of vectors, with lines of whole vectors. */
static void plan_tile(const ops_context *context, const ops_space *space,
                      ops_elementwise_plan *plan)
{
    const hal_device_info *info = context->info;
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint64_t lines = (uint64_t)space->size[space->rank - 2];
    const uint64_t total = (uint64_t)ops_space_elements(space);
    uint32_t items =
        info->max_group_items < tuning->tile_items ? info->max_group_items : tuning->tile_items;
    while (items > plan->group &&
           total < (uint64_t)items * tuning->unit_tiles * info->compute_units) {
        items /= 2;
    }
    plan->group = ops_even_share(inner, items < tuning->tile_side ? items : tuning->tile_side);
    plan->lines = ops_even_share(lines, items / plan->group);
    plan->group = ops_even_share(inner, items / plan->lines);
    const uint32_t width = tuning->max_width == 1 ? info->subgroup_width : 0;
    if (width > 0 && inner >= width && plan->group % width != 0) {
        plan->group = whole_vectors(inner, width, tuning->tile_side);
        plan->lines = ops_even_share(lines, items > plan->group ? items / plan->group : 1);
    }
}

/* Chooses groups that one line or several fill, without idle lanes if possible. False when the two
 * innermost dimensions are too small. */
static bool plan_lanes(const ops_context *context, const ops_space *space,
                       ops_elementwise_plan *plan)
{
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint64_t lines = (uint64_t)space->size[space->rank - 2];
    const uint32_t group = plan->group;
    if (!ops_space_has_plain_lines(space) &&
        inner < (ops_space_is_transposed(space) ? tuning->min_tile_columns
                                                : tuning->min_strided_line)) {
        return false;
    }
    if (ops_space_is_transposed(space)) {
        plan_tile(context, space, plan);
    } else {
        plan->group = ops_even_share(inner, group);
        plan->lines = plan->group == inner ? ops_even_share(lines, group / plan->group) : 1;
    }
    if (plan->group * plan->lines < tuning->min_lanes) {
        plan->group = group;
        plan->lines = 1;
        return false;
    }
    return true;
}

/* Vectors of a work-item of a row: `min_loads` elements, and more of small types. */
static uint32_t row_repeat(uint32_t min_loads, const ops_elementwise_use *use,
                           const ops_space *space, const ops_elementwise_plan *plan)
{
    uint32_t widest = 1;
    for (uint32_t view = 0; use->loaded && view < space->view_count; view++) {
        const uint32_t size = (use->loaded >> view & 1) * use->sizes[view];
        widest = size > widest ? size : widest;
    }
    const uint32_t elements = widest < 4 ? min_loads * 2 : min_loads;
    return plan->width < elements && use->loaded ? elements / plan->width : 1;
}

/* Lines of the second innermost dimension that a group computes. */
static uint32_t lines_of_group(const ops_elementwise_plan *plan)
{
    return plan->lines * (plan->along_lines ? plan->repeat : 1);
}

/* The vectors of a work-item, which are of several lines where one line is too short for them.
 * `groups` cover a line. */
static void plan_repeat(const ops_context *context, const ops_elementwise_use *use,
                        const ops_space *space, uint64_t groups, ops_elementwise_plan *plan)
{
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint64_t lines = (uint64_t)space->size[space->rank - 2];
    const uint64_t rows =
        (uint64_t)ops_space_elements(space) / (uint64_t)space->size[space->rank - 1];
    uint32_t together = row_repeat(tuning->min_loads, use, space, plan);
    plan->along_lines = groups < together;
    if (plan->along_lines) {
        /* As few groups as possible: an even share of 26 lines among groups of 4 would be 2. */
        together = tuning->evens_lines
                       ? ops_even_share(lines, together)
                       : (uint32_t)ops_ceil_divide(lines, ops_ceil_divide(lines, together));
    }
    const uint64_t enough = (uint64_t)context->info->compute_units * tuning->busy_groups;
    plan->repeat = groups * rows >= enough * together ? together : 1;
    plan->along_lines = plan->along_lines && plan->repeat > 1;
}

/* Lanes of the subgroups that groups are multiples of. */
static uint64_t subgroup_lanes(const ops_context *context)
{
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint32_t width = context->info->subgroup_width;
    return tuning->subgroup_is_known && width > 0 && width < tuning->max_lanes ? width
                                                                               : tuning->max_lanes;
}

/* Groups of rows are whole subgroups, with as few idle work-items as possible. */
static hal_status plan_rows(const ops_context *context, const ops_elementwise_use *use,
                            const ops_space *space, ops_elementwise_plan *plan)
{
    uint64_t items = (uint64_t)space->size[space->rank - 1] / plan->width +
                     ((uint64_t)space->size[space->rank - 1] % plan->width != 0);
    uint64_t lines = (uint64_t)space->size[space->rank - 2];
    uint64_t rows = (uint64_t)ops_space_elements(space) / (uint64_t)space->size[space->rank - 1];
    uint64_t groups = (items + plan->group - 1) / plan->group;
    if (context->tuning->elementwise.min_loads > 0) {
        plan_repeat(context, use, space, groups, plan);
        const uint64_t in_line = plan->along_lines ? 1 : plan->repeat;
        groups = ops_ceil_divide(groups, in_line);
        const uint64_t lanes = subgroup_lanes(context);
        const uint64_t even =
            ops_ceil_divide(ops_ceil_divide(items, groups * in_line), lanes) * lanes;
        plan->group = even < plan->group ? (uint32_t)even : plan->group;
        groups = ops_ceil_divide(items, plan->group * in_line);
    }
    rows = rows / lines * ops_ceil_divide(lines, lines_of_group(plan));

    const uint32_t *limit = context->info->max_grid;
    uint64_t layers = (rows + limit[1] - 1) / limit[1];
    if (groups > limit[0] || layers > limit[2]) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: %llu rows of %llu groups do not fit the grid of %s",
                              use->function, (unsigned long long)rows, (unsigned long long)groups,
                              context->info->name);
    }
    plan->grid[0] = (uint32_t)groups;
    plan->grid[1] = (uint32_t)((rows + layers - 1) / layers);
    plan->grid[2] = (uint32_t)layers;
    plan->grid_may_overrun = layers > 1;
    return HAL_OK;
}

/* The first element of a work-item: (group * size * repeat + local id) * width; `repeat` is that
 * along the line. */
static hal_ir_value work_item(hal_ir_builder *b, const ops_elementwise_plan *plan, hal_type type,
                              hal_ir_value group)
{
    const uint64_t step = (uint64_t)plan->group * (plan->along_lines ? 1 : plan->repeat);
    hal_ir_value start =
        hal_ir_mul(b, ops_value_cast(b, type, group), ops_index_constant(b, type, step));
    hal_ir_value item =
        hal_ir_add(b, start, ops_value_cast(b, type, hal_ir_id(b, HAL_IR_LOCAL_ID, 0)));
    return plan->width == 1 ? item : hal_ir_mul(b, item, ops_index_constant(b, type, plan->width));
}

/* With several lines per group, the second innermost coordinate comes from the group's number and
 * the work-item's y. Sets it, and returns the number of the row. */
static hal_ir_value emit_line_number(hal_ir_builder *b, const ops_elementwise_plan *plan,
                                     ops_element_iter *iter, hal_ir_value group,
                                     hal_ir_value *number)
{
    const ops_layout_values *values = iter->values;
    const ops_layout *layout = iter->layout;
    uint32_t second = layout->rank - 2;
    const uint32_t lines = lines_of_group(plan);
    hal_ir_value count = ops_index_constant(b, values->type, lines);
    hal_ir_value y = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_LOCAL_ID, 1));
    hal_ir_value size = ops_layout_line_count(b, layout, values);
    hal_ir_value chunk = group, outer = HAL_IR_NONE;
    if (second > 0) {
        hal_ir_value less = ops_index_constant(b, values->type, lines - 1);
        hal_ir_value chunks = hal_ir_div(b, hal_ir_add(b, size, less), count);
        outer = hal_ir_div(b, group, chunks);
        chunk = hal_ir_sub(b, group, hal_ir_mul(b, outer, chunks));
        ops_layout_offset(b, layout, values, outer, second, iter->index);
    }
    hal_ir_value line = hal_ir_add(b, hal_ir_mul(b, chunk, count), y);
    iter->guard = hal_ir_and(b, iter->guard, hal_ir_lt(b, line, size));
    for (uint32_t view = 0; view < layout->view_count; view++) {
        hal_ir_value step = hal_ir_mul(b, line, values->stride[view][second]);
        iter->index[view] = hal_ir_add(b, iter->index[view], step);
    }
    *number = line;
    return second ? hal_ir_add(b, hal_ir_mul(b, outer, size), line) : line;
}

/* The elements of a work-item from `column` on in the line at iter->index, whose guard is that of
 * the first. */
static void emit_repeated(hal_ir_builder *b, const ops_elementwise_plan *plan,
                          ops_element_iter *iter, hal_ir_value column, ops_elementwise_body body,
                          const void *user)
{
    const ops_layout_values *values = iter->values;
    const ops_layout *layout = iter->layout;
    ops_element_rows rows = {.vector = plan->width};
    for (uint32_t i = 0; i < plan->repeat; i++) {
        const uint64_t step = (uint64_t)i * plan->group * plan->width;
        const hal_ir_value at =
            i == 0 ? column : hal_ir_add(b, column, ops_index_constant(b, values->type, step));
        const hal_ir_value inside = hal_ir_lt(b, at, values->size[layout->rank - 1]);
        rows.guard[i] = i == 0 ? iter->guard : hal_ir_and(b, iter->guard, inside);
        for (uint32_t view = 0; view < layout->view_count; view++) {
            rows.index[view][i] = ops_layout_step(b, layout, values, view, iter->index[view], at);
        }
    }
    iter->width = plan->repeat * plan->width;
    iter->several = &rows;
    body(b, iter, user);
}

/* The elements of a work-item in lines from `line` on, whose elements at `column` are at
 * iter->index; the guard is that of the first. */
static void emit_repeated_lines(hal_ir_builder *b, const ops_elementwise_plan *plan,
                                ops_element_iter *iter, hal_ir_value line,
                                ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = iter->values;
    const ops_layout *layout = iter->layout;
    const hal_ir_value count = ops_layout_line_count(b, layout, values);
    ops_element_rows rows = {.vector = plan->width};
    for (uint32_t i = 0; i < plan->repeat; i++) {
        const hal_ir_value step = ops_index_constant(b, values->type, (uint64_t)i * plan->lines);
        const hal_ir_value inside = hal_ir_lt(b, hal_ir_add(b, line, step), count);
        rows.guard[i] = i == 0 ? iter->guard : hal_ir_and(b, iter->guard, inside);
        for (uint32_t view = 0; view < layout->view_count; view++) {
            const hal_ir_value stride = values->stride[view][layout->rank - 2];
            rows.index[view][i] =
                i == 0 ? iter->index[view]
                       : hal_ir_add(b, iter->index[view], hal_ir_mul(b, step, stride));
        }
    }
    iter->width = plan->repeat * plan->width;
    iter->several = &rows;
    body(b, iter, user);
}

/* The innermost dimension along x; y and z number the rows. */
static void emit_rows(hal_ir_builder *b, const ops_elementwise_plan *plan, ops_element_iter *iter,
                      ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = iter->values;
    const ops_layout *layout = iter->layout;
    uint32_t last = layout->rank - 1;
    hal_ir_value row = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 1));
    if (plan->grid_may_overrun) {
        hal_ir_value z = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
        hal_ir_value rows = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_COUNT, 1));
        row = hal_ir_add(b, row, hal_ir_mul(b, z, rows));
    }
    hal_ir_value column = work_item(b, plan, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 0));
    iter->guard = hal_ir_lt(b, column, values->size[last]);
    hal_ir_value line = HAL_IR_NONE;
    if (lines_of_group(plan) > 1) {
        row = emit_line_number(b, plan, iter, row, &line);
    } else {
        ops_layout_offset(b, layout, values, row, last, iter->index);
    }
    if (plan->grid_may_overrun) {
        hal_ir_value start = hal_ir_mul(b, row, values->size[last]);
        iter->guard = hal_ir_and(b, iter->guard, hal_ir_lt(b, start, values->total));
    }
    if (plan->repeat > 1 && !plan->along_lines) {
        emit_repeated(b, plan, iter, column, body, user);
        return;
    }
    for (uint32_t view = 0; view < layout->view_count; view++) {
        iter->index[view] = ops_layout_step(b, layout, values, view, iter->index[view], column);
    }
    if (plan->along_lines) {
        emit_repeated_lines(b, plan, iter, line, body, user);
        return;
    }
    body(b, iter, user);
}

/* The last elements of a flat kernel, one by one. */
static void emit_tail(hal_ir_builder *b, const ops_elementwise_plan *plan,
                      const ops_element_iter *iter, hal_ir_value first, ops_elementwise_body body,
                      const void *user)
{
    hal_type type = iter->values->type;
    const uint32_t count = plan->repeat == 1 ? plan->width - 1 : plan->width * plan->repeat;
    hal_ir_value i = hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, count), hal_ir_u32(b, 1));
    hal_ir_value step = ops_value_cast(b, type, i);
    if (plan->repeat > 1) {
        const hal_ir_value width = ops_index_constant(b, type, plan->width);
        const hal_ir_value vector = hal_ir_div(b, step, width);
        const uint64_t apart = (uint64_t)(plan->group - 1) * plan->width;
        step = hal_ir_add(b, step, hal_ir_mul(b, vector, ops_index_constant(b, type, apart)));
    }
    ops_element_iter single = *iter;
    single.width = 1;
    single.guard = hal_ir_lt(b, hal_ir_add(b, first, step), iter->values->total);
    for (uint32_t view = 0; view < plan->layout.view_count; view++) {
        single.index[view] =
            ops_layout_step(b, iter->layout, iter->values, view, iter->index[view], step);
    }
    body(b, &single, user);
    hal_ir_end(b);
}

/* Several vectors of a work-item of a flat kernel, with guards unless all are inside. */
static void emit_flat_repeated(hal_ir_builder *b, const ops_elementwise_plan *plan,
                               ops_element_iter *iter, hal_ir_value first, int guarded,
                               ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = iter->values;
    ops_element_rows rows = {.vector = plan->width};
    for (uint32_t i = 0; i < plan->repeat; i++) {
        const hal_ir_value step =
            ops_index_constant(b, values->type, (uint64_t)i * plan->group * plan->width);
        rows.guard[i] =
            guarded ? hal_ir_lt(b, hal_ir_add(b, first, step), values->total) : HAL_IR_NONE;
        for (uint32_t view = 0; view < plan->layout.view_count; view++) {
            rows.index[view][i] =
                i == 0 ? iter->index[view]
                       : ops_layout_step(b, iter->layout, values, view, iter->index[view], step);
        }
    }
    iter->width = plan->repeat * plan->width;
    iter->several = &rows;
    iter->guard = HAL_IR_NONE;
    body(b, iter, user);
}

/* One linear index for all dimensions. */
static void emit_flat(hal_ir_builder *b, const ops_elementwise_plan *plan, ops_element_iter *iter,
                      ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = iter->values;
    hal_ir_value first = work_item(b, plan, values->type, ops_index_group(b));
    ops_layout_offset(b, iter->layout, values, first, plan->layout.rank, iter->index);
    if (!plan->tail && plan->repeat > 1) {
        emit_flat_repeated(b, plan, iter, first, 1, body, user);
        return;
    }
    if (!plan->tail) {
        iter->guard = hal_ir_lt(b, first, values->total);
        body(b, iter, user);
        return;
    }
    const uint64_t reach = ((uint64_t)(plan->repeat - 1) * plan->group + 1) * plan->width;
    hal_ir_value end = hal_ir_add(b, first, ops_index_constant(b, values->type, reach));
    ops_element_iter whole = *iter;
    hal_ir_if(b, hal_ir_le(b, end, values->total));
    whole.guard = HAL_IR_NONE;
    if (plan->repeat > 1) {
        emit_flat_repeated(b, plan, &whole, first, 0, body, user);
    } else {
        body(b, &whole, user);
    }
    hal_ir_else(b);
    emit_tail(b, plan, iter, first, body, user);
    hal_ir_end(b);
}

/* The group of a flat kernel where idle lanes cost as much as busy ones. A large group has less
 * work between its elements, and more at the end of the array. Each size of a group is another
 * kernel, so only some arrays are one group. */
static uint32_t flat_group(const ops_context *context, const ops_space *space, uint32_t usual)
{
    const hal_device_info *info = context->info;
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    if (tuning->large_group == 0) {
        return usual;
    }
    const uint64_t total = (uint64_t)ops_space_elements(space);
    const uint32_t *limit = info->max_group_size;
    uint32_t large = tuning->large_group < limit[0] ? tuning->large_group : limit[0];
    large = large < info->max_group_items ? large : info->max_group_items;
    if (total < usual ||
        (space->rank == 1 && total <= large && total % tuning->one_group_step == 0)) {
        return (uint32_t)total;
    }
    return space->rank == 1 && total >= (uint64_t)tuning->min_large_groups * large && large > usual
               ? large
               : usual;
}

/* Bytes that a work-item loads at once. */
static uint32_t loaded_bytes(const ops_elementwise_use *use, uint32_t view_count,
                             const ops_elementwise_plan *plan)
{
    uint32_t bytes = 0;
    for (uint32_t view = 0; view < view_count; view++) {
        bytes += (use->loaded >> view & 1) * plan->width * plan->repeat * use->sizes[view];
    }
    return bytes;
}

/* Vectors of a work-item of a flat kernel: two where one has too few bytes in flight while other
 * work-items compute, and the device is full with half as many work-items. */
static uint32_t flat_repeat(const ops_context *context, const ops_elementwise_use *use,
                            const ops_space *space, const ops_elementwise_plan *plan)
{
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint64_t items = (uint64_t)ops_space_elements(space) / plan->width;
    const uint64_t busy = (uint64_t)context->info->compute_units * tuning->busy_groups;
    return space->rank == 1 && use->loaded && plan->width > 1 &&
                   loaded_bytes(use, space->view_count, plan) < tuning->min_loaded_bytes &&
                   items >= busy * 2 * plan->group
               ? 2
               : 1;
}

static hal_status plan_groups(const ops_context *context, const ops_elementwise_use *use,
                              ops_space *space, ops_elementwise_plan *plan)
{
    const hal_device_info *info = context->info;
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    plan->group = ops_group_items(info);
    plan->lines = plan->repeat = 1;
    plan->rows = plan->ranges = plan->masked = plan->columns = plan->grid_may_overrun = 0;
    plan->tail = plan->along_lines = plan->reserved = 0; /* the key has all of them */
    ops_transposed_choose(context, use, space, plan);
    if (!plan->staged) {
        const uint32_t widest = use->widest < tuning->max_width ? use->widest : tuning->max_width;
        plan->width = usable_width(space, widest, use->starts);
    }
    const bool has_ranges = ops_ranges_are_possible(context, use, space);
    const bool moved = has_ranges && ops_ranges_choose_lines(context, use, space);
    ops_layout_choose(context, space,
                      use->reserved + (plan->staged ? OPS_TRANSPOSED_SCALAR_BYTES : 0), use->reach,
                      &plan->layout);
    if (plan->staged) {
        return ops_grid_spread(context, use->function, ops_transposed_groups(space, plan->tile),
                               plan->grid);
    }
    if (ops_has_lane_vectors(context)) {
        ops_layout_find_pairs(space, &plan->layout);
    }
    if (has_ranges && !plan->layout.index64 && ops_ranges_plan(context, use, space, moved, plan)) {
        plan->ranges = 1;
        plan->masked = (uint64_t)space->size[space->rank - 1] < plan->group;
        return HAL_OK;
    }
    /* Few elements are spread over the compute units first. */
    const uint64_t total = (uint64_t)ops_space_elements(space);
    while (plan->width > 1 && total < (uint64_t)plan->width * plan->group * info->compute_units) {
        plan->width /= 2;
    }
    uint64_t inner = (uint64_t)space->size[space->rank - 1];
    plan->rows = space->rank > 1 && (tuning->min_row > 0 ? inner / plan->width >= tuning->min_row
                                                         : plan_lanes(context, space, plan));
    if (plan->rows) {
        return plan_rows(context, use, space, plan);
    }
    plan->tail = total % plan->width != 0;
    plan->group = flat_group(context, space, plan->group);
    plan->repeat = flat_repeat(context, use, space, plan);
    uint64_t step = (uint64_t)plan->group * plan->width * plan->repeat;
    return ops_grid_spread(context, use->function, (total + step - 1) / step, plan->grid);
}

static uint32_t full_groups(const ops_elementwise_tuning *tuning, const ops_elementwise_use *use,
                            const ops_elementwise_plan *plan)
{
    uint32_t widest = 0;
    if (tuning->full_items == 0 || !use->loaded || plan->staged) {
        return 0;
    }
    for (uint32_t view = 0; view < plan->layout.view_count; view++) {
        widest = use->sizes[view] > widest ? use->sizes[view] : widest;
    }
    const uint32_t bytes = loaded_bytes(use, plan->layout.view_count, plan);
    const uint32_t groups = tuning->full_items / (plan->group * plan->lines);
    if (bytes > tuning->max_loaded_bytes || widest > 4) {
        return 0;
    }
    return groups < tuning->max_full_groups ? groups : tuning->max_full_groups;
}

hal_status ops_elementwise_plan_init(const ops_context *context, const ops_elementwise_use *use,
                                     ops_space *space, ops_elementwise_plan *plan)
{
    const hal_status status = plan_groups(context, use, space, plan);
    plan->full_groups =
        status != HAL_OK ? 0 : full_groups(&context->tuning->elementwise, use, plan);
    return status;
}

/* Whether the innermost lines of all views are contiguous. */
static bool lines_are_contiguous(const ops_layout *layout)
{
    bool all = true;
    for (uint32_t view = 0; view < layout->view_count; view++) {
        all = all && layout->inner[view] == OPS_INNER_ONE;
    }
    return all;
}

/* Sides of a tile of a class, where lanes are elements of vectors. */
#define GENERAL_SIDE 16u

/* Whether the class of a space has tiles of its two innermost dimensions, one of which is
 * contiguous in each view. Where many lanes would be idle, an index of each element costs less. */
static bool general_has_tiles(const ops_context *context, const ops_space *space)
{
    const uint32_t last = space->rank - 1;
    const uint64_t inner = (uint64_t)space->size[last];
    const uint64_t lines = last > 0 ? (uint64_t)space->size[last - 1] : 1;
    const uint64_t lanes = ops_ceil_divide(inner, GENERAL_SIDE) * GENERAL_SIDE *
                           ops_ceil_divide(lines, GENERAL_SIDE) * GENERAL_SIDE;
    bool is_plain = true, has_sides = last > 0;
    for (uint32_t view = 0; view < space->view_count; view++) {
        const int64_t *stride = space->stride[view];
        is_plain &= stride[last] == 1;
        has_sides &= stride[last] == 1 || (last > 0 && stride[last] != 0 && stride[last - 1] == 1);
    }
    return ops_has_lane_vectors(context) && ((is_plain && 4 * inner * lines >= lanes) ||
                                             (has_sides && 4 * inner * lines >= 3 * lanes));
}

/* Whether lines are at least half of a class's group. */
static bool general_has_rows(const ops_context *context, const ops_space *space, uint32_t width)
{
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    return 2 * inner >= (uint64_t)ops_group_items(context->info) * width;
}

/* Bytes that the general kernel is charged for. */
static uint64_t general_bytes(const ops_context *context, const ops_space *space,
                              const ops_layout *layout)
{
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint64_t elements = (uint64_t)ops_space_elements(space) * space->view_count;
    const bool has_rows = lines_are_contiguous(layout) && general_has_rows(context, space, 1);
    if (!ops_has_lane_vectors(context)) {
        return elements * tuning->general_bytes;
    }
    return elements * (has_rows || general_has_tiles(context, space) ? tuning->general_lanes_bytes
                                                                     : tuning->general_apart_bytes);
}

/* The plan of a class: the group is always the same, one vector or element for a work-item, and no
 * form of kernel that is made for short lines, transposed views or few elements. Vectors are those
 * of views that are all contiguous; a processor's compiler makes them of elements as well. */
static hal_status plan_general(const ops_context *context, const ops_elementwise_use *use,
                               ops_space *space, ops_elementwise_plan *plan)
{
    const ops_elementwise_tuning *tuning = &context->tuning->elementwise;
    const uint32_t widest = use->widest < tuning->max_width ? use->widest : tuning->max_width;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    *plan = (ops_elementwise_plan){.tuning = plan->tuning, .lines = 1, .repeat = 1};
    plan->group = ops_group_items(context->info);
    ops_layout_choose(context, space, use->reserved, use->reach, &plan->layout);
    plan->layout.dense = 0;
    const bool is_contiguous = lines_are_contiguous(&plan->layout);
    const bool is_wide = is_contiguous && widest > 1 && inner % widest == 0 &&
                         usable_width(space, widest, use->starts) == widest;
    plan->width = is_wide ? widest : 1;
    plan->rows = general_has_rows(context, space, plan->width);
    plan->width = plan->rows ? plan->width : 1;
    const bool has_tiles = !(plan->rows && is_contiguous) && general_has_tiles(context, space);
    const bool has_lines = plan->rows || !ops_has_lane_vectors(context);
    const bool keeps_lines = plan->width > 1 || (context->tuning->knows_dense_views && has_lines);
    ops_layout_generalise(use->reserved, 2, has_tiles || (is_contiguous && keeps_lines), space,
                          &plan->layout);
    if (has_tiles) {
        plan->rows = 1;
        plan->group = plan->lines = GENERAL_SIDE;
        if (plan_rows(context, use, space, plan) == HAL_OK) {
            return HAL_OK;
        }
        plan->rows = 0;
        plan->group = ops_group_items(context->info);
        plan->lines = 1;
    }
    plan->rows &= space->rank > 1;
    if (plan->rows) {
        const uint64_t step = (uint64_t)plan->group * plan->width;
        const uint64_t rows = (uint64_t)ops_space_elements(space) / inner;
        const uint32_t *limit = context->info->max_grid;
        const uint64_t layers = ops_ceil_divide(rows, limit[1]);
        plan->grid[0] = (uint32_t)ops_ceil_divide(inner, step);
        plan->grid[1] = (uint32_t)ops_ceil_divide(rows, layers);
        plan->grid[2] = (uint32_t)layers;
        plan->grid_may_overrun = layers > 1;
        if (inner / step < limit[0] && layers <= limit[2]) {
            return HAL_OK;
        }
        plan->rows = plan->grid_may_overrun = 0;
    }
    plan->width = 1;
    const uint64_t step = (uint64_t)plan->group * plan->width;
    const uint64_t total = (uint64_t)ops_space_elements(space);
    return ops_grid_spread(context, use->function, ops_ceil_divide(total, step), plan->grid);
}

void ops_elementwise_key(const ops_space *space, const ops_elementwise_plan *plan,
                         ops_cache_key *key)
{
    const size_t before = offsetof(ops_elementwise_plan, width);
    ops_layout_key(space, &plan->layout, key);
    ops_cache_key_append(key, &plan->width, offsetof(ops_elementwise_plan, grid) - before);
}

hal_status ops_elementwise_find_kernel(ops_context *context, const ops_elementwise_use *use,
                                       const ops_elementwise_kernel *kernel,
                                       const ops_cache_key *key, ops_space *space,
                                       ops_elementwise_plan *plan, ops_entry **entry)
{
    ops_cache_key whole;
    HAL_TRY(ops_elementwise_plan_init(context, use, space, plan));
    ops_cache_key_copy(key, &whole);
    ops_elementwise_key(space, plan, &whole);
    HAL_TRY(ops_cache_get_special(context, &whole, kernel->name, kernel->emit, kernel->user,
                                  general_bytes(context, space, &plan->layout), entry));
    if (*entry) {
        return HAL_OK;
    }
    HAL_TRY(plan_general(context, use, space, plan));
    ops_cache_key_copy(key, &whole);
    ops_elementwise_key(space, plan, &whole);
    return ops_cache_get(context, &whole, kernel->name, kernel->emit, kernel->user, entry);
}

uint32_t ops_elementwise_widest(const ops_context *context, uint32_t size)
{
    const uint32_t bytes = context->info->max_vector_bytes;
    const uint32_t widest = (bytes < 16 ? bytes : 16) / size;
    return widest > 0 ? widest : 1; /* elements may be larger than vectors */
}

void ops_elementwise_put(const ops_space *space, const ops_elementwise_plan *plan, ops_block *block)
{
    ops_layout_put(space, &plan->layout, block);
    if (plan->staged) {
        ops_transposed_put(space, plan, block);
    }
}

void ops_elementwise_declare(hal_ir_builder *b, const ops_space *space,
                             const ops_elementwise_plan *plan, ops_layout_values *values)
{
    hal_ir_group_size(b, plan->group, plan->lines, 1);
    hal_ir_groups_per_unit(b, plan->full_groups);
    ops_layout_declare(b, space, &plan->layout, values);
    if (plan->staged) {
        ops_transposed_declare(b, plan, values);
    }
}

void ops_elementwise_emit(hal_ir_builder *b, const ops_elementwise_plan *plan,
                          const ops_layout_values *values, const uint8_t *slots,
                          const hal_type *types, ops_elementwise_body body, const void *user)
{
    ops_element_iter iter;
    iter.width = plan->width;
    iter.several = NULL;
    iter.layout = &plan->layout;
    iter.values = values;
    for (uint32_t view = 0; view < plan->layout.view_count; view++) {
        iter.index[view] = values->base[view];
    }
    if (plan->staged) {
        ops_transposed_emit(b, plan, &iter, slots, types, body, user);
    } else if (plan->ranges) {
        ops_ranges_emit(b, plan, &iter, body, user);
    } else if (plan->rows) {
        emit_rows(b, plan, &iter, body, user);
    } else {
        emit_flat(b, plan, &iter, body, user);
    }
}
