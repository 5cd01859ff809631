/* Elementwise kernels over tiles, see transposed.h.
 *
 * A group computes a box of the space: tile[0] elements of the innermost dimension in columns,
 * tile[1] of the staged one in rows, and where one of these is short, tile[2] of the dimension that
 * continues it in memory in layers. It copies its part of the staged views to shared memory, where
 * columns and layers are an odd number of elements apart, so that neither writing along a column
 * nor reading along a row meets one bank twice. Then the work-items compute, neighbours of the
 * output. */
#include "transposed.h"

#include "tensor/context.h"

#include <stdlib.h>

/* Elements that a work-item has in flight. */
#define LOADS 16u

static uint32_t least(uint64_t x, uint64_t y)
{
    return (uint32_t)(x < y ? x : y);
}

/* The distance of columns, rows or layers of a box in shared memory, in elements. */
static uint32_t pitch_of(const uint32_t tile[OPS_TILE_AXES], uint32_t axis)
{
    const uint32_t layer = tile[1] | 1;
    return axis == 1 ? 1 : axis == 2 ? layer : layer * tile[2] | 1;
}

static uint32_t box_elements(const uint32_t tile[OPS_TILE_AXES])
{
    return tile[0] * tile[1] * tile[2];
}

/* The dimension of an axis of the box in a space whose dimensions have been moved. */
static uint32_t axis_dimension(uint32_t rank, uint32_t axis)
{
    return rank - 1 - axis;
}

/* Bytes of the sectors that `count` elements of `size` bytes touch, `step` elements apart. Where
 * sectors are shared, neighbouring lines of elements share the first and the last one as well. */
static uint64_t touched_bytes(uint32_t sector, uint64_t count, uint64_t step, uint32_t size)
{
    return step * size < sector ? count * step * size : (uint64_t)count * sector;
}

/* Whether reading a view along `other` and through shared memory costs less than reading it along
 * the innermost dimension. Staging reads a run of `other` for each column; runs that follow each
 * other in memory share sectors. It writes and reads every value in shared memory. */
static bool staging_pays(const ops_transposed_tuning *tuning, const ops_space *space, uint32_t view,
                         uint32_t other, uint32_t size)
{
    const uint32_t sector = tuning->sector_bytes;
    const uint64_t run = least((uint64_t)space->size[other], tuning->max_run);
    const uint64_t across = (uint64_t)llabs(space->stride[view][space->rank - 1]);
    const uint64_t along = (uint64_t)llabs(space->stride[view][other]);
    const uint64_t value = size > 4 ? size : 4;
    const uint64_t alone = touched_bytes(sector, run, along, size) + sector - size;
    const uint64_t staged = alone < across * size ? alone : across * size;
    const uint64_t direct = run * touched_bytes(sector, 1, across, size);
    return direct >= staged + run * 2 * value;
}

/* The dimension along which reading a view through shared memory is cheaper; the innermost one if
 * there is none. */
static uint32_t other_dimension(const ops_transposed_tuning *tuning, const ops_space *space,
                                uint32_t view, uint32_t size)
{
    const int64_t *stride = space->stride[view];
    const uint32_t last = space->rank - 1;
    uint32_t other = last;
    for (uint32_t i = 0; i < last && llabs(stride[last]) > 1; i++) {
        const int64_t step = llabs(stride[i]);
        if (space->size[i] > 1 && step > 0 && step < llabs(stride[other]) &&
            step <= tuning->max_step) {
            other = i;
        }
    }
    return other != last && staging_pays(tuning, space, view, other, size) ? other : last;
}

/* The side of a tile of `elements` next to one of `side`: a multiple of 32 if it is that long, a
 * power of two if it is longer than a group, whose work-items then have the same part of each
 * column. */
static uint32_t other_side(uint32_t elements, uint32_t side)
{
    const uint32_t rest = elements / side;
    uint32_t power = 32;
    while (power <= rest / 2) {
        power *= 2;
    }
    return rest < 32 ? rest : rest < 256 ? rest / 32 * 32 : power;
}

/* Sides of at most `side` that cover a dimension evenly, in steps that suit every width; `side`
 * itself where the last of many is the only one that is not full. */
