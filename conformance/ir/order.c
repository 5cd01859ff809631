/* order.c: loads and stores of one work-item happen in the order of the kernel, and across barriers
 * those of the group: whatever index names the element, in bindings and in shared memory. And
 * indices, guards, conditions, bounds and lanes that are constants. */
#include <string.h>

#include "case/cases.h"
#include "ir/fixture.h"

enum { RESULTS = 24, TURNS = 5 };

typedef struct order_case {
    bool is_shared;
} order_case;

/* Writes the results of a work-item in a row. */
typedef struct recorder {
    hal_ir_builder *b;
    hal_ir_memory_id out;
    hal_ir_value first; /* index of the first result */
    int32_t count;
} recorder;

static void result(recorder *r, hal_ir_value value)
{
    hal_ir_store_wide(r->b, r->out, r->first, r->count++, HAL_IR_NONE, value);
}

/* Element i by three indices, which only the value of a scalar makes equal. */
static void one_item(recorder *r, hal_ir_memory_id memory, hal_ir_value i, hal_ir_value zero)
{
    hal_ir_builder *b = r->b;
    const hal_ir_value other = hal_ir_add(b, i, zero), third = hal_ir_sub(b, i, zero);
    const hal_ir_value first = hal_ir_load(b, memory, i);
    hal_ir_store(b, memory, i, hal_ir_add(b, first, hal_ir_u32(b, 1)));
    result(r, hal_ir_load(b, memory, i)); /* x + 1 */
    hal_ir_store(b, memory, other, hal_ir_mul(b, first, hal_ir_u32(b, 3)));
    result(r, hal_ir_load(b, memory, i)); /* 3 x */
    hal_ir_store(b, memory, i, hal_ir_u32(b, 40));
    result(r, hal_ir_load(b, memory, third)); /* 40, by a load between two stores */
    hal_ir_store(b, memory, i, hal_ir_add(b, first, hal_ir_u32(b, 7)));
    result(r, hal_ir_load(b, memory, other)); /* x + 7 */
    const hal_ir_value in_loop = hal_ir_var(b, hal_ir_u32(b, 0));
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, TURNS), hal_ir_u32(b, 1));
    const hal_ir_value seen = hal_ir_load(b, memory, i); /* of the turn before */
    hal_ir_store(b, memory, other, hal_ir_add(b, seen, seen));
    hal_ir_set(b, in_loop, hal_ir_xor(b, hal_ir_get(b, in_loop), seen));
    hal_ir_end(b);
    result(r, hal_ir_get(b, in_loop));
    result(r, hal_ir_load(b, memory, i)); /* 32 (x + 7) */
    hal_ir_if(b, hal_ir_lt(b, zero, hal_ir_u32(b, 1)));
    hal_ir_store(b, memory, third, first);
    hal_ir_end(b);
    result(r, hal_ir_load(b, memory, i)); /* x */
}

static uint32_t one_item_expected(uint32_t x, uint32_t expected[RESULTS])
{
    uint32_t joined = 0;
    for (uint32_t k = 0; k < TURNS; k++) {
        joined ^= (x + 7) << k;
    }
    const uint32_t values[] = {x + 1, 3 * x, 40, x + 7, joined, (x + 7) << TURNS, x};
    memcpy(expected, values, sizeof values);
    return sizeof values / sizeof values[0];
}

/* Atomic operations of one element in a row: each is carried out, whether its result is used and
 * whatever it adds. Gives what one_atomic_expected has. */
static void one_atomic(recorder *r, hal_ir_memory_id memory, hal_ir_value i)
{
    hal_ir_builder *b = r->b;
    const hal_ir_value three = hal_ir_u32(b, 3), none = hal_ir_u32(b, 0);
    result(r, hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, memory, i, HAL_IR_NONE, three, HAL_IR_NONE));
    result(r, hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, memory, i, HAL_IR_NONE, three, HAL_IR_NONE));
    hal_ir_atomic(b, HAL_IR_ATOMIC_XOR, memory, i, HAL_IR_NONE, hal_ir_u32(b, 0x50), HAL_IR_NONE);
    hal_ir_atomic(b, HAL_IR_ATOMIC_MIN, memory, i, HAL_IR_NONE, hal_ir_u32(b, 0x7fffffff),
                  HAL_IR_NONE);
    result(r, hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, memory, i, HAL_IR_NONE, none, HAL_IR_NONE));
    result(r, hal_ir_atomic(b, HAL_IR_ATOMIC_OR, memory, i, HAL_IR_NONE, none, HAL_IR_NONE));
    result(r, hal_ir_load(b, memory, i));
    hal_ir_atomic(b, HAL_IR_ATOMIC_EXCHANGE, memory, i, HAL_IR_NONE, none, HAL_IR_NONE);
    result(r, hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, memory, i, HAL_IR_NONE, none, HAL_IR_NONE));
}

