/* convert.c: CAST and BITCAST between all value types, NARROW to all storage types, PACK and
 * EXTRACT of all widths. */
#include <math.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define RANDOM_ELEMENTS 811u
#define PACKED 257u /* vectors of a pack case */

typedef struct conversion {
    uint32_t opcode;
    hal_type from;
    hal_type to; /* of a NARROW: the storage type */
    hal_type result;
} conversion;

typedef struct packing {
    hal_type type;
    uint32_t width;
    bool extracts;
} packing;

static void fill_inputs(case_run *run, const conversion *tested, void *x, void *expected,
                        size_t count)
{
    const uint64_t *corners;
    const size_t corner_count = ir_corners(tested->from, &corners);
    random_state random = {run->seed};
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = i < corner_count ? corners[i] : random_bits(&random, tested->from);
        if (i >= corner_count && hal_type_is_float(tested->from) && i % 3 == 0) {
            /* Halfway between two numbers of the 16-bit types, and around them. */
            const double whole =
                (double)number_f32((random_next(&random) & 0x7fff1000) | 0x30000000);
            bits = number_bits(tested->from, isnan(whole) ? 1.0 : whole);
        }
        if (i >= corner_count && hal_type_size(tested->from) == 8 &&
            hal_type_is_integer(tested->from) && i % 3 == 0) {
            /* Just above halfway between two f32, by too little for an f64 to tell. */
            bits = (random_next(&random) >> 40 | 0x800000) << 38 | UINT64_C(1) << 37 | 1;
        }
        uint64_t result;
        if (tested->opcode == HAL_IR_CAST) {
            result = ir_convert(tested->from, tested->to, bits);
        } else if (tested->opcode == HAL_IR_BITCAST) {
            result = bits;
        } else {
            result = number_widen(tested->to, number_narrow(tested->to, bits));
        }
        number_store(tested->from, x, i, bits);
        number_store(tested->result, expected, i, result);
    }
}

static hal_ir_builder *build_conversion(case_run *run, const conversion *tested)
{
    hal_ir_builder *b = ir_begin(run, "convert");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", tested->from, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->result, HAL_ACCESS_WRITE);
    const hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, count);
    const hal_ir_value x = hal_ir_load_wide(b, in, i, 0, 1, guard);
    hal_ir_value y;
    if (tested->opcode == HAL_IR_CAST) {
        y = hal_ir_cast(b, tested->to, x);
    } else if (tested->opcode == HAL_IR_BITCAST) {
        y = hal_ir_bitcast(b, tested->to, x);
    } else {
        y = hal_ir_narrow(b, tested->to, x);
    }
    hal_ir_store_wide(b, out, i, 0, guard, y);
    return b;
}

/* Where denormals are not claimed, a denormal operand or result is not judged; nor is a result that
 * is rounded to the smallest normal number, as the device may flush it before. */
static bool is_excused(const case_run *run, const conversion *tested, uint64_t input,
                       uint64_t expected)
{
    if ((run->info->exactness & HAL_EXACT_DENORMALS) != 0 || tested->opcode == HAL_IR_BITCAST) {
        return false;
    }
    const double smallest = 0x1p-126;
    const double x = hal_type_is_float(tested->from) ? number_value(tested->from, input) : 1.0;
    const double y =
        hal_type_is_float(tested->result) ? number_value(tested->result, expected) : 1.0;
    return (x != 0.0 && fabs(x) < smallest) || (y != 0.0 && fabs(y) <= smallest);
}

static void run_conversion(case_run *run, const void *parameters)
{
    const conversion *tested = parameters;
    const hal_type result = tested->result;
    const uint64_t *corners;
    const uint32_t count = (uint32_t)ir_corners(tested->from, &corners) + RANDOM_ELEMENTS;
    const uint32_t group = ir_group_of(run);
    case_claim_arithmetic(run, tested->from);
    case_claim_arithmetic(run, result);
    void *x = case_allocate(run, count, 8), *expected = case_allocate(run, count, 8);
    void *results = case_allocate(run, count, 8);
    fill_inputs(run, tested, x, expected, count);
    const red_zone zones[2] = {zone_create(run, (size_t)count * hal_type_size(tested->from), x),
                               zone_create(run, (size_t)count * hal_type_size(result), NULL)};
    ir_run(run, build_conversion(run, tested), (count + group - 1) / group, zones, 2, &count,
           sizeof count);
    zone_read(run, &zones[1], results, "result");
    for (size_t i = 0; i < count; i++) {
        if (is_excused(run, tested, number_load(tested->from, x, i),
                       number_load(result, expected, i))) {
            number_store(result, expected, i, number_load(result, results, i));
        }
    }
    comparison found;
    if (!compare_bits(result, results, expected, count, true, &found)) {
        char text[512];
        comparison_text(&found, text, sizeof text);
        case_fail(run, "%s; of 0x%llx", text,
                  (unsigned long long)number_load(tested->from, x, found.worst_index));
    }
}

