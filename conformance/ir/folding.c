/* folding.c: conversions of constants, which a compiler carries out, and conversions of what was
 * converted before, which it may join. */
#include <math.h>

#include "case/cases.h"
#include "ir/fixture.h"

enum { RANDOM = 64, MOST_VALUES = 128 };

typedef struct folding {
    hal_type from;
    bool is_constant; /* the first value is a constant of the kernel; else it is loaded */
} folding;

/* The corners, and where they are loaded random values. Returns their number. */
static uint32_t values_of(case_run *run, const folding *tested, uint64_t values[MOST_VALUES])
{
    const uint64_t *corners;
    uint32_t count = (uint32_t)ir_corners(tested->from, &corners);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < count; i++) {
        values[i] = corners[i];
    }
    for (int i = 0; i < RANDOM && !tested->is_constant; i++) {
        values[count++] = random_bits(&random, tested->from);
    }
    return count;
}

static bool is_denormal(hal_type type, uint64_t bits)
{
    const double x = hal_type_is_float(type) ? fabs(number_value(type, bits)) : 0;
    return x != 0 && x <= 0x1p-126;
}

static bool is_value_type(hal_type type)
{
    return (HAL_TYPES_VALUES & HAL_TYPE_BIT(type)) != 0;
}

/* out of type `to`: at k * count + i value i by way of the k-th type. */
typedef struct outputs {
    hal_type type;
    hal_ir_memory_id memory;
    red_zone zone;
    uint8_t *expected, *got;
} outputs;

enum { MOST_TYPES = 8 };

static uint32_t types_of(const case_run *run, hal_type types[MOST_TYPES])
{
    uint32_t count = 0;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (is_value_type(type) && (run->info->arithmetic_types & HAL_TYPE_BIT(type)) != 0) {
            types[count++] = type;
        }
    }
    return count;
}

/* The value converted to each type and from there to each type. Of a work-item one value. Constants
 * are converted once, and one work-item has all of them: compilers take long for many. */
static void build_chains(hal_ir_builder *b, const folding *tested, const hal_type *types,
                         uint32_t type_count, const uint64_t *values, uint32_t count,
                         hal_ir_memory_id in, const outputs *out)
{
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const uint32_t turns = tested->is_constant ? count : 1;
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_u32(b, tested->is_constant ? 1 : count));
    for (uint32_t turn = 0; turn < turns; turn++) {
        const hal_ir_value x = tested->is_constant ? ir_constant(b, tested->from, values[turn])
                                                   : hal_ir_load_wide(b, in, i, 0, 1, guard);
        for (uint32_t by = 0; by < (tested->is_constant ? 1 : type_count); by++) {
            const hal_ir_value middle =
                tested->is_constant || types[by] == tested->from ? x : hal_ir_cast(b, types[by], x);
            const hal_type middle_type = tested->is_constant ? tested->from : types[by];
            for (uint32_t to = 0; to < type_count; to++) {
                const hal_ir_value end =
                    types[to] == middle_type ? middle : hal_ir_cast(b, types[to], middle);
                hal_ir_store_wide(b, out[to].memory, i, (int32_t)(by * count + turn), guard, end);
            }
        }
    }
}

static uint64_t convert(hal_type from, hal_type to, uint64_t bits)
{
    return from == to ? bits : ir_convert(from, to, bits);
}

static void run_chains(case_run *run, const void *parameters)
{
    const folding *tested = parameters;
    hal_type types[MOST_TYPES];
    outputs out[MOST_TYPES] = {{0}};
    red_zone zones[MOST_TYPES + 1];
    uint64_t values[MOST_VALUES];
    uint8_t loaded[MOST_VALUES * 8];
    const bool keeps = (run->info->exactness & HAL_EXACT_DENORMALS) != 0;
    case_claim_arithmetic(run, tested->from);
    const uint32_t type_count = types_of(run, types), count = values_of(run, tested, values);
    const uint32_t group = ir_group_of(run), bys = tested->is_constant ? 1 : type_count;
    const uint32_t results = bys * count;
    hal_ir_builder *b = ir_begin(run, "chains");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", tested->from, HAL_ACCESS_READ);
    for (uint32_t i = 0; i < count; i++) {
        number_store(tested->from, loaded, i, values[i]);
    }
    zones[0] = zone_create(run, (uint64_t)count * hal_type_size(tested->from), loaded);
    for (uint32_t to = 0; to < type_count; to++) {
        out[to].memory = hal_ir_binding(b, hal_type_name(types[to]), types[to], HAL_ACCESS_WRITE);
        out[to].zone = zone_create(run, (uint64_t)results * hal_type_size(types[to]), NULL);
        out[to].got = case_allocate(run, results, 8);
        out[to].expected = case_allocate(run, results, 8);
        zones[to + 1] = out[to].zone;
    }
    build_chains(b, tested, types, type_count, values, count, in, out);
    ir_run(run, b, (count + group - 1) / group, zones, type_count + 1, NULL, 0);
    for (uint32_t to = 0; to < type_count; to++) {
        zone_read(run, &out[to].zone, out[to].got, "result");
        for (uint32_t k = 0; k < results; k++) {
            const hal_type by = tested->is_constant ? tested->from : types[k / count];
            const uint64_t middle = convert(tested->from, by, values[k % count]);
            const uint64_t end = convert(by, types[to], middle);
            const bool is_excused = is_denormal(tested->from, values[k % count]) ||
                                    is_denormal(by, middle) || is_denormal(types[to], end);
            number_store(types[to], out[to].expected, k,
                         is_excused && !keeps ? number_load(types[to], out[to].got, k) : end);
        }
        comparison found;
        if (!compare_bits(types[to], out[to].got, out[to].expected, results, true, &found)) {
            char text[512];
            comparison_text(&found, text, sizeof text);
            case_fail(run, "%s to %s to %s of 0x%llx: %s", hal_type_name(tested->from),
                      hal_type_name(tested->is_constant ? tested->from
                                                        : types[found.worst_index / count]),
                      hal_type_name(types[to]),
                      (unsigned long long)values[found.worst_index % count], text);
        }
    }
}

