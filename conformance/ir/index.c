/* index.c: indices as kernels compute them: forwards, backwards, by rows and columns, constant,
 * wrapping round, negative before a cast, in groups of every shape. The accesses at such an index,
 * and the result of the comparison that guards it, are checked for every work-item. */
#include "case/cases.h"
#include "ir/fixture.h"

#define LENGTH 4096u /* elements of x */

/* An index from the work-item's number and its place in the group, which is (x, y, z). */
typedef struct index_case {
    const char *name;
    hal_type type;
    int64_t factor; /* a scalar of that type; 0: none */
    hal_ir_value (*build)(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y);
    uint64_t (*evaluate)(uint32_t i, uint32_t x, uint32_t y);
} index_case;

typedef struct index_run {
    index_case index;
    uint32_t size[3];
    bool shared;
} index_run;

static hal_ir_value times(hal_ir_builder *b, hal_ir_value x, uint32_t factor, uint32_t shift)
{
    return hal_ir_add(b, hal_ir_mul(b, x, hal_ir_u32(b, factor)), hal_ir_u32(b, shift));
}

static hal_ir_value build_forward(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return times(b, i, 1, 5);
}

static uint64_t forward(uint32_t i, uint32_t x, uint32_t y)
{
    return i + 5u;
}

static hal_ir_value build_backward(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                   hal_ir_value y)
{
    return hal_ir_sub(b, hal_ir_u32(b, 150), i);
}

static uint64_t backward(uint32_t i, uint32_t x, uint32_t y)
{
    return 150u - i;
}

static hal_ir_value build_strided(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return times(b, i, 7, 3);
}

static uint64_t strided(uint32_t i, uint32_t x, uint32_t y)
{
    return i * 7u + 3u;
}

/* Beyond 2^32 for the first work-items, back at the start for the others. */
static hal_ir_value build_wrapping(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                   hal_ir_value y)
{
    return times(b, i, 3, 0xffffff80u);
}

static uint64_t wrapping(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint32_t)(i * 3u + 0xffffff80u);
}

/* A factor so large that the indices of neighbours differ by half the range. */
static hal_ir_value build_jumping(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return times(b, i, 0x80000001u, 0);
}

static uint64_t jumping(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint32_t)(i * 0x80000001u);
}

static hal_ir_value build_rows(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_add(b, times(b, y, 100, 1), x);
}

static uint64_t rows(uint32_t i, uint32_t x, uint32_t y)
{
    return y * 100u + 1u + x;
}

static hal_ir_value build_columns(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_add(b, times(b, x, 64, 2), y);
}

static uint64_t columns(uint32_t i, uint32_t x, uint32_t y)
{
    return x * 64u + 2u + y;
}

static hal_ir_value build_row_only(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                   hal_ir_value y)
{
    return times(b, y, 9, 4);
}

static uint64_t row_only(uint32_t i, uint32_t x, uint32_t y)
{
    return y * 9u + 4u;
}

static hal_ir_value build_constant(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                   hal_ir_value y)
{
    return hal_ir_u32(b, 33);
}

static uint64_t constant(uint32_t i, uint32_t x, uint32_t y)
{
    return 33;
}

static hal_ir_value build_divided(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    const hal_ir_value row = hal_ir_div(b, i, hal_ir_u32(b, 11));
    const hal_ir_value column = hal_ir_rem(b, i, hal_ir_u32(b, 11));
    return hal_ir_add(b, times(b, column, 40, 0), row);
}

static uint64_t divided(uint32_t i, uint32_t x, uint32_t y)
{
    return i % 11u * 40u + i / 11u;
}

/* Rows and columns of 8 from the place in a row, by shifts. */
static hal_ir_value build_turned(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    const hal_ir_value row = hal_ir_shr(b, x, hal_ir_u32(b, 3));
    return hal_ir_add(b, times(b, hal_ir_and(b, x, hal_ir_u32(b, 7)), 16, 0), row);
}

static uint64_t turned(uint32_t i, uint32_t x, uint32_t y)
{
    return x % 8u * 16u + x / 8u;
}

/* Signed and negative for the first work-items. */
static hal_ir_value build_signed(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_I32, i), hal_ir_i32(b, 20));
}

static uint64_t signed_index(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint32_t)((int32_t)i - 20);
}

/* Widened after it wrapped (so far outside) and widened with its sign. */
static hal_ir_value build_wide(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_cast(b, HAL_TYPE_I64, hal_ir_sub(b, i, hal_ir_u32(b, 30)));
}

static uint64_t wide(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint64_t)(uint32_t)(i - 30u);
}

static hal_ir_value build_wide_signed(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                      hal_ir_value y)
{
    return hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I64, build_signed(b, i, x, y)), hal_ir_i64(b, 9));
}

