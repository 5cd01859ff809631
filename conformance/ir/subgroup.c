/* subgroup.c: shuffles and reductions over the lanes of a subgroup, for every type. */
#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define GROUPS 3u
#define MAX_WIDTH 128u

typedef struct subgroup_case {
    uint32_t opcode;
    hal_type type;
    uint32_t kind; /* of a SUBGROUP_REDUCE */
} subgroup_case;

static const char *const kind_names[HAL_IR_REDUCE_COUNT] = {"add", "min", "max"};

static uint32_t width_of(const case_run *run)
{
    return run->info->subgroup_width == 0 ? HAL_IR_EMULATED_SUBGROUP : run->info->subgroup_width;
}

/* Three subgroups, fewer where a group has less room; 0 when it has none. */
static uint32_t group_of(const case_run *run, uint32_t width)
{
    uint32_t subgroups = 3;
    while (subgroups > 0 && (subgroups * width > run->info->max_group_items ||
                             subgroups * width > run->info->max_group_size[0])) {
        subgroups--;
    }
    return subgroups * width;
}

/* In the order of a butterfly, so that sums of floats have one right result. */
static void reduce(const subgroup_case *tested, uint32_t width, uint64_t *values)
{
    static const uint32_t opcodes[HAL_IR_REDUCE_COUNT] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX};
    for (uint32_t distance = 1; distance < width; distance *= 2) {
        uint64_t combined[MAX_WIDTH];
        for (uint32_t lane = 0; lane < width; lane++) {
            const uint64_t operands[3] = {values[lane], values[lane ^ distance], 0};
            combined[lane] = ir_evaluate(opcodes[tested->kind], tested->type, operands);
        }
        for (uint32_t lane = 0; lane < width; lane++) {
            values[lane] = combined[lane];
        }
    }
}

/* Lane l reads lane 3 l + 1, or lane l xor 5, of its subgroup. */
static void expect_subgroup(const subgroup_case *tested, uint32_t width, const uint8_t *x,
                            uint8_t *expected, size_t first)
{
    uint64_t values[MAX_WIDTH];
    for (uint32_t lane = 0; lane < width; lane++) {
        uint32_t source = lane;
        if (tested->opcode == HAL_IR_SHUFFLE) {
            source = (3 * lane + 1) % width;
        } else if (tested->opcode == HAL_IR_SHUFFLE_XOR) {
            source = lane ^ (5 & (width - 1));
        }
        values[lane] = number_load(tested->type, x, first + source);
    }
    if (tested->opcode == HAL_IR_SUBGROUP_REDUCE) {
        reduce(tested, width, values);
    }
    for (uint32_t lane = 0; lane < width; lane++) {
        number_store(tested->type, expected, first + lane, values[lane]);
    }
}

static hal_ir_builder *build(case_run *run, const subgroup_case *tested, uint32_t group)
{
    hal_ir_builder *b = ir_begin(run, "subgroup");
    hal_ir_group_size(b, group, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0), value = hal_ir_load(b, x, i);
    hal_ir_value result;
    if (tested->opcode == HAL_IR_SHUFFLE) {
        const hal_ir_value lane = hal_ir_id(b, HAL_IR_LANE_ID, 0);
        result = hal_ir_shuffle(
            b, value, hal_ir_add(b, hal_ir_mul(b, lane, hal_ir_u32(b, 3)), hal_ir_u32(b, 1)));
    } else if (tested->opcode == HAL_IR_SHUFFLE_XOR) {
        const uint32_t width = width_of(run);
        result = hal_ir_shuffle_xor(b, value, 5 & (width - 1));
    } else {
        result = hal_ir_subgroup_reduce(b, tested->kind, value);
    }
    hal_ir_store(b, out, i, result);
    return b;
}

/* Lanes of a subgroup, after a check that the group has room for one. */
static uint32_t width_check(case_run *run)
{
    const uint32_t width = width_of(run);
    if (group_of(run, width) == 0 || width > MAX_WIDTH) {
        case_unsupported(run, "subgroups of %u lanes in groups of %u", width,
                         run->info->max_group_items);
    }
    return width;
}

