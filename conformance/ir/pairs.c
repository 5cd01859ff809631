/* pairs.c: each pair of operations of one type, where the second takes the result of the first,
 * which the kernel also stores, next to other values, itself and constants: none of them is
 * contracted with its neighbour, left out or turned into another one. */
#include "case/cases.h"
#include "case/cover.h"
#include "case/provoke.h"
#include "ir/fixture.h"

#include <math.h>

enum { COUNT = 256, VALUES = 3, MOST_OUTPUTS = 512, MOST_SANITIZED = 48 };

/* A value that is built for the device and computed on the host by the same steps. */
typedef struct term {
    hal_type type;
    hal_ir_builder *b; /* null: computed on the host */
    uint64_t value;    /* hal_ir_value, or bits */
    bool is_excused;   /* it needs denormals */
} term;

typedef struct pair_case {
    hal_type type;
    uint32_t first; /* opcode */
} pair_case;

/* The results of one work-item, or of the kernel: those of the type, and those that are BOOL. */
typedef struct results {
    const case_run *run;
    term values[MOST_OUTPUTS], bools[MOST_OUTPUTS];
    uint32_t value_count, bool_count;
    bool is_brief; /* fewer of them: compilers of drivers take seconds for all */
    uint32_t most; /* of each; with the checks of HAL_SANITIZE such a compiler takes minutes */
} results;

/* Operations that compilers join with others. */
static bool is_joined(uint32_t opcode)
{
    return opcode == HAL_IR_ADD || opcode == HAL_IR_SUB || opcode == HAL_IR_MUL ||
           opcode == HAL_IR_DIV;
}

static bool is_comparison(uint32_t opcode)
{
    return opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE;
}

/* Whether the device computes the opcode on the type, with one rounding. */
static bool is_tested(const case_run *run, uint32_t opcode, hal_type type)
{
    const uint32_t exactness = run->info->exactness;
    if ((cover_types_of(opcode) & HAL_TYPE_BIT(type)) == 0 || hal_ir_is_math(opcode)) {
        return false;
    }
    return !hal_type_is_float(type) ||
           ((opcode != HAL_IR_DIV || (exactness & HAL_EXACT_DIVIDE) != 0) &&
            (opcode != HAL_IR_SQRT || (exactness & HAL_EXACT_SQRT) != 0) &&
            (opcode != HAL_IR_FMA || (exactness & HAL_EXACT_FMA) != 0));
}

/* A float below the smallest normal number, which a device may take for 0. */
static bool is_denormal(hal_type type, uint64_t bits)
{
    if (!hal_type_is_float(type)) {
        return false;
    }
    const double smallest = type == HAL_TYPE_F32 ? 0x1p-126 : 0x1p-1022;
    const double x = fabs(number_value(type, bits));
    return x != 0 && x <= smallest;
}

static term apply(uint32_t opcode, const term *operands)
{
    const unsigned count = cover_operands_of(opcode);
    term made = operands[opcode == HAL_IR_SELECT ? 1 : 0];
    const hal_type type = made.type;
    made.type = is_comparison(opcode) ? (hal_type)HAL_TYPE_BOOL : type;
    hal_ir_value values[3] = {0};
    uint64_t bits[3] = {0};
    made.is_excused = false;
    for (unsigned i = 0; i < count; i++) {
        values[i] = (hal_ir_value)operands[i].value;
        bits[i] = operands[i].value;
        made.is_excused = made.is_excused || operands[i].is_excused;
    }
    if (made.b) {
        made.value = count == 1   ? hal_ir_unary(made.b, opcode, values[0])
                     : count == 2 ? hal_ir_binary(made.b, opcode, values[0], values[1])
                                  : hal_ir_ternary(made.b, opcode, values[0], values[1], values[2]);
        return made;
    }
    made.value = ir_evaluate(opcode, type, bits);
    made.is_excused = made.is_excused || is_denormal(made.type, made.value);
    return made;
}

static term constant(term like, hal_type type, double number)
{
    like.type = type;
    like.value = like.b ? hal_ir_number(like.b, type, number) : number_bits(type, number);
    like.is_excused = false;
    return like;
}

static void result_add(results *r, term made)
{
    term *const to = made.type == HAL_TYPE_BOOL ? r->bools : r->values;
    uint32_t *const count = made.type == HAL_TYPE_BOOL ? &r->bool_count : &r->value_count;
    if (*count < r->most) {
        to[(*count)++] = made;
    }
}

