/* loops.c: long loops, single, nested and in sequence, with constant bounds and with bounds that
 * the kernel reads. Some drivers end them early, and silently. */
#include "case/cases.h"
#include "ir/fixture.h"

enum { ITEMS = 4 };

typedef enum loop_form { LOOP_SINGLE, LOOP_NESTED, LOOP_SEQUENCE, LOOP_FORMS } loop_form;

typedef struct loop_case {
    loop_form form;
    bool dynamic;
    uint32_t outer, inner; /* iterations of the outer or first loop, and of the other */
} loop_case;

static const char *const form_names[LOOP_FORMS] = {"single", "nested", "sequence"};

/* What a device may count: an execution of a loop is its iterations and one more. */
static uint64_t counted_iterations(const loop_case *tested)
{
    const uint64_t outer = tested->outer, inner = tested->inner;
    switch (tested->form) {
    case LOOP_NESTED:
        return outer * (inner + 2) + 1;
    case LOOP_SEQUENCE:
        return outer + inner + 2;
    default:
        return outer + 1;
    }
}

static uint64_t body_executions(const loop_case *tested)
{
    const uint64_t outer = tested->outer, inner = tested->inner;
    return tested->form == LOOP_NESTED     ? outer * inner
           : tested->form == LOOP_SEQUENCE ? outer + inner
                                           : outer;
}

/* A step that no compiler replaces by a formula: each depends on the bits of the one before. */
static uint32_t step_value(uint32_t value)
{
    return (value << 1 | value >> 31) ^ value * 5;
}

static void emit_step(hal_ir_builder *b, hal_ir_value variable)
{
    const hal_ir_value v = hal_ir_get(b, variable), one = hal_ir_u32(b, 1);
    const hal_ir_value rotated =
        hal_ir_or(b, hal_ir_shl(b, v, one), hal_ir_shr(b, v, hal_ir_u32(b, 31)));
    hal_ir_set(b, variable, hal_ir_xor(b, rotated, hal_ir_mul(b, v, hal_ir_u32(b, 5))));
}

static void loop_begin(hal_ir_builder *b, hal_ir_value end)
{
    hal_ir_for(b, hal_ir_u32(b, 0), end, hal_ir_u32(b, 1));
}

static void emit_loops(hal_ir_builder *b, const loop_case *tested, hal_ir_value outer,
                       hal_ir_value inner, hal_ir_value variable)
{
    loop_begin(b, outer);
    if (tested->form == LOOP_NESTED) {
        loop_begin(b, inner);
    }
    emit_step(b, variable);
    hal_ir_end(b);
    if (tested->form == LOOP_SEQUENCE) {
        loop_begin(b, inner);
        emit_step(b, variable);
    }
    if (tested->form != LOOP_SINGLE) {
        hal_ir_end(b);
    }
}

static void run_loop(case_run *run, const void *parameters)
{
    const loop_case *tested = parameters;
    const uint32_t limit = run->info->max_loop_iterations;
    const bool fits = limit == 0 || counted_iterations(tested) <= limit;
    case_claim(run, fits, "as many iterations of loops");
    uint32_t x[ITEMS], expected[ITEMS];
    random_state random = {run->seed};
    for (uint32_t i = 0; i < ITEMS; i++) {
        x[i] = expected[i] = (uint32_t)random_next(&random);
        for (uint64_t turn = body_executions(tested); turn > 0; turn--) {
            expected[i] = step_value(expected[i]);
        }
    }
    const red_zone zones[2] = {zone_create(run, sizeof x, x), zone_create(run, sizeof x, NULL)};
    hal_ir_builder *b = case_builder(run, "loops");
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value outer = hal_ir_scalar_value(b, "outer", HAL_TYPE_U32);
    const hal_ir_value inner = hal_ir_scalar_value(b, "inner", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value v = hal_ir_var(b, hal_ir_load(b, in, i));
    emit_loops(b, tested, tested->dynamic ? outer : hal_ir_u32(b, tested->outer),
               tested->dynamic ? inner : hal_ir_u32(b, tested->inner), v);
    hal_ir_store(b, out, i, hal_ir_get(b, v));
    const uint32_t scalars[2] = {tested->outer, tested->inner};
    ir_run(run, b, 1, zones, 2, scalars, sizeof scalars);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, ITEMS, "result");
}