static uint64_t wide_signed(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint64_t)((int64_t)i - 20 + 9);
}

/* A factor that is known at the dispatch only, as strides are. */
static hal_ir_value build_scaled(hal_ir_builder *b, hal_ir_value i, hal_ir_value x, hal_ir_value y)
{
    const hal_ir_value factor = hal_ir_scalar_value(b, "factor", HAL_TYPE_U32);
    return hal_ir_add(b, hal_ir_mul(b, i, factor), hal_ir_u32(b, 400));
}

static uint64_t scaled_up(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint32_t)(i * 3u + 400u);
}

static uint64_t scaled_down(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint32_t)(400u - i * 2u);
}

static hal_ir_value build_scaled_signed(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                        hal_ir_value y)
{
    const hal_ir_value factor = hal_ir_scalar_value(b, "factor", HAL_TYPE_I32);
    const hal_ir_value product = hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_I32, x), factor);
    const hal_ir_value row = hal_ir_cast(b, HAL_TYPE_I32, y);
    return hal_ir_add(b, hal_ir_add(b, product, row), hal_ir_i32(b, 300));
}

static uint64_t scaled_signed(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint32_t)(300 - 5 * (int32_t)x + (int32_t)y);
}

static hal_ir_value build_scaled_wide(hal_ir_builder *b, hal_ir_value i, hal_ir_value x,
                                      hal_ir_value y)
{
    const hal_ir_value factor = hal_ir_scalar_value(b, "factor", HAL_TYPE_I64);
    return hal_ir_add(b, hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_I64, i), factor),
                      hal_ir_i64(b, 1000));
}

static uint64_t scaled_wide(uint32_t i, uint32_t x, uint32_t y)
{
    return (uint64_t)(1000 - 7 * (int64_t)i);
}

static const index_case index_cases[] = {
    {"forward", HAL_TYPE_U32, 0, build_forward, forward},
    {"backward", HAL_TYPE_U32, 0, build_backward, backward},
    {"strided", HAL_TYPE_U32, 0, build_strided, strided},
    {"wrapping", HAL_TYPE_U32, 0, build_wrapping, wrapping},
    {"jumping", HAL_TYPE_U32, 0, build_jumping, jumping},
    {"rows", HAL_TYPE_U32, 0, build_rows, rows},
    {"columns", HAL_TYPE_U32, 0, build_columns, columns},
    {"row_only", HAL_TYPE_U32, 0, build_row_only, row_only},
    {"constant", HAL_TYPE_U32, 0, build_constant, constant},
    {"divided", HAL_TYPE_U32, 0, build_divided, divided},
    {"turned", HAL_TYPE_U32, 0, build_turned, turned},
    {"signed", HAL_TYPE_I32, 0, build_signed, signed_index},
    {"wide", HAL_TYPE_I64, 0, build_wide, wide},
    {"wide_signed", HAL_TYPE_I64, 0, build_wide_signed, wide_signed},
    {"scaled_up", HAL_TYPE_U32, 3, build_scaled, scaled_up},
    {"scaled_down", HAL_TYPE_U32, -2, build_scaled, scaled_down},
    {"scaled_signed", HAL_TYPE_I32, -5, build_scaled_signed, scaled_signed},
    {"scaled_wide", HAL_TYPE_I64, -7, build_scaled_wide, scaled_wide},
};

static bool is_inside(hal_type type, uint64_t index)
{
    if (hal_type_is_signed(type)) {
        const int64_t value = number_signed(type, index);
        return value >= 0 && value < (int64_t)LENGTH;
    }
    return index < LENGTH;
}

static void fill_expected(const index_run *tested, uint32_t items, const uint32_t *x,
                          uint32_t *loaded, uint8_t *guards, uint32_t *counts)
{
    const uint32_t *size = tested->size, group = size[0] * size[1] * size[2];
    for (uint32_t i = 0; i < items; i++) {
        const uint32_t lane = i % group;
        const uint64_t index = tested->index.evaluate(i, lane % size[0], lane / size[0] % size[1]);
        guards[i] = is_inside(tested->index.type, index);
        if (guards[i] != 0) {
            loaded[i] = x[index];
            counts[index]++;
        }
    }
}