static uint32_t even_side(uint32_t many, uint64_t size, uint32_t side)
{
    const uint64_t count = (size + side - 1) / side;
    if (count > many) {
        return side;
    }
    const uint32_t even = (uint32_t)((size + count - 1) / count);
    return count == 1 ? even
                      : least((even + OPS_MAX_WIDTH - 1) / OPS_MAX_WIDTH * OPS_MAX_WIDTH, side);
}

/* Sides of at most `elements`: near a square, or longer next to a short dimension. */
static void tile_fit(uint32_t many, const ops_space *space, uint32_t other, uint32_t elements,
                     uint32_t tile[2])
{
    const uint64_t columns = (uint64_t)space->size[space->rank - 1];
    const uint64_t rows = (uint64_t)space->size[other];
    uint32_t side = 64;
    while (side * side > elements) {
        side /= 2;
    }
    tile[1] = least(rows, side);
    tile[0] = even_side(many, columns, other_side(elements, tile[1]));
    tile[1] = even_side(many, rows, tile[0] < side ? other_side(elements, tile[0]) : side);
}

/* The dimension that continues a short side of the box in memory, so that memory is read or written
 * in longer runs: the innermost dimension in the view `output`, or `other` in the view `input`.
 * Returns the innermost dimension where there is no such third one. */
static uint32_t third_dimension(int64_t box_side, const ops_space *space, uint32_t other,
                                uint32_t input, uint32_t output)
{
    const uint32_t last = space->rank - 1;
    const bool along_output = space->size[last] < box_side;
    const uint32_t side = along_output ? last : other;
    const int64_t *stride = space->stride[along_output ? output : input];
    for (uint32_t i = 0; i < last && space->size[side] < box_side; i++) {
        if (i != other && space->stride[input][i] != 0 &&
            stride[i] == space->size[side] * stride[side]) {
            return i;
        }
    }
    return last;
}

/* Sides of at most `elements` with a third dimension, which is as long as the short one of the two
 * others leaves room for. */
static void box_fit(const ops_transposed_tuning *tuning, const ops_space *space, uint32_t other,
                    uint32_t third, uint32_t elements, uint32_t tile[OPS_TILE_AXES])
{
    uint32_t side = tuning->box_side;
    while (side * side > elements) {
        side /= 2;
    }
    const uint64_t columns = (uint64_t)space->size[space->rank - 1];
    const uint64_t rows = (uint64_t)space->size[other];
    tile[0] = even_side(tuning->many_sides, columns, side);
    tile[1] = even_side(tuning->many_sides, rows, side);
    /* A multiple of `step` times the short side is one of every width. */
    const uint32_t room = elements / (tile[0] * tile[1]), short_side = least(tile[0], tile[1]);
    uint32_t step = OPS_MAX_WIDTH;
    while (step > 1 && OPS_MAX_WIDTH / step < (short_side & -short_side)) {
        step /= 2;
    }
    tile[2] = room >= step ? room / step * step : room > 1 ? room : 1;
    tile[2] = least(tile[2], (uint64_t)space->size[third]);
}

static uint64_t tile_count(const ops_space *space, const uint32_t tile[OPS_TILE_AXES],
                           uint32_t axis)
{
    const uint64_t size = (uint64_t)space->size[axis_dimension(space->rank, axis)];
    return (size + tile[axis] - 1) / tile[axis];
}

uint64_t ops_transposed_groups(const ops_space *space, const uint32_t tile[OPS_TILE_AXES])
{
    uint64_t groups = (uint64_t)ops_space_elements(space);
    for (uint32_t axis = 0; axis < (tile[2] > 1 ? 3 : 2); axis++) {
        groups = groups / (uint64_t)space->size[axis_dimension(space->rank, axis)] *
                 tile_count(space, tile, axis);
    }
    return groups;
}

/* The axes of the box in the order of `view`'s memory, from `first` on. */
static ops_tile_order order_of(const ops_space *space, uint32_t view, uint32_t first,
                               const uint32_t tile[OPS_TILE_AXES])
{
    const uint32_t a = first == 0 ? 1 : 0, b = 2;
    const bool has_third = tile[2] > 1;
    const int64_t *stride = space->stride[view];
    const int swap = has_third && llabs(stride[axis_dimension(space->rank, b)]) <
                                      llabs(stride[axis_dimension(space->rank, a)]);
    return (ops_tile_order){
        .axis = {(uint8_t)first, (uint8_t)(swap ? b : a), (uint8_t)(swap ? a : b)}, .joint = 1};
}

