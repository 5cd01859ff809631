/* The skeleton of elementwise kernels, see elementwise.h. */
#include "elementwise.h"

/* A row shorter than this many work-items is not worth a group of its own; lanes in lock-step,
 * which reach neighbours much faster than scattered elements, take several lines from there on. */
#define LEAST_ROW 32u
#define LEAST_LANES 48u

/* Lanes along x of a group that is a tile: a line of a cache. */
#define TILE_SIDE 16u

static int width_fits(const ops_space *space, uint32_t view, uint32_t width, uint64_t start)
{
    const int64_t *stride = space->stride[view];
    if (stride[space->rank - 1] != 1) {
        return 1;
    }
    int fits = space->base[view] % width == 0 && start % width == 0;
    for (uint32_t i = 0; fits && i + 1 < space->rank; i++) {
        fits = stride[i] % width == 0;
    }
    return fits;
}

/* The largest width at which every view that steps by one is aligned at every row. */
static uint32_t usable_width(const ops_space *space, uint32_t widest, const uint64_t *starts)
{
    uint32_t width = widest < OPS_MAX_WIDTH ? widest : OPS_MAX_WIDTH;
    for (; width > 1; width /= 2) {
        int fits = space->rank == 1 || space->size[space->rank - 1] % width == 0;
        for (uint32_t view = 0; fits && view < space->view_count; view++) {
            fits = width_fits(space, view, width, starts ? starts[view] : 0);
        }
        if (fits) {
            return width;
        }
    }
    return 1;
}

/* Whether a view's neighbours lie along the second innermost dimension: groups are then tiles, so
 * that the memory that one line brings near serves the next ones. */
static int steps_across(const ops_space *space)
{
    for (uint32_t view = 0; view < space->view_count; view++) {
        int64_t inner = space->stride[view][space->rank - 1];
        if (space->stride[view][space->rank - 2] == 1 && inner != 0) {
            return 1;
        }
    }
    return 0;
}

/* Groups of lanes that a row, or several, fill without idle ones where that can be. False when the
 * two innermost dimensions are too small together. */
static int fit_lanes(const ops_space *space, ops_elementwise_plan *walk)
{
    uint64_t inner = (uint64_t)space->size[space->rank - 1];
    uint64_t lines = (uint64_t)space->size[space->rank - 2];
    int tiled = steps_across(space);
    uint32_t group = ops_even_share(inner, tiled ? TILE_SIDE : walk->group);
    uint32_t together = tiled || group == inner ? ops_even_share(lines, walk->group / group) : 1;
    if (group * together < LEAST_LANES) {
        return 0;
    }
    walk->group = group;
    walk->lines = together;
    return 1;
}

/* Where each work-item is on its own, groups are whole 64s, as few of them idle as may be. */
static hal_status plan_rows(const ops_context *context, const char *function,
                            const ops_space *space, ops_elementwise_plan *walk)
{
    uint64_t items = (uint64_t)space->size[space->rank - 1] / walk->width +
                     ((uint64_t)space->size[space->rank - 1] % walk->width != 0);
    uint64_t lines = (uint64_t)space->size[space->rank - 2];
    uint64_t rows = (uint64_t)ops_space_elements(space) / (uint64_t)space->size[space->rank - 1];
    uint64_t groups = (items + walk->group - 1) / walk->group;
    if (context->info->kind != HAL_DEVICE_CPU) {
        uint64_t even = ((items + groups - 1) / groups + 63) / 64 * 64;
        walk->group = even < walk->group ? (uint32_t)even : walk->group;
        groups = (items + walk->group - 1) / walk->group;
    }
    rows = rows / lines * ((lines + walk->lines - 1) / walk->lines);

    const uint32_t *limit = context->info->max_grid;
    uint64_t layers = (rows + limit[1] - 1) / limit[1];
    if (groups > limit[0] || layers > limit[2]) {
        return hal_status_set(
            HAL_ERROR_UNSUPPORTED, "%s: %llu rows of %llu groups do not fit the grid of %s",
            function, (unsigned long long)rows, (unsigned long long)groups, context->info->name);
    }
    walk->grid[0] = (uint32_t)groups;
    walk->grid[1] = (uint32_t)((rows + layers - 1) / layers);
    walk->grid[2] = (uint32_t)layers;
    walk->grid_may_overrun = layers > 1;
    return HAL_OK;
}

/* The first element of a work-item: (group * size + local id) * width. */
static hal_ir_value work_item(hal_ir_builder *b, const ops_elementwise_plan *walk, hal_type type,
                              hal_ir_value group)
{
    hal_ir_value start =
        hal_ir_mul(b, ops_value_cast(b, type, group), ops_index_constant(b, type, walk->group));
    hal_ir_value item =
        hal_ir_add(b, start, ops_value_cast(b, type, hal_ir_id(b, HAL_IR_LOCAL_ID, 0)));
    return walk->width == 1 ? item : hal_ir_mul(b, item, ops_index_constant(b, type, walk->width));
}

/* Several lines to a group: the second innermost dimension comes from the group's place and the
 * work-item's y. Gives the number of the row. Dimension 0 has no length of its own among the
 * scalars: where it is the second innermost, what is left of the elements bounds it. */