static void add_conversion(case_list *list, uint32_t opcode, hal_type from, hal_type to)
{
    const conversion tested = {opcode, from, to, opcode == HAL_IR_NARROW ? from : to};
    case_add(list, run_conversion, &tested, sizeof tested, "ir/%s(from=%s,to=%s,seed=%llu)",
             hal_ir_opcode_name(opcode), hal_type_name(from), hal_type_name(to),
             (unsigned long long)list->seed);
    if (opcode == HAL_IR_NARROW) {
        case_covers(list, to, CASE_VALUES, "narrow");
    } else {
        case_covers(list, to, CASE_VALUES, "%s from %s", hal_ir_opcode_name(opcode),
                    hal_type_name(from));
    }
}

static hal_ir_builder *build_packing(case_run *run, const packing *tested)
{
    const uint32_t width = tested->width;
    hal_ir_builder *b = ir_begin(run, "packing");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->type, HAL_ACCESS_WRITE);
    const hal_ir_value vectors = hal_ir_scalar_value(b, "vectors", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, vectors);
    const hal_ir_value first = hal_ir_mul(b, i, hal_ir_u32(b, width));
    if (tested->extracts) {
        const hal_ir_value vector = hal_ir_load_wide(b, in, first, 0, width, guard);
        for (uint32_t k = 0; k < width; k++) {
            hal_ir_store_wide(b, out, first, (int32_t)(width - 1 - k), guard,
                              hal_ir_extract(b, vector, k));
        }
    } else {
        hal_ir_value elements[8];
        for (uint32_t k = 0; k < width; k++) {
            elements[width - 1 - k] = hal_ir_load_wide(b, in, first, (int32_t)k, 1, guard);
        }
        hal_ir_store_wide(b, out, first, 0, guard, hal_ir_pack(b, width, elements));
    }
    return b;
}

/* Work-item i turns vector i round: element k becomes element width - 1 - k. */
static void run_packing(case_run *run, const void *parameters)
{
    const packing *tested = parameters;
    const size_t count = (size_t)PACKED * tested->width;
    const uint32_t size = hal_type_size(tested->type), group = ir_group_of(run);
    const uint32_t vectors = PACKED;
    case_claim_arithmetic(run, tested->type);
    uint64_t *x = case_allocate(run, count, 8), *expected = case_allocate(run, count, 8);
    random_state random = {run->seed};
    for (size_t i = 0; i < count; i++) {
        const size_t mirrored =
            i / tested->width * tested->width + tested->width - 1 - i % tested->width;
        const uint64_t bits = random_bits(&random, tested->type);
        number_store(tested->type, x, i, bits);
        number_store(tested->type, expected, mirrored, bits);
    }
    const red_zone zones[2] = {zone_create(run, count * size, x),
                               zone_create(run, count * size, NULL)};
    ir_run(run, build_packing(run, tested), (vectors + group - 1) / group, zones, 2, &vectors,
           sizeof vectors);
    ir_check(run, &zones[1], tested->type, expected, count, "result");
}

void cases_ir_convert(case_list *list)
{
    for (hal_type from = HAL_TYPE_BOOL; from < HAL_TYPE_COUNT; from++) {
        for (hal_type to = HAL_TYPE_BOOL; to < HAL_TYPE_COUNT; to++) {
            const bool from_value = (HAL_TYPES_VALUES & HAL_TYPE_BIT(from)) != 0;
            const bool to_value = (HAL_TYPES_VALUES & HAL_TYPE_BIT(to)) != 0;
            if (!from_value || from == to) {
                continue;
            }
            if (to_value) {
                add_conversion(list, HAL_IR_CAST, from, to);
            } else if (hal_type_of_value(to) == from) {
                add_conversion(list, HAL_IR_NARROW, from, to);
            }
            if (to_value && from != HAL_TYPE_BOOL && to != HAL_TYPE_BOOL &&
                hal_type_size(from) == hal_type_size(to)) {
                add_conversion(list, HAL_IR_BITCAST, from, to);
            }
        }
        for (uint32_t width = 2; width <= 8 && (HAL_TYPES_VALUES & HAL_TYPE_BIT(from)) != 0;
             width *= 2) {
            for (int extracts = 0; extracts < 2; extracts++) {
                const packing tested = {from, width, extracts != 0};
                const char *name = extracts != 0 ? "extract" : "pack";
                case_add(list, run_packing, &tested, sizeof tested, "ir/%s(type=%s,width=%u)", name,
                         hal_type_name(from), width);
                case_covers(list, from, CASE_VALUES, "%s x%u", name, width);
            }
        }
    }
}
