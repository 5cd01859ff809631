/* ids.c: constants, scalars and the ids of work-items, groups and lanes. */
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

/* A group of 3-dimensional shape over a grid that has another length in each dimension. */
typedef struct id_case {
    uint32_t opcode;
    uint32_t dimension;
    uint32_t size[3];
    uint32_t grid[3];
} id_case;

/* Whether the work-item is the first of its group. */
static hal_ir_value is_first(hal_ir_builder *b)
{
    return hal_ir_eq(b, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, 0));
}

/* Every corner value as a constant of the kernel; one work-item stores them all. */
static void run_constants(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const uint64_t *corners;
    const size_t count = ir_corners(type, &corners);
    uint64_t expected[64];
    case_claim_arithmetic(run, type);
    const red_zone zone = zone_create(run, count * hal_type_size(type), NULL);
    hal_ir_builder *b = ir_begin(run, "constants");
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value first = is_first(b);
    for (size_t i = 0; i < count; i++) {
        hal_ir_store_wide(b, out, hal_ir_u32(b, 0), (int32_t)i, first,
                          ir_constant(b, type, corners[i]));
        number_store(type, expected, i, corners[i]);
    }
    ir_run(run, b, 1, &zone, 1, NULL, 0);
    ir_check(run, &zone, type, expected, count, "constants");
}

/* A scalar after one of 4 bytes, so that the layout's padding counts. */
static void run_scalar(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const uint32_t size = hal_type_size(type);
    const uint64_t *corners;
    const size_t count = ir_corners(type, &corners);
    uint64_t expected[64];
    case_claim_arithmetic(run, type);
    const red_zone zone = zone_create(run, count * size, NULL);
    hal_ir_builder *b = ir_begin(run, "scalar");
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value place = hal_ir_scalar_value(b, "place", HAL_TYPE_U32);
    const hal_ir_value value = hal_ir_scalar_value(b, "value", type);
    hal_ir_store_wide(b, out, place, 0, is_first(b), value);
    hal_kernel *kernel = case_kernel(run, b);
    for (size_t i = 0; i < count; i++) {
        uint8_t block[16] = {0};
        number_store(HAL_TYPE_U32, block, 0, i);
        number_store(type, block + size, 0, corners[i]);
        number_store(type, expected, i, corners[i]);
        ir_dispatch(run, kernel, 1, &zone, 1, block, 2 * size);
    }
    ir_check(run, &zone, type, expected, count, "scalars");
}

static void run_scalar_block(case_run *run, const void *parameters)
{
    static const hal_type types[] = {HAL_TYPE_I32, HAL_TYPE_F32, HAL_TYPE_U32};
    enum { SCALARS = HAL_IR_MAX_SCALAR_BYTES / 4 };
    uint32_t values[SCALARS];
    random_state random = {run->seed};
    const red_zone zone = zone_create(run, sizeof values, NULL);
    hal_ir_builder *b = ir_begin(run, "block");
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value first = is_first(b);
    for (uint32_t i = 0; i < SCALARS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        const hal_type type = types[i % 3];
        values[i] = (uint32_t)random_bits(&random, type);
        const hal_ir_value scalar = hal_ir_scalar_value(b, name, type);
        hal_ir_store_wide(b, out, hal_ir_u32(b, 0), (int32_t)i, first,
                          type == HAL_TYPE_U32 ? scalar : hal_ir_bitcast(b, HAL_TYPE_U32, scalar));
    }
    ir_run(run, b, 1, &zone, 1, values, sizeof values);
    ir_check(run, &zone, HAL_TYPE_U32, values, SCALARS, "scalars");
}

static bool shape_fits(const case_run *run, const uint32_t size[3])
{
    bool fits = size[0] * size[1] * size[2] <= run->info->max_group_items;
    for (int d = 0; d < 3; d++) {
        fits = fits && size[d] <= run->info->max_group_size[d];
    }
    return fits;
}

static uint64_t expected_id(uint32_t opcode, uint32_t dimension, const uint32_t local[3],
                            const uint32_t group[3], const uint32_t grid[3])
{
    switch (opcode) {
    case HAL_IR_LOCAL_ID:
        return local[dimension];
    case HAL_IR_GROUP_ID:
        return group[dimension];
    default:
        return grid[dimension];
    }
}

static void run_ids(case_run *run, const void *parameters)
{
    const id_case *tested = parameters;
    const uint32_t *size = tested->size, *grid = tested->grid;
    const uint32_t group_items = size[0] * size[1] * size[2];
    const uint32_t items = group_items * grid[0] * grid[1] * grid[2];
    if (!shape_fits(run, size)) {
        case_unsupported(run, "groups have at most %u work-items", run->info->max_group_items);
    }
    uint32_t *expected = case_allocate(run, items, sizeof *expected);
    for (uint32_t i = 0; i < items; i++) {
        const uint32_t in = i % group_items, at = i / group_items;
        const uint32_t local[3] = {in % size[0], in / size[0] % size[1], in / size[0] / size[1]};
        const uint32_t group[3] = {at % grid[0], at / grid[0] % grid[1], at / grid[0] / grid[1]};
        expected[i] = (uint32_t)expected_id(tested->opcode, tested->dimension, local, group, grid);
    }
    const red_zone zone = zone_create(run, items * sizeof *expected, NULL);
    const hal_range range = zone_range(&zone);
    hal_ir_builder *b = ir_begin(run, "ids");
    hal_ir_group_size(b, size[0], size[1], size[2]);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    /* The place from what C would count: x fastest, in the group and in the grid. */
    hal_ir_value place = hal_ir_u32(b, 0);
    for (uint32_t d = 3; d-- > 0;) {
        place = hal_ir_add(b, hal_ir_mul(b, place, hal_ir_u32(b, grid[d])),
                           hal_ir_id(b, HAL_IR_GROUP_ID, d));
    }
    for (uint32_t d = 3; d-- > 0;) {
        place = hal_ir_add(b, hal_ir_mul(b, place, hal_ir_u32(b, size[d])),
                           hal_ir_id(b, HAL_IR_LOCAL_ID, d));
    }
    hal_ir_store(b, out, place, hal_ir_id(b, tested->opcode, tested->dimension));
    case_ok(run, hal_queue_dispatch(run->queue, case_kernel(run, b), grid, &range, 1, NULL, 0),
            "hal_queue_dispatch");
    ir_check(run, &zone, HAL_TYPE_U32, expected, items, "ids");
}

