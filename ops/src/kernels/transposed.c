/* Elementwise kernels over tiles, see transposed.h.
 *
 * A group computes tile[0] elements of the innermost dimension, in columns, for tile[1] of the
 * dimension before it, in rows. It copies its part of the staged views to shared memory, where each
 * column is `pitch` elements: odd, so that neither writing along a column nor reading along a row
 * meets one bank twice. Then the work-items compute, neighbours along the row. */
#include "transposed.h"

#include <stdlib.h>

/* Elements of a tile: enough loads in flight, and at least so many that staging pays. */
#define MAX_ELEMENTS 4096u
#define MIN_ELEMENTS 256u

/* A group's shared memory, so that several fit a compute unit. */
#define MAX_SHARED 36864u

/* Largest step of a staged view along the dimension that its lines of memory follow. */
#define MAX_STEP 4

/* Bytes of global memory that a GPU reads at least, and elements of a run of a tile, at most. */
#define SECTOR 32u
#define MAX_RUN 64u

/* Elements that a work-item has in flight, and those that it computes at a time. */
#define LOADS 16u
#define TOGETHER 4u

static uint32_t least(uint64_t x, uint64_t y)
{
    return (uint32_t)(x < y ? x : y);
}

static uint32_t pitch_of(const uint32_t tile[2])
{
    return tile[1] | 1;
}

/* Bytes of the sectors that `count` elements of `size` bytes touch, `step` elements apart. Where
 * sectors are shared, neighbouring lines of elements share the first and the last one as well. */
static uint64_t touched_bytes(uint64_t count, uint64_t step, uint32_t size)
{
    return step * size < SECTOR ? count * step * size : count * SECTOR;
}

/* Whether reading a view along `other` and through shared memory costs less than reading it along
 * the innermost dimension. Staging reads a run of `other` for each column; runs that follow each
 * other in memory share sectors. It writes and reads every value in shared memory. */
static int staging_pays(const ops_space *space, uint32_t view, uint32_t other, uint32_t size)
{
    const uint64_t run = least((uint64_t)space->size[other], MAX_RUN);
    const uint64_t across = (uint64_t)llabs(space->stride[view][space->rank - 1]);
    const uint64_t along = (uint64_t)llabs(space->stride[view][other]);
    const uint64_t value = size > 4 ? size : 4;
    const uint64_t alone = touched_bytes(run, along, size) + SECTOR - size;
    const uint64_t staged = alone < across * size ? alone : across * size;
    const uint64_t direct = run * touched_bytes(1, across, size);
    return direct >= staged + run * 2 * value;
}

/* The dimension along which reading a view through shared memory is cheaper; the innermost one if
 * there is none. */
static uint32_t other_dimension(const ops_space *space, uint32_t view, uint32_t size)
{
    const int64_t *stride = space->stride[view];
    const uint32_t last = space->rank - 1;
    uint32_t other = last;
    for (uint32_t i = 0; i < last && llabs(stride[last]) > 1; i++) {
        const int64_t step = llabs(stride[i]);
        if (space->size[i] > 1 && step > 0 && step < llabs(stride[other]) && step <= MAX_STEP) {
            other = i;
        }
    }
    return other != last && staging_pays(space, view, other, size) ? other : last;
}

/* The side of a tile of `elements` next to one of `side`, a multiple of 32 if it is that long. */
static uint32_t other_side(uint32_t elements, uint32_t side)
{
    const uint32_t rest = elements / side;
    return rest < 32 ? rest : rest / 32 * 32;
}

/* Sides of at most `side` that cover a dimension evenly, in steps that suit every width. */
static uint32_t even_side(uint64_t size, uint32_t side)
{
    const uint64_t count = (size + side - 1) / side;
    const uint32_t even = (uint32_t)((size + count - 1) / count);
    return count == 1 ? even
                      : least((even + OPS_MAX_WIDTH - 1) / OPS_MAX_WIDTH * OPS_MAX_WIDTH, side);
}

/* Sides of at most `elements`: near a square, or longer next to a short dimension. */
static void tile_fit(const ops_space *space, uint32_t other, uint32_t elements, uint32_t tile[2])
{
    const uint64_t columns = (uint64_t)space->size[space->rank - 1];
    const uint64_t rows = (uint64_t)space->size[other];
    uint32_t side = 64;
    while (side * side > elements) {
        side /= 2;
    }
    tile[1] = least(rows, side);
    tile[0] = even_side(columns, other_side(elements, tile[1]));
    tile[1] = even_side(rows, tile[0] < side ? other_side(elements, tile[0]) : side);
}