static void run_subgroup(case_run *run, const void *parameters)
{
    const subgroup_case *tested = parameters;
    case_claim_arithmetic(run, tested->type);
    const uint32_t width = width_check(run), group = group_of(run, width);
    const uint32_t size = hal_type_size(tested->type);
    const size_t count = (size_t)GROUPS * group;
    uint8_t *x = case_allocate(run, count, 8), *expected = case_allocate(run, count, 8);
    random_state random = {run->seed};
    for (size_t i = 0; i < count; i++) {
        const double value = random_between(&random, -100.0, 100.0);
        number_store(tested->type, x, i,
                     hal_type_is_float(tested->type) ? number_bits(tested->type, value)
                                                     : random_bits(&random, tested->type));
    }
    for (size_t first = 0; first < count; first += width) {
        expect_subgroup(tested, width, x, expected, first);
    }
    const red_zone zones[2] = {zone_create(run, count * size, x),
                               zone_create(run, count * size, NULL)};
    ir_run(run, build(run, tested, group), GROUPS, zones, 2, NULL, 0);
    ir_check(run, &zones[1], tested->type, expected, count, "result");
}

/* Each bit of a lane's number, and all of them: out[k * items + i] is of lane i xor mask k. */
static void run_masks(case_run *run, const void *parameters)
{
    const uint32_t width = width_check(run), group = group_of(run, width), items = GROUPS * group;
    uint32_t masks[9], count = 0;
    for (uint32_t bit = 1; bit < width; bit *= 2) {
        masks[count++] = bit;
    }
    masks[count++] = width - 1;
    uint32_t *x = case_allocate(run, items, sizeof *x);
    uint32_t *expected = case_allocate(run, (size_t)count * items, sizeof *expected);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < items; i++) {
        x[i] = (uint32_t)random_next(&random);
    }
    for (uint32_t k = 0; k < count * items; k++) {
        const uint32_t i = k % items, lane = i % width;
        expected[k] = x[i - lane + (lane ^ masks[k / items])];
    }
    const red_zone zones[2] = {zone_create(run, 4ull * items, x),
                               zone_create(run, 4ull * count * items, NULL)};
    hal_ir_builder *b = ir_begin(run, "masks");
    hal_ir_group_size(b, group, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0), value = hal_ir_load(b, in, i);
    for (uint32_t k = 0; k < count; k++) {
        hal_ir_store_wide(b, out, i, (int32_t)(k * items), HAL_IR_NONE,
                          hal_ir_shuffle_xor(b, value, masks[k]));
    }
    ir_run(run, b, GROUPS, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, (size_t)count * items, "lanes");
}

/* Three groups whose last subgroup is short: of `subgroups` whole ones and `more` lanes. */
typedef struct short_case {
    hal_type type;
    uint32_t kind;       /* of a SUBGROUP_REDUCE; HAL_IR_REDUCE_COUNT: LANE_ID and SHUFFLE */
    uint32_t subgroups;  /* whole ones before it */
    bool is_nearly_full; /* it lacks one lane; else it has one, three in the wide ones */
} short_case;

static uint32_t short_lanes(const short_case *tested, uint32_t width)
{
    return tested->is_nearly_full ? width - 1 : width > 4 ? 3 : 1;
}

/* Pairs, then pairs of pairs; a lane without a partner keeps what it has. Lane 0 has the result. */
static void reduce_short(const short_case *tested, uint32_t lanes, uint64_t *values)
{
    static const uint32_t opcodes[HAL_IR_REDUCE_COUNT] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX};
    for (uint32_t distance = 1; distance < lanes; distance *= 2) {
        for (uint32_t lane = 0; lane + distance < lanes; lane += 2 * distance) {
            const uint64_t operands[3] = {values[lane], values[lane + distance], 0};
            values[lane] = ir_evaluate(opcodes[tested->kind], tested->type, operands);
        }
    }
    for (uint32_t lane = 1; lane < lanes; lane++) {
        values[lane] = values[0];
    }
}

/* SHUFFLE from the lane before, of the first one from the last one; the lane's own number is added
 * a thousand times. */
static void shuffle_short(uint32_t lanes, uint64_t *values)
{
    uint64_t shuffled[MAX_WIDTH];
    for (uint32_t lane = 0; lane < lanes; lane++) {
        shuffled[lane] = (uint32_t)(values[(lane + lanes - 1) % lanes] + 1000 * lane);
    }
    for (uint32_t lane = 0; lane < lanes; lane++) {
        values[lane] = shuffled[lane];
    }
}

static hal_ir_value build_short(hal_ir_builder *b, const short_case *tested, uint32_t width,
                                hal_ir_value value)
{
    if (tested->kind < HAL_IR_REDUCE_COUNT) {
        return hal_ir_subgroup_reduce(b, tested->kind, value);
    }
    const uint32_t whole = tested->subgroups * width;
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0),
                       lane = hal_ir_id(b, HAL_IR_LANE_ID, 0);
    const hal_ir_value lanes =
        hal_ir_select(b, hal_ir_lt(b, item, hal_ir_u32(b, whole)), hal_ir_u32(b, width),
                      hal_ir_u32(b, short_lanes(tested, width)));
    const hal_ir_value before =
        hal_ir_rem(b, hal_ir_sub(b, hal_ir_add(b, lane, lanes), hal_ir_u32(b, 1)), lanes);
    return hal_ir_add(b, hal_ir_shuffle(b, value, before),
                      hal_ir_mul(b, lane, hal_ir_u32(b, 1000)));
}