static uint32_t one_atomic_expected(uint32_t x, uint32_t expected[RESULTS])
{
    const uint32_t mixed = (x + 6) ^ 0x50, least = mixed < 0x7fffffff ? mixed : 0x7fffffff;
    const uint32_t values[] = {x, x + 3, least, least, least, 0};
    memcpy(expected, values, sizeof values);
    return sizeof values / sizeof values[0];
}

/* What the neighbour, the same number from the other end of the group, wrote before a barrier:
 * three times by the same index, and in a loop. */
static void across_barriers(recorder *r, hal_ir_memory_id memory, hal_ir_value i, uint32_t group)
{
    hal_ir_builder *b = r->b;
    const hal_ir_value neighbour = hal_ir_sub(b, hal_ir_u32(b, group - 1), i);
    for (uint32_t turn = 0; turn < 3; turn++) {
        hal_ir_barrier(b);
        const hal_ir_value seen = hal_ir_load(b, memory, neighbour);
        result(r, seen);
        hal_ir_barrier(b);
        hal_ir_store(b, memory, i, hal_ir_add(b, seen, hal_ir_u32(b, 1 + turn)));
    }
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, 3), hal_ir_u32(b, 1));
    hal_ir_barrier(b);
    const hal_ir_value seen = hal_ir_load(b, memory, neighbour);
    hal_ir_barrier(b);
    hal_ir_store(b, memory, i, hal_ir_add(b, seen, seen));
    hal_ir_end(b);
    hal_ir_barrier(b);
    result(r, hal_ir_load(b, memory, neighbour));
}

/* Of the first of the pair. */
static void barriers_expected(const uint32_t x[2], uint32_t *expected)
{
    uint32_t now[2] = {x[0], x[1]};
    for (uint32_t turn = 0; turn < 6; turn++) {
        const uint32_t seen[2] = {now[1], now[0]};
        expected[turn < 3 ? turn : 3] = seen[0];
        for (int k = 0; k < 2; k++) {
            now[k] = turn < 3 ? seen[k] + 1 + turn : 2 * seen[k];
        }
    }
    expected[3] = now[1];
}

static void run_order(case_run *run, const void *parameters)
{
    const order_case *tested = parameters;
    const uint32_t group = ir_group_of(run), zero = 0;
    uint32_t *x = case_allocate(run, group, 4);
    uint32_t *expected = case_allocate(run, (size_t)group * RESULTS, 4);
    for (uint32_t i = 0; i < group; i++) {
        x[i] = i * 2654435761u + 12345;
    }
    hal_ir_builder *b = ir_begin(run, "order");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value scalar = hal_ir_scalar_value(b, "zero", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value loaded = hal_ir_load(b, in, i);
    hal_ir_memory_id memory = in;
    if (tested->is_shared) {
        memory = hal_ir_shared(b, "tile", HAL_TYPE_U32, group);
        hal_ir_store(b, memory, i, loaded);
    }
    recorder r = {b, out, hal_ir_mul(b, i, hal_ir_u32(b, RESULTS)), 0};
    one_item(&r, memory, i, scalar);
    hal_ir_barrier(b); /* atomics and barriers begin with what was loaded */
    hal_ir_store(b, memory, i, loaded);
    one_atomic(&r, memory, i);
    hal_ir_store(b, memory, i, loaded);
    across_barriers(&r, memory, i, group);
    while (r.count < RESULTS) {
        result(&r, hal_ir_u32(b, 0));
    }
    for (uint32_t item = 0; item < group; item++) {
        uint32_t *row = expected + (size_t)item * RESULTS;
        const uint32_t pair[2] = {x[item], x[group - 1 - item]};
        uint32_t count = one_item_expected(x[item], row);
        count += one_atomic_expected(x[item], row + count);
        barriers_expected(pair, row + count);
    }
    const red_zone zones[2] = {zone_create(run, 4ull * group, x),
                               zone_create(run, 4ull * group * RESULTS, NULL)};
    ir_run(run, b, 1, zones, 2, &zero, sizeof zero);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, (size_t)group * RESULTS, "result");
}

/* ---- Indices and guards that are constants ---- */

enum { ELEMENTS = 64 };

