/* Iteration spaces and index arithmetic, see indexing.h. */
#include "indexing.h"

#include <stdlib.h>
#include <string.h>

static void dimension_move(ops_space *space, uint32_t from, uint32_t to)
{
    if (from == to) {
        return;
    }
    space->size[to] = space->size[from];
    for (uint32_t view = 0; view < space->view_count; view++) {
        space->stride[view][to] = space->stride[view][from];
    }
}

static void dimensions_sort(ops_space *space, uint32_t leader)
{
    for (uint32_t i = 1; i < space->rank; i++) {
        for (uint32_t j = i; j > 0; j--) {
            if (llabs(space->stride[leader][j - 1]) >= llabs(space->stride[leader][j])) {
                break;
            }
            int64_t size = space->size[j];
            space->size[j] = space->size[j - 1];
            space->size[j - 1] = size;
            for (uint32_t view = 0; view < space->view_count; view++) {
                int64_t stride = space->stride[view][j];
                space->stride[view][j] = space->stride[view][j - 1];
                space->stride[view][j - 1] = stride;
            }
        }
    }
}

static bool dimensions_can_merge(const ops_space *space, uint32_t outer, uint32_t inner)
{
    for (uint32_t view = 0; view < space->view_count; view++) {
        if (space->stride[view][outer] != space->size[inner] * space->stride[view][inner]) {
            return false;
        }
    }
    return true;
}

/* The highest index of a view in its binding. */
static int64_t highest_index(const ops_space *space, uint32_t view)
{
    int64_t place = space->base[view];
    for (uint32_t i = 0; i < space->rank; i++) {
        int64_t reach = (space->size[i] - 1) * space->stride[view][i];
        place += reach > 0 ? reach : 0;
    }
    return place;
}

static uint32_t scalar_count(const ops_layout *layout)
{
    uint32_t count = 1 + (layout->rank - 1) * (layout->index64 ? 1 : 3);
    for (uint32_t view = 0; view < layout->view_count; view++) {
        count += layout->rank + (layout->inner[view] == OPS_INNER_ANY);
    }
    return count;
}

hal_ir_value ops_divide_by_constant(hal_ir_builder *b, uint32_t divisor, hal_ir_value *x)
{
    const hal_ir_value dividend = *x;
    if (divisor == 1) {
        *x = hal_ir_u32(b, 0);
        return dividend;
    }
    uint32_t magic, shift;
    ops_magic_division(divisor, &magic, &shift);
    const hal_ir_value high = hal_ir_mulhi(b, dividend, hal_ir_u32(b, magic));
    const hal_ir_value quotient = hal_ir_shr(b, high, hal_ir_u32(b, shift));
    *x = hal_ir_sub(b, dividend, hal_ir_mul(b, quotient, hal_ir_u32(b, divisor)));
    return quotient;
}

/* x / divisor = (x * magic) >> (32 + shift) for all x below 2^31 and divisors from 2.
 * Source: T. Granlund, P. L. Montgomery, "Division by Invariant Integers using Multiplication",
 * PLDI 1994. With l = ceil(log2 divisor), magic = ceil(2^(31 + l) / divisor) fits 32 bits. */
void ops_magic_division(uint32_t divisor, uint32_t *magic, uint32_t *shift)
{
    uint32_t l = 32 - (uint32_t)__builtin_clz((divisor > 1 ? divisor : 2) - 1);
    *magic = (uint32_t)(((UINT64_C(1) << (31 + l)) + divisor - 1) / (divisor ? divisor : 1));
    *shift = l - 1;
}

static hal_ir_value layout_value(hal_ir_builder *b, const ops_layout *layout, const char *name,
                                 uint32_t i, uint32_t j, uint64_t value)
{
    hal_type type = layout->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    return layout->baked ? ops_index_constant(b, type, value) : ops_scalar(b, name, i, j, type);
}

static hal_ir_value layout_divide(hal_ir_builder *b, const ops_layout_values *values,
                                  uint32_t dimension, hal_ir_value x)
{
    if (values->type == HAL_TYPE_U64) {
        return hal_ir_div(b, x, values->size[dimension]);
    }
    return hal_ir_shr(b, hal_ir_mulhi(b, x, values->magic[dimension]), values->shift[dimension]);
}

void ops_space_begin(ops_space *space, uint32_t rank, const int64_t *shape)
{
    space->rank = rank;
    space->view_count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        space->size[i] = shape[i];
    }
}