static void dimension_to_second(ops_space *space, uint32_t dimension)
{
    for (uint32_t i = dimension; i + 2 < space->rank; i++) {
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

static uint64_t tile_count(int64_t size, uint32_t side)
{
    return ((uint64_t)size + side - 1) / side;
}

uint64_t ops_transposed_groups(const ops_space *space, const uint32_t tile[2])
{
    const int64_t columns = space->size[space->rank - 1], rows = space->size[space->rank - 2];
    return (uint64_t)(ops_space_elements(space) / columns / rows) * tile_count(columns, tile[0]) *
           tile_count(rows, tile[1]);
}

/* The most neighbours of the staged views that are aligned wherever they are read. */
static uint32_t staged_width(const ops_space *space, const ops_elementwise_use *use,
                             const ops_elementwise_plan *plan)
{
    const uint32_t second = space->rank - 2;
    uint32_t width = use->widest < OPS_MAX_WIDTH ? use->widest : OPS_MAX_WIDTH;
    for (; width > 1; width /= 2) {
        int fits = space->size[second] % width == 0 && plan->tile[1] % width == 0;
        for (uint32_t view = 0; view < space->view_count; view++) {
            const uint64_t start = use->starts ? use->starts[view] : 0;
            int is_aligned = space->stride[view][second] == 1 && start % width == 0 &&
                             space->base[view] % width == 0;
            for (uint32_t i = 0; i < space->rank; i++) {
                is_aligned &= i == second || space->stride[view][i] % width == 0;
            }
            fits &= is_aligned || !(plan->staged >> view & 1);
        }
        if (fits) {
            return width;
        }
    }
    return 1;
}

void ops_transposed_choose(const hal_device_info *info, const ops_elementwise_use *use,
                           ops_space *space, ops_elementwise_plan *plan)
{
    const uint32_t last = space->rank - 1;
    uint32_t staged[OPS_MAX_RANK] = {0}, counts[OPS_MAX_RANK] = {0}, other = last, value_size = 4;
    uint32_t *tile = plan->tile;
    plan->staged = plan->staged_width = 0;
    for (uint32_t view = 0; view < space->view_count; view++) {
        if (!(use->loaded >> view & 1)) {
            continue;
        }
        const uint32_t size = use->sizes[view];
        const uint32_t dimension = other_dimension(space, view, size);
        staged[dimension] |= UINT32_C(1) << view;
        counts[dimension] += dimension != last;
        value_size = size > value_size ? size : value_size;
    }
    for (uint32_t i = 0; i < last; i++) {
        other = counts[i] > (other == last ? 0 : counts[other]) ? i : other;
    }
    if (info->kind == HAL_DEVICE_CPU || info->kind == HAL_DEVICE_SOFTWARE) {
        other = last;
    }
    const uint32_t shared = least(info->shared_bytes, MAX_SHARED);
    for (uint32_t elements = MAX_ELEMENTS; other != last && elements >= MIN_ELEMENTS;
         elements /= 2) {
        tile_fit(space, other, elements, tile);
        const uint64_t bytes = (uint64_t)counts[other] * tile[0] * pitch_of(tile) * value_size;
        const uint64_t groups = (uint64_t)ops_space_elements(space) / tile[0] / tile[1];
        const int fills = groups >= info->compute_units || elements <= 4 * plan->group;
        if (bytes <= shared && fills && tile[0] * tile[1] >= MIN_ELEMENTS) {
            dimension_to_second(space, other);
            plan->staged = staged[other];
            plan->staged_width = staged_width(space, use, plan);
            return;
        }
    }
    tile[0] = tile[1] = 0;
}

void ops_transposed_put(const ops_space *space, const ops_elementwise_plan *plan, ops_block *block)
{
    const int64_t columns = space->size[space->rank - 1], rows = space->size[space->rank - 2];
    const uint8_t index64 = plan->layout.index64;
    ops_put_index(block, index64, (int64_t)tile_count(columns, plan->tile[0]));
    ops_put_index(block, index64, (int64_t)tile_count(rows, plan->tile[1]));
    ops_put_index(block, index64, (int64_t)ops_transposed_groups(space, plan->tile));
    ops_put_index(block, index64, rows);
}

void ops_transposed_declare(hal_ir_builder *b, ops_layout_values *values)
{
    values->tile_columns = hal_ir_scalar_value(b, "tile_columns", values->type);
    values->tile_rows = hal_ir_scalar_value(b, "tile_rows", values->type);
    values->tile_groups = hal_ir_scalar_value(b, "tile_groups", values->type);
    values->rows = hal_ir_scalar_value(b, "rows", values->type);
}

/* A group's tile while its kernel is emitted. */
typedef struct tile_emitter {
    hal_ir_builder *b;
    const ops_elementwise_plan *plan;
    const ops_layout_values *values;
    hal_ir_value item;        /* U32, number of the work-item */
    hal_ir_value column, row; /* of the tile's first element */
    hal_ir_value inside;      /* the group has a tile */
    hal_ir_value index[OPS_MAX_VIEWS];
} tile_emitter;

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
    const uint32_t second = layout->rank - 2;
    const hal_ir_value group = ops_value_cast(b, values->type, ops_index_group(b));
    const hal_ir_value line = hal_ir_div(b, group, values->tile_columns);
    const hal_ir_value outer = hal_ir_div(b, line, values->tile_rows);
    const hal_ir_value x = hal_ir_sub(b, group, hal_ir_mul(b, line, values->tile_columns));
    const hal_ir_value y = hal_ir_sub(b, line, hal_ir_mul(b, outer, values->tile_rows));
    e->column = hal_ir_mul(b, x, ops_index_constant(b, values->type, e->plan->tile[0]));
    e->row = hal_ir_mul(b, y, ops_index_constant(b, values->type, e->plan->tile[1]));
    e->inside = hal_ir_lt(b, group, values->tile_groups);
    e->item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    ops_layout_offset(b, layout, values, outer, second, iter->index);
    for (uint32_t view = 0; view < layout->view_count; view++) {
        const hal_ir_value step = hal_ir_mul(b, e->row, values->stride[view][second]);
        e->index[view] = ops_layout_step(b, layout, values, view,
                                         hal_ir_add(b, iter->index[view], step), e->column);
    }
}

/* Whether the space has an element at a column and row of the tile, and the tile has it: `number`
 * is below `numbers`, unless that is 0. */
static hal_ir_value tile_guard(const tile_emitter *e, hal_ir_value column, hal_ir_value row,
                               hal_ir_value number, uint32_t numbers)
{
    hal_ir_builder *b = e->b;
    const ops_layout_values *values = e->values;
    const uint32_t last = e->plan->layout.rank - 1;
    const hal_ir_value x = hal_ir_add(b, e->column, ops_value_cast(b, values->type, column));
    const hal_ir_value y = hal_ir_add(b, e->row, ops_value_cast(b, values->type, row));
    hal_ir_value guard = hal_ir_and(b, e->inside, hal_ir_lt(b, x, values->size[last]));
    guard = hal_ir_and(b, guard, hal_ir_lt(b, y, values->rows));
    return numbers == 0 ? guard
                        : hal_ir_and(b, guard, hal_ir_lt(b, number, hal_ir_u32(b, numbers)));
}

/* The index of a column and row of the tile in a view. */
static hal_ir_value tile_index(const tile_emitter *e, uint32_t view, hal_ir_value column,
                               hal_ir_value row)
{
    hal_ir_builder *b = e->b;
    const ops_layout_values *values = e->values;
    const ops_layout *layout = &e->plan->layout;
    const hal_ir_value step =
        hal_ir_mul(b, ops_value_cast(b, values->type, row), values->stride[view][layout->rank - 2]);
    return ops_layout_step(b, layout, values, view, hal_ir_add(b, e->index[view], step),
                           ops_value_cast(b, values->type, column));
}

/* Starts the loop in which each work-item takes the numbers first + item + i * group below
 * `numbers`, `most` at a time. Returns `first`; `*each` is how many. */
static hal_ir_value loop_begin(const tile_emitter *e, uint32_t numbers, uint32_t most,
                               uint32_t *each)
{
    const uint32_t all = (numbers + e->plan->group - 1) / e->plan->group;
    *each = least(all, most);
    return hal_ir_for(e->b, hal_ir_u32(e->b, 0), hal_ir_u32(e->b, numbers),
                      hal_ir_u32(e->b, *each * e->plan->group));
}

static hal_ir_value loop_number(const tile_emitter *e, hal_ir_value first, uint32_t i)
{
    const hal_ir_value start = hal_ir_add(e->b, first, e->item);
    return hal_ir_add(e->b, start, hal_ir_u32(e->b, i * e->plan->group));
}

/* Copies the staged views' tiles to shared memory. */
static void tile_load(const tile_emitter *e, const ops_element_rows *tile, const uint8_t *slots)
{
    hal_ir_builder *b = e->b;
    const uint32_t *side = e->plan->tile, width = e->plan->staged_width;
    const uint32_t numbers = side[0] * (side[1] / width), pitch = pitch_of(side);
    uint32_t each;
    const hal_ir_value first = loop_begin(e, numbers, LOADS / width, &each);
    hal_ir_value column[LOADS], row[LOADS], guard[LOADS];
    /* The last round may go beyond the tile. */
    const uint32_t covered = numbers % (each * e->plan->group) == 0 ? 0 : numbers;
    for (uint32_t i = 0; i < each; i++) {
        const hal_ir_value number = loop_number(e, first, i);
        column[i] = divide(b, number, side[1] / width, &row[i]);
        row[i] = width == 1 ? row[i] : hal_ir_mul(b, row[i], hal_ir_u32(b, width));
        guard[i] = tile_guard(e, column[i], row[i], number, covered);
    }
    for (uint32_t view = 0; view < e->plan->layout.view_count; view++) {
        hal_ir_value loaded[LOADS];
        for (uint32_t i = 0; i < each && (tile->staged >> view & 1); i++) {
            const hal_ir_value index = tile_index(e, view, column[i], row[i]);
            loaded[i] = hal_ir_load_wide(b, slots[view], index, 0, width, guard[i]);
        }
        for (uint32_t i = 0; i < each && (tile->staged >> view & 1); i++) {
            const hal_ir_value place =
                hal_ir_add(b, hal_ir_mul(b, column[i], hal_ir_u32(b, pitch)), row[i]);
            for (uint32_t j = 0; j < width; j++) {
                hal_ir_store_wide(b, tile->memory[view], place, (int32_t)j, guard[i],
                                  width == 1 ? loaded[i] : hal_ir_extract(b, loaded[i], j));
            }
        }
    }
    hal_ir_end(b);
}

/* Computes the tile, `vector` neighbours of a row at a time, in several rows where they are few. */
static void tile_compute(const tile_emitter *e, ops_element_iter *iter, ops_element_rows *tile,
                         ops_elementwise_body body, const void *user)
{
    hal_ir_builder *b = e->b;
    const uint32_t vector = e->plan->width, along = e->plan->tile[0] / vector;
    const uint32_t numbers = along * e->plan->tile[1], pitch = pitch_of(e->plan->tile);
    uint32_t each;
    const hal_ir_value first =
        loop_begin(e, numbers, vector < TOGETHER ? TOGETHER / vector : 1, &each);
    const uint32_t covered = numbers % (each * e->plan->group) == 0 ? 0 : numbers;
    for (uint32_t i = 0; i < each; i++) {
        const hal_ir_value number = loop_number(e, first, i);
        hal_ir_value part;
        const hal_ir_value row = divide(b, number, along, &part);
        const hal_ir_value column = hal_ir_mul(b, part, hal_ir_u32(b, vector));
        hal_ir_value place = hal_ir_add(b, hal_ir_mul(b, column, hal_ir_u32(b, pitch)), row);
        tile->guard[i] = tile_guard(e, column, row, number, covered);
        for (uint32_t j = 0; j < vector; j++) {
            tile->place[i * vector + j] = place;
            place = hal_ir_add(b, place, hal_ir_u32(b, pitch));
        }
        for (uint32_t view = 0; view < e->plan->layout.view_count; view++) {
            tile->index[view][i] = tile_index(e, view, column, row);
        }
    }
    tile->vector = vector;
    iter->width = each * vector;
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
                                              plan->tile[0] * pitch_of(plan->tile));
        }
    }
    tile_begin(&e, iter);
    tile_load(&e, &tile, slots);
    hal_ir_barrier(b);
    tile_compute(&e, iter, &tile, body, user);
}
