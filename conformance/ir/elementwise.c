/* elementwise.c: one kernel for each opcode that computes values, and each type: on all pairs of
 * corner values, then on random ones, with a tail that fills no group; and one in which operands
 * are constants of the kernel, which compilers fold. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/provoke.h"
#include "case/child.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define RANDOM_ELEMENTS 997u

typedef struct elementwise {
    uint32_t opcode;
    hal_type type;  /* of the operands that are numbers */
    uint32_t flags; /* HAL_IR_FAST */
    hal_type from;  /* of a case of constants: what the other operands are cast from; else NONE */
} elementwise;

/* Operands and results on the host; inputs[0] of a SELECT is BOOL. */
typedef struct elements {
    size_t count;
    hal_type input_types[3], result_type;
    void *inputs[3];
    void *results;
} elements;

/* All pairs of corners; of three operands the third goes round. */
static size_t corner_count(const elementwise *tested)
{
    const uint64_t *bits;
    const size_t corners = ir_corners(tested->type, &bits);
    return cover_operands_of(tested->opcode) == 1 ? corners : 2 * corners * corners;
}

static void fill_element(random_state *random, const elementwise *tested, elements *made,
                         size_t index, size_t corners)
{
    const uint64_t *bits;
    const size_t count = ir_corners(tested->type, &bits);
    const bool selects = tested->opcode == HAL_IR_SELECT;
    /* A pair goes to operands a and b, or to b and c of a SELECT. */
    const unsigned first = selects ? 1 : 0;
    uint64_t operands[3];
    for (unsigned i = 0; i < 3; i++) {
        operands[i] = random_bits(random, tested->type);
    }
    if (hal_ir_is_math(tested->opcode) && random_below(random, 2) == 0) {
        operands[0] = number_bits(tested->type, random_between(random, -12.0, 12.0));
        operands[1] = number_bits(tested->type, random_between(random, -12.0, 12.0));
    }
    if (index < corners) {
        operands[first] = bits[index % count];
        operands[first + 1] = bits[index / count % count];
        operands[selects ? 0 : 2] = bits[(index * 7 + index / count) % count];
    }
    if (selects) {
        operands[0] = index < corners ? index / count / count : random_next(random) & 1;
    }
    for (unsigned i = 0; i < 3; i++) {
        number_store(made->input_types[i], made->inputs[i], index, operands[i]);
    }
}

/* Of the operands and the result. */
static void claim_types(case_run *run, const elementwise *tested)
{
    const bool has_bool = (tested->opcode >= HAL_IR_EQ && tested->opcode <= HAL_IR_LE) ||
                          tested->opcode == HAL_IR_SELECT;
    case_claim_arithmetic(run, tested->type);
    case_claim_storage(run, tested->type);
    if (has_bool) {
        case_claim_storage(run, HAL_TYPE_BOOL);
    }
}

static elements elements_create(case_run *run, const elementwise *tested)
{
    const bool gives_bool = tested->opcode >= HAL_IR_EQ && tested->opcode <= HAL_IR_LE;
    const bool selects = tested->opcode == HAL_IR_SELECT;
    const size_t corners = corner_count(tested);
    elements made = {.count = corners + RANDOM_ELEMENTS,
                     .result_type = gives_bool ? (hal_type)HAL_TYPE_BOOL : tested->type};
    for (unsigned i = 0; i < 3; i++) {
        made.input_types[i] = i == 0 && selects ? (hal_type)HAL_TYPE_BOOL : tested->type;
        made.inputs[i] = case_allocate(run, made.count, 8);
    }
    made.results = case_allocate(run, made.count, 8);
    random_state random = {run->seed};
    for (size_t i = 0; i < made.count; i++) {
        fill_element(&random, tested, &made, i, corners);
    }
    return made;
}

static hal_ir_value build_result(hal_ir_builder *b, const elementwise *tested,
                                 const hal_ir_value values[3])
{
    const unsigned operands = cover_operands_of(tested->opcode);
    if (hal_ir_is_math(tested->opcode)) {
        return hal_ir_math(b, tested->opcode, values[0], operands == 2 ? values[1] : HAL_IR_NONE,
                           tested->flags);
    }
    return operands == 1   ? hal_ir_unary(b, tested->opcode, values[0])
           : operands == 2 ? hal_ir_binary(b, tested->opcode, values[0], values[1])
                           : hal_ir_ternary(b, tested->opcode, values[0], values[1], values[2]);
}

