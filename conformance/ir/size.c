/* size.c: kernels that are large: more records than 16 bits count, long chains of operations that
 * need each other, and many values that are alive at once across a barrier. */
#include <unistd.h>

#include "case/cases.h"
#include "case/child.h"
#include "ir/fixture.h"

enum { RECORDS = 70000, PER_STORE = 250, CHAIN = 3000, LIVE = 900 };

/* The kernel of that length, with bindings x and out. */
typedef hal_ir_builder *(*kernel_builder)(case_run *run, uint32_t length);

/* Compilers of drivers may take minutes for what they see seldom: where a kernel of a tenth of the
 * length takes ten milliseconds, the whole one is left out: they may be worse than quadratic. */
static void claim_quick_compiler(case_run *run, kernel_builder build, uint32_t length)
{
    if (!case_has_compiler(run)) {
        return;
    }
    const size_t before = run->object_count;
    const double begin = child_processor_seconds();
    /* Of another length in each process, so that no cache has it. */
    case_kernel(run, build(run, length / 10 - (uint32_t)getpid() % (length / 100)));
    const double seconds = child_processor_seconds() - begin;
    case_release(run, before);
    if (seconds > 0.01) {
        case_unsupported(run, "compiling a kernel of a tenth of the length takes %.2f s", seconds);
    }
}

/* Runs the kernel over one group and compares what it writes. */
static void size_check(case_run *run, kernel_builder build, uint32_t length, const uint32_t *x,
                       uint32_t x_count, const uint32_t *expected, uint32_t count)
{
    claim_quick_compiler(run, build, length);
    const red_zone zones[2] = {zone_create(run, 4ull * x_count, x),
                               zone_create(run, 4ull * count, NULL)};
    ir_run(run, build(run, length), 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, count, "result");
}

static hal_ir_builder *build_records(case_run *run, uint32_t length)
{
    hal_ir_builder *b = ir_begin(run, "long");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value first = hal_ir_load(b, in, zero);
    hal_ir_value number = HAL_IR_NONE; /* one of thousands */
    for (uint32_t s = 0; s < length / 2 / PER_STORE; s++) {
        hal_ir_value value = hal_ir_u32(b, s);
        for (uint32_t k = 0; k < PER_STORE; k++) {
            number = k % 8 == 0 ? hal_ir_u32(b, 12345 + s * PER_STORE + k) : number;
            value = hal_ir_xor(b, hal_ir_add(b, value, number), first);
        }
        hal_ir_store_wide(b, out, zero, (int32_t)s, HAL_IR_NONE, value);
    }
    return b;
}

/* 500 operations on one number between two stores. */
static void many_records(case_run *run, const void *parameters)
{
    enum { STORES = RECORDS / 2 / PER_STORE };
    uint32_t expected[STORES] = {0};
    const uint32_t x[1] = {77};
    for (uint32_t s = 0; s < STORES; s++) {
        expected[s] = s;
        for (uint32_t k = 0; k < PER_STORE; k++) {
            expected[s] = (expected[s] + 12345 + s * PER_STORE + k / 8 * 8) ^ x[0];
        }
    }
    size_check(run, build_records, RECORDS, x, 1, expected, STORES);
}

static hal_ir_builder *build_chain(case_run *run, uint32_t length)
{
    hal_ir_builder *b = ir_begin(run, "chain");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0), loaded = hal_ir_load(b, in, i);
    const hal_ir_value five = hal_ir_u32(b, 5);
    hal_ir_value value = loaded;
    for (uint32_t k = 0; k < length; k += 2) {
        value = hal_ir_xor(b, hal_ir_mul(b, value, five), loaded);
    }
    hal_ir_store(b, out, i, value);
    return b;
}

/* Each operation needs the one before it. */
static void long_chain(case_run *run, const void *parameters)
{
    const uint32_t group = ir_group_of(run);
    uint32_t *x = case_allocate(run, group, 4), *expected = case_allocate(run, group, 4);
    for (uint32_t item = 0; item < group; item++) {
        x[item] = expected[item] = item * 2654435761u + 1;
        for (uint32_t k = 0; k < CHAIN; k += 2) {
            expected[item] = expected[item] * 5 ^ x[item];
        }
    }
    size_check(run, build_chain, CHAIN, x, group, expected, group);
}

static hal_ir_builder *build_live(case_run *run, uint32_t length)
{
    hal_ir_value values[LIVE] = {0};
    const uint32_t group = ir_group_of(run);
    hal_ir_builder *b = ir_begin(run, "alive");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, group);
    const hal_ir_value i = hal_ir_global_id(b, 0), zero = hal_ir_u32(b, 0);
    for (uint32_t k = 0; k < length; k++) {
        values[k] = hal_ir_load_wide(b, in, i, (int32_t)(k * group), 1, HAL_IR_NONE);
    }
    hal_ir_store(b, tile, i, values[0]);
    hal_ir_barrier(b);
    for (uint32_t k = 0; k < length; k++) { /* no load can move past these */
        hal_ir_store_wide(b, in, i, (int32_t)(k * group), HAL_IR_NONE, zero);
    }
    const hal_ir_value last = hal_ir_sub(b, hal_ir_u32(b, group - 1), i);
    hal_ir_value sum = hal_ir_load(b, tile, last);
    for (uint32_t k = length; k-- > 0;) {
        sum = hal_ir_xor(b, hal_ir_mul(b, sum, hal_ir_u32(b, 3)), values[k]);
    }
    hal_ir_store(b, out, i, sum);
    return b;
}

/* Values that are loaded before a barrier and used after it, the last one first. */
static void many_values(case_run *run, const void *parameters)
{
    const uint32_t group = ir_group_of(run);
    uint32_t *x = case_allocate(run, LIVE * group, 4), *expected = case_allocate(run, group, 4);
    for (uint32_t k = 0; k < LIVE * group; k++) {
        x[k] = k * 2654435761u + 12345;
    }
    for (uint32_t item = 0; item < group; item++) {
        expected[item] = x[group - 1 - item];
        for (uint32_t k = LIVE; k-- > 0;) {
            expected[item] = expected[item] * 3 ^ x[k * group + item];
        }
    }
    size_check(run, build_live, LIVE, x, LIVE * group, expected, group);
}

void cases_ir_size(case_list *list)
{
    case_add(list, many_records, NULL, 0, "ir/size(records=%d)", RECORDS);
    case_add(list, long_chain, NULL, 0, "ir/size(chain=%d)", CHAIN);
    case_add(list, many_values, NULL, 0, "ir/size(values=%d)", LIVE);
}