/* Whether the views of the set can be accessed `width` elements at a time along the first `joint`
 * axes, as one dimension. */
static bool width_fits(const ops_space *space, const ops_elementwise_use *use, uint32_t views,
                       const ops_tile_order *order, const uint32_t tile[OPS_TILE_AXES],
                       uint32_t width)
{
    const uint32_t first = axis_dimension(space->rank, order->axis[0]);
    uint64_t size = 1, length = 1;
    uint32_t joined = 0;
    for (uint32_t i = 0; i < order->joint; i++) {
        const uint32_t dimension = axis_dimension(space->rank, order->axis[i]);
        size *= (uint64_t)space->size[dimension];
        length *= tile[order->axis[i]];
        joined |= UINT32_C(1) << dimension;
    }
    bool fits = size % width == 0 && length % width == 0;
    for (uint32_t view = 0; view < space->view_count; view++) {
        const uint64_t start = use->starts ? use->starts[view] : 0;
        if (!(views >> view & 1) || space->stride[view][first] != 1) {
            continue;
        }
        fits &= start % width == 0 && space->base[view] % width == 0;
        for (uint32_t i = 0; i < space->rank; i++) {
            fits &= (joined >> i & 1) || space->stride[view][i] % width == 0;
        }
    }
    return fits;
}

/* Whether the first `joint` axes and the next one are one dimension of all views of the set. */
static bool axes_join(const ops_space *space, uint32_t views, const ops_tile_order *order,
                      const uint32_t tile[OPS_TILE_AXES])
{
    const uint32_t axis = order->axis[order->joint - 1], next = order->axis[order->joint];
    if (next == 2 && tile[2] == 1) {
        return false;
    }
    const uint32_t inner = axis_dimension(space->rank, axis),
                   outer = axis_dimension(space->rank, next);
    bool joins = tile[axis] == space->size[inner];
    for (uint32_t view = 0; view < space->view_count; view++) {
        const int64_t *stride = space->stride[view];
        joins &= !(views >> view & 1) || stride[outer] == space->size[inner] * stride[inner];
    }
    return joins;
}

/* The most elements that the views of the set can be accessed at a time, and the axes joined for
 * it, where more than one. */
static uint32_t order_width(const ops_space *space, const ops_elementwise_use *use, uint32_t views,
                            const uint32_t tile[OPS_TILE_AXES], ops_tile_order *order)
{
    ops_tile_order tried = *order;
    uint32_t best = 1;
    for (;;) {
        uint32_t width = use->widest < OPS_MAX_WIDTH ? use->widest : OPS_MAX_WIDTH;
        while (width > best && !width_fits(space, use, views, &tried, tile, width)) {
            width /= 2;
        }
        if (width > best) {
            best = width;
            *order = tried;
        }
        if (tried.joint == OPS_TILE_AXES || !axes_join(space, views, &tried, tile)) {
            return best;
        }
        tried.joint++;
    }
}

/* The order of memory of the staged views and that of the others, with their widths. */
static void plan_orders(ops_space *space, const ops_elementwise_use *use, uint32_t input,
                        uint32_t output, ops_elementwise_plan *plan)
{
    const uint32_t all = (UINT32_C(1) << space->view_count) - 1;
    bool contiguous = true;
    for (uint32_t view = 0; view < space->view_count; view++) {
        contiguous &=
            !(plan->staged >> view & 1) || space->stride[view][axis_dimension(space->rank, 1)] == 1;
    }
    plan->loaded = order_of(space, input, 1, plan->tile);
    plan->computed = order_of(space, output, 0, plan->tile);
    plan->staged_width =
        contiguous ? order_width(space, use, plan->staged, plan->tile, &plan->loaded) : 1;
    while (plan->staged_width > plan->tuning->max_staged_width) {
        plan->staged_width /= 2;
    }
    plan->width = order_width(space, use, all & ~plan->staged, plan->tile, &plan->computed);
}