uint32_t ops_space_add(ops_space *space, const ops_tensor *tensor, int64_t base)
{
    uint32_t view = space->view_count++;
    space->base[view] = base;
    ops_broadcast_strides(tensor, space->rank, space->size, space->stride[view]);
    return view;
}

uint32_t ops_space_add_coordinate(ops_space *space, uint32_t dimension)
{
    uint32_t view = space->view_count++;
    space->base[view] = 0;
    for (uint32_t i = 0; i < space->rank; i++) {
        space->stride[view][i] = i == dimension;
    }
    return view;
}

void ops_space_take_axis(ops_space *space, uint32_t axis, int64_t *strides)
{
    for (uint32_t view = 0; view < space->view_count; view++) {
        strides[view] = space->stride[view][axis];
    }
    for (uint32_t i = axis; i + 1 < space->rank; i++) {
        dimension_move(space, i + 1, i);
    }
    space->rank--;
}

void ops_space_move(ops_space *space, uint32_t dimension, uint32_t to)
{
    for (uint32_t i = dimension; i < to; i++) {
        const int64_t size = space->size[i];
        space->size[i] = space->size[i + 1];
        space->size[i + 1] = size;
        for (uint32_t view = 0; view < space->view_count; view++) {
            const int64_t stride = space->stride[view][i];
            space->stride[view][i] = space->stride[view][i + 1];
            space->stride[view][i + 1] = stride;
        }
    }
}

void ops_space_collapse(ops_space *space, uint32_t leader)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < space->rank; i++) {
        if (space->size[i] != 1) {
            dimension_move(space, i, rank++);
        }
    }
    space->rank = rank;
    dimensions_sort(space, leader);
    uint32_t kept = 0;
    for (uint32_t i = 1; i < rank; i++) {
        if (dimensions_can_merge(space, kept, i)) {
            int64_t size = space->size[kept] * space->size[i];
            dimension_move(space, i, kept);
            space->size[kept] = size;
        } else {
            dimension_move(space, i, ++kept);
        }
    }
    space->rank = rank ? kept + 1 : 1;
    if (rank == 0) {
        space->size[0] = 1;
        for (uint32_t view = 0; view < space->view_count; view++) {
            space->stride[view][0] = 0;
        }
    }
}

int64_t ops_space_elements(const ops_space *space)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < space->rank; i++) {
        count *= space->size[i];
    }
    return count;
}

static bool view_is_dense(const ops_space *space, uint32_t view)
{
    int64_t stride = 1;
    bool dense = true;
    for (uint32_t i = space->rank; i-- > 0;) {
        dense = dense && space->stride[view][i] == stride;
        stride *= space->size[i];
    }
    return dense;
}

static bool scalars_fit(const ops_layout *layout, uint32_t reserved)
{
    const uint32_t bytes = scalar_count(layout) * (layout->index64 ? 8 : 4);
    return bytes + reserved <= HAL_IR_MAX_SCALAR_BYTES;
}

void ops_layout_choose(const ops_context *context, const ops_space *space, uint32_t reserved,
                       int64_t reach, ops_layout *layout)
{
    *layout = (ops_layout){.rank = space->rank, .view_count = space->view_count};
    int64_t furthest = ops_space_elements(space);
    for (uint32_t view = 0; view < space->view_count; view++) {
        int64_t place = highest_index(space, view);
        furthest = place > furthest ? place : furthest;
        layout->inner[view] = ops_inner_step(space->stride[view][space->rank - 1]);
        if (context->tuning->knows_dense_views && view_is_dense(space, view)) {
            layout->dense |= UINT32_C(1) << view;
        }
    }
    layout->index64 = reach >= context->tuning->index32_limit - furthest;
    layout->baked = !scalars_fit(layout, reserved);
}

void ops_layout_find_pairs(const ops_space *space, ops_layout *layout)
{
    for (uint32_t view = 0; view < space->view_count; view++) {
        if (space->stride[view][space->rank - 1] == 2) {
            layout->inner[view] = OPS_INNER_TWO;
        }
    }
}

/* Puts dimensions of one element in front. */
static void space_widen(ops_space *space, uint32_t rank)
{
    const uint32_t added = rank - space->rank;
    for (uint32_t i = rank; i-- > 0;) {
        if (i >= added) {
            dimension_move(space, i - added, i);
            continue;
        }
        space->size[i] = 1;
        for (uint32_t view = 0; view < space->view_count; view++) {
            space->stride[view][i] = 0;
        }
    }
    space->rank = rank;
}

