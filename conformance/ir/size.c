/* size.c: kernels that are large: more records than 16 bits count, long chains of operations that
 * need each other, and many values that are alive at once across a barrier. */
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/child.h"
#include "ir/fixture.h"

enum {
    RECORDS = 70000,
    MOST_RECORDS = 270000,
    PER_STORE = 250,
    CHAIN = 3000,
    LIVE = 900,
    VARIABLES = 300
};

/* The kernel of that length, with bindings x and out; `other` makes it another one. */
typedef hal_ir_builder *(*kernel_builder)(case_run *run, uint32_t length, uint32_t other);

/* Compilers of drivers may take minutes for what they see seldom, and be worse than quadratic: the
 * whole kernel is left out where one of a hundredth or a tenth of the length takes ten
 * milliseconds. */
static void claim_quick_compiler(case_run *run, kernel_builder build, uint32_t length)
{
    const size_t before = run->object_count;
    for (uint32_t part = 100; case_has_compiler(run) && part > 1; part /= 10) {
        const double begin = child_processor_seconds();
        /* Another one each time: that a cache has it says nothing of the compiler. */
        const uint32_t other = (uint32_t)(uint64_t)(child_now() * 1e9) << 1;
        case_kernel(run, build(run, length / part, other));
        const double seconds = child_processor_seconds() - begin;
        case_release(run, before);
        if (seconds > 0.01) {
            case_unsupported(run, "compiling a kernel of 1/%u of the length takes %.2f s", part,
                             seconds);
        }
    }
}

/* Runs the kernel over one group and compares what it writes. */
static void size_check(case_run *run, kernel_builder build, uint32_t length, const uint32_t *x,
                       uint32_t x_count, const uint32_t *expected, uint32_t count)
{
    claim_quick_compiler(run, build, length);
    const red_zone zones[2] = {zone_create(run, 4ull * x_count, x),
                               zone_create(run, 4ull * count, NULL)};
    ir_run(run, build(run, length, 0), 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, count, "result");
}

static hal_ir_builder *build_records(case_run *run, uint32_t length, uint32_t other)
{
    hal_ir_builder *b = ir_begin(run, "long");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value first = hal_ir_load(b, in, zero);
    hal_ir_value number = HAL_IR_NONE; /* one of thousands */
    for (uint32_t s = 0; s < length / 2 / PER_STORE; s++) {
        hal_ir_value value = hal_ir_u32(b, s + other);
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
    enum { MOST_STORES = MOST_RECORDS / 2 / PER_STORE };
    const uint32_t records = *(const uint32_t *)parameters, stores = records / 2 / PER_STORE;
    uint32_t expected[MOST_STORES] = {0};
    const uint32_t x[1] = {77};
    for (uint32_t s = 0; s < stores; s++) {
        expected[s] = s;
        for (uint32_t k = 0; k < PER_STORE; k++) {
            expected[s] = (expected[s] + 12345 + s * PER_STORE + k / 8 * 8) ^ x[0];
        }
    }
    if (records > RECORDS) { /* a tenth of this many may already take seconds */
        claim_quick_compiler(run, build_records, RECORDS);
    }
    size_check(run, build_records, records, x, 1, expected, stores);
}

static hal_ir_builder *build_chain(case_run *run, uint32_t length, uint32_t other)
{
    hal_ir_builder *b = ir_begin(run, "chain");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0), loaded = hal_ir_load(b, in, i);
    const hal_ir_value five = hal_ir_u32(b, 5 + other);
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

static hal_ir_builder *build_live(case_run *run, uint32_t length, uint32_t other)
{
    hal_ir_value values[LIVE] = {0};
    const uint32_t group = ir_group_of(run);
    hal_ir_builder *b = ir_begin(run, "alive");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, group);
    const hal_ir_value i = hal_ir_global_id(b, 0), zero = hal_ir_u32(b, 0);
    const hal_ir_value three = hal_ir_u32(b, 3 + other);
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
        sum = hal_ir_xor(b, hal_ir_mul(b, sum, three), values[k]);
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

/* Variables that are all alive: each adds what it began with to the one before it. */
static void many_variables(case_run *run, const void *parameters)
{
    static hal_ir_value variables[VARIABLES];
    const uint32_t group = ir_group_of(run);
    uint32_t *x = case_allocate(run, group, 4), *expected = case_allocate(run, group, 4);
    hal_ir_builder *b = ir_begin(run, "variables");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0), loaded = hal_ir_load(b, in, i);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        variables[k] = hal_ir_var(b, hal_ir_mul(b, loaded, hal_ir_u32(b, 2 * k + 1)));
    }
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, 2), hal_ir_u32(b, 1));
    for (uint32_t k = 1; k < VARIABLES; k++) {
        const hal_ir_value before = hal_ir_get(b, variables[k - 1]);
        hal_ir_set(b, variables[k], hal_ir_xor(b, hal_ir_get(b, variables[k]), before));
    }
    hal_ir_end(b);
    hal_ir_value sum = hal_ir_u32(b, 0);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        sum = hal_ir_add(b, hal_ir_mul(b, sum, hal_ir_u32(b, 3)), hal_ir_get(b, variables[k]));
    }
    hal_ir_store(b, out, i, sum);
    for (uint32_t item = 0; item < group; item++) {
        uint32_t values[VARIABLES];
        x[item] = item * 2654435761u + 1;
        for (uint32_t k = 0; k < VARIABLES; k++) {
            values[k] = x[item] * (2 * k + 1);
        }
        for (uint32_t k = 1; k < 2 * VARIABLES; k++) {
            const uint32_t place = k % VARIABLES;
            values[place] ^= place > 0 ? values[place - 1] : 0;
        }
        for (uint32_t k = 0; k < VARIABLES; k++) {
            expected[item] = expected[item] * 3 + values[k];
        }
    }
    const red_zone zones[2] = {zone_create(run, 4ull * group, x),
                               zone_create(run, 4ull * group, NULL)};
    ir_run(run, b, 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, group, "result");
}

