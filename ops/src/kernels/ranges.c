/* Ranges of lines, see ranges.h. */
#include "ranges.h"

#include "tensor/context.h"

/* The lines of a step whose rows have `row` work-items, and its work for each line. Steps overlap
 * at the end of a line and of a range, so that none has idle work-items. Steps share few lines
 * evenly; else their number is a power of two, as each number is another kernel. */
static double step_lines(const ops_context *context, const ops_elementwise_use *use, uint64_t inner,
                         uint64_t count, uint32_t row, uint32_t *lines)
{
    const hal_device_info *info = context->info;
    const ops_ranges_tuning *tuning = &context->tuning->ranges;
    const uint32_t items =
        inner < tuning->long_line && !use->indexed ? info->max_group_items / row : 1;
    const uint32_t most = items < info->max_group_size[1] ? items : info->max_group_size[1];
    uint32_t tried = count <= tuning->few_lines ? ops_even_share(count, most) : most;
    const double share = 1 + (double)use->work; /* of an element, relative to a short one's work */
    double best = 0;
    *lines = 0;
    for (; tried > 0; tried /= 2) {
        if (tried > count) {
            continue;
        }
        const double steps =
            (double)ops_ceil_divide(inner, row) * (double)ops_ceil_divide(count, tried);
        const double work =
            steps * (tuning->step_items / share + (double)tried * (row + tuning->line_items)) /
            (double)count;
        if (*lines == 0 || work < best) {
            best = work;
            *lines = tried;
        }
    }
    return best;
}

/* The step that covers `count` lines with the least work, which is returned; 0: none. */
static double step_choose(const ops_context *context, const ops_elementwise_use *use,
                          const ops_space *space, uint64_t count, uint32_t step[2])
{
    const hal_device_info *info = context->info;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint32_t width = info->subgroup_width, most = info->max_group_items;
    const uint32_t longest = most < info->max_group_size[0] ? most : info->max_group_size[0];
    double best = 0;
    step[0] = step[1] = 0;
    for (uint32_t row = width; row <= longest && (row <= inner || row == width); row *= 2) {
        uint32_t lines;
        const double work = step_lines(context, use, inner, count, row, &lines);
        if (step[0] == 0 || work < best) {
            best = work;
            step[0] = row;
            step[1] = lines;
        }
    }
    const bool has_lanes =
        use->indexed || step[0] * step[1] >= context->tuning->elementwise.min_lanes;
    return has_lanes && inner >= context->tuning->ranges.min_masked ? best : 0;
}

bool ops_ranges_choose_lines(const ops_context *context, const ops_elementwise_use *use,
                             ops_space *space)
{
    const uint32_t last = space->rank - 1;
    uint32_t step[2], best = last - 1;
    double least = step_choose(context, use, space, (uint64_t)space->size[best], step);
    for (uint32_t i = last - 1; i-- > 0;) {
        const double work = step_choose(context, use, space, (uint64_t)space->size[i], step);
        if (work > 0 && (least <= 0 || work < context->tuning->ranges.min_gain * least)) {
            least = work;
            best = i;
        }
    }
    ops_space_move(space, best, last - 1);
    return best != last - 1;
}

bool ops_ranges_are_possible(const ops_context *context, const ops_elementwise_use *use,
                             const ops_space *space)
{
    const uint32_t last = space->rank - 1;
    const ops_ranges_tuning *tuning = &context->tuning->ranges;
    if (use->indexed && (space->stride[space->view_count - 1][last] != 0 ||
                         space->size[last] < tuning->min_indexed_line)) {
        return false;
    }
    return tuning->elements > 0 && use->repeatable && space->rank > 1 &&
           context->info->subgroup_width > 0 && !ops_space_is_transposed(space) &&
           ops_space_has_plain_lines(space);
}

/* Parts of `count` lines with about `most` of them: whole steps of `lines` if possible. */
static uint64_t range_count(uint64_t count, uint64_t most, uint64_t lines)
{
    const uint64_t whole = most / lines * lines;
    const uint64_t ranges = ops_ceil_divide(count, whole);
    return count / ranges >= lines ? ranges : count > most ? count / most : 1;
}