void ops_layout_generalise(uint32_t reserved, uint32_t few, bool keeps_inner, ops_space *space,
                           ops_layout *layout)
{
    enum { MANY = 4 };
    ops_layout made = *layout;
    made.rank = space->rank <= few ? (uint8_t)few : MANY;
    if (!keeps_inner) {
        memset(made.inner, OPS_INNER_ANY, made.view_count);
    }
    if (made.rank >= space->rank && scalars_fit(&made, reserved)) {
        *layout = made;
        space_widen(space, made.rank);
    }
}

void ops_layout_key(const ops_space *space, const ops_layout *layout, ops_cache_key *key)
{
    ops_cache_key_append(key, layout, sizeof *layout);
    if (layout->baked) {
        const size_t bytes = layout->rank * sizeof(int64_t);
        ops_cache_key_append(key, space->size, bytes);
        ops_cache_key_append(key, space->base, layout->view_count * sizeof(int64_t));
        for (uint32_t view = 0; view < layout->view_count; view++) {
            ops_cache_key_append(key, space->stride[view], bytes);
        }
    }
}

void ops_layout_put(const ops_space *space, const ops_layout *layout, ops_block *block)
{
    if (layout->baked) {
        return;
    }
    uint32_t last = layout->rank - 1;
    ops_put_index(block, layout->index64, ops_space_elements(space));
    for (uint32_t i = 1; i < layout->rank; i++) {
        ops_put_index(block, layout->index64, space->size[i]);
        if (!layout->index64) {
            uint32_t magic, shift;
            ops_magic_division((uint32_t)space->size[i], &magic, &shift);
            ops_put_u32(block, magic);
            ops_put_u32(block, shift);
        }
    }
    for (uint32_t view = 0; view < layout->view_count; view++) {
        uint32_t strides = layout->inner[view] == OPS_INNER_ANY ? last + 1 : last;
        ops_put_index(block, layout->index64, space->base[view]);
        for (uint32_t i = 0; i < strides; i++) {
            ops_put_index(block, layout->index64, space->stride[view][i]);
        }
    }
}

void ops_layout_declare(hal_ir_builder *b, const ops_space *space, const ops_layout *layout,
                        ops_layout_values *values)
{
    uint32_t last = layout->rank - 1;
    values->type = layout->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    values->total = layout_value(b, layout, "total", 0, 0, (uint64_t)ops_space_elements(space));
    values->size[0] = HAL_IR_NONE; /* no scalar, so that its use fails */
    for (uint32_t i = 1; i < layout->rank; i++) {
        values->size[i] = layout_value(b, layout, "size", i, 0, (uint64_t)space->size[i]);
        if (!layout->index64) {
            uint32_t magic, shift;
            ops_magic_division((uint32_t)space->size[i], &magic, &shift);
            values->magic[i] = layout_value(b, layout, "magic", i, 0, magic);
            values->shift[i] = layout_value(b, layout, "shift", i, 0, shift);
        }
    }
    for (uint32_t view = 0; view < layout->view_count; view++) {
        uint32_t strides = layout->inner[view] == OPS_INNER_ANY ? last + 1 : last;
        values->base[view] = layout_value(b, layout, "base", view, 0, (uint64_t)space->base[view]);
        for (uint32_t i = 0; i < strides; i++) {
            values->stride[view][i] =
                layout_value(b, layout, "stride", view, i, (uint64_t)space->stride[view][i]);
        }
    }
}

void ops_layout_offset(hal_ir_builder *b, const ops_layout *layout, const ops_layout_values *values,
                       hal_ir_value linear, uint32_t dimensions, hal_ir_value *index)
{
    /* A sum of coordinates would be an index of which a processor cannot tell that it is affine. */
    const uint32_t dense = dimensions == layout->rank ? layout->dense : 0;
    for (uint32_t view = 0; view < layout->view_count; view++) {
        if (dense >> view & 1) {
            index[view] = hal_ir_add(b, index[view], linear);
        }
    }
    for (uint32_t i = dimensions; i-- > 0;) {
        hal_ir_value coordinate = linear;
        if (i > 0) {
            hal_ir_value quotient = layout_divide(b, values, i, linear);
            coordinate = hal_ir_sub(b, linear, hal_ir_mul(b, quotient, values->size[i]));
            linear = quotient;
        }
        for (uint32_t view = 0; view < layout->view_count; view++) {
            if (dense >> view & 1) {
                continue;
            }
            if (i + 1 == layout->rank) {
                index[view] = ops_layout_step(b, layout, values, view, index[view], coordinate);
            } else {
                hal_ir_value step = hal_ir_mul(b, coordinate, values->stride[view][i]);
                index[view] = hal_ir_add(b, index[view], step);
            }
        }
    }
}