/* A kernel of which nothing remains, and one without a binding. */
static void nothing(case_run *run, const void *parameters)
{
    hal_ir_builder *empty = ir_begin(run, "empty");
    ir_run(run, empty, 2, NULL, 0, NULL, 0);
    hal_ir_builder *b = ir_begin(run, "inside");
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, ir_group_of(run));
    hal_ir_store(b, tile, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, 7));
    hal_ir_barrier(b);
    ir_run(run, b, 2, NULL, 0, NULL, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* All bindings that the device claims and as many shared arrays as a kernel may have. */
static void most_memories(case_run *run, const void *parameters)
{
    enum { ITEMS = 8 };
    const uint32_t bindings = run->info->max_bindings < HAL_IR_MAX_BINDINGS
                                  ? run->info->max_bindings
                                  : HAL_IR_MAX_BINDINGS;
    hal_ir_memory_id memories[HAL_IR_MAX_BINDINGS], tiles[HAL_IR_MAX_SHARED];
    red_zone zones[HAL_IR_MAX_BINDINGS];
    uint32_t x[ITEMS], expected[ITEMS] = {0};
    char name[16];
    hal_ir_builder *b = ir_begin(run, "memories");
    hal_ir_group_size(b, ITEMS, 1, 1);
    for (uint32_t k = 0; k < bindings; k++) {
        snprintf(name, sizeof name, "b%u", k);
        memories[k] = hal_ir_binding(b, name, HAL_TYPE_U32,
                                     k + 1 < bindings ? HAL_ACCESS_READ : HAL_ACCESS_WRITE);
    }
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    for (uint32_t k = 0; k < HAL_IR_MAX_SHARED; k++) {
        snprintf(name, sizeof name, "t%u", k);
        tiles[k] = hal_ir_shared(b, name, HAL_TYPE_U32, ITEMS);
        const hal_ir_value seen = hal_ir_load(b, memories[k % (bindings - 1)], i);
        hal_ir_store(b, tiles[k], i, hal_ir_add(b, seen, hal_ir_u32(b, k)));
    }
    hal_ir_barrier(b);
    const hal_ir_value other = hal_ir_sub(b, hal_ir_u32(b, ITEMS - 1), i);
    hal_ir_value sum = hal_ir_u32(b, 0);
    for (uint32_t k = 0; k < HAL_IR_MAX_SHARED; k++) {
        sum = hal_ir_add(b, hal_ir_mul(b, sum, hal_ir_u32(b, 5)), hal_ir_load(b, tiles[k], other));
    }
    hal_ir_store(b, memories[bindings - 1], i, sum);
    for (uint32_t k = 0; k + 1 < bindings; k++) {
        for (uint32_t item = 0; item < ITEMS; item++) {
            x[item] = 1000 * k + item * item;
        }
        zones[k] = zone_create(run, sizeof x, x);
    }
    zones[bindings - 1] = zone_create(run, sizeof expected, NULL);
    for (uint32_t item = 0; item < ITEMS; item++) {
        const uint32_t from = ITEMS - 1 - item;
        for (uint32_t k = 0; k < HAL_IR_MAX_SHARED; k++) {
            expected[item] = expected[item] * 5 + 1000 * (k % (bindings - 1)) + from * from + k;
        }
    }
    ir_run(run, b, 1, zones, bindings, NULL, 0);
    ir_check(run, &zones[bindings - 1], HAL_TYPE_U32, expected, ITEMS, "result");
}

/* Names are for people: the longest ones, words of languages, and that of the kernel for
 * another thing are as good as others. out[0] = (x[0] ^ number) + scalar. */
static void any_names(case_run *run, const void *parameters)
{
    static char longest[HAL_IR_MAX_NAME + 1];
    static const char *const names[][4] = {
        {longest, longest, "out", "scalar"},  {"kernel", "float", "int", "return"},
        {"main", "global", "local", "if"},    {"for", "kernel", "restrict", "void"},
        {"same", "same", "out", "scalar"},    {"_1", "_2", "_", "__"},
        {"ret", "b32", "reg", "gl_Position"}, {"struct", "half", "auto", "constant"}};
    memset(longest, 'n', HAL_IR_MAX_NAME);
    for (uint32_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        /* hal's kernel cache ignores names, so each kernel has another number. */
        const uint32_t x[1] = {50}, scalar = 1000, expected[1] = {(50 ^ (4096 + k)) + 1000};
        hal_ir_builder *b = ir_begin(run, names[k][0]);
        hal_ir_group_size(b, 1, 1, 1);
        const hal_ir_memory_id in = hal_ir_binding(b, names[k][1], HAL_TYPE_U32, HAL_ACCESS_READ);
        const hal_ir_memory_id out = hal_ir_binding(b, names[k][2], HAL_TYPE_U32, HAL_ACCESS_WRITE);
        const hal_ir_value added = hal_ir_scalar_value(b, names[k][3], HAL_TYPE_U32);
        const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
        const hal_ir_value seen = hal_ir_xor(b, hal_ir_load(b, in, zero), hal_ir_u32(b, 4096 + k));
        hal_ir_store(b, out, zero, hal_ir_add(b, seen, added));
        const red_zone zones[2] = {zone_create(run, sizeof x, x),
                                   zone_create(run, sizeof expected, NULL)};
        ir_run(run, b, 1, zones, 2, &scalar, sizeof scalar);
        ir_check(run, &zones[1], HAL_TYPE_U32, expected, 1, names[k][0]);
    }
}

void cases_ir_size(case_list *list)
{
    case_add(list, most_memories, NULL, 0, "ir/size(memories=most)");
    case_add(list, any_names, NULL, 0, "ir/size(names)");
    case_add(list, many_variables, NULL, 0, "ir/size(variables=%d)", VARIABLES);
    case_add(list, nothing, NULL, 0, "ir/size(nothing)");
    static const uint32_t records[] = {RECORDS, MOST_RECORDS};
    for (int i = 0; i < 2; i++) {
        case_add(list, many_records, &records[i], sizeof records[i], "ir/size(records=%u)",
                 records[i]);
    }
    case_add(list, long_chain, NULL, 0, "ir/size(chain=%d)", CHAIN);
    case_add(list, many_values, NULL, 0, "ir/size(values=%d)", LIVE);
}
