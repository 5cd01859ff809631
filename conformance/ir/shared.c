/* shared.c: work-items of a group that cooperate: shared arrays, barriers, values that live across
 * them, and asynchronous copies. */
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define GROUPS 3u

/* A kernel over u32: x has one element for each work-item, out too. */
typedef struct shared_case {
    const char *name;
    uint32_t size[3]; /* of a group; 0: the most that the device has */
    void (*build)(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out, uint32_t items);
    void (*expect)(const uint32_t *x, uint32_t *out, uint32_t items);
} shared_case;

static hal_ir_value lane_of(hal_ir_builder *b)
{
    return hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
}

/* The element of a work-item with the given place in the group. */
static hal_ir_value place_of(hal_ir_builder *b, hal_ir_value lane, uint32_t items)
{
    return hal_ir_add(b, hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_u32(b, items)),
                      lane);
}

static void build_reverse(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out,
                          uint32_t items)
{
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, items);
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    hal_ir_store(b, tile, hal_ir_sub(b, hal_ir_u32(b, items - 1), lane), hal_ir_load(b, x, place));
    hal_ir_barrier(b);
    hal_ir_store(b, out, place, hal_ir_load(b, tile, lane));
}

static void expect_reverse(const uint32_t *x, uint32_t *out, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++) {
        out[i] = x[items - 1 - i];
    }
}

/* 8 x 8 work-items in two dimensions. */
static void build_transpose(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out,
                            uint32_t items)
{
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, 9 * 8);
    const hal_ir_value column = lane_of(b), row = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value lane = hal_ir_add(b, hal_ir_mul(b, row, hal_ir_u32(b, 8)), column);
    const hal_ir_value place = place_of(b, lane, items), pitch = hal_ir_u32(b, 9);
    hal_ir_store(b, tile, hal_ir_add(b, hal_ir_mul(b, row, pitch), column),
                 hal_ir_load(b, x, place));
    hal_ir_barrier(b);
    hal_ir_store(b, out, place,
                 hal_ir_load(b, tile, hal_ir_add(b, hal_ir_mul(b, column, pitch), row)));
}

static void expect_transpose(const uint32_t *x, uint32_t *out, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++) {
        out[i] = x[i % 8 * 8 + i / 8];
    }
}

/* Halves in a loop with a barrier in each turn; the loop's end is the same for all. */
static void build_tree(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out, uint32_t items)
{
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, items);
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    hal_ir_store(b, tile, lane, hal_ir_load(b, x, place));
    const hal_ir_value half = hal_ir_var(b, hal_ir_u32(b, items / 2));
    hal_ir_for(b, hal_ir_u32(b, 1), hal_ir_u32(b, items), hal_ir_u32(b, 1));
    const hal_ir_value now = hal_ir_get(b, half);
    hal_ir_barrier(b);
    hal_ir_if(b, hal_ir_lt(b, lane, now));
    hal_ir_store(
        b, tile, lane,
        hal_ir_add(b, hal_ir_load(b, tile, lane), hal_ir_load(b, tile, hal_ir_add(b, lane, now))));
    hal_ir_end(b);
    hal_ir_set(b, half, hal_ir_shr(b, now, hal_ir_u32(b, 1)));
    hal_ir_end(b);
    hal_ir_barrier(b);
    hal_ir_store(b, out, place, hal_ir_load(b, tile, hal_ir_u32(b, 0)));
}

static void expect_tree(const uint32_t *x, uint32_t *out, uint32_t items)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < items; i++) {
        sum += x[i];
    }
    for (uint32_t i = 0; i < items; i++) {
        out[i] = sum;
    }
}

/* Running sums: two barriers in each turn, and a variable that lives across both. */
static void build_scan(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out, uint32_t items)
{
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, items);
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    const hal_ir_value sum = hal_ir_var(b, hal_ir_load(b, x, place));
    for (uint32_t distance = 1; distance < items; distance *= 2) {
        const hal_ir_value far = hal_ir_u32(b, distance);
        const hal_ir_value guard = hal_ir_ge(b, lane, far);
        hal_ir_store(b, tile, lane, hal_ir_get(b, sum));
        hal_ir_barrier(b);
        const hal_ir_value before =
            hal_ir_load_wide(b, tile, hal_ir_sub(b, lane, far), 0, 1, guard);
        hal_ir_barrier(b);
        hal_ir_set(b, sum, hal_ir_add(b, hal_ir_get(b, sum), before));
    }
    hal_ir_store(b, out, place, hal_ir_get(b, sum));
}

