/* pairs.c: each pair of arithmetic operations on floats, where the second takes the result of the
 * first, which the kernel also stores: none of them is contracted with its neighbour, and each
 * value has one rounding, however often it is used. */
#include "case/cases.h"
#include "ir/fixture.h"

enum { COUNT = 192, OPCODES = 6, TURNS = 2 * OPCODES + 2 };

static const uint32_t opcodes[OPCODES] = {HAL_IR_ADD, HAL_IR_SUB, HAL_IR_MUL,
                                          HAL_IR_DIV, HAL_IR_MIN, HAL_IR_MAX};

typedef struct pair_case {
    hal_type type;
    uint32_t first; /* opcode */
} pair_case;

/* Whether the device computes the opcode with one rounding. */
static bool is_exact(const case_run *run, uint32_t opcode)
{
    return opcode != HAL_IR_DIV || (run->info->exactness & HAL_EXACT_DIVIDE) != 0;
}

static uint64_t evaluate(uint32_t opcode, hal_type type, uint64_t x, uint64_t y)
{
    const uint64_t operands[3] = {x, y, 0};
    return ir_evaluate(opcode, type, operands);
}

/* x, y of all digits; z is often the first result, or its negative, so that a second operation
 * without the first one's rounding leaves what the rounding took. */
static void operands_fill(random_state *random, const pair_case *tested, uint64_t bits[3])
{
    for (int i = 0; i < 3; i++) {
        const double sign = random_below(random, 2) == 0 ? 1.0 : -1.0;
        bits[i] = number_bits(tested->type, sign * random_between(random, 1.0, 2.0));
    }
    const uint64_t kind = random_below(random, 4);
    if (kind < 2) {
        bits[2] = evaluate(tested->first, tested->type, bits[0], bits[1]);
    }
    if (kind == 1) {
        bits[2] = number_bits(tested->type, -number_value(tested->type, bits[2]));
    }
}

static void run_pair(case_run *run, const void *parameters)
{
    const pair_case *tested = parameters;
    const hal_type type = tested->type;
    const uint32_t size = hal_type_size(type), group = ir_group_of(run);
    case_claim_arithmetic(run, type);
    if (!is_exact(run, tested->first)) {
        case_unsupported(run, "division is not exact");
    }
    uint8_t *x = case_allocate(run, 3 * COUNT, size);
    uint8_t *expected = case_allocate(run, TURNS * COUNT, size);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t bits[3];
        operands_fill(&random, tested, bits);
        for (uint32_t k = 0; k < 3; k++) {
            number_store(type, x, k * COUNT + i, bits[k]);
        }
        const uint64_t made = evaluate(tested->first, type, bits[0], bits[1]);
        number_store(type, expected, i, made);
        for (uint32_t k = 0; k < OPCODES; k++) {
            const uint32_t opcode = is_exact(run, opcodes[k]) ? opcodes[k] : HAL_IR_ADD;
            number_store(type, expected, (2 * k + 1) * COUNT + i,
                         evaluate(opcode, type, made, bits[2]));
            number_store(type, expected, (2 * k + 2) * COUNT + i,
                         evaluate(opcode, type, bits[2], made));
        }
        number_store(
            type, expected, (TURNS - 1) * COUNT + i,
            evaluate(HAL_IR_SUB, type, made, evaluate(tested->first, type, bits[1], bits[0])));
    }
    const red_zone zones[2] = {zone_create(run, 3ull * COUNT * size, x),
                               zone_create(run, (uint64_t)TURNS * COUNT * size, NULL)};
    hal_ir_builder *b = ir_begin(run, "pair");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value values[3];
    for (int32_t k = 0; k < 3; k++) {
        values[k] = hal_ir_load_wide(b, in, i, k * COUNT, 1, HAL_IR_NONE);
    }
    const hal_ir_value made = hal_ir_binary(b, tested->first, values[0], values[1]);
    hal_ir_store(b, out, i, made);
    for (int32_t k = 0; k < OPCODES; k++) {
        const uint32_t opcode = is_exact(run, opcodes[k]) ? opcodes[k] : HAL_IR_ADD;
        hal_ir_store_wide(b, out, i, (2 * k + 1) * COUNT, HAL_IR_NONE,
                          hal_ir_binary(b, opcode, made, values[2]));
        hal_ir_store_wide(b, out, i, (2 * k + 2) * COUNT, HAL_IR_NONE,
                          hal_ir_binary(b, opcode, values[2], made));
    }
    const hal_ir_value swapped = hal_ir_binary(b, tested->first, values[1], values[0]);
    hal_ir_store_wide(b, out, i, (TURNS - 1) * COUNT, HAL_IR_NONE,
                      hal_ir_binary(b, HAL_IR_SUB, made, swapped));
    ir_run(run, b, COUNT / group, zones, 2, NULL, 0);
    ir_check(run, &zones[1], type, expected, TURNS * COUNT, "result");
}

void cases_ir_pairs(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64};
    for (uint32_t t = 0; t < 2; t++) {
        for (uint32_t k = 0; k < OPCODES; k++) {
            const pair_case tested = {types[t], opcodes[k]};
            case_add(list, run_pair, &tested, sizeof tested, "ir/pairs(type=%s,first=%s)",
                     hal_type_name(types[t]), hal_ir_opcode_name(opcodes[k]));
        }
    }
}