/* Element c + imm with both signs, guards that are constants, and vectors at odd places. */
static void run_constant_index(case_run *run, const void *parameters)
{
    static const int32_t places[][2] = {{5, 0},  {9, -4}, {0, 7},   {30, 12}, {63, -63},
                                        {40, 8}, {1, -1}, {16, 16}, {63, 0}};
    enum { PLACES = sizeof places / sizeof places[0] };
    uint32_t x[ELEMENTS], expected[PLACES + 6];
    uint32_t count = 0;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        x[i] = i * 2654435761u + 99;
    }
    hal_ir_builder *b = ir_begin(run, "constant_index");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    for (int k = 0; k < PLACES; k++) {
        const hal_ir_value index = ir_constant(b, HAL_TYPE_I32, (uint32_t)places[k][0]);
        const hal_ir_value seen = hal_ir_load_wide(b, in, index, places[k][1], 1, HAL_IR_NONE);
        expected[count] = x[places[k][0] + places[k][1]];
        hal_ir_store_wide(b, out, hal_ir_u32(b, count + 2), -2, HAL_IR_NONE, seen);
        count++;
    }
    const hal_ir_value yes = ir_constant(b, HAL_TYPE_BOOL, 1),
                       no = ir_constant(b, HAL_TYPE_BOOL, 0);
    const hal_ir_value far = hal_ir_u32(b, 0x40000000), three = hal_ir_u32(b, 3);
    const struct {
        hal_ir_value guard, index;
        uint32_t value;
    } guarded[2] = {{yes, three, x[3]}, {no, far, 0}};
    for (int k = 0; k < 2; k++) {
        const hal_ir_value seen = hal_ir_load_wide(b, in, guarded[k].index, 0, 1, guarded[k].guard);
        hal_ir_store_wide(b, out, hal_ir_u32(b, count), 0, HAL_IR_NONE, seen);
        expected[count++] = guarded[k].value;
    }
    hal_ir_store_wide(b, out, hal_ir_u32(b, count), 0, HAL_IR_NONE, hal_ir_u32(b, 1234));
    hal_ir_store_wide(b, out, hal_ir_u32(b, count), 0, no, hal_ir_u32(b, 5678));
    hal_ir_store_wide(b, out, far, 0, no, hal_ir_u32(b, 5678));
    expected[count++] = 1234;
    const red_zone zones[2] = {zone_create(run, sizeof x, x), zone_create(run, 4ull * count, NULL)};
    ir_run(run, b, 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, count, "result");
}

/* ---- Conditions, bounds and lanes that are constants ---- */

/* Adds `step` to the variable. */
static void variable_add(hal_ir_builder *b, hal_ir_value variable, uint32_t step)
{
    hal_ir_set(b, variable, hal_ir_add(b, hal_ir_get(b, variable), hal_ir_u32(b, step)));
}

/* Loops of no, one and some turns, and branches that are never or always taken. */
static void run_constant_control(case_run *run, const void *parameters)
{
    static const struct {
        int32_t from, to, step;
        uint32_t turns;
    } loops[] = {{0, 0, 1, 0},           {5, 5, 1, 0},  {7, 3, 2, 0},   {-3, -3, 1, 0},
                 {-3, -5, 1, 0},         {-2, 0, 1, 2}, {-5, 5, 10, 1}, {-5, 6, 10, 2},
                 {3, -2000000000, 1, 0}, {0, 1, 9, 1}};
    enum { LOOPS = sizeof loops / sizeof loops[0], STEP = 0x100 };
    uint32_t expected[LOOPS + 3];
    hal_ir_builder *b = ir_begin(run, "constant_control");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    recorder r = {b, out, zero, 0};
    for (int k = 0; k < LOOPS; k++) {
        const hal_ir_value count = hal_ir_var(b, hal_ir_u32(b, (uint32_t)k));
        hal_ir_for(b, ir_constant(b, HAL_TYPE_I32, (uint32_t)loops[k].from),
                   ir_constant(b, HAL_TYPE_I32, (uint32_t)loops[k].to),
                   ir_constant(b, HAL_TYPE_I32, (uint32_t)loops[k].step));
        variable_add(b, count, STEP);
        hal_ir_end(b);
        expected[r.count] = (uint32_t)k + STEP * loops[k].turns;
        result(&r, hal_ir_get(b, count));
    }
    for (uint32_t taken = 0; taken < 2; taken++) {
        const hal_ir_value count = hal_ir_var(b, hal_ir_u32(b, 0));
        hal_ir_if(b, ir_constant(b, HAL_TYPE_BOOL, taken));
        variable_add(b, count, 1);
        hal_ir_else(b);
        variable_add(b, count, 2);
        hal_ir_end(b);
        expected[r.count] = taken ? 1 : 2;
        result(&r, hal_ir_get(b, count));
    }
    const red_zone zone = zone_create(run, 4ull * (uint32_t)r.count, NULL);
    ir_run(run, b, 1, &zone, 1, NULL, 0);
    ir_check(run, &zone, HAL_TYPE_U32, expected, (size_t)r.count, "result");
}