bool ops_ranges_plan(const ops_context *context, const ops_elementwise_use *use,
                     const ops_space *space, bool moved, ops_elementwise_plan *plan)
{
    const hal_device_info *info = context->info;
    const uint64_t elements = context->tuning->ranges.elements;
    const uint64_t inner = (uint64_t)space->size[space->rank - 1];
    const uint64_t lines = (uint64_t)space->size[space->rank - 2];
    const uint64_t outer = (uint64_t)ops_space_elements(space) / (inner * lines);
    uint32_t step[2];
    if (step_choose(context, use, space, lines, step) <= 0) {
        return false;
    }
    const uint64_t wide = elements > step[0] ? elements : step[0];
    uint64_t columns = inner > wide ? inner / wide : 1;
    uint64_t most = elements / (inner / columns);
    most = most > step[1] ? most : step[1];
    uint64_t ranges = range_count(lines, most, step[1]);
    const uint32_t along =
        outer > info->max_grid[2] || (moved && columns <= info->max_grid[2]) ? 2 : 0;
    columns = columns < info->max_grid[along] ? columns : info->max_grid[along];
    ranges = ranges < info->max_grid[1] ? ranges : info->max_grid[1];
    if (outer > info->max_grid[2 - along]) {
        return false;
    }
    plan->group = step[0];
    plan->lines = step[1];
    plan->columns = (uint8_t)along;
    plan->grid[along] = (uint32_t)columns;
    plan->grid[1] = (uint32_t)ranges;
    plan->grid[2 - along] = (uint32_t)outer;
    return true;
}

/* The group's share of `size`, whose parts along a dimension of the grid differ by one. */
static void emit_range(hal_ir_builder *b, uint32_t dimension, hal_ir_value size,
                       hal_ir_value range[2])
{
    const hal_ir_value id = hal_ir_id(b, HAL_IR_GROUP_ID, dimension);
    const hal_ir_value count = hal_ir_id(b, HAL_IR_GROUP_COUNT, dimension);
    const hal_ir_value share = hal_ir_div(b, size, count);
    const hal_ir_value rest = hal_ir_sub(b, size, hal_ir_mul(b, share, count));
    for (uint32_t i = 0; i < 2; i++) {
        const hal_ir_value first = i == 0 ? id : hal_ir_add(b, id, hal_ir_u32(b, 1));
        range[i] = hal_ir_add(b, hal_ir_mul(b, first, share), hal_ir_min(b, first, rest));
    }
}

/* The step at `at`, or the last one that fits, by steps of `length`. */
static hal_ir_value emit_step_start(hal_ir_builder *b, hal_ir_value at, hal_ir_value end,
                                    uint32_t length)
{
    return hal_ir_min(b, at, hal_ir_sub(b, end, hal_ir_u32(b, length)));
}

void ops_ranges_emit(hal_ir_builder *b, const ops_elementwise_plan *plan, ops_element_iter *iter,
                     ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = iter->values;
    const ops_layout *layout = iter->layout;
    const uint32_t last = layout->rank - 1, second = last - 1;
    hal_ir_value lines[2], columns[2], outer[OPS_MAX_VIEWS], start[OPS_MAX_VIEWS];
    hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    hal_ir_value size = ops_layout_line_count(b, layout, values);
    emit_range(b, 1, size, lines);
    for (uint32_t view = 0; view < layout->view_count; view++) {
        outer[view] = iter->index[view];
    }
    ops_layout_offset(b, layout, values, hal_ir_id(b, HAL_IR_GROUP_ID, 2u - plan->columns), second,
                      outer);
    iter->guard = HAL_IR_NONE;
    if (plan->masked) {
        iter->guard = hal_ir_lt(b, x, values->size[last]);
    } else {
        emit_range(b, plan->columns, values->size[last], columns);
    }
    hal_ir_value at = hal_ir_for(b, lines[0], lines[1], hal_ir_u32(b, plan->lines));
    hal_ir_value line = hal_ir_add(b, emit_step_start(b, at, lines[1], plan->lines), y);
    for (uint32_t view = 0; view < layout->view_count; view++) {
        start[view] = hal_ir_add(b, outer[view], hal_ir_mul(b, line, values->stride[view][second]));
    }
    hal_ir_value column = x;
    if (!plan->masked) {
        at = hal_ir_for(b, columns[0], columns[1], hal_ir_u32(b, plan->group));
        column = hal_ir_add(b, emit_step_start(b, at, columns[1], plan->group), x);
    }
    for (uint32_t view = 0; view < layout->view_count; view++) {
        iter->index[view] = ops_layout_step(b, layout, values, view, start[view], column);
    }
    body(b, iter, user);
    if (!plan->masked) {
        hal_ir_end(b);
    }
    hal_ir_end(b);
}