static void run_short(case_run *run, const void *parameters)
{
    const short_case *tested = parameters;
    const uint32_t width = width_check(run), lanes = short_lanes(tested, width);
    const uint32_t group = tested->subgroups * width + lanes, count = GROUPS * group;
    case_claim_arithmetic(run, tested->type);
    if (lanes == 0 || group > run->info->max_group_items || group > run->info->max_group_size[0]) {
        case_unsupported(run, "subgroups of %u lanes in groups of %u", width,
                         run->info->max_group_items);
    }
    uint8_t *x = case_allocate(run, count, 8), *expected = case_allocate(run, count, 8);
    random_state random = {run->seed};
    random_fill(&random, tested->type, -100.0, 100.0, x, count);
    for (uint32_t first = 0; first < count;) {
        uint64_t values[MAX_WIDTH];
        const uint32_t here = first % group < tested->subgroups * width ? width : lanes;
        for (uint32_t lane = 0; lane < here; lane++) {
            values[lane] = number_load(tested->type, x, first + lane);
        }
        if (tested->kind < HAL_IR_REDUCE_COUNT) {
            reduce_short(tested, here, values);
        } else {
            shuffle_short(here, values);
        }
        for (uint32_t lane = 0; lane < here; lane++) {
            number_store(tested->type, expected, first++, values[lane]);
        }
    }
    const uint64_t bytes = (uint64_t)count * hal_type_size(tested->type);
    const red_zone zones[2] = {zone_create(run, bytes, x), zone_create(run, bytes, NULL)};
    hal_ir_builder *b = ir_begin(run, "short");
    hal_ir_group_size(b, group, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_store(b, out, i, build_short(b, tested, width, hal_ir_load(b, in, i)));
    ir_run(run, b, GROUPS, zones, 2, NULL, 0);
    ir_check(run, &zones[1], tested->type, expected, count, "result");
}

static void add_short(case_list *list, hal_type type, uint32_t kind)
{
    for (uint32_t subgroups = 0; subgroups < 2; subgroups++) {
        for (int full = 0; full < 2; full++) {
            const short_case tested = {type, kind, subgroups, full};
            case_add(list, run_short, &tested, sizeof tested,
                     "ir/subgroup_short(kind=%s,type=%s,whole=%u,last=%s)",
                     kind < HAL_IR_REDUCE_COUNT ? kind_names[kind] : "shuffle", hal_type_name(type),
                     subgroups, full ? "nearly_full" : "small");
        }
    }
}

void cases_ir_subgroup(case_list *list)
{
    for (hal_type type = HAL_TYPE_I32; type < HAL_TYPE_COUNT; type++) {
        if ((HAL_TYPES_NUMBERS & HAL_TYPE_BIT(type)) == 0) {
            continue;
        }
        subgroup_case tested = {HAL_IR_SHUFFLE, type, 0};
        case_add(list, run_subgroup, &tested, sizeof tested, "ir/shuffle(type=%s)",
                 hal_type_name(type));
        case_covers(list, type, CASE_VALUES, "shuffle");
        tested.opcode = HAL_IR_SHUFFLE_XOR;
        case_add(list, run_subgroup, &tested, sizeof tested, "ir/shuffle_xor(type=%s)",
                 hal_type_name(type));
        case_covers(list, type, CASE_VALUES, "shuffle_xor");
        tested.opcode = HAL_IR_SUBGROUP_REDUCE;
        for (tested.kind = 0; tested.kind < HAL_IR_REDUCE_COUNT; tested.kind++) {
            case_add(list, run_subgroup, &tested, sizeof tested,
                     "ir/subgroup_reduce(kind=%s,type=%s)", kind_names[tested.kind],
                     hal_type_name(type));
            case_covers(list, type, CASE_VALUES, "subgroup %s", kind_names[tested.kind]);
        }
    }
    for (uint32_t kind = 0; kind < HAL_IR_REDUCE_COUNT; kind++) {
        add_short(list, HAL_TYPE_F32, kind);
    }
    add_short(list, HAL_TYPE_I32, HAL_IR_REDUCE_ADD);
    add_short(list, HAL_TYPE_U32, HAL_IR_REDUCE_COUNT);
    case_add(list, run_masks, NULL, 0, "ir/shuffle_xor(masks=bits)");
    case_covers(list, HAL_TYPE_U32, CASE_VALUES, "shuffle_xor");
}