hal_ir_value ops_index_constant(hal_ir_builder *b, hal_type type, uint64_t value)
{
    return type == HAL_TYPE_U64 ? hal_ir_u64(b, value) : hal_ir_u32(b, (uint32_t)value);
}

hal_ir_value ops_layout_step(hal_ir_builder *b, const ops_layout *layout,
                             const ops_layout_values *values, uint32_t view, hal_ir_value index,
                             hal_ir_value count)
{
    switch (layout->inner[view]) {
    case OPS_INNER_ZERO:
        return index;
    case OPS_INNER_ONE:
        return hal_ir_add(b, index, count);
    case OPS_INNER_TWO:
        return hal_ir_add(b, index, hal_ir_mul(b, count, ops_index_constant(b, values->type, 2)));
    default:
        return hal_ir_add(b, index, hal_ir_mul(b, count, values->stride[view][layout->rank - 1]));
    }
}

hal_ir_value ops_value_cast(hal_ir_builder *b, hal_type type, hal_ir_value x)
{
    return hal_ir_type_of(b, x) == type ? x : hal_ir_cast(b, type, x);
}

hal_ir_value ops_index_group(hal_ir_builder *b)
{
    hal_ir_value row =
        hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 1), hal_ir_id(b, HAL_IR_GROUP_COUNT, 0));
    return hal_ir_add(b, row, hal_ir_id(b, HAL_IR_GROUP_ID, 0));
}

uint32_t ops_group_items(const hal_device_info *info)
{
    uint32_t items = info->preferred_group;
    items = items < info->max_group_items ? items : info->max_group_items;
    return items < info->max_group_size[0] ? items : info->max_group_size[0];
}

bool ops_has_lane_vectors(const ops_context *context)
{
    return context->tuning->elementwise.max_width == 1 && context->info->item_vector_bytes == 0;
}

uint32_t ops_even_share(uint64_t count, uint32_t most)
{
    uint64_t least = (count + most - 1) / most;
    for (uint64_t groups = least; groups > 0 && groups <= 2 * least; groups++) {
        if (count % groups == 0) {
            return (uint32_t)(count / groups);
        }
    }
    return least ? (uint32_t)((count + least - 1) / least) : 1;
}

hal_status ops_grid_spread(const ops_context *context, const char *function, uint64_t groups,
                           uint32_t grid[3])
{
    const uint32_t *limit = context->info->max_grid;
    uint64_t rows = (groups + limit[0] - 1) / limit[0];
    if (rows > limit[1]) {
        return hal_status_set(
            HAL_ERROR_UNSUPPORTED, "%s: %llu groups of work do not fit the grid of %s (%u x %u)",
            function, (unsigned long long)groups, context->info->name, limit[0], limit[1]);
    }
    grid[0] = (uint32_t)(rows ? (groups + rows - 1) / rows : 0);
    grid[1] = (uint32_t)rows;
    grid[2] = 1;
    return HAL_OK;
}

bool ops_space_is_transposed(const ops_space *space)
{
    for (uint32_t view = 0; view < space->view_count; view++) {
        int64_t inner = space->stride[view][space->rank - 1];
        if (space->stride[view][space->rank - 2] == 1 && inner != 0) {
            return true;
        }
    }
    return false;
}

/* Elements of a line, every second one of memory, from which vectors pay. */
enum { MIN_PAIRS = 64 };

bool ops_space_has_plain_lines(const ops_space *space)
{
    const int64_t most = space->size[space->rank - 1] >= MIN_PAIRS ? 2 : 1;
    bool plain = true;
    for (uint32_t view = 0; view < space->view_count; view++) {
        const int64_t stride = space->stride[view][space->rank - 1];
        plain = plain && stride >= 0 && stride <= most;
    }
    return plain;
}

hal_ir_value ops_layout_line_count(hal_ir_builder *b, const ops_layout *layout,
                                   const ops_layout_values *values)
{
    return layout->rank > 2 ? values->size[layout->rank - 2]
                            : hal_ir_div(b, values->total, values->size[layout->rank - 1]);
}