/* A condition next to another one, and as the choice between values of which it may be known. */
static void condition_results(results *r, term made, const term x[VALUES])
{
    static const uint32_t joins[] = {HAL_IR_AND, HAL_IR_OR, HAL_IR_XOR, HAL_IR_EQ};
    const term other = apply(HAL_IR_LT, (term[]){x[2], x[0]});
    result_add(r, apply(HAL_IR_NOT, (term[]){made}));
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        result_add(r, apply(joins[i], (term[]){made, other}));
    }
    const term negative = apply(HAL_IR_NEG, (term[]){x[0]}), zero = constant(x[0], x[0].type, 0),
               one = constant(x[0], x[0].type, 1);
    const term choices[][2] = {{x[0], x[1]}, {x[1], x[0]}, {negative, x[0]}, {x[0], negative},
                               {x[2], zero}, {zero, x[2]}, {one, zero},      {zero, one}};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        result_add(r, apply(HAL_IR_SELECT, (term[]){made, choices[i][0], choices[i][1]}));
    }
}

/* What the second operation makes of `made`, on each side of the other values. */
static void second_results(results *r, uint32_t second, term made, const term x[VALUES])
{
    const unsigned operands = cover_operands_of(second);
    if (operands == 1) {
        result_add(r, apply(second, (term[]){made}));
    } else if (operands == 2) {
        for (int i = r->is_brief ? VALUES - 1 : 0; i < VALUES; i++) {
            result_add(r, apply(second, (term[]){made, x[i]}));
            result_add(r, apply(second, (term[]){x[i], made}));
        }
        result_add(r, apply(second, (term[]){made, r->is_brief ? x[1] : made}));
    } else {
        result_add(r, apply(second, (term[]){made, x[1], x[2]}));
        result_add(r, apply(second, (term[]){x[2], made, x[0]}));
        result_add(r, apply(second, (term[]){x[1], x[2], made}));
    }
}

/* Of two operations with constants, as compilers join them: the second on each side. */
static void constant_results(results *r, const pair_case *tested, uint32_t second,
                             const term x[VALUES])
{
    const hal_type type = tested->type;
    const double numbers[2] = {hal_type_is_float(type) ? 0.1 : 3, hal_type_is_float(type) ? 3 : 7};
    if (cover_operands_of(tested->first) != 2 || cover_operands_of(second) != 2) {
        return;
    }
    const term c = constant(x[0], type, numbers[0]), d = constant(x[0], type, numbers[1]);
    const term made = apply(tested->first, (term[]){x[0], c});
    result_add(r, apply(second, (term[]){made, d}));
    result_add(r, apply(second, (term[]){d, made}));
    result_add(r, apply(second, (term[]){made, c}));
}

/* Of the first operation on equal operands, and of two of them that share one. */
static void shared_results(results *r, uint32_t second, term made, term same, term other,
                           const term x[VALUES])
{
    const unsigned operands = cover_operands_of(second);
    if (operands == 1) {
        result_add(r, apply(second, (term[]){same}));
    } else if (operands == 2 && !is_comparison(second)) {
        result_add(r, apply(second, (term[]){made, other}));
        result_add(r, apply(second, (term[]){other, made}));
        result_add(r, apply(second, (term[]){same, x[0]}));
        const term third = apply(second, (term[]){made, x[1]});
        result_add(r, apply(HAL_IR_SUB, (term[]){x[0], third}));
    }
}

/* A sign between the operations. */
static void sign_results(results *r, term made, const term x[VALUES])
{
    static const uint32_t signs[] = {HAL_IR_NEG, HAL_IR_ABS};
    for (int i = 0; i < 2; i++) {
        const term between = apply(signs[i], (term[]){made});
        result_add(r, apply(HAL_IR_ADD, (term[]){between, x[2]}));
        result_add(r, apply(HAL_IR_SUB, (term[]){x[2], between}));
    }
}

/* The least and the greatest of three values, which some processors have one instruction for, and
 * what clamps to a range. */
static void extreme_results(results *r, term made, const term x[VALUES])
{
    for (uint32_t inner = HAL_IR_MIN; inner <= HAL_IR_MAX; inner++) {
        for (uint32_t outer = HAL_IR_MIN; outer <= HAL_IR_MAX; outer++) {
            const term first = apply(inner, (term[]){made, x[1]});
            result_add(r, apply(outer, (term[]){first, x[2]}));
        }
    }
}