/* Whether a view's lines are longer than a tile and begin at other places than whole sectors. */
static bool has_ragged_lines(const ops_transposed_tuning *tuning, const ops_space *space,
                             uint32_t view, uint32_t size)
{
    bool ragged = false;
    if (space->size[space->rank - 1] <= tuning->box_side) {
        return false;
    }
    for (uint32_t i = 0; i + 1 < space->rank; i++) {
        ragged |=
            space->size[i] > 1 && llabs(space->stride[view][i]) * size % tuning->sector_bytes != 0;
    }
    return ragged;
}

/* Whether tiles of the innermost dimension and `other` are read along the latter, by squares in
 * registers. */
static bool has_squares(const ops_transposed_tuning *tuning, const ops_space *space, uint32_t other)
{
    const int64_t columns = space->size[space->rank - 1], lines = space->size[other];
    const bool is_short = columns < tuning->long_side && other + 2 != space->rank;
    return tuning->min_lines > 0 && lines >= tuning->min_lines &&
           (!is_short || (columns >= tuning->min_columns && columns * lines >= tuning->min_square));
}

void ops_transposed_choose(const ops_context *context, const ops_elementwise_use *use,
                           ops_space *space, ops_elementwise_plan *plan)
{
    const hal_device_info *info = context->info;
    const ops_transposed_tuning *tuning = &context->tuning->transposed;
    const uint32_t last = space->rank - 1;
    uint32_t staged[OPS_MAX_RANK] = {0}, counts[OPS_MAX_RANK] = {0}, other = last, value_size = 4;
    uint32_t input = 0, output = 0, *tile = plan->tile;
    plan->tuning = tuning;
    plan->staged = plan->staged_width = 0;
    plan->loaded = plan->computed = (ops_tile_order){0};
    for (uint32_t view = 0; view < space->view_count; view++) {
        if (!(use->loaded >> view & 1)) {
            output = view;
            continue;
        }
        const uint32_t size = use->sizes[view];
        const uint32_t dimension = other_dimension(tuning, space, view, size);
        staged[dimension] |= UINT32_C(1) << view;
        counts[dimension] += dimension != last;
        value_size = size > value_size ? size : value_size;
    }
    for (uint32_t i = 0; i < last; i++) {
        other = counts[i] > (other == last ? 0 : counts[other]) ? i : other;
    }
    if (other != last && has_squares(tuning, space, other)) {
        ops_space_move(space, other, last - 1);
    }
    if (tuning->max_elements == 0) {
        other = last;
    }
    while (other != last && !(staged[other] >> input & 1)) {
        input++;
    }
    const uint32_t third =
        other == last ? last : third_dimension(tuning->box_side, space, other, input, output);
    const uint32_t shared = least(info->shared_bytes, tuning->max_shared_bytes);
    const bool is_ragged = other != last && third == last &&
                           has_ragged_lines(tuning, space, output, use->sizes[output]);
    for (uint32_t elements = is_ragged ? tuning->max_ragged_elements : tuning->max_elements;
         other != last && elements >= tuning->min_elements; elements /= 2) {
        tile[2] = 1;
        if (third == last) {
            tile_fit(tuning->many_sides, space, other, elements, tile);
        } else {
            box_fit(tuning, space, other, third, elements, tile);
        }
        const uint64_t bytes = (uint64_t)counts[other] * tile[0] * pitch_of(tile, 0) * value_size;
        const uint64_t groups = (uint64_t)ops_space_elements(space) / box_elements(tile);
        const int fills = groups >= info->compute_units || elements <= 4 * plan->group;
        if (bytes <= shared && fills && box_elements(tile) >= tuning->min_elements) {
            ops_space_move(space, other, last - 1);
            if (tile[2] > 1) {
                ops_space_move(space, third > other ? third - 1 : third, last - 2);
            }
            plan->staged = staged[other];
            plan_orders(space, use, input, output, plan);
            return;
        }
    }
    tile[0] = tile[1] = tile[2] = 0;
}

/* The axes that tiles have in a kernel. */
static uint32_t axis_count(const ops_elementwise_plan *plan)
{
    return plan->tile[2] > 1 ? 3 : 2;
}