static hal_ir_builder *build(case_run *run, const elementwise *tested, const elements *made)
{
    static const char *const names[3] = {"x", "y", "z"};
    const unsigned operands = cover_operands_of(tested->opcode);
    hal_ir_builder *b = ir_begin(run, "elementwise");
    hal_ir_memory_id inputs[3];
    hal_ir_value values[3] = {HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE};
    for (unsigned i = 0; i < operands; i++) {
        inputs[i] = hal_ir_binding(b, names[i], made->input_types[i], HAL_ACCESS_READ);
    }
    const hal_ir_memory_id out = hal_ir_binding(b, "out", made->result_type, HAL_ACCESS_WRITE);
    const hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, count);
    for (unsigned k = 0; k < operands; k++) {
        values[k] = hal_ir_load_wide(b, inputs[k], i, 0, 1, guard);
    }
    const hal_ir_value result = build_result(b, tested, values);
    hal_ir_store_wide(b, out, i, 0, guard, result);
    return b;
}

static void elements_compute(case_run *run, const elementwise *tested, const elements *made)
{
    const unsigned operands = cover_operands_of(tested->opcode);
    const uint32_t group = ir_group_of(run);
    const uint32_t count = (uint32_t)made->count;
    red_zone zones[4];
    for (unsigned i = 0; i < operands; i++) {
        zones[i] =
            zone_create(run, made->count * hal_type_size(made->input_types[i]), made->inputs[i]);
    }
    zones[operands] = zone_create(run, made->count * hal_type_size(made->result_type), NULL);
    ir_run(run, build(run, tested, made), (count + group - 1) / group, zones, operands + 1, &count,
           sizeof count);
    zone_read(run, &zones[operands], made->results, "result");
}

static long double real_result(const elementwise *tested, const uint64_t operands[3])
{
    const long double x = number_long_value(tested->type, operands[0]);
    const long double y = number_long_value(tested->type, operands[1]);
    switch (tested->opcode) {
    case HAL_IR_DIV:
        return x / y;
    case HAL_IR_SQRT:
        return sqrtl(x);
    default:
        return ir_math_reference(tested->opcode, x, y);
    }
}

static double smallest_normal(hal_type type)
{
    return type == HAL_TYPE_F32 ? 0x1p-126 : 0x1p-1022;
}

static bool is_denormal(hal_type type, double value)
{
    return value != 0.0 && fabs(value) < smallest_normal(type);
}

/* Where a device does not claim to keep denormals, elements with one are not judged; nor is a
 * result that is rounded to the smallest normal number, as the device may flush it before. */
static bool is_excused(const case_run *run, const elementwise *tested, const elements *made,
                       size_t index, long double expected)
{
    if ((run->info->exactness & HAL_EXACT_DENORMALS) != 0) {
        return false;
    }
    const double result = (double)expected;
    bool excused =
        is_denormal(tested->type, result) || fabs(result) == smallest_normal(tested->type);
    for (unsigned k = 0; k < 3; k++) {
        excused = excused || is_denormal(tested->type,
                                         number_get(made->input_types[k], made->inputs[k], index));
    }
    return excused;
}

/* With the operands of the worst element. */
static void report(case_run *run, const elementwise *tested, const elements *made,
                   const comparison *found)
{
    char text[512], operands[192] = "";
    size_t used = 0;
    comparison_text(found, text, sizeof text);
    for (unsigned k = 0; k < cover_operands_of(tested->opcode); k++) {
        const uint64_t bits =
            number_load(made->input_types[k], made->inputs[k], found->worst_index);
        used += (size_t)snprintf(operands + used, sizeof operands - used, "%s%.17Lg (0x%llx)",
                                 k == 0 ? "" : ", ", number_long_value(made->input_types[k], bits),
                                 (unsigned long long)bits);
    }
    case_fail(run, "%s; operands %s", text, operands);
}