/* All results, of one work-item or of the kernel. */
static void results_make(results *r, const pair_case *tested, const term x[VALUES])
{
    const hal_type type = tested->type;
    r->value_count = r->bool_count = 0;
    const term made = apply(tested->first, x);
    const term same = apply(tested->first, (term[]){x[0], x[0], x[0]});
    result_add(r, made);
    result_add(r, same);
    if (made.type == HAL_TYPE_BOOL) {
        condition_results(r, made, x);
        return;
    }
    if (is_tested(r->run, HAL_IR_MAX, type)) {
        extreme_results(r, made, x);
    }
    /* A compiler has a loop for each remainder of floats. */
    const bool is_long = r->is_brief && tested->first == HAL_IR_REM;
    const term other = is_long ? made : apply(tested->first, (term[]){x[0], x[2], x[1]});
    for (uint32_t second = HAL_IR_ADD; second < HAL_IR_OPCODE_COUNT; second++) {
        if (second == HAL_IR_SELECT || !is_tested(r->run, second, type) ||
            r->value_count == r->most) {
            continue;
        }
        const bool is_some = !r->is_brief || is_joined(second);
        if (!r->is_brief || !is_comparison(second) || second == HAL_IR_LT) {
            second_results(r, second, made, x);
        }
        if (is_some || second == HAL_IR_SQRT) {
            shared_results(r, second, made, same, other, x);
        }
        if (!is_comparison(second) && !is_long && (is_some || second == tested->first)) {
            constant_results(r, tested, second, x);
        }
    }
    sign_results(r, made, x);
    /* a - b and b - a, and the like */
    const term swapped = apply(tested->first, (term[]){x[1], x[0], x[2]});
    result_add(r, apply(HAL_IR_SUB, (term[]){made, swapped}));
    /* A variable is no barrier for a compiler. */
    if (made.b) {
        term kept = made;
        const hal_ir_value variable = hal_ir_var(made.b, (hal_ir_value)made.value);
        kept.value = hal_ir_get(made.b, variable);
        result_add(r, apply(HAL_IR_ADD, (term[]){kept, x[2]}));
    } else {
        result_add(r, apply(HAL_IR_ADD, (term[]){made, x[2]}));
    }
}

/* x, y of all digits; z is often the first result, or its negative, so that a second operation
 * without the first one's rounding leaves what the rounding took. Some are corners, or equal. */
static void operands_fill(random_state *random, const pair_case *tested, uint64_t bits[VALUES])
{
    const hal_type type = tested->type;
    const bool is_float = hal_type_is_float(type);
    const uint64_t kind = random_below(random, 8), *corners;
    const size_t corner_count = ir_corners(type, &corners);
    for (int i = 0; i < VALUES; i++) {
        const double sign = random_below(random, 2) == 0 ? 1.0 : -1.0;
        const uint64_t digits =
            number_bits(type, sign * random_between(random, 1.0, is_float ? 2.0 : 100.0));
        const bool is_corner = kind == 3 || kind == 4 || (kind == 5 && is_float) ||
                               (kind == 7 && random_below(random, 2) == 0);
        bits[i] = is_corner   ? corners[random_below(random, corner_count)]
                  : kind == 5 ? random_bits(random, type)
                              : digits;
    }
    if (kind < 2 && !is_comparison(tested->first)) {
        bits[2] = ir_evaluate(tested->first, type, bits);
    }
    if (kind == 1 && is_float) {
        bits[2] = number_bits(type, -number_value(type, bits[2]));
    }
    bits[1] = kind == 6 || kind == 4 ? bits[0] : bits[1];
}

static void outputs_check(case_run *run, const red_zone *zone, hal_type type, const term *made,
                          uint32_t count)
{
    const bool keeps = (run->info->exactness & HAL_EXACT_DENORMALS) != 0;
    uint8_t *expected = case_allocate(run, (size_t)count * COUNT, 8);
    uint8_t *got = case_allocate(run, (size_t)count * COUNT, 8);
    zone_read(run, zone, got, "result");
    for (uint32_t i = 0; i < count * COUNT; i++) {
        number_store(type, expected, i,
                     made[i].is_excused && !keeps ? number_load(type, got, i) : made[i].value);
    }
    comparison found;
    if (!compare_bits(type, got, expected, (size_t)count * COUNT, true, &found)) {
        char text[512];
        comparison_text(&found, text, sizeof text);
        case_fail(run, "result %zu of the kernel, work-item %zu: %s", found.worst_index / COUNT,
                  found.worst_index % COUNT, text);
    }
}