void ops_transposed_put(const ops_space *space, const ops_elementwise_plan *plan, ops_block *block)
{
    const uint8_t index64 = plan->layout.index64;
    for (uint32_t axis = 0; axis < axis_count(plan); axis++) {
        const uint32_t dimension = axis_dimension(space->rank, axis);
        ops_put_index(block, index64, (int64_t)tile_count(space, plan->tile, axis));
        ops_put_index(block, index64, space->size[dimension]);
    }
    ops_put_index(block, index64, (int64_t)ops_transposed_groups(space, plan->tile));
}

void ops_transposed_declare(hal_ir_builder *b, const ops_elementwise_plan *plan,
                            ops_layout_values *values)
{
    for (uint32_t axis = 0; axis < axis_count(plan); axis++) {
        values->tile_count[axis] = ops_scalar(b, "tile_count", axis, 0, values->type);
        values->tile_size[axis] = ops_scalar(b, "tile_size", axis, 0, values->type);
    }
    values->tile_groups = hal_ir_scalar_value(b, "tile_groups", values->type);
}

/* A group's tile while its kernel is emitted. */
typedef struct tile_emitter {
    hal_ir_builder *b;
    const ops_elementwise_plan *plan;
    const ops_layout_values *values;
    hal_ir_value item;                 /* U32, number of the work-item */
    hal_ir_value start[OPS_TILE_AXES]; /* of the tile's first element */
    hal_ir_value inside;               /* the group has a tile */
    hal_ir_value index[OPS_MAX_VIEWS];
} tile_emitter;

/* An element of the tile: its coordinates, U32. */
typedef struct tile_place {
    hal_ir_value at[OPS_TILE_AXES];
} tile_place;

/* x / n and x % n of U32. */
static hal_ir_value divide(hal_ir_builder *b, hal_ir_value x, uint32_t n, hal_ir_value *rest)
{
    if ((n & (n - 1)) == 0) {
        *rest = hal_ir_and(b, x, hal_ir_u32(b, n - 1));
        return hal_ir_shr(b, x, hal_ir_u32(b, (uint32_t)__builtin_ctz(n)));
    }
    const hal_ir_value quotient = hal_ir_div(b, x, hal_ir_u32(b, n));
    *rest = hal_ir_sub(b, x, hal_ir_mul(b, quotient, hal_ir_u32(b, n)));
    return quotient;
}

/* Finds the group's tile and the indices of its first element. */
static void tile_begin(tile_emitter *e, ops_element_iter *iter)
{
    hal_ir_builder *b = e->b;
    const ops_layout_values *values = e->values;
    const ops_layout *layout = iter->layout;
    const uint32_t axes = axis_count(e->plan);
    const hal_ir_value group = ops_value_cast(b, values->type, ops_index_group(b));
    hal_ir_value rest = group;
    for (uint32_t axis = 0; axis < axes; axis++) {
        const hal_ir_value outer = hal_ir_div(b, rest, values->tile_count[axis]);
        const hal_ir_value number =
            hal_ir_sub(b, rest, hal_ir_mul(b, outer, values->tile_count[axis]));
        e->start[axis] =
            hal_ir_mul(b, number, ops_index_constant(b, values->type, e->plan->tile[axis]));
        rest = outer;
    }
    e->inside = hal_ir_lt(b, group, values->tile_groups);
    e->item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    ops_layout_offset(b, layout, values, rest, layout->rank - axes, iter->index);
    for (uint32_t view = 0; view < layout->view_count; view++) {
        e->index[view] = ops_layout_step(b, layout, values, view, iter->index[view], e->start[0]);
        for (uint32_t axis = 1; axis < axes; axis++) {
            const uint32_t dimension = axis_dimension(layout->rank, axis);
            e->index[view] = hal_ir_add(
                b, e->index[view], hal_ir_mul(b, e->start[axis], values->stride[view][dimension]));
        }
    }
}