static hal_ir_value enter_lines(hal_ir_builder *b, const ops_elementwise_plan *walk,
                                ops_element_iter *cursor, hal_ir_value group)
{
    const ops_layout_values *values = cursor->values;
    const ops_layout *layout = cursor->layout;
    uint32_t second = layout->rank - 2;
    hal_ir_value count = ops_index_constant(b, values->type, walk->lines);
    hal_ir_value y = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_LOCAL_ID, 1));
    hal_ir_value size = second ? values->size[second]
                               : hal_ir_div(b, values->total, values->size[layout->rank - 1]);
    hal_ir_value chunk = group, outer = HAL_IR_NONE;
    if (second > 0) {
        hal_ir_value less = ops_index_constant(b, values->type, walk->lines - 1);
        hal_ir_value chunks = hal_ir_div(b, hal_ir_add(b, size, less), count);
        outer = hal_ir_div(b, group, chunks);
        chunk = hal_ir_sub(b, group, hal_ir_mul(b, outer, chunks));
        ops_layout_offset(b, layout, values, outer, second, cursor->index);
    }
    hal_ir_value line = hal_ir_add(b, hal_ir_mul(b, chunk, count), y);
    cursor->guard = hal_ir_and(b, cursor->guard, hal_ir_lt(b, line, size));
    for (uint32_t view = 0; view < layout->view_count; view++) {
        hal_ir_value step = hal_ir_mul(b, line, values->stride[view][second]);
        cursor->index[view] = hal_ir_add(b, cursor->index[view], step);
    }
    return second ? hal_ir_add(b, hal_ir_mul(b, outer, size), line) : line;
}

/* The innermost dimension along x, the others by one linear index of y and z. */
static void emit_rows(hal_ir_builder *b, const ops_elementwise_plan *walk, ops_element_iter *cursor,
                      ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = cursor->values;
    const ops_layout *layout = cursor->layout;
    uint32_t last = layout->rank - 1;
    hal_ir_value row = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 1));
    if (walk->grid_may_overrun) {
        hal_ir_value z = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
        hal_ir_value rows = ops_value_cast(b, values->type, hal_ir_id(b, HAL_IR_GROUP_COUNT, 1));
        row = hal_ir_add(b, row, hal_ir_mul(b, z, rows));
    }
    hal_ir_value column = work_item(b, walk, values->type, hal_ir_id(b, HAL_IR_GROUP_ID, 0));
    cursor->guard = hal_ir_lt(b, column, values->size[last]);
    if (walk->lines > 1) {
        row = enter_lines(b, walk, cursor, row);
    } else {
        ops_layout_offset(b, layout, values, row, last, cursor->index);
    }
    for (uint32_t view = 0; view < layout->view_count; view++) {
        cursor->index[view] = ops_layout_step(b, layout, values, view, cursor->index[view], column);
    }
    if (walk->grid_may_overrun) {
        hal_ir_value start = hal_ir_mul(b, row, values->size[last]);
        cursor->guard = hal_ir_and(b, cursor->guard, hal_ir_lt(b, start, values->total));
    }
    body(b, cursor, user);
}

/* One by one what is left of a space of rank 1. */
static void emit_tail(hal_ir_builder *b, const ops_elementwise_plan *walk,
                      const ops_element_iter *cursor, hal_ir_value first, ops_elementwise_body body,
                      const void *user)
{
    hal_type type = cursor->values->type;
    hal_ir_value i =
        hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, walk->width - 1), hal_ir_u32(b, 1));
    hal_ir_value step = ops_value_cast(b, type, i);
    ops_element_iter single = *cursor;
    single.width = 1;
    single.guard = hal_ir_lt(b, hal_ir_add(b, first, step), cursor->values->total);
    for (uint32_t view = 0; view < walk->layout.view_count; view++) {
        single.index[view] =
            ops_layout_step(b, cursor->layout, cursor->values, view, cursor->index[view], step);
    }
    body(b, &single, user);
    hal_ir_end(b);
}

/* All dimensions by one linear index. */
static void emit_flat(hal_ir_builder *b, const ops_elementwise_plan *walk, ops_element_iter *cursor,
                      ops_elementwise_body body, const void *user)
{
    const ops_layout_values *values = cursor->values;
    hal_ir_value first = work_item(b, walk, values->type, ops_index_group(b));
    ops_layout_offset(b, cursor->layout, values, first, walk->layout.rank, cursor->index);
    if (!walk->tail) {
        cursor->guard = hal_ir_lt(b, first, values->total);
        body(b, cursor, user);
        return;
    }
    hal_ir_value end = hal_ir_add(b, first, ops_index_constant(b, values->type, walk->width));
    hal_ir_if(b, hal_ir_le(b, end, values->total));
    cursor->guard = HAL_IR_NONE;
    body(b, cursor, user);
    hal_ir_else(b);
    emit_tail(b, walk, cursor, first, body, user);
    hal_ir_end(b);
}