static void run_pair(case_run *run, const void *parameters)
{
    const pair_case *tested = parameters;
    const hal_type type = tested->type;
    const uint32_t size = hal_type_size(type), group = ir_group_of(run);
    case_claim_arithmetic(run, type);
    if (!is_tested(run, tested->first, type)) {
        case_unsupported(run, "the operation is not exact");
    }
    results *kernel = case_allocate(run, 1, sizeof *kernel);
    results *item = case_allocate(run, 1, sizeof *item);
    kernel->run = item->run = run;
    kernel->is_brief = item->is_brief = case_has_compiler(run);
    kernel->most = item->most =
        kernel->is_brief && provoke_is_sanitized() ? MOST_SANITIZED : MOST_OUTPUTS;
    hal_ir_builder *b = ir_begin(run, "pair");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_memory_id truths = hal_ir_binding(b, "truths", HAL_TYPE_BOOL, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    term x[VALUES];
    for (int32_t k = 0; k < VALUES; k++) {
        x[k] = (term){type, b, hal_ir_load_wide(b, in, i, k * COUNT, 1, HAL_IR_NONE), false};
    }
    results_make(kernel, tested, x);
    for (uint32_t k = 0; k < kernel->value_count; k++) {
        hal_ir_store_wide(b, out, i, (int32_t)(k * COUNT), HAL_IR_NONE,
                          (hal_ir_value)kernel->values[k].value);
    }
    for (uint32_t k = 0; k < kernel->bool_count; k++) {
        hal_ir_store_wide(b, truths, i, (int32_t)(k * COUNT), HAL_IR_NONE,
                          (hal_ir_value)kernel->bools[k].value);
    }
    const uint32_t values = kernel->value_count, bools = kernel->bool_count;
    uint8_t *inputs = case_allocate(run, VALUES * COUNT, size);
    term *expected = case_allocate(run, (size_t)values * COUNT, sizeof *expected);
    term *truth = case_allocate(run, (size_t)bools * COUNT + 1, sizeof *truth);
    random_state random = {run->seed};
    for (uint32_t lane = 0; lane < COUNT; lane++) {
        uint64_t bits[VALUES];
        operands_fill(&random, tested, bits);
        for (uint32_t k = 0; k < VALUES; k++) {
            number_store(type, inputs, k * COUNT + lane, bits[k]);
            x[k] = (term){type, NULL, bits[k], is_denormal(type, bits[k])};
        }
        results_make(item, tested, x);
        for (uint32_t k = 0; k < values; k++) {
            expected[k * COUNT + lane] = item->values[k];
        }
        for (uint32_t k = 0; k < bools; k++) {
            truth[k * COUNT + lane] = item->bools[k];
        }
    }
    const red_zone zones[3] = {zone_create(run, (uint64_t)VALUES * COUNT * size, inputs),
                               zone_create(run, (uint64_t)values * COUNT * size, NULL),
                               zone_create(run, (uint64_t)(bools + 1) * COUNT, NULL)};
    ir_run(run, b, COUNT / group, zones, 3, NULL, 0);
    outputs_check(run, &zones[1], type, expected, values);
    if (bools > 0) {
        outputs_check(run, &zones[2], HAL_TYPE_BOOL, truth, bools);
    }
}

/* Functions and their inverses are no identity where the first result has no number, or no number
 * near it, of the type. */
static void run_inverse(case_run *run, const void *parameters)
{
    static const uint32_t pairs[][2] = {{HAL_IR_EXP, HAL_IR_LOG},     {HAL_IR_LOG, HAL_IR_EXP},
                                        {HAL_IR_EXP2, HAL_IR_LOG2},   {HAL_IR_LOG2, HAL_IR_EXP2},
                                        {HAL_IR_EXPM1, HAL_IR_LOG1P}, {HAL_IR_LOG1P, HAL_IR_EXPM1},
                                        {HAL_IR_TAN, HAL_IR_ATAN}};
    static const double inputs[] = {-2000, -200, -3, -0.5, 0.25, 3, 200, 2000};
    enum { PAIRS = sizeof pairs / sizeof *pairs, INPUTS = sizeof inputs / sizeof *inputs };
    const hal_type type = *(const hal_type *)parameters;
    const uint32_t size = hal_type_size(type);
    uint8_t x[INPUTS * 8], got[PAIRS * INPUTS * 8];
    case_claim_arithmetic(run, type);
    hal_ir_builder *b = ir_begin(run, "inverse");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_GROUP_ID, 0), loaded = hal_ir_load(b, in, i);
    for (int32_t p = 0; p < PAIRS; p++) {
        const hal_ir_value made =
            hal_ir_unary(b, pairs[p][1], hal_ir_unary(b, pairs[p][0], loaded));
        hal_ir_store_wide(b, out, i, p * INPUTS, HAL_IR_NONE, made);
    }
    for (size_t k = 0; k < INPUTS; k++) {
        number_store(type, x, k, number_bits(type, inputs[k]));
    }
    const red_zone zones[2] = {zone_create(run, (uint64_t)INPUTS * size, x),
                               zone_create(run, (uint64_t)PAIRS * INPUTS * size, NULL)};
    ir_run(run, b, INPUTS, zones, 2, NULL, 0);
    zone_read(run, &zones[1], got, "result");
    for (size_t k = 0; k < PAIRS * INPUTS; k++) {
        const uint32_t first = pairs[k / INPUTS][0], second = pairs[k / INPUTS][1];
        const double input = inputs[k % INPUTS],
                     value = number_value(type, number_load(type, got, k));
        const double between =
            number_value(type, number_bits(type, (double)ir_math_reference(first, input, 0)));
        const double expected = (double)ir_math_reference(second, between, 0);
        case_check(run,
                   isfinite(expected) ? fabs(value - expected) <= 1e-3 * (1 + fabs(expected))
                   : isnan(expected)  ? isnan(value)
                                      : value == expected,
                   "%s of %s of %g is %g and not %g", hal_ir_opcode_name(second),
                   hal_ir_opcode_name(first), input, value, expected);
    }
}