static void judge_ulps(case_run *run, const elementwise *tested, const elements *made, double bound)
{
    long double *expected = case_allocate(run, made->count, sizeof *expected);
    for (size_t i = 0; i < made->count; i++) {
        uint64_t operands[3];
        for (unsigned k = 0; k < 3; k++) {
            operands[k] = number_load(tested->type, made->inputs[k], i);
        }
        expected[i] = real_result(tested, operands);
        if (is_excused(run, tested, made, i, expected[i])) {
            expected[i] =
                number_long_value(tested->type, number_load(tested->type, made->results, i));
        }
    }
    comparison found;
    if (!compare_ulps(tested->type, made->results, expected, made->count, bound, &found)) {
        report(run, tested, made, &found);
    }
}

static void judge_bits(case_run *run, const elementwise *tested, const elements *made)
{
    /* The sign of a NaN counts only where the result is an operand's bits. */
    const bool moves = tested->opcode == HAL_IR_NEG || tested->opcode == HAL_IR_ABS ||
                       tested->opcode == HAL_IR_SELECT;
    void *expected = case_allocate(run, made->count, 8);
    for (size_t i = 0; i < made->count; i++) {
        uint64_t operands[3];
        for (unsigned k = 0; k < 3; k++) {
            operands[k] = number_load(made->input_types[k], made->inputs[k], i);
        }
        const uint64_t bits =
            hal_ir_is_math(tested->opcode)
                ? ir_math_bits(tested->opcode, tested->type, operands[0], operands[1])
                : ir_evaluate(tested->opcode, tested->type, operands);
        number_store(made->result_type, expected, i, bits);
        if (!moves && hal_type_is_float(tested->type) &&
            is_excused(run, tested, made, i, number_long_value(made->result_type, bits))) {
            number_store(made->result_type, expected, i,
                         number_load(made->result_type, made->results, i));
        }
    }
    comparison found;
    if (!compare_bits(made->result_type, made->results, expected, made->count, !moves, &found)) {
        report(run, tested, made, &found);
    }
}

static void judge(case_run *run, const elementwise *tested, const elements *made)
{
    const uint32_t exactness = run->info->exactness;
    const uint32_t all = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    const bool is_math = hal_ir_is_math(tested->opcode);
    if (is_math) {
        judge_ulps(run, tested, made, ir_math_bound(tested->opcode));
    }
    if (hal_type_is_float(tested->type) && tested->opcode == HAL_IR_DIV &&
        (exactness & HAL_EXACT_DIVIDE) == 0) {
        judge_ulps(run, tested, made, 2.5);
    } else if (hal_type_is_float(tested->type) && tested->opcode == HAL_IR_SQRT &&
               (exactness & HAL_EXACT_SQRT) == 0) {
        judge_ulps(run, tested, made, 3.0);
    } else if (!is_math || (exactness & all) == all) {
        judge_bits(run, tested, made);
    }
}

static void run_elementwise(case_run *run, const void *parameters)
{
    const elementwise *tested = parameters;
    claim_types(run, tested);
    const elements made = elements_create(run, tested);
    elements_compute(run, tested, &made);
    judge(run, tested, &made);
}