static void expect_scan(const uint32_t *x, uint32_t *out, uint32_t items)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < items; i++) {
        sum += x[i];
        out[i] = sum;
    }
}

/* Two arrays of different types; values computed before the barrier are used after it. */
static void build_two_arrays(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out,
                             uint32_t items)
{
    const hal_ir_memory_id low = hal_ir_shared(b, "low", HAL_TYPE_U8, items + 3);
    const hal_ir_memory_id high = hal_ir_shared(b, "high", HAL_TYPE_U32, items);
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    const hal_ir_value value = hal_ir_load(b, x, place);
    const hal_ir_value kept = hal_ir_mul(b, value, hal_ir_u32(b, 7));
    hal_ir_store_wide(b, low, lane, 3, HAL_IR_NONE, value);
    hal_ir_store(b, high, lane, hal_ir_shr(b, value, hal_ir_u32(b, 8)));
    hal_ir_barrier(b);
    const hal_ir_value next =
        hal_ir_rem(b, hal_ir_add(b, lane, hal_ir_u32(b, 5)), hal_ir_u32(b, items));
    const hal_ir_value joined =
        hal_ir_or(b, hal_ir_shl(b, hal_ir_load(b, high, next), hal_ir_u32(b, 8)),
                  hal_ir_load_wide(b, low, next, 3, 1, HAL_IR_NONE));
    hal_ir_store(b, out, place, hal_ir_add(b, joined, kept));
}

static void expect_two_arrays(const uint32_t *x, uint32_t *out, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++) {
        out[i] = x[(i + 5) % items] + x[i] * 7;
    }
}

/* A group's work-items see after a barrier what the group wrote to a binding. */
static void build_through_binding(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out,
                                  uint32_t items)
{
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    const hal_ir_value next =
        hal_ir_rem(b, hal_ir_add(b, lane, hal_ir_u32(b, 9)), hal_ir_u32(b, items));
    hal_ir_store(b, out, place, hal_ir_add(b, hal_ir_load(b, x, place), hal_ir_u32(b, 1)));
    hal_ir_barrier(b);
    const hal_ir_value seen = hal_ir_load(b, out, place_of(b, next, items));
    hal_ir_barrier(b);
    hal_ir_store(b, out, place, hal_ir_mul(b, seen, hal_ir_u32(b, 3)));
}

static void expect_through_binding(const uint32_t *x, uint32_t *out, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++) {
        out[i] = (x[(i + 9) % items] + 1) * 3;
    }
}

/* A barrier in a branch that the whole group takes or leaves. */
static void build_uniform_branch(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out,
                                 uint32_t items)
{
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, items);
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    const hal_ir_value result = hal_ir_var(b, hal_ir_load(b, x, place));
    hal_ir_if(b, hal_ir_ne(b, hal_ir_id(b, HAL_IR_GROUP_COUNT, 0), hal_ir_u32(b, GROUPS + 1)));
    hal_ir_store(b, tile, lane, hal_ir_get(b, result));
    hal_ir_barrier(b);
    hal_ir_set(b, result, hal_ir_load(b, tile, hal_ir_xor(b, lane, hal_ir_u32(b, 1))));
    hal_ir_end(b);
    hal_ir_store(b, out, place, hal_ir_get(b, result));
}

static void expect_uniform_branch(const uint32_t *x, uint32_t *out, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++) {
        out[i] = x[i ^ 1];
    }
}

enum { ARRAYS = HAL_IR_MAX_SHARED };

static void build_many_arrays(hal_ir_builder *b, hal_ir_memory_id x, hal_ir_memory_id out,
                              uint32_t items)
{
    hal_ir_memory_id tiles[ARRAYS];
    const hal_ir_value lane = lane_of(b), place = place_of(b, lane, items);
    const hal_ir_value element = hal_ir_load(b, x, place);
    for (uint32_t k = 0; k < ARRAYS; k++) {
        char name[16];
        snprintf(name, sizeof name, "tile%u", k);
        tiles[k] = hal_ir_shared(b, name, HAL_TYPE_U32, items);
        hal_ir_store(b, tiles[k], lane, hal_ir_mul(b, element, hal_ir_u32(b, 2 * k + 1)));
    }
    hal_ir_barrier(b);
    const hal_ir_value other = hal_ir_sub(b, hal_ir_u32(b, items - 1), lane);
    hal_ir_value sum = hal_ir_u32(b, 0);
    for (uint32_t k = 0; k < ARRAYS; k++) {
        sum = hal_ir_add(b, hal_ir_mul(b, sum, hal_ir_u32(b, 5)), hal_ir_load(b, tiles[k], other));
    }
    hal_ir_store(b, out, place, sum);
}

