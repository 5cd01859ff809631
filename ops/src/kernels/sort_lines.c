/* The lines that a sort reads, see sort_lines.h. */
#include "sort_lines.h"

#include "bits.h"

enum { VIEW_X, VIEW_PLACES, VIEW_COUNT };

void ops_sort_lines_init(const ops_context *context, const ops_sort_call *c,
                         const ops_tensor *further, uint32_t count, uint32_t reserved,
                         ops_sort_lines *lines)
{
    ops_tensor x = *c->x;
    x.type = ops_bits_type(context, x.type);
    lines->bindings.count = 0;
    ops_space_begin(&lines->space, x.rank, x.shape);
    ops_space_add(&lines->space, &x, 0);
    ops_space_add(&lines->space, &c->places, 0);
    ops_axis_take(&lines->space, c->axis, &lines->axis);
    lines->x = (uint8_t)ops_bind(context, &lines->bindings, &x, HAL_ACCESS_READ);
    for (uint32_t i = 0; i < count; i++) {
        ops_bind(context, &lines->bindings, &further[i], HAL_ACCESS_READ_WRITE);
    }
    lines->space.base[VIEW_X] = ops_base(&lines->bindings, lines->x, &x);
    ops_space_collapse(&lines->space, VIEW_PLACES); /* lines are numbered as places has them */
    ops_layout_choose(context, &lines->space, reserved, ops_axis_reach(&lines->axis, VIEW_COUNT),
                      &lines->layout);
}

void ops_sort_lines_key(const ops_sort_lines *lines, ops_cache_key *key)
{
    ops_bindings_key(&lines->bindings, &lines->x, 1, key);
    ops_layout_key(&lines->space, &lines->layout, key);
    ops_cache_key_append(key, lines->axis.step, VIEW_COUNT);
}

void ops_sort_lines_put(const ops_sort_lines *lines, ops_block *block)
{
    ops_layout_put(&lines->space, &lines->layout, block);
    ops_axis_put(&lines->axis, &lines->layout, block);
}

void ops_sort_lines_declare(hal_ir_builder *b, const ops_sort_lines *lines,
                            ops_sort_line_values *values)
{
    ops_layout_declare(b, &lines->space, &lines->layout, &values->values);
    ops_axis_declare(b, &lines->axis, &lines->layout, values->strides);
}

hal_ir_value ops_sort_lines_first(hal_ir_builder *b, const ops_sort_lines *lines,
                                  const ops_sort_line_values *values, hal_ir_value line)
{
    hal_ir_value index[OPS_MAX_VIEWS];
    for (uint32_t view = 0; view < VIEW_COUNT; view++) {
        index[view] = values->values.base[view];
    }
    ops_layout_offset(b, &lines->layout, &values->values, line, lines->layout.rank, index);
    return index[VIEW_X];
}

hal_ir_value ops_sort_lines_place(hal_ir_builder *b, const ops_sort_lines *lines,
                                  const ops_sort_line_values *values, hal_ir_value first,
                                  hal_ir_value place)
{
    return ops_axis_place(b, &lines->axis, values->strides, values->values.type, VIEW_X, first,
                          place);
}