/* NARROW of constants to each storage type that has the value type. */
static void run_narrow(case_run *run, const void *parameters)
{
    const folding *tested = parameters;
    uint64_t values[MOST_VALUES];
    uint32_t most = 0;
    const bool keeps = (run->info->exactness & HAL_EXACT_DENORMALS) != 0;
    case_claim_arithmetic(run, tested->from);
    const uint32_t count = values_of(run, tested, values);
    uint8_t *expected = case_allocate(run, (size_t)count * HAL_TYPE_COUNT, 8);
    uint8_t *got = case_allocate(run, (size_t)count * HAL_TYPE_COUNT, 8);
    hal_ir_builder *b = ir_begin(run, "narrow");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->from, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    for (hal_type to = HAL_TYPE_BOOL; to < HAL_TYPE_COUNT; to++) {
        if (to == tested->from || hal_type_of_value(to) != tested->from) {
            continue;
        }
        for (uint32_t i = 0; i < count; i++, most++) {
            const hal_ir_value x = ir_constant(b, tested->from, values[i]);
            hal_ir_store_wide(b, out, zero, (int32_t)most, HAL_IR_NONE, hal_ir_narrow(b, to, x));
            number_store(tested->from, expected, most,
                         number_widen(to, number_narrow(to, values[i])));
        }
    }
    const red_zone zone = zone_create(run, (uint64_t)most * hal_type_size(tested->from), NULL);
    ir_run(run, b, 1, &zone, 1, NULL, 0);
    zone_read(run, &zone, got, "result");
    for (uint32_t k = 0; k < most && !keeps; k++) {
        if (is_denormal(tested->from, values[k % count]) ||
            is_denormal(tested->from, number_load(tested->from, expected, k))) {
            number_store(tested->from, expected, k, number_load(tested->from, got, k));
        }
    }
    comparison found;
    if (!compare_bits(tested->from, got, expected, most, true, &found)) {
        case_report(run, &found, "narrowed constant");
    }
}

/* Another type that is narrowed to from the same one. */
static hal_type narrow_sibling(hal_type to)
{
    hal_type other = HAL_TYPE_BOOL;
    while (other == to || other == hal_type_of_value(to) ||
           hal_type_of_value(other) != hal_type_of_value(to)) {
        other++;
    }
    return other;
}

/* A value that was narrowed and is used further on is the narrow one: x' - x, x' + x', and what
 * another narrowing makes of it. */