/* The places of `width` elements, the vector `number` of the tile in an order. */
static void tile_places(const tile_emitter *e, const ops_tile_order *order, uint32_t width,
                        hal_ir_value number, tile_place *places)
{
    hal_ir_builder *b = e->b;
    const uint32_t *tile = e->plan->tile, axes = axis_count(e->plan);
    uint32_t length = 1;
    for (uint32_t i = 0; i < order->joint; i++) {
        length *= tile[order->axis[i]];
    }
    hal_ir_value part = number, rest = HAL_IR_NONE;
    if (order->joint < axes) {
        rest = divide(b, number, length / width, &part);
    }
    const hal_ir_value first = width == 1 ? part : hal_ir_mul(b, part, hal_ir_u32(b, width));
    for (uint32_t j = 0; j < width; j++) {
        hal_ir_value place = j == 0 ? first : hal_ir_add(b, first, hal_ir_u32(b, j));
        for (uint32_t i = 0; i + 1 < order->joint; i++) {
            place = divide(b, place, tile[order->axis[i]], &places[j].at[order->axis[i]]);
        }
        places[j].at[order->axis[order->joint - 1]] = place;
    }
    for (uint32_t i = order->joint; i < axes; i++) {
        hal_ir_value at = rest;
        if (i + 1 < axes) {
            rest = divide(b, rest, tile[order->axis[i]], &at);
        }
        for (uint32_t j = 0; j < width; j++) {
            places[j].at[order->axis[i]] = at;
        }
    }
}

/* Whether all tiles have all elements of the space along an axis: another one continues it. */
static bool axis_is_whole(const ops_elementwise_plan *plan, uint32_t axis)
{
    bool whole = false;
    for (uint32_t i = 0; i + 1 < OPS_TILE_AXES; i++) {
        whole |= i + 1 < plan->loaded.joint && plan->loaded.axis[i] == axis;
        whole |= i + 1 < plan->computed.joint && plan->computed.axis[i] == axis;
    }
    return whole;
}

/* Whether the space has elements at a place of the tile along the axes of a set. */
static hal_ir_value tile_contains(const tile_emitter *e, const tile_place *place, uint32_t axes,
                                  hal_ir_value guard)
{
    hal_ir_builder *b = e->b;
    const ops_layout_values *values = e->values;
    for (uint32_t axis = 0; axis < axis_count(e->plan); axis++) {
        if ((axes >> axis & 1) && !axis_is_whole(e->plan, axis)) {
            const hal_ir_value at =
                hal_ir_add(b, e->start[axis], ops_value_cast(b, values->type, place->at[axis]));
            guard = hal_ir_and(b, guard, hal_ir_lt(b, at, values->tile_size[axis]));
        }
    }
    return guard;
}

/* The index of a place of the tile in a view. */
static hal_ir_value tile_index(const tile_emitter *e, uint32_t view, const tile_place *place)
{
    hal_ir_builder *b = e->b;
    const ops_layout_values *values = e->values;
    const ops_layout *layout = &e->plan->layout;
    hal_ir_value index = e->index[view];
    for (uint32_t axis = 1; axis < axis_count(e->plan); axis++) {
        const uint32_t dimension = axis_dimension(layout->rank, axis);
        const hal_ir_value at = ops_value_cast(b, values->type, place->at[axis]);
        index = hal_ir_add(b, index, hal_ir_mul(b, at, values->stride[view][dimension]));
    }
    return ops_layout_step(b, layout, values, view, index,
                           ops_value_cast(b, values->type, place->at[0]));
}

/* The index of a place in shared memory. */
static hal_ir_value tile_shared(const tile_emitter *e, const tile_place *place)
{
    hal_ir_builder *b = e->b;
    hal_ir_value index = place->at[1];
    for (uint32_t axis = 0; axis < axis_count(e->plan); axis += 2) {
        const hal_ir_value pitch = hal_ir_u32(b, pitch_of(e->plan->tile, axis));
        index = hal_ir_add(b, index, hal_ir_mul(b, place->at[axis], pitch));
    }
    return index;
}

/* The vectors of a work-item in one round of a loop over the tile: the numbers first + item +
 * i * `items`. Where they follow each other along one axis, their indices are those of the first
 * and a multiple of a step, which takes fewer instructions than to compute each from its number. */
typedef struct tile_round {
    uint32_t width, each; /* elements of a vector; vectors */
    uint32_t items;       /* work-items that have vectors */
    uint32_t axis, step;  /* of the distance; axis OPS_TILE_AXES: along several */
    tile_place places[LOADS][OPS_MAX_WIDTH];
    hal_ir_value in_tile[LOADS]; /* the vector is the tile's; HAL_IR_NONE: always */
    hal_ir_value guard[LOADS];   /* the space has its elements, too */
} tile_round;