static hal_ir_builder *build_kernel(case_run *run, const index_run *tested)
{
    const uint32_t *size = tested->size, group = size[0] * size[1] * size[2];
    const hal_type type = tested->index.type;
    hal_ir_builder *b = ir_begin(run, "index");
    hal_ir_group_size(b, size[0], size[1], size[2]);
    hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id loaded = hal_ir_binding(b, "loaded", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id guards = hal_ir_binding(b, "guards", HAL_TYPE_BOOL, HAL_ACCESS_WRITE);
    const hal_ir_memory_id counts =
        hal_ir_binding(b, "counts", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value place[3] = {hal_ir_id(b, HAL_IR_LOCAL_ID, 0),
                                   hal_ir_id(b, HAL_IR_LOCAL_ID, 1),
                                   hal_ir_id(b, HAL_IR_LOCAL_ID, 2)};
    const hal_ir_value plane = hal_ir_mul(b, place[2], hal_ir_u32(b, size[0] * size[1]));
    const hal_ir_value line = hal_ir_mul(b, place[1], hal_ir_u32(b, size[0]));
    const hal_ir_value lane = hal_ir_add(b, hal_ir_add(b, plane, line), place[0]);
    const hal_ir_value start =
        hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_u32(b, group));
    const hal_ir_value i = hal_ir_add(b, start, lane);
    if (tested->shared) {
        const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, LENGTH);
        const hal_ir_value k = hal_ir_for(b, lane, hal_ir_u32(b, LENGTH), hal_ir_u32(b, group));
        hal_ir_store(b, tile, k, hal_ir_load(b, x, k));
        hal_ir_end(b);
        hal_ir_barrier(b);
        x = tile;
    }
    const hal_ir_value index = tested->index.build(b, i, place[0], place[1]);
    const hal_ir_value zero = hal_ir_number(b, type, 0.0);
    const hal_ir_value guard = hal_ir_and(b, hal_ir_ge(b, index, zero),
                                          hal_ir_lt(b, index, hal_ir_number(b, type, LENGTH)));
    hal_ir_store(b, loaded, i, hal_ir_load_wide(b, x, index, 0, 1, guard));
    hal_ir_store(b, guards, i, guard);
    hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, counts, index, guard, hal_ir_u32(b, 1), HAL_IR_NONE);
    return b;
}

/* loaded[i] = x[index], guards[i] whether the index is inside, counts[index] how many have it. */
static void run_index(case_run *run, const void *parameters)
{
    const index_run *tested = parameters;
    enum { GROUPS = 3 };
    const uint32_t group = tested->size[0] * tested->size[1] * tested->size[2];
    const uint32_t items = GROUPS * group;
    /* The low bytes come first. */
    const uint32_t factor_bytes = tested->index.factor == 0 ? 0 : hal_type_size(tested->index.type);
    case_claim_arithmetic(run, tested->index.type);
    case_claim_storage(run, HAL_TYPE_BOOL);
    if (group > run->info->max_group_items || tested->size[0] > run->info->max_group_size[0]) {
        case_unsupported(run, "groups have at most %u work-items", run->info->max_group_items);
    }
    if (tested->shared && run->info->shared_bytes < 4 * LENGTH) {
        case_unsupported(run, "groups have %u bytes of shared memory", run->info->shared_bytes);
    }
    uint32_t *x = case_allocate(run, LENGTH, 4), *counts = case_allocate(run, LENGTH, 4);
    uint32_t *loaded = case_allocate(run, items, 4);
    uint8_t *guards = case_allocate(run, items, 1);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < LENGTH; i++) {
        x[i] = (uint32_t)random_next(&random);
    }
    const red_zone zones[4] = {zone_create(run, 4 * LENGTH, x), zone_create(run, 4 * items, NULL),
                               zone_create(run, items, NULL), zone_create(run, 4 * LENGTH, counts)};
    fill_expected(tested, items, x, loaded, guards, counts);
    ir_run(run, build_kernel(run, tested), GROUPS, zones, 4, &tested->index.factor, factor_bytes);
    ir_check(run, &zones[1], HAL_TYPE_U32, loaded, items, "what was loaded");
    ir_check(run, &zones[2], HAL_TYPE_BOOL, guards, items, "the guards");
    ir_check(run, &zones[3], HAL_TYPE_U32, counts, LENGTH, "what was counted");
}

void cases_ir_index(case_list *list)
{
    static const uint32_t sizes[][3] = {{64, 1, 1}, {8, 8, 1}, {3, 5, 4}, {100, 1, 1}};
    for (size_t i = 0; i < sizeof index_cases / sizeof index_cases[0]; i++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (int shared = 0; shared < 2; shared++) {
                const index_run tested = {
                    index_cases[i], {sizes[s][0], sizes[s][1], sizes[s][2]}, shared != 0};
                case_add(list, run_index, &tested, sizeof tested,
                         "ir/index(%s,group=%ux%ux%u,memory=%s)", tested.index.name, sizes[s][0],
                         sizes[s][1], sizes[s][2], shared != 0 ? "shared" : "binding");
            }
        }
    }
}