/* A loop of remainders of the slowest kind, as long as a device with a limit allows. */
static void run_remainders(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const bool wide = type == HAL_TYPE_F64;
    const uint64_t great = wide ? 0x7fe123456789abcd : 0x7f123457, least = wide ? 3 : 3;
    const uint32_t limit = run->info->max_loop_iterations, most = limit < 65536 ? limit : 65536;
    const uint32_t turns = limit == 0 ? 40 : most / (wide ? 200 : 10);
    case_claim_arithmetic(run, type);
    uint8_t x[2 * 8] = {0}, expected[8] = {0};
    const uint64_t operands[3] = {great, least};
    number_store(type, x, 0, great);
    number_store(type, x, 1, least);
    number_store(type, expected, 0, ir_evaluate(HAL_IR_REM, type, operands));
    const uint32_t size = hal_type_size(type);
    const red_zone zones[2] = {zone_create(run, 2ull * size, x), zone_create(run, size, NULL)};
    hal_ir_builder *b = case_builder(run, "remainders");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value v = hal_ir_var(b, hal_ir_number(b, type, 0.0));
    /* The operands are read in the loop, so that the remainder is computed in each turn. */
    const hal_ir_value k = hal_ir_for(b, zero, hal_ir_u32(b, turns), hal_ir_u32(b, 1));
    const hal_ir_value first = hal_ir_min(b, k, zero);
    const hal_ir_value rest = hal_ir_rem(
        b, hal_ir_load(b, in, first), hal_ir_load(b, in, hal_ir_add(b, first, hal_ir_u32(b, 1))));
    hal_ir_set(b, v, rest);
    hal_ir_end(b);
    hal_ir_store(b, out, zero, hal_ir_get(b, v));
    ir_run(run, b, 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], type, expected, 1, "result");
}

static void add_loop(case_list *list, loop_form form, bool dynamic, uint32_t outer, uint32_t inner)
{
    const loop_case tested = {form, dynamic, outer, inner};
    case_add(list, run_loop, &tested, sizeof tested, "ir/loops(%s,%s,%ux%u)", form_names[form],
             dynamic ? "dynamic" : "constant", outer, inner);
}

void cases_ir_loops(case_list *list)
{
    /* 65,535 iterations counted one for one, 65,536, and more; also as a product and a sum. */
    static const uint32_t counts[][3] = {{65535, 255, 257}, /* 255 * 257 = 65535 */
                                         {65536, 256, 256},
                                         {(1 << 20) + 1, 17, 61681},
                                         {1 << 24, 4096, 4096}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const uint32_t *c = counts[i];
        list->level = c[0] > 1 << 21 ? CASE_LEVEL_STRESS : CASE_LEVEL_CORE;
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            add_loop(list, LOOP_SINGLE, dynamic != 0, c[0], 1);
            add_loop(list, LOOP_NESTED, dynamic != 0, c[1], c[2]);
            add_loop(list, LOOP_SEQUENCE, dynamic != 0, c[0] / 3, c[0] - c[0] / 3);
        }
    }
    list->level = CASE_LEVEL_CORE;
    /* The most that a limit of 65,536 allows. */
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        add_loop(list, LOOP_NESTED, dynamic != 0, 254, 256);
        add_loop(list, LOOP_NESTED, dynamic != 0, 4096, 13);
        add_loop(list, LOOP_SEQUENCE, dynamic != 0, 65534, 0);
        add_loop(list, LOOP_SEQUENCE, dynamic != 0, 32767, 32767);
    }
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64};
    for (int i = 0; i < 2; i++) {
        case_add(list, run_remainders, &types[i], sizeof types[i], "ir/loops(remainder,type=%s)",
                 hal_type_name(types[i]));
    }
}