static void expect_many_arrays(const uint32_t *x, uint32_t *out, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++) {
        out[i] = 0;
        for (uint32_t k = 0; k < ARRAYS; k++) {
            out[i] = out[i] * 5 + x[items - 1 - i] * (2 * k + 1);
        }
    }
}

static const shared_case shared_cases[] = {
    {"reverse,group=48", {48, 1, 1}, build_reverse, expect_reverse},
    {"reverse,group=1", {1, 1, 1}, build_reverse, expect_reverse},
    {"reverse,group=most", {0, 1, 1}, build_reverse, expect_reverse},
    {"transpose,group=8x8", {8, 8, 1}, build_transpose, expect_transpose},
    {"tree,group=64", {64, 1, 1}, build_tree, expect_tree},
    {"scan,group=50", {50, 1, 1}, build_scan, expect_scan},
    {"two_arrays,group=37", {37, 1, 1}, build_two_arrays, expect_two_arrays},
    {"two_arrays,group=128", {128, 1, 1}, build_two_arrays, expect_two_arrays},
    {"many_arrays,group=33", {33, 1, 1}, build_many_arrays, expect_many_arrays},
    {"through_binding,group=64", {64, 1, 1}, build_through_binding, expect_through_binding},
    {"uniform_branch,group=64", {64, 1, 1}, build_uniform_branch, expect_uniform_branch},
};

static void run_shared(case_run *run, const void *parameters)
{
    const shared_case *tested = parameters;
    uint32_t size[3];
    memcpy(size, tested->size, sizeof size);
    if (size[0] == 0) {
        size[0] = run->info->max_group_items < run->info->max_group_size[0]
                      ? run->info->max_group_items
                      : run->info->max_group_size[0];
    }
    const uint32_t items = size[0] * size[1];
    if (items > run->info->max_group_items || size[1] > run->info->max_group_size[1]) {
        case_unsupported(run, "groups have at most %u work-items", run->info->max_group_items);
    }
    if (tested->build == build_two_arrays) {
        case_claim_storage(run, HAL_TYPE_U8);
    }
    const size_t count = (size_t)GROUPS * items;
    uint32_t *x = case_allocate(run, count, 4), *expected = case_allocate(run, count, 4);
    random_state random = {run->seed};
    for (size_t i = 0; i < count; i++) {
        x[i] = (uint32_t)random_next(&random);
    }
    for (uint32_t group = 0; group < GROUPS; group++) {
        tested->expect(x + (size_t)group * items, expected + (size_t)group * items, items);
    }
    const red_zone zones[2] = {zone_create(run, 4 * count, x), zone_create(run, 4 * count, NULL)};
    hal_ir_builder *b = ir_begin(run, "shared");
    hal_ir_group_size(b, size[0], size[1], size[2]);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    tested->build(b, in, out, items);
    ir_run(run, b, GROUPS, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, count, "result");
}

/* All shared memory that the device says a group has; groups must not see each other's. */
static void run_full_memory(case_run *run, const void *parameters)
{
    uint32_t words = run->info->shared_bytes / 4;
    words = words > HAL_IR_MAX_SHARED_BYTES / 4 ? HAL_IR_MAX_SHARED_BYTES / 4 : words;
    const size_t count = (size_t)GROUPS * words;
    uint32_t *expected = case_allocate(run, count, 4);
    for (size_t k = 0; k < count; k++) {
        expected[k] = (uint32_t)(k / words * words + words - 1 - k % words);
    }
    const red_zone zone = zone_create(run, 4 * count, NULL);
    hal_ir_builder *b = ir_begin(run, "full");
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id all = hal_ir_shared(b, "all", HAL_TYPE_U32, words);
    const hal_ir_value start =
        hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_u32(b, words));
    const hal_ir_value end = hal_ir_u32(b, words), step = hal_ir_u32(b, ir_group_of(run));
    hal_ir_value i = hal_ir_for(b, lane_of(b), end, step);
    hal_ir_store(b, all, hal_ir_sub(b, hal_ir_u32(b, words - 1), i), hal_ir_add(b, start, i));
    hal_ir_end(b);
    hal_ir_barrier(b);
    i = hal_ir_for(b, lane_of(b), end, step);
    hal_ir_store(b, out, hal_ir_add(b, start, i), hal_ir_load(b, all, i));
    hal_ir_end(b);
    ir_run(run, b, GROUPS, &zone, 1, NULL, 0);
    ir_check(run, &zone, HAL_TYPE_U32, expected, count, "result");
}