/* Vectors differ along the last axis of the order alone where a group takes all of the others'.
 * Some work-items are idle for that. */
static void round_choose(const tile_emitter *e, const ops_tile_order *order, uint32_t width,
                         tile_round *round)
{
    const uint32_t group = e->plan->group, last = axis_count(e->plan) - 1;
    uint32_t vectors = 1;
    for (uint32_t i = 0; i < last; i++) {
        vectors *= e->plan->tile[order->axis[i]];
    }
    vectors /= width;
    round->width = width;
    round->items = group;
    round->axis = OPS_TILE_AXES;
    round->step = 0;
    if (order->joint <= last && vectors > 0 &&
        group % vectors <= group / e->plan->tuning->idle_divisor) {
        round->axis = order->axis[last];
        round->step = group / vectors;
        round->items = round->step * vectors;
    }
}

/* Begins the loop, in which a work-item has at most `most` vectors in a round; the caller ends
 * it. */
static void round_begin(const tile_emitter *e, const ops_tile_order *order, uint32_t width,
                        uint32_t most, tile_round *round)
{
    hal_ir_builder *b = e->b;
    const uint32_t numbers = box_elements(e->plan->tile) / width;
    const uint32_t every = (UINT32_C(1) << OPS_TILE_AXES) - 1;
    round_choose(e, order, width, round);
    const uint32_t items = round->items, all = (numbers + items - 1) / items;
    round->each = least(all, most);
    const hal_ir_value first =
        hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, numbers), hal_ir_u32(b, round->each * items));
    /* The last round may go beyond the tile. */
    const uint32_t is_covered = numbers % (round->each * items) == 0;
    const uint32_t own = round->axis == OPS_TILE_AXES ? 0 : UINT32_C(1) << round->axis;
    hal_ir_value common = HAL_IR_NONE, is_busy = HAL_IR_NONE;
    if (items < e->plan->group) {
        is_busy = hal_ir_lt(b, e->item, hal_ir_u32(b, items));
    }
    for (uint32_t i = 0; i < round->each; i++) {
        tile_place *places = round->places[i];
        const hal_ir_value start = hal_ir_add(b, first, e->item);
        const hal_ir_value number = hal_ir_add(b, start, hal_ir_u32(b, i * items));
        if (i == 0 || own == 0) {
            tile_places(e, order, width, number, places);
            common = tile_contains(e, &places[0], every & ~own, e->inside);
        }
        for (uint32_t j = 0; j < width && i > 0 && own != 0; j++) {
            places[j] = round->places[0][j];
            places[j].at[round->axis] =
                hal_ir_add(b, places[j].at[round->axis], hal_ir_u32(b, i * round->step));
        }
        round->in_tile[i] =
            is_covered ? is_busy
                       : ops_guard_and(b, is_busy, hal_ir_lt(b, number, hal_ir_u32(b, numbers)));
        round->guard[i] =
            ops_guard_and(b, tile_contains(e, &places[0], own, common), round->in_tile[i]);
    }
}

/* The indices of the vectors of a round in a view. */
static void round_indices(const tile_emitter *e, const tile_round *round, uint32_t view,
                          hal_ir_value index[LOADS])
{
    hal_ir_builder *b = e->b;
    const ops_layout_values *values = e->values;
    const ops_layout *layout = &e->plan->layout;
    for (uint32_t i = 0; i < round->each; i++) {
        if (i == 0 || round->axis == OPS_TILE_AXES) {
            index[i] = tile_index(e, view, &round->places[i][0]);
            continue;
        }
        const uint32_t dimension = axis_dimension(layout->rank, round->axis);
        const hal_ir_value distance =
            ops_index_constant(b, values->type, (uint64_t)i * round->step);
        index[i] =
            round->axis == 0
                ? ops_layout_step(b, layout, values, view, index[0], distance)
                : hal_ir_add(b, index[0], hal_ir_mul(b, values->stride[view][dimension], distance));
    }
}

/* The index in shared memory of element `j` of vector `i`. */
static hal_ir_value round_shared(const tile_emitter *e, const tile_round *round,
                                 hal_ir_value first[OPS_MAX_WIDTH], uint32_t i, uint32_t j)
{
    if (i == 0 || round->axis == OPS_TILE_AXES) {
        first[j] = tile_shared(e, &round->places[i][j]);
        return first[j];
    }
    const uint32_t distance = i * round->step * pitch_of(e->plan->tile, round->axis);
    return hal_ir_add(e->b, first[j], hal_ir_u32(e->b, distance));
}

