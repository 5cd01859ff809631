/* memory.c: LOAD and STORE of every memory type and width, in bindings and in shared memory, with
 * and without guard; kinds of index and immediate offsets; several bindings. */
#include <stdio.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define GROUPS 5u

typedef struct access {
    hal_type type;
    uint32_t width;
    bool shared, stores, guarded;
} access;

/* The sides of a case on the host: x is read, out is written. Of a load, x has the memory's type
 * and out the value's; of a store it is the other way round. */
typedef struct sides {
    hal_type x_type, out_type;
    size_t count;
    void *x, *expected;
} sides;

/* Through shared memory a work-item gets the vector of its neighbour in the group. */
static size_t source_of(const case_run *run, const access *tested, size_t vector)
{
    const size_t group = ir_group_of(run);
    return tested->shared ? vector / group * group + (vector + 1) % group : vector;
}

/* A vector whose guard is false reads as 0, or is not stored: then the binding keeps its poison and
 * shared memory its zero. */
static void fill_sides(case_run *run, const access *tested, const sides *made)
{
    const uint32_t width = tested->width;
    random_state random = {run->seed};
    for (size_t i = 0; i < made->count; i++) {
        number_store(made->x_type, made->x, i, random_bits(&random, made->x_type));
    }
    if (tested->guarded && tested->stores && !tested->shared) {
        canary_fill(made->expected, made->count * hal_type_size(made->out_type));
    }
    for (size_t vector = 0; vector < made->count / width; vector++) {
        const size_t source = source_of(run, tested, vector);
        if (tested->guarded && source % 3 == 1) {
            continue;
        }
        for (uint32_t k = 0; k < width; k++) {
            const uint64_t bits = number_load(made->x_type, made->x, source * width + k);
            number_store(made->out_type, made->expected, vector * width + k,
                         tested->stores ? number_narrow(tested->type, bits)
                                        : number_widen(tested->type, bits));
        }
    }
}

/* False for every third vector. */
static hal_ir_value guard_of(hal_ir_builder *b, const access *tested, hal_ir_value i)
{
    if (!tested->guarded) {
        return HAL_IR_NONE;
    }
    return hal_ir_ne(b, hal_ir_rem(b, i, hal_ir_u32(b, 3)), hal_ir_u32(b, 1));
}

/* Stores elements and loads vectors, or the other way round; the tested access has the guard. */
static void build_shared(hal_ir_builder *b, const access *tested, uint32_t group,
                         hal_ir_memory_id x, hal_ir_memory_id out, hal_ir_memory_id tile)
{
    const uint32_t width = tested->width;
    const hal_ir_value lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value wide = hal_ir_u32(b, width);
    const hal_ir_value own = hal_ir_mul(b, lane, wide);
    const hal_ir_value next =
        hal_ir_rem(b, hal_ir_add(b, lane, hal_ir_u32(b, 1)), hal_ir_u32(b, group));
    const hal_ir_value start =
        hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_u32(b, group));
    const hal_ir_value mine = hal_ir_add(b, start, lane), from = hal_ir_add(b, start, next);
    const hal_ir_value input = hal_ir_mul(b, mine, wide), output = input;
    const hal_ir_value neighbour = hal_ir_mul(b, next, wide);
    hal_ir_value elements[8];
    for (uint32_t k = 0; k < width; k++) {
        elements[k] = hal_ir_load_wide(b, x, input, (int32_t)k, 1, HAL_IR_NONE);
    }
    if (tested->stores) {
        const hal_ir_value guard = guard_of(b, tested, mine);
        const hal_ir_value zero = hal_ir_number(b, hal_type_of_value(tested->type), 0.0);
        for (uint32_t k = 0; k < width; k++) {
            hal_ir_store_wide(b, tile, own, (int32_t)k, HAL_IR_NONE, zero);
        }
        hal_ir_value place = own;
        if (tested->guarded) {
            place = hal_ir_select(b, guard, own, hal_ir_u32(b, 0x70000000u));
        }
        hal_ir_store_wide(b, tile, place, 0, guard,
                          width == 1 ? elements[0] : hal_ir_pack(b, width, elements));
    } else {
        for (uint32_t k = 0; k < width; k++) {
            hal_ir_store_wide(b, tile, own, (int32_t)k, HAL_IR_NONE, elements[k]);
        }
    }
    hal_ir_barrier(b);
    hal_ir_value loaded = HAL_IR_NONE;
    if (!tested->stores) {
        const hal_ir_value guard = guard_of(b, tested, from);
        hal_ir_value place = neighbour;
        if (tested->guarded) {
            place = hal_ir_select(b, guard, neighbour, hal_ir_u32(b, 0x70000000u));
        }
        loaded = hal_ir_load_wide(b, tile, place, 0, width, guard);
    }
    for (uint32_t k = 0; k < width; k++) {
        hal_ir_value element;
        if (tested->stores) {
            element = hal_ir_load_wide(b, tile, neighbour, (int32_t)k, 1, HAL_IR_NONE);
        } else {
            element = width == 1 ? loaded : hal_ir_extract(b, loaded, k);
        }
        hal_ir_store_wide(b, out, output, (int32_t)k, HAL_IR_NONE, element);
    }
}