/* Constants keep their bits, also those that are no numbers. */
static void run_nan_constant(case_run *run, const void *parameters)
{
    static const uint64_t kinds[2][4] = {
        {0x7f800001, 0x7fc0dead, 0xff8000ff, 0xffffffff},
        {0x7ff0000000000001, 0x7ff8dead0000beef, 0xfff00000000000ff, 0xffffffffffffffff}};
    enum { KINDS = 4 };
    const hal_type type = *(const hal_type *)parameters;
    const bool is_wide = hal_type_size(type) == 8;
    const hal_type word = is_wide ? (hal_type)HAL_TYPE_U64 : (hal_type)HAL_TYPE_U32;
    uint8_t expected[2 * KINDS * 8];
    case_claim_arithmetic(run, type);
    hal_ir_builder *b = ir_begin(run, "nan");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_memory_id words = hal_ir_binding(b, "words", word, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    for (int32_t k = 0; k < KINDS; k++) {
        const hal_ir_value made = ir_constant(b, type, kinds[is_wide][k]);
        hal_ir_store_wide(b, out, i, k, HAL_IR_NONE, made);
        hal_ir_store_wide(b, words, i, k, HAL_IR_NONE, hal_ir_bitcast(b, word, made));
        number_store(word, expected, (size_t)k, kinds[is_wide][k]);
    }
    const red_zone zones[2] = {zone_create(run, KINDS * hal_type_size(type), NULL),
                               zone_create(run, KINDS * hal_type_size(type), NULL)};
    ir_run(run, b, 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], word, expected, KINDS, "the bits of constants");
    ir_check(run, &zones[0], word, expected, KINDS, "constants that are stored");
}

void cases_ir_pairs(case_list *list)
{
    static const hal_type floats[] = {HAL_TYPE_F32, HAL_TYPE_F64};
    for (int t = 0; t < 2; t++) {
        case_add(list, run_inverse, &floats[t], sizeof floats[t], "ir/inverse(type=%s)",
                 hal_type_name(floats[t]));
        case_add(list, run_nan_constant, &floats[t], sizeof floats[t], "ir/constants(nan,type=%s)",
                 hal_type_name(floats[t]));
    }
    static const hal_type types[] = {HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I64,
                                     HAL_TYPE_U64, HAL_TYPE_F32, HAL_TYPE_F64};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (uint32_t first = HAL_IR_ADD; first < HAL_IR_OPCODE_COUNT; first++) {
            const pair_case tested = {types[t], first};
            if ((cover_types_of(first) & HAL_TYPE_BIT(types[t])) != 0 && !hal_ir_is_math(first) &&
                first != HAL_IR_SELECT) {
                case_add(list, run_pair, &tested, sizeof tested, "ir/pairs(type=%s,first=%s)",
                         hal_type_name(types[t]), hal_ir_opcode_name(first));
            }
        }
    }
}