static void run_narrow_used(case_run *run, const void *parameters)
{
    const hal_type to = *(const hal_type *)parameters, from = hal_type_of_value(to);
    const folding values_tested = {.from = from};
    uint64_t values[MOST_VALUES];
    const bool keeps = (run->info->exactness & HAL_EXACT_DENORMALS) != 0;
    case_claim_arithmetic(run, from);
    const uint32_t count = values_of(run, &values_tested, values), group = ir_group_of(run);
    const uint32_t size = hal_type_size(from), results = 3 * count;
    const hal_type other = narrow_sibling(to);
    uint8_t *x = case_allocate(run, count, size), *got = case_allocate(run, results, size);
    uint8_t *expected = case_allocate(run, results, size);
    hal_ir_builder *b = ir_begin(run, "narrow_used");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", from, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", from, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_u32(b, count));
    const hal_ir_value loaded = hal_ir_load_wide(b, in, i, 0, 1, guard);
    const hal_ir_value narrow = hal_ir_narrow(b, to, loaded);
    hal_ir_store_wide(b, out, i, 0, guard, hal_ir_sub(b, narrow, loaded));
    hal_ir_store_wide(b, out, i, (int32_t)count, guard, hal_ir_add(b, narrow, narrow));
    hal_ir_store_wide(b, out, i, 2 * (int32_t)count, guard, hal_ir_narrow(b, other, narrow));
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t bits = number_widen(to, number_narrow(to, values[k]));
        const uint64_t operands[2][3] = {{bits, values[k], 0}, {bits, bits, 0}};
        number_store(from, x, k, values[k]);
        number_store(from, expected, k, ir_evaluate(HAL_IR_SUB, from, operands[0]));
        number_store(from, expected, count + k, ir_evaluate(HAL_IR_ADD, from, operands[1]));
        number_store(from, expected, 2 * count + k,
                     number_widen(other, number_narrow(other, bits)));
    }
    const red_zone zones[2] = {zone_create(run, (uint64_t)count * size, x),
                               zone_create(run, (uint64_t)results * size, NULL)};
    ir_run(run, b, (count + group - 1) / group, zones, 2, NULL, 0);
    zone_read(run, &zones[1], got, "result");
    for (uint32_t k = 0; k < results && !keeps; k++) {
        if (is_denormal(from, values[k % count]) ||
            is_denormal(from, number_load(from, expected, k))) {
            number_store(from, expected, k, number_load(from, got, k));
        }
    }
    comparison found;
    if (!compare_bits(from, got, expected, results, true, &found)) {
        case_report(run, &found, "of a narrowed value");
    }
}

/* A stored NaN is a NaN, whatever its bits are. */
static void run_store_nan(case_run *run, const void *parameters)
{
    static const uint32_t kinds[] = {0x7f800001, 0x7f8000ff, 0x7f800100, 0x7f801000, 0x7f80ffff,
                                     0x7f810000, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x7fc0dead};
    enum { KINDS = sizeof kinds / sizeof kinds[0], COUNT = 2 * KINDS };
    const hal_type to = *(const hal_type *)parameters;
    const uint32_t size = hal_type_size(to);
    uint32_t x[COUNT];
    uint8_t got[COUNT * 4];
    case_claim_storage(run, to);
    for (int k = 0; k < COUNT; k++) {
        x[k] = kinds[k / 2] | (uint32_t)k % 2 << 31;
    }
    hal_ir_builder *b = ir_begin(run, "store_nan");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", to, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    hal_ir_store(b, out, i, hal_ir_bitcast(b, HAL_TYPE_F32, hal_ir_load(b, in, i)));
    const red_zone zones[2] = {zone_create(run, sizeof x, x),
                               zone_create(run, (uint64_t)COUNT * size, NULL)};
    ir_run(run, b, COUNT, zones, 2, NULL, 0);
    zone_read(run, &zones[1], got, "result");
    for (int k = 0; k < COUNT; k++) {
        const uint64_t bits = number_load(to, got, (size_t)k);
        case_check(run, isnan(number_value(HAL_TYPE_F32, number_widen(to, bits))),
                   "the NaN 0x%x stored as %s is 0x%llx, not a NaN", x[k], hal_type_name(to),
                   (unsigned long long)bits);
    }
}

void cases_ir_folding(case_list *list)
{
    static const hal_type narrow[] = {HAL_TYPE_I8,  HAL_TYPE_U8,  HAL_TYPE_I16,
                                      HAL_TYPE_U16, HAL_TYPE_F16, HAL_TYPE_BF16},
                          stored[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F8_E4M3};
    for (size_t k = 0; k < sizeof narrow / sizeof narrow[0]; k++) {
        case_add(list, run_narrow_used, &narrow[k], sizeof narrow[k], "ir/narrow_used(to=%s)",
                 hal_type_name(narrow[k]));
    }
    for (size_t k = 0; k < sizeof stored / sizeof stored[0]; k++) {
        case_add(list, run_store_nan, &stored[k], sizeof stored[k], "ir/store_nan(type=%s)",
                 hal_type_name(stored[k]));
    }
    for (hal_type from = HAL_TYPE_BOOL; from < HAL_TYPE_COUNT; from++) {
        if (!is_value_type(from)) {
            continue;
        }
        folding tested = {.from = from};
        case_add(list, run_chains, &tested, sizeof tested, "ir/cast_twice(from=%s)",
                 hal_type_name(from));
        tested.is_constant = true;
        case_add(list, run_chains, &tested, sizeof tested, "ir/constants(opcode=cast,from=%s)",
                 hal_type_name(from));
        if (from == HAL_TYPE_I32 || from == HAL_TYPE_U32 || from == HAL_TYPE_F32) {
            case_add(list, run_narrow, &tested, sizeof tested,
                     "ir/constants(opcode=narrow,from=%s)", hal_type_name(from));
        }
    }
}