/* The corners that are constants of a kernel. */
static const uint64_t *constants_of(hal_type type, size_t *count)
{
    static const uint64_t bools[] = {0, 1};
    static const uint64_t words[] = {
        0, 1, 2, 3, 7, 10, 31, 32, 641, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
    static const uint64_t longs[] = {0,
                                     1,
                                     3,
                                     7,
                                     10,
                                     63,
                                     64,
                                     1000000007,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff80000000,
                                     0xfffffffffffffffb,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     UINT64_MAX};
    static const uint64_t floats[] = {0x00000000, 0x80000000, 0x00000001, 0x3f800000, 0xbf800000,
                                      0x40200000, 0x3f000000, 0x40000000, 0x7f800000, 0xff800000,
                                      0x7fc00000, /* of functions */
                                      0x5f800000, 0x4b000001, 0x40400000, 0x3dcccccd, 0x7f7fffff};
    static const uint64_t doubles[] = {0x0000000000000000, 0x8000000000000000, 0x0000000000000001,
                                       0x3ff0000000000000, 0xbff0000000000000, 0x4004000000000000,
                                       0x4330000000000001, 0x43f0000000000000, 0x4000000000000000,
                                       0x4008000000000000, 0x3fb999999999999a, 0x7ff0000000000000,
                                       0xfff0000000000000, 0x7ff8000000000000};
    static const uint64_t *const of[HAL_TYPE_COUNT] = {
        [HAL_TYPE_BOOL] = bools, [HAL_TYPE_I32] = words, [HAL_TYPE_U32] = words,
        [HAL_TYPE_I64] = longs,  [HAL_TYPE_U64] = longs, [HAL_TYPE_F32] = floats,
        [HAL_TYPE_F64] = doubles};
#define COUNT(TYPE, list) [HAL_TYPE_##TYPE] = sizeof list / sizeof list[0]
    static const size_t counts[HAL_TYPE_COUNT] = {
        COUNT(BOOL, bools), COUNT(I32, words),  COUNT(U32, words),  COUNT(I64, longs),
        COUNT(U64, longs),  COUNT(F32, floats), COUNT(F64, doubles)};
#undef COUNT
    *count = counts[type];
    return of[type];
}

/* Which operand is a constant: each alone, then all of them. Returns the number of forms. */
static unsigned constant_forms(const elementwise *tested, unsigned forms[4])
{
    const unsigned operands = cover_operands_of(tested->opcode);
    unsigned count = 0;
    for (unsigned i = 0; i < operands; i++) {
        forms[count++] = 1u << i;
    }
    if (operands > 1) {
        forms[count++] = (1u << operands) - 1;
    }
    return count;
}

static hal_type operand_type(const elementwise *tested, unsigned operand)
{
    const bool chooses = tested->opcode == HAL_IR_SELECT && operand == 0;
    return chooses ? (hal_type)HAL_TYPE_BOOL : tested->type;
}

enum { MOST_LANES = 256, RANDOM_LANES = 32, APART = 7 };

/* Constants of a function, and of them in one kernel: a compiler has the function's polynomial for
 * each. The remaining kernels are skipped once compilation has taken COMPILER_SECONDS: rusticl
 * needs three seconds for each constant of pow. */
enum { OF_FUNCTIONS = 11, IN_KERNEL = 3, COMPILER_SECONDS = 5 };

/* What is combined with constants: the corners, random values, and of integers multiples of the
 * constants and what is next to these, where a quotient changes. Returns their number. */
static uint32_t constant_partners(case_run *run, hal_type type, const uint64_t *constants,
                                  size_t count, uint64_t partners[MOST_LANES])
{
    const uint64_t *corners;
    uint32_t lanes = (uint32_t)ir_corners(type, &corners);
    random_state random = {run->seed};
    memcpy(partners, corners, lanes * sizeof *corners);
    for (uint32_t i = 0; i < RANDOM_LANES && type != HAL_TYPE_BOOL; i++) {
        partners[lanes++] = random_bits(&random, type);
    }
    const bool is_wide = type == HAL_TYPE_I64 || type == HAL_TYPE_U64;
    const uint64_t mask = is_wide ? UINT64_MAX : UINT32_MAX, most = mask >> 1;
    for (size_t i = 0; i < count && hal_type_is_integer(type); i++) {
        const uint64_t whole = constants[i] > 0 && constants[i] <= most ? most / constants[i] : 0;
        const uint64_t multiples[2] = {3 * constants[i], whole * constants[i]};
        for (int k = 0; k < 2 && lanes + 3 <= MOST_LANES; k++) {
            partners[lanes++] = (multiples[k] - 1) & mask;
            partners[lanes++] = multiples[k] & mask;
            partners[lanes++] = (0 - multiples[k]) & mask;
        }
    }
    return lanes;
}

/* The outputs of a form: which operands are constants (bit i: operand i), and its part of all. */
typedef struct constant_form {
    unsigned form;
    uint32_t lanes;
    size_t turns, first;
    elements made;
} constant_form;

/* Kernels of compilers that have a loop, a polynomial or the checks of HAL_SANITIZE for each
 * constant. */
static bool is_long(const case_run *run, const elementwise *tested)
{
    return hal_ir_is_math(tested->opcode) ||
           (tested->opcode == HAL_IR_REM && hal_type_is_float(tested->type)) ||
           (provoke_is_sanitized() && case_has_compiler(run));
}

/* The inputs of a form, whose first element is `first`. Of two constants each is combined
 * with each, by one work-item. */
static constant_form form_make(case_run *run, const elementwise *tested, unsigned form,
                               size_t first, uint32_t partners, size_t count)
{
    const bool is_of_two =
        cover_operands_of(tested->opcode) == 2 && form == 3 && !is_long(run, tested);
    const bool gives_bool = tested->opcode >= HAL_IR_EQ && tested->opcode <= HAL_IR_LE;
    constant_form made = {.form = form,
                          .lanes = is_of_two ? 1 : partners,
                          .turns = is_of_two ? count * count : count,
                          .first = first};
    made.made.count = made.turns * made.lanes;
    made.made.result_type = gives_bool ? (hal_type)HAL_TYPE_BOOL : tested->type;
    for (unsigned o = 0; o < 3; o++) {
        made.made.input_types[o] = operand_type(tested, o);
        made.made.inputs[o] = case_allocate(run, made.made.count, 8);
    }
    return made;
}

/* A work-item has one value of the operands that are no constants, which it combines with each of
 * the constants. The outputs of a constant are in a row. */
static void form_build(hal_ir_builder *b, const elementwise *tested, const constant_form *of,
                       hal_ir_memory_id out, const hal_ir_value wide[3], const uint64_t *constants,
                       size_t count, const uint64_t *partners, uint32_t partner_count)
{
    const unsigned operands = cover_operands_of(tested->opcode);
    const hal_type from = tested->from ? tested->from : tested->type;
    const bool is_of_two = of->turns > count;
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_u32(b, of->lanes));
    for (size_t k = 0; k < of->turns; k++) {
        hal_ir_value values[3] = {HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE};
        for (unsigned o = 0; o < operands; o++) {
            const hal_type type = of->made.input_types[o];
            const uint64_t constant =
                type == HAL_TYPE_BOOL
                    ? constants[(k + (is_of_two ? o * (k / count) : 0)) % count] & 1
                    : constants[(k + (is_of_two ? k / count : 3) * o) % count];
            const bool is_constant = of->form >> o & 1;
            values[o] = is_constant            ? ir_constant(b, type, constant)
                        : type == tested->type ? wide[o]
                                               : hal_ir_cast(b, type, wide[o]);
            for (uint32_t lane = 0; lane < of->lanes; lane++) {
                const uint64_t partner = partners[(lane + APART * o) % partner_count];
                number_store(type, of->made.inputs[o], k * of->lanes + lane,
                             is_constant ? constant : ir_convert(from, type, partner));
            }
        }
        const hal_ir_value at =
            hal_ir_add(b, i, hal_ir_u32(b, (uint32_t)(of->first + k * of->lanes)));
        hal_ir_store_wide(b, out, at, 0, guard, build_result(b, tested, values));
    }
}