/* Where the guard is false the index is far out of bounds, so that an access would be seen. */
static void build_binding(hal_ir_builder *b, const access *tested, hal_ir_memory_id x,
                          hal_ir_memory_id out)
{
    const uint32_t width = tested->width;
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = guard_of(b, tested, i);
    const hal_ir_value first = hal_ir_mul(b, i, hal_ir_u32(b, width));
    hal_ir_value place = first;
    if (tested->guarded) {
        place = hal_ir_select(b, guard, first, hal_ir_u32(b, 0x70000000u));
    }
    if (!tested->stores) {
        const hal_ir_value loaded = hal_ir_load_wide(b, x, place, 0, width, guard);
        for (uint32_t k = 0; k < width; k++) {
            hal_ir_store_wide(b, out, first, (int32_t)k, HAL_IR_NONE,
                              width == 1 ? loaded : hal_ir_extract(b, loaded, k));
        }
        return;
    }
    hal_ir_value elements[8];
    for (uint32_t k = 0; k < width; k++) {
        elements[k] = hal_ir_load_wide(b, x, first, (int32_t)k, 1, HAL_IR_NONE);
    }
    hal_ir_store_wide(b, out, place, 0, guard,
                      width == 1 ? elements[0] : hal_ir_pack(b, width, elements));
}

static hal_ir_builder *build_access(case_run *run, const access *tested)
{
    const hal_type value = hal_type_of_value(tested->type);
    const uint32_t group = ir_group_of(run);
    hal_ir_builder *b = ir_begin(run, "access");
    const hal_ir_memory_id x =
        hal_ir_binding(b, "x", tested->stores ? value : tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id out =
        hal_ir_binding(b, "out", tested->stores ? tested->type : value, HAL_ACCESS_WRITE);
    if (tested->shared) {
        const hal_ir_memory_id tile = hal_ir_shared(b, "tile", tested->type, group * tested->width);
        build_shared(b, tested, group, x, out, tile);
    } else {
        build_binding(b, tested, x, out);
    }
    return b;
}

static void run_access(case_run *run, const void *parameters)
{
    const access *tested = parameters;
    const hal_type value = hal_type_of_value(tested->type);
    sides made = {.x_type = tested->stores ? value : tested->type,
                  .out_type = tested->stores ? tested->type : value,
                  .count = (size_t)GROUPS * ir_group_of(run) * tested->width};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    made.x = case_allocate(run, made.count, 8);
    made.expected = case_allocate(run, made.count, 8);
    fill_sides(run, tested, &made);
    const red_zone zones[2] = {zone_create(run, made.count * hal_type_size(made.x_type), made.x),
                               zone_create(run, made.count * hal_type_size(made.out_type), NULL)};
    ir_run(run, build_access(run, tested), GROUPS, zones, 2, NULL, 0);
    ir_check(run, &zones[1], made.out_type, made.expected, made.count, "result");
}

static void add_access(case_list *list, const access *tested)
{
    const char *name = tested->stores ? "store" : "load";
    case_add(list, run_access, tested, sizeof *tested, "ir/%s(type=%s,width=%u,memory=%s,guard=%d)",
             name, hal_type_name(tested->type), tested->width,
             tested->shared ? "shared" : "binding", tested->guarded);
    case_covers(list, tested->type, tested->shared ? CASE_SHARED : CASE_BINDING, "%s x%u%s", name,
                tested->width, tested->guarded ? " guarded" : "");
    if (tested->shared) {
        case_covers(list, tested->type, CASE_SHARED, "barrier");
    }
}

/* out[i] = x[i + 3] + x[i - 3] for 3 <= i < n - 3, with the offsets in the instruction and signed
 * indices that are negative before the offset is added. */
static void run_index(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    enum { ELEMENTS = 331 };
    uint32_t x[ELEMENTS], expected[ELEMENTS];
    case_claim_arithmetic(run, type);
    random_state random = {run->seed};
    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = (uint32_t)random_next(&random);
    }
    canary_fill(expected, sizeof expected);
    for (int i = 3; i < ELEMENTS - 3; i++) {
        expected[i] = x[i + 3] + x[i - 3];
    }
    const red_zone zones[2] = {zone_create(run, sizeof x, x),
                               zone_create(run, sizeof expected, NULL)};
    hal_ir_builder *b = ir_begin(run, "index");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value id = hal_ir_global_id(b, 0);
    const hal_ir_value inside = hal_ir_and(b, hal_ir_ge(b, id, hal_ir_u32(b, 3)),
                                           hal_ir_lt(b, id, hal_ir_u32(b, ELEMENTS - 3)));
    /* Signed: from -(n) upwards, so that only the offset makes it a place in memory. */
    hal_ir_value i = type == HAL_TYPE_U32 ? id : hal_ir_cast(b, type, id);
    const int32_t shift = hal_type_is_signed(type) ? 1000 : 0;
    i = hal_ir_sub(b, i, hal_ir_number(b, type, shift));
    const hal_ir_value sum = hal_ir_add(b, hal_ir_load_wide(b, in, i, shift + 3, 1, inside),
                                        hal_ir_load_wide(b, in, i, shift - 3, 1, inside));
    hal_ir_store_wide(b, out, i, shift, inside, sum);
    const uint32_t group = ir_group_of(run);
    ir_run(run, b, (ELEMENTS + group - 1) / group, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, ELEMENTS, "result");
}