hal_status ops_elementwise_plan_init(const ops_context *context, const char *function,
                                     const ops_space *space, uint32_t widest,
                                     const uint64_t *starts, uint32_t reserved, int64_t reach,
                                     ops_elementwise_plan *walk)
{
    const hal_device_info *info = context->info;
    ops_layout_choose(context, space, reserved, reach, &walk->layout);
    /* Lanes of a processor run side by side through neighbouring elements already. */
    int lanes = info->kind == HAL_DEVICE_CPU;
    walk->width = lanes ? 1 : usable_width(space, widest, starts);
    walk->group = info->preferred_group;
    walk->group = walk->group < info->max_group_items ? walk->group : info->max_group_items;
    walk->group = walk->group < info->max_group_size[0] ? walk->group : info->max_group_size[0];
    walk->lines = 1;
    walk->grid_may_overrun = 0;
    walk->tail = 0;
    /* Few elements are spread over the units first: each then has less to do, and less code. */
    const uint64_t items = (uint64_t)ops_space_elements(space);
    while (walk->width > 1 && items < (uint64_t)walk->width * walk->group * info->compute_units) {
        walk->width /= 2;
    }
    uint64_t inner = (uint64_t)space->size[space->rank - 1];
    walk->rows =
        space->rank > 1 && (lanes ? fit_lanes(space, walk) : inner / walk->width >= LEAST_ROW);
    if (walk->rows) {
        return plan_rows(context, function, space, walk);
    }
    uint64_t total = (uint64_t)ops_space_elements(space);
    walk->tail = total % walk->width != 0;
    if (lanes && total < walk->group) {
        walk->group = (uint32_t)total; /* no idle lanes, which cost as much as busy ones */
    }
    uint64_t step = (uint64_t)walk->group * walk->width;
    return ops_grid_spread(context, function, (total + step - 1) / step, walk->grid);
}

void ops_elementwise_key(const ops_space *space, const ops_elementwise_plan *walk,
                         ops_cache_key *signature)
{
    ops_cache_key_append(signature, walk->width | (uint64_t)walk->rows << 8 |
                                        (uint64_t)walk->tail << 9 |
                                        (uint64_t)walk->grid_may_overrun << 10 |
                                        (uint64_t)walk->lines << 16 | (uint64_t)walk->group << 32);
    ops_layout_key(space, &walk->layout, signature);
}

void ops_elementwise_declare(hal_ir_builder *b, const ops_space *space,
                             const ops_elementwise_plan *walk, ops_layout_values *values)
{
    hal_ir_group_size(b, walk->group, walk->lines, 1);
    ops_layout_declare(b, space, &walk->layout, values);
}

void ops_elementwise_emit(hal_ir_builder *b, const ops_elementwise_plan *walk,
                          const ops_layout_values *values, ops_elementwise_body body,
                          const void *user)
{
    ops_element_iter cursor;
    cursor.width = walk->width;
    cursor.layout = &walk->layout;
    cursor.values = values;
    for (uint32_t view = 0; view < walk->layout.view_count; view++) {
        cursor.index[view] = values->base[view];
    }
    if (walk->rows) {
        emit_rows(b, walk, &cursor, body, user);
    } else {
        emit_flat(b, walk, &cursor, body, user);
    }
}

hal_ir_value ops_element_index(hal_ir_builder *b, const ops_element_iter *cursor, uint32_t view,
                               uint32_t element)
{
    if (element == 0) {
        return cursor->index[view];
    }
    return ops_layout_step(b, cursor->layout, cursor->values, view, cursor->index[view],
                           ops_index_constant(b, cursor->values->type, element));
}

void ops_element_load(hal_ir_builder *b, const ops_element_iter *cursor, uint32_t view,
                      hal_ir_memory_id memory, hal_ir_value *elements)
{
    uint32_t inner = cursor->layout->inner[view];
    if (inner == OPS_INNER_ONE && cursor->width > 1) {
        hal_ir_value vector =
            hal_ir_load_wide(b, memory, cursor->index[view], 0, cursor->width, cursor->guard);
        for (uint32_t i = 0; i < cursor->width; i++) {
            elements[i] = hal_ir_extract(b, vector, i);
        }
        return;
    }
    for (uint32_t i = 0; i < cursor->width; i++) {
        elements[i] = inner == OPS_INNER_ZERO && i > 0
                          ? elements[0]
                          : hal_ir_load_wide(b, memory, ops_element_index(b, cursor, view, i), 0, 1,
                                             cursor->guard);
    }
}

void ops_element_store(hal_ir_builder *b, const ops_element_iter *cursor, uint32_t view,
                       hal_ir_memory_id memory, const hal_ir_value *elements)
{
    if (cursor->layout->inner[view] == OPS_INNER_ONE && cursor->width > 1) {
        hal_ir_value vector = hal_ir_pack(b, cursor->width, elements);
        hal_ir_store_wide(b, memory, cursor->index[view], 0, cursor->guard, vector);
        return;
    }
    for (uint32_t i = 0; i < cursor->width; i++) {
        hal_ir_store_wide(b, memory, ops_element_index(b, cursor, view, i), 0, cursor->guard,
                          elements[i]);
    }
}