static hal_ir_builder *build_async(case_run *run, hal_type type, uint32_t width, uint32_t group)
{
    hal_ir_builder *b = ir_begin(run, "async");
    const hal_ir_memory_id x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", type, 2 * group * width);
    const hal_ir_value lane = lane_of(b), wide = hal_ir_u32(b, width);
    const hal_ir_value next =
        hal_ir_rem(b, hal_ir_add(b, lane, hal_ir_u32(b, 1)), hal_ir_u32(b, group));
    const hal_ir_value guard =
        hal_ir_ne(b, hal_ir_rem(b, lane, hal_ir_u32(b, 5)), hal_ir_u32(b, 3));
    const hal_type value_type = hal_type_of_value(type);
    const hal_ir_value one =
        value_type == HAL_TYPE_BOOL ? hal_ir_bool(b, 1) : hal_ir_number(b, value_type, 1.0);
    hal_ir_value place[2], shared[2];
    for (uint32_t half = 0; half < 2; half++) {
        const hal_ir_value first =
            hal_ir_add(b, hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_u32(b, 2 * group)),
                       hal_ir_u32(b, half * group));
        place[half] = hal_ir_mul(b, hal_ir_add(b, first, lane), wide);
        shared[half] = hal_ir_mul(b, hal_ir_add(b, hal_ir_u32(b, half * group), lane), wide);
        for (uint32_t k = 0; k < width; k++) { /* what a false guard has to replace by 0 */
            hal_ir_store_wide(b, tile, shared[half], (int32_t)k, HAL_IR_NONE, one);
        }
        hal_ir_barrier(b);
        hal_ir_async_copy(b, tile, shared[half], x, place[half], width, guard);
        hal_ir_async_commit(b);
    }
    for (uint32_t half = 0; half < 2; half++) {
        hal_ir_async_wait(b, 1 - half);
        hal_ir_barrier(b);
        const hal_ir_value neighbour =
            hal_ir_mul(b, hal_ir_add(b, hal_ir_u32(b, half * group), next), wide);
        hal_ir_store_wide(b, out, place[half], 0, HAL_IR_NONE,
                          hal_ir_load_wide(b, tile, neighbour, 0, width, HAL_IR_NONE));
    }
    return b;
}

/* Two sets of vectors are copied, the first waited for while the second is in flight; every fifth
 * vector is guarded off and reads as zero. */
static void run_async(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const uint32_t size = hal_type_size(type), width = size >= 4 ? 16 / size : 4;
    const uint32_t group = ir_group_of(run);
    const size_t count = (size_t)GROUPS * 2 * group * width;
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    case_claim_or_rewrite(run, (run->info->features & HAL_FEATURE_ASYNC_COPY) != 0,
                          "asynchronous copies");
    uint8_t *x = case_allocate(run, count, 8), *expected = case_allocate(run, count, 8);
    random_state random = {run->seed};
    for (size_t i = 0; i < count; i++) {
        number_store(type, x, i, random_bits(&random, type));
    }
    for (size_t i = 0; i < count / width; i++) {
        const size_t half = i / group * group, lane = i % group;
        const size_t source = half + (lane + 1) % group;
        for (uint32_t k = 0; k < width && (lane + 1) % group % 5 != 3; k++) {
            number_store(type, expected, i * width + k, number_load(type, x, source * width + k));
        }
    }
    const red_zone zones[2] = {zone_create(run, count * size, x),
                               zone_create(run, count * size, NULL)};
    ir_run(run, build_async(run, type, width, group), GROUPS, zones, 2, NULL, 0);
    ir_check(run, &zones[1], type, expected, count, "result");
}

void cases_ir_shared(case_list *list)
{
    for (size_t i = 0; i < sizeof shared_cases / sizeof shared_cases[0]; i++) {
        case_add(list, run_shared, &shared_cases[i], sizeof shared_cases[i], "ir/shared(%s)",
                 shared_cases[i].name);
        case_covers(list, HAL_TYPE_U32, CASE_SHARED, "barrier");
    }
    case_add(list, run_full_memory, NULL, 0, "ir/shared(all_of_it)");
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        case_add(list, run_async, &type, sizeof type, "ir/async_copy(type=%s)",
                 hal_type_name(type));
        case_covers(list, type, CASE_SHARED, "async_copy");
    }
}
