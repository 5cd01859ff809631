/* Layouts of rows, see rows_layout.h. */
#include "rows_layout.h"

#include "rows_program.h"
#include "tensor/context.h"
#include "tensor/loop_limit.h"

_Static_assert(OPS_KEPT_ELEMENTS == OPS_ROW_SLOTS / 2, "rows that groups are chosen for are kept");

/* The number of slices where the outputs alone would leave compute units idle. */
static int64_t slices_wanted(const ops_context *context, const ops_reduce_layout *group,
                             int64_t outputs, int64_t length)
{
    const hal_device_info *info = context->info;
    const ops_rows_tuning *tuning = &context->tuning->rows;
    if (outputs == 0) {
        return 1;
    }
    const int64_t groups = (outputs + group->outputs - 1) / group->outputs;
    const int64_t across = outputs < group->outputs ? outputs : group->outputs;
    const int64_t items = (int64_t)group->outputs * group->along;
    const int64_t units = info->compute_units, wanted = tuning->unit_groups * units;
    int64_t most = length / ((int64_t)group->along * tuning->min_steps);
    int64_t by_size = length * across / tuning->min_slice;
    if (units < tuning->min_slicing_units || length * across < tuning->min_sliced) {
        by_size = 1;
    }
    most = by_size < most ? by_size : most;
    most = most < tuning->max_slices ? most : tuning->max_slices;
    most = most < info->max_grid[2] ? most : info->max_grid[2];
    int64_t slices;
    if (wanted > 0) {
        slices = 2 * groups > wanted ? 1 : (wanted + groups - 1) / groups;
    } else {
        /* One more group than fit at once would double the time. */
        slices = groups * items >= units * tuning->busy_items
                     ? 1
                     : units * tuning->full_items / (groups * items);
    }
    return slices < most ? slices : most;
}

/* The least number of slices whose loops the device can execute. */
static hal_status least_slices(const ops_context *context, const char *function,
                               const ops_reduce_layout *group, int64_t length, int64_t steps,
                               int64_t *least)
{
    const int64_t step = (int64_t)group->width * group->unroll;
    *least = 1;
    if (ops_reduce_layout_chunks(group, length) * group->width < steps) {
        return HAL_OK;
    }
    const int64_t slice = steps / step * step * group->along;
    *least = slice ? (length + slice - 1) / slice : INT64_MAX;
    if (*least > context->info->max_grid[2] || *least >= ops_loop_limit(context, 0, 0)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: x: expected at most %lld steps along the axis for each "
                              "work-item, since %s limits the iterations of loops, got %lld "
                              "elements; reduce in parts, or without a prologue",
                              function, (long long)steps, context->info->name, (long long)length);
    }
    return HAL_OK;
}

/* The space of the outputs, and the axis. */
static void outputs_space(const ops_tensor *x, uint32_t axis, ops_space *space, ops_axis *taken)
{
    ops_space_begin(space, x->rank, x->shape);
    ops_space_add(space, x, 0);
    ops_axis_take(space, axis, taken);
    ops_space_collapse(space, 0);
}

/* Chooses the group. Returns the number of outputs. */
static int64_t layout_choose_group(const ops_context *context, const ops_tensor *x, uint32_t axis,
                                   hal_type type, ops_row_layout *layout)
{
    ops_space space;
    ops_axis taken;
    outputs_space(x, axis, &space, &taken);
    ops_reduce_layout_choose(context, &space, &taken, type, &layout->group);
    layout->slices = 1;
    layout->slice_length = (uint32_t)taken.length;
    return ops_space_elements(&space);
}

void ops_row_layout_whole(const ops_context *context, const ops_tensor *x, uint32_t axis,
                          hal_type type, ops_row_layout *layout)
{
    layout_choose_group(context, x, axis, type, layout);
}

hal_status ops_row_layout_choose(const ops_context *context, const char *function,
                                 const ops_tensor *x, uint32_t axis, hal_type type, int64_t steps,
                                 ops_row_layout *layout)
{
    int64_t least;
    const int64_t outputs = layout_choose_group(context, x, axis, type, layout);
    const ops_reduce_layout *group = &layout->group;
    const int64_t length = x->shape[axis];
    int64_t slices = slices_wanted(context, group, outputs, length);
    hal_status status = least_slices(context, function, group, length, steps, &least);
    slices = slices < least ? least : slices;
    if (status != HAL_OK || slices < 2) {
        return status;
    }
    /* Whole steps of loops, and as many slices as they fill. */
    const int64_t step = (int64_t)group->along * group->width * group->unroll;
    const int64_t slice = ((length + slices - 1) / slices + step - 1) / step * step;
    layout->slice_length = (uint32_t)slice;
    layout->slices = (uint32_t)((length + slice - 1) / slice);
    ops_reduce_layout_set_length(context, slice, type, &layout->group);
    return HAL_OK;
}

void ops_row_layout_keep(const ops_context *context, const ops_tensor *x, uint32_t axis,
                         hal_type type, ops_row_layout *layout)
{
    ops_space space;
    ops_axis taken;
    if (layout->slices == 1) {
        outputs_space(x, axis, &space, &taken);
        ops_reduce_layout_keep(context, &space, &taken, hal_type_size(x->type), type,
                               &layout->group);
    }
}

bool ops_row_layout_keeps(const ops_context *context, const ops_row_layout *layout, int64_t length,
                          uint32_t words)
{
    const ops_reduce_layout *group = &layout->group;
    const int64_t kept = ops_reduce_layout_chunks(group, length) * group->width;
    const uint32_t items = group->outputs * group->along * group->layers;
    const ops_rows_tuning *tuning = &context->tuning->rows;
    const int64_t most = items > tuning->large_group ? tuning->max_large_kept : tuning->max_kept;
    /* An order with blocks is that of loops. */
    return layout->slices == 1 && !group->blocks && length > 0 && kept <= OPS_ROW_SLOTS / 2 &&
           kept * words <= most;
}