/* Copies the staged views' tiles to shared memory. Stores have no guard where every vector is the
 * tile's, elements that the space does not have are 0: NVIDIA's compiler has seven predicates, and
 * otherwise executes the stores of a few loads before it begins further loads. */
static void tile_load(const tile_emitter *e, const ops_element_rows *tile, const uint8_t *slots)
{
    hal_ir_builder *b = e->b;
    const uint32_t width = e->plan->staged_width;
    tile_round round;
    round_begin(e, &e->plan->loaded, width, LOADS / width, &round);
    for (uint32_t view = 0; view < e->plan->layout.view_count; view++) {
        hal_ir_value loaded[LOADS], index[LOADS], shared[OPS_MAX_WIDTH];
        if (!(tile->staged >> view & 1)) {
            continue;
        }
        round_indices(e, &round, view, index);
        for (uint32_t i = 0; i < round.each; i++) {
            loaded[i] = hal_ir_load_wide(b, slots[view], index[i], 0, width, round.guard[i]);
        }
        for (uint32_t i = 0; i < round.each; i++) {
            /* Neighbours of one column are neighbours in shared memory. */
            const bool apart = e->plan->loaded.joint > 1;
            hal_ir_value place = round_shared(e, &round, shared, i, 0);
            for (uint32_t j = 0; j < width; j++) {
                place = apart && j > 0 ? round_shared(e, &round, shared, i, j) : place;
                hal_ir_store_wide(b, tile->memory[view], place, apart ? 0 : (int32_t)j,
                                  round.in_tile[i],
                                  width == 1 ? loaded[i] : hal_ir_extract(b, loaded[i], j));
            }
        }
    }
    hal_ir_end(b);
}

/* Computes the tile, `vector` neighbours of the output at a time, several times where they are
 * few. */
static void tile_compute(const tile_emitter *e, ops_element_iter *iter, ops_element_rows *tile,
                         ops_elementwise_body body, const void *user)
{
    hal_ir_builder *b = e->b;
    const uint32_t vector = e->plan->width, together = e->plan->tuning->computed_elements;
    tile_round round;
    hal_ir_value shared[OPS_MAX_WIDTH], index[LOADS];
    round_begin(e, &e->plan->computed, vector, vector < together ? together / vector : 1, &round);
    for (uint32_t i = 0; i < round.each; i++) {
        tile->in_tile[i] = round.in_tile[i];
        tile->guard[i] = round.guard[i];
        for (uint32_t j = 0; j < vector; j++) {
            tile->place[i * vector + j] = round_shared(e, &round, shared, i, j);
        }
    }
    for (uint32_t view = 0; view < e->plan->layout.view_count; view++) {
        round_indices(e, &round, view, index);
        for (uint32_t i = 0; i < round.each; i++) {
            tile->index[view][i] = index[i];
        }
    }
    tile->vector = vector;
    iter->width = round.each * vector;
    iter->guard = HAL_IR_NONE;
    iter->several = tile;
    body(b, iter, user);
    hal_ir_end(b);
}

void ops_transposed_emit(hal_ir_builder *b, const ops_elementwise_plan *plan,
                         ops_element_iter *iter, const uint8_t *slots, const hal_type *types,
                         ops_elementwise_body body, const void *user)
{
    tile_emitter e = {.b = b, .plan = plan, .values = iter->values};
    ops_element_rows tile = {.staged = plan->staged};
    for (uint32_t view = 0; view < plan->layout.view_count; view++) {
        if (plan->staged >> view & 1) {
            char name[] = "tile_00";
            name[5] = (char)('0' + view / 10);
            name[6] = (char)('0' + view % 10);
            tile.memory[view] = hal_ir_shared(b, name, hal_type_of_value(types[slots[view]]),
                                              plan->tile[0] * pitch_of(plan->tile, 0));
        }
    }
    tile_begin(&e, iter);
    tile_load(&e, &tile, slots);
    hal_ir_barrier(b);
    tile_compute(&e, iter, &tile, body, user);
}