/* Lanes count through the group, x first. */
static void run_lane(case_run *run, const void *parameters)
{
    const uint32_t width =
        run->info->subgroup_width == 0 ? HAL_IR_EMULATED_SUBGROUP : run->info->subgroup_width;
    const uint32_t group = ir_group_of(run);
    uint32_t expected[3 * IR_GROUP];
    for (uint32_t i = 0; i < 3 * group; i++) {
        expected[i] = i % group % width;
    }
    const red_zone zone = zone_create(run, 3 * group * sizeof *expected, NULL);
    hal_ir_builder *b = ir_begin(run, "lane");
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_id(b, HAL_IR_LANE_ID, 0));
    ir_run(run, b, 3, &zone, 1, NULL, 0);
    ir_check(run, &zone, HAL_TYPE_U32, expected, 3 * group, "lanes");
}

/* Lanes of a group of three dimensions: x first, then y, then z. */
static void run_lane_of_box(case_run *run, const void *parameters)
{
    enum { X = 5, Y = 3, Z = 2, ITEMS = X * Y * Z, GROUPS = 2 };
    const uint32_t size[3] = {X, Y, Z};
    const uint32_t width =
        run->info->subgroup_width == 0 ? HAL_IR_EMULATED_SUBGROUP : run->info->subgroup_width;
    if (!shape_fits(run, size)) {
        case_unsupported(run, "groups have at most %u work-items", run->info->max_group_items);
    }
    uint32_t expected[GROUPS * ITEMS];
    for (uint32_t i = 0; i < GROUPS * ITEMS; i++) {
        expected[i] = i % ITEMS % width;
    }
    const red_zone zone = zone_create(run, sizeof expected, NULL);
    hal_ir_builder *b = ir_begin(run, "lane");
    hal_ir_group_size(b, X, Y, Z);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_value place = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    for (uint32_t d = 3; d-- > 0;) {
        place = hal_ir_add(b, hal_ir_mul(b, place, hal_ir_u32(b, size[d])),
                           hal_ir_id(b, HAL_IR_LOCAL_ID, d));
    }
    hal_ir_store(b, out, place, hal_ir_id(b, HAL_IR_LANE_ID, 0));
    ir_run(run, b, GROUPS, &zone, 1, NULL, 0);
    ir_check(run, &zone, HAL_TYPE_U32, expected, GROUPS * ITEMS, "lanes");
}

void cases_ir_ids(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if ((HAL_TYPES_VALUES & HAL_TYPE_BIT(type)) == 0) {
            continue;
        }
        case_add(list, run_constants, &type, sizeof type, "ir/constant(type=%s)",
                 hal_type_name(type));
        case_covers(list, type, CASE_VALUES, "constant");
        if (type != HAL_TYPE_BOOL) {
            case_add(list, run_scalar, &type, sizeof type, "ir/scalar(type=%s)",
                     hal_type_name(type));
            case_covers(list, type, CASE_VALUES, "scalar");
        }
    }
    case_add(list, run_scalar_block, NULL, 0, "ir/scalar_block(mixed)");
    const uint32_t sizes[3][3] = {{8, 4, 2}, {1, 1, 1}, {3, 5, 1}};
    const uint32_t grids[3][3] = {{3, 2, 5}, {2, 7, 3}, {5, 3, 2}};
    for (uint32_t opcode = HAL_IR_LOCAL_ID; opcode <= HAL_IR_GROUP_COUNT; opcode++) {
        for (uint32_t dimension = 0; dimension < 3; dimension++) {
            for (int i = 0; i < 3; i++) {
                id_case tested = {.opcode = opcode, .dimension = dimension};
                memcpy(tested.size, sizes[i], sizeof tested.size);
                memcpy(tested.grid, grids[i], sizeof tested.grid);
                case_add(list, run_ids, &tested, sizeof tested,
                         "ir/%s(dimension=%u,group=%ux%ux%u,grid=%ux%ux%u)",
                         hal_ir_opcode_name(opcode), dimension, sizes[i][0], sizes[i][1],
                         sizes[i][2], grids[i][0], grids[i][1], grids[i][2]);
                case_covers(list, HAL_TYPE_U32, CASE_VALUES, "%s", hal_ir_opcode_name(opcode));
            }
        }
    }
    case_add(list, run_lane, NULL, 0, "ir/%s()", hal_ir_opcode_name(HAL_IR_LANE_ID));
    case_covers(list, HAL_TYPE_U32, CASE_VALUES, "%s", hal_ir_opcode_name(HAL_IR_LANE_ID));
    case_add(list, run_lane_of_box, NULL, 0, "ir/lane_id(group=5x3x2)");
    case_covers(list, HAL_TYPE_U32, CASE_VALUES, "%s", hal_ir_opcode_name(HAL_IR_LANE_ID));
}