/* As many bindings as the device takes, each read or written by its own number. */
static void run_bindings(case_run *run, const void *parameters)
{
    const uint32_t most = run->info->max_bindings;
    const uint32_t count = most > HAL_IR_MAX_BINDINGS ? HAL_IR_MAX_BINDINGS : most;
    const uint32_t last = count - 1;
    red_zone zones[HAL_IR_MAX_BINDINGS] = {0};
    uint32_t expected = 0;
    hal_ir_builder *b = ir_begin(run, "bindings");
    const hal_ir_value zero = hal_ir_u32(b, 0);
    hal_ir_value sum = zero;
    for (uint32_t i = 0; i < last; i++) {
        const uint32_t value = 1000 + i * i;
        char name[16];
        snprintf(name, sizeof name, "b%u", i);
        const hal_ir_memory_id binding = hal_ir_binding(b, name, HAL_TYPE_U32, HAL_ACCESS_READ);
        sum = hal_ir_add(b, hal_ir_mul(b, sum, hal_ir_u32(b, 31)), hal_ir_load(b, binding, zero));
        expected = expected * 31 + value;
        zones[i] = zone_create(run, sizeof value, &value);
    }
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_if(b, hal_ir_eq(b, hal_ir_global_id(b, 0), zero));
    hal_ir_store(b, out, zero, sum);
    hal_ir_end(b);
    zones[last] = zone_create(run, sizeof expected, NULL);
    ir_run(run, b, 1, zones, count, NULL, 0);
    ir_check(run, &zones[last], HAL_TYPE_U32, &expected, 1, "sum over all bindings");
}

/* Any byte of a bool but 0 is true. */
static void run_bool_bytes(case_run *run, const void *parameters)
{
    enum { BYTES = 256 };
    const uint32_t group = ir_group_of(run);
    uint8_t x[BYTES];
    uint32_t expected[BYTES];
    case_claim_storage(run, HAL_TYPE_BOOL);
    for (uint32_t i = 0; i < BYTES; i++) {
        x[i] = (uint8_t)i;
        expected[i] = i != 0;
    }
    const red_zone zones[2] = {zone_create(run, sizeof x, x),
                               zone_create(run, sizeof expected, NULL)};
    hal_ir_builder *b = ir_begin(run, "bool_bytes");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_BOOL, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_u32(b, BYTES));
    const hal_ir_value loaded = hal_ir_load_wide(b, in, i, 0, 1, guard);
    hal_ir_store_wide(b, out, i, 0, guard, hal_ir_cast(b, HAL_TYPE_U32, loaded));
    ir_run(run, b, (BYTES + group - 1) / group, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, BYTES, "values");
}

void cases_ir_memory(case_list *list)
{
    for (int shared = 0; shared < 2; shared++) {
        for (int stores = 0; stores < 2; stores++) {
            for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
                for (uint32_t width = 1; width <= 8; width *= 2) {
                    access tested = {type, width, shared != 0, stores != 0, false};
                    add_access(list, &tested);
                    tested.guarded = true;
                    add_access(list, &tested);
                }
            }
        }
    }
    for (hal_type type = HAL_TYPE_I32; type <= HAL_TYPE_U64; type++) {
        case_add(list, run_index, &type, sizeof type, "ir/index_offset(type=%s)",
                 hal_type_name(type));
    }
    case_add(list, run_bindings, NULL, 0, "ir/bindings(most)");
    case_add(list, run_bool_bytes, NULL, 0, "ir/load_bool(bytes=any)");
}