/* Reductions of constants, in a group whose last subgroup is short, and lanes by constants. */
static void run_constant_lanes(case_run *run, const void *parameters)
{
    static const uint32_t lanes[] = {0, 1, 17, 1000003, UINT32_MAX};
    enum { LANES = sizeof lanes / sizeof lanes[0], EACH = 3 + LANES };
    const uint32_t width =
        run->info->subgroup_width == 0 ? HAL_IR_EMULATED_SUBGROUP : run->info->subgroup_width;
    const uint32_t group = width > 2 ? width + width / 2 : width;
    if (group > run->info->max_group_items || group > run->info->max_group_size[0]) {
        case_unsupported(run, "a group has no room for two subgroups");
    }
    uint32_t *expected = case_allocate(run, (size_t)group * EACH, 4);
    hal_ir_builder *b = ir_begin(run, "constant_lanes");
    hal_ir_group_size(b, group, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    recorder r = {b, out, hal_ir_mul(b, i, hal_ir_u32(b, EACH)), 0};
    for (uint32_t kind = 0; kind < HAL_IR_REDUCE_COUNT; kind++) {
        result(&r, hal_ir_subgroup_reduce(b, kind, hal_ir_u32(b, 7)));
    }
    for (int k = 0; k < LANES; k++) {
        /* Of what a short subgroup lacks the result is open. */
        const hal_ir_value seen = hal_ir_shuffle(b, i, hal_ir_u32(b, lanes[k]));
        const hal_ir_value is_whole = hal_ir_lt(b, i, hal_ir_u32(b, width));
        result(&r, hal_ir_select(b, is_whole, seen, hal_ir_u32(b, 0)));
    }
    for (uint32_t item = 0; item < group; item++) {
        const uint32_t here = item < width ? width : group - width;
        uint32_t *row = expected + (size_t)item * EACH;
        row[HAL_IR_REDUCE_ADD] = 7 * here;
        row[HAL_IR_REDUCE_MIN] = row[HAL_IR_REDUCE_MAX] = 7;
        for (int k = 0; k < LANES; k++) {
            row[3 + k] = item < width ? lanes[k] % width : 0;
        }
    }
    const red_zone zone = zone_create(run, 4ull * group * EACH, NULL);
    ir_run(run, b, 1, &zone, 1, NULL, 0);
    ir_check(run, &zone, HAL_TYPE_U32, expected, (size_t)group * EACH, "result");
}

typedef struct vector_case {
    hal_type type;
    uint32_t width;
} vector_case;

/* Vectors from places that are multiples of their width only, by a constant offset. */
static void run_vector_offset(case_run *run, const void *parameters)
{
    const vector_case *tested = parameters;
    enum { TURNS_OF_WIDTH = 5, BEYOND = 8 };
    const uint32_t width = tested->width, count = (TURNS_OF_WIDTH + BEYOND) * width;
    const uint32_t size = hal_type_size(tested->type), results = TURNS_OF_WIDTH * width;
    uint8_t *x = case_allocate(run, count, size), *expected = case_allocate(run, results, size);
    case_claim_storage(run, tested->type);
    for (uint32_t i = 0; i < count; i++) {
        number_store(tested->type, x, i, number_bits(tested->type, i % 100));
    }
    hal_ir_builder *b = ir_begin(run, "vector_offset");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->type, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    for (uint32_t k = 0; k < TURNS_OF_WIDTH; k++) {
        const uint32_t from = (2 * k + 1) % (TURNS_OF_WIDTH + BEYOND) * width;
        const hal_ir_value seen = hal_ir_load_wide(b, in, zero, (int32_t)from, width, HAL_IR_NONE);
        hal_ir_store_wide(b, out, zero, (int32_t)(k * width), HAL_IR_NONE, seen);
        memcpy(expected + (size_t)k * width * size, x + (size_t)from * size, (size_t)width * size);
    }
    const red_zone zones[2] = {zone_create(run, (uint64_t)count * size, x),
                               zone_create(run, (uint64_t)results * size, NULL)};
    ir_run(run, b, 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], tested->type, expected, results, "result");
}

void cases_ir_order(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_U8, HAL_TYPE_F16, HAL_TYPE_U32, HAL_TYPE_F64};
    for (int i = 0; i < 2; i++) {
        const order_case tested = {i == 1};
        case_add(list, run_order, &tested, sizeof tested, "ir/order(memory=%s)",
                 i == 1 ? "shared" : "binding");
    }
    case_add(list, run_constant_index, NULL, 0, "ir/constants(index)");
    case_add(list, run_constant_control, NULL, 0, "ir/constants(control)");
    case_add(list, run_constant_lanes, NULL, 0, "ir/constants(lanes)");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (uint32_t width = 2; width <= 8; width *= 2) {
            const vector_case tested = {types[i], width};
            case_add(list, run_vector_offset, &tested, sizeof tested,
                     "ir/vector_offset(type=%s,width=%u)", hal_type_name(types[i]), width);
        }
    }
}