/* The forms in one kernel, with the `count` constants. */
static void constants_run(case_run *run, const elementwise *tested, const unsigned *forms,
                          unsigned form_count, const uint64_t *constants, size_t count)
{
    const hal_type from = tested->from ? tested->from : tested->type;
    uint64_t partners[MOST_LANES];
    constant_form of[4];
    const uint32_t lanes = constant_partners(run, from, constants, count, partners);
    size_t results = 0;
    for (unsigned f = 0; f < form_count; f++) {
        of[f] = form_make(run, tested, forms[f], results, lanes, count);
        results += of[f].made.count;
    }
    /* Each operand has the values from another one on. */
    uint8_t *variable = case_allocate(run, 3 * lanes, 8);
    for (uint32_t k = 0; k < 3 * lanes; k++) {
        number_store(from, variable, k, partners[(k + APART * (k / lanes)) % lanes]);
    }
    hal_ir_builder *b = ir_begin(run, "constants");
    const hal_type result_type = of[0].made.result_type;
    const hal_ir_memory_id in = hal_ir_binding(b, "x", from, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", result_type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_scalar_value(b, "count", HAL_TYPE_U32));
    hal_ir_value wide[3] = {HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE};
    for (unsigned o = 0; o < cover_operands_of(tested->opcode); o++) {
        const hal_ir_value loaded = hal_ir_load_wide(b, in, i, (int32_t)(o * lanes), 1, guard);
        wide[o] = from == tested->type ? loaded : hal_ir_cast(b, tested->type, loaded);
    }
    for (unsigned f = 0; f < form_count; f++) {
        form_build(b, tested, &of[f], out, wide, constants, count, partners, lanes);
    }
    const uint32_t bytes = hal_type_size(result_type), group = ir_group_of(run);
    uint8_t *all = case_allocate(run, results, 8);
    const red_zone zones[2] = {zone_create(run, 3ull * lanes * hal_type_size(from), variable),
                               zone_create(run, results * bytes, NULL)};
    ir_run(run, b, (lanes + group - 1) / group, zones, 2, &lanes, sizeof lanes);
    zone_read(run, &zones[1], all, "result");
    for (unsigned f = 0; f < form_count; f++) {
        of[f].made.results = all + of[f].first * bytes;
        judge(run, tested, &of[f].made);
    }
}

/* All forms in one kernel, unless that is long for compilers. */
static void run_constants(case_run *run, const void *parameters)
{
    const elementwise *tested = parameters;
    size_t count = 0;
    const uint64_t *constants = constants_of(tested->type, &count);
    unsigned forms[4];
    const unsigned form_count = constant_forms(tested, forms);
    const bool is_function = hal_ir_is_math(tested->opcode);
    count = is_function && count > OF_FUNCTIONS ? OF_FUNCTIONS : count;
    const size_t most = is_function ? IN_KERNEL : count, kernels = (count + most - 1) / most;
    const double begin = child_processor_seconds();
    claim_types(run, tested);
    if (!is_long(run, tested)) {
        constants_run(run, tested, forms, form_count, constants, count);
        return;
    }
    for (unsigned f = 0; f < form_count; f++) {
        for (size_t k = 0; k < kernels; k++) {
            const size_t first = (k + f) % kernels * most; /* each form begins with others */
            const bool is_slow = is_function && case_has_compiler(run) &&
                                 child_processor_seconds() - begin > COMPILER_SECONDS;
            if (k == 0 || !is_slow) {
                constants_run(run, tested, &forms[f], 1, constants + first,
                              count - first < most ? count - first : most);
            }
        }
    }
}

static void add_constants(case_list *list, uint32_t opcode, hal_type type)
{
    static const hal_type narrow[HAL_TYPE_COUNT][2] = {
        [HAL_TYPE_I64] = {HAL_TYPE_I32, HAL_TYPE_U32},
        [HAL_TYPE_U64] = {HAL_TYPE_U32, HAL_TYPE_I32},
        [HAL_TYPE_F64] = {HAL_TYPE_F32, HAL_TYPE_I32}};
    elementwise tested = {.opcode = opcode, .type = type};
    if (hal_ir_is_math(opcode) && type != HAL_TYPE_F32) {
        return; /* the same arithmetic */
    }
    case_add(list, run_constants, &tested, sizeof tested, "ir/constants(opcode=%s,type=%s)",
             hal_ir_opcode_name(opcode), hal_type_name(type));
    for (int k = 0; k < 2 && narrow[type][k] && !hal_ir_is_math(opcode); k++) {
        tested.from = narrow[type][k];
        case_add(list, run_constants, &tested, sizeof tested,
                 "ir/constants(opcode=%s,type=%s,from=%s)", hal_ir_opcode_name(opcode),
                 hal_type_name(type), hal_type_name(tested.from));
    }
}

void cases_ir_elementwise(case_list *list)
{
    for (uint32_t opcode = HAL_IR_ADD; opcode < HAL_IR_OPCODE_COUNT; opcode++) {
        for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
            if ((cover_types_of(opcode) & HAL_TYPE_BIT(type)) == 0) {
                continue;
            }
            const elementwise tested = {.opcode = opcode, .type = type};
            case_add(list, run_elementwise, &tested, sizeof tested, "ir/%s(type=%s,seed=%llu)",
                     hal_ir_opcode_name(opcode), hal_type_name(type),
                     (unsigned long long)list->seed);
            case_covers(list, type, CASE_VALUES, "%s", hal_ir_opcode_name(opcode));
            add_constants(list, opcode, type);
        }
    }
}
