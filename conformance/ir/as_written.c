/* as_written.c: operations that compilers like to change together with their neighbours: of floats
 * each one rounds by itself, in the order in which the kernel has it; of integers
 * each one wraps. */
#include <string.h>

#include "case/cases.h"
#include "ir/fixture.h"

#define COUNT 1000u
#define TURNS 8u

/* A value that is built for the device and computed on the host by the same steps. */
typedef struct term {
    hal_type type;
    hal_ir_builder *b; /* null: computed on the host */
    uint64_t value;    /* hal_ir_value, or bits */
} term;

static term apply(uint32_t opcode, term x, term y)
{
    const uint64_t operands[3] = {x.value, y.value, 0};
    x.value = !x.b ? ir_evaluate(opcode, x.type, operands)
                   : hal_ir_binary(x.b, opcode, (hal_ir_value)x.value, (hal_ir_value)y.value);
    return x;
}

static term constant(term like, double number)
{
    like.value =
        !like.b ? number_bits(like.type, number) : hal_ir_number(like.b, like.type, number);
    return like;
}

static term product_plus(const term x[4])
{
    return apply(HAL_IR_ADD, apply(HAL_IR_MUL, x[0], x[1]), x[2]);
}

static term plus_product(const term x[4])
{
    return apply(HAL_IR_ADD, x[2], apply(HAL_IR_MUL, x[0], x[1]));
}

static term product_minus(const term x[4])
{
    return apply(HAL_IR_SUB, apply(HAL_IR_MUL, x[0], x[1]), x[2]);
}

static term minus_product(const term x[4])
{
    return apply(HAL_IR_SUB, x[2], apply(HAL_IR_MUL, x[0], x[1]));
}

static term two_products(const term x[4])
{
    return apply(HAL_IR_SUB, apply(HAL_IR_MUL, x[0], x[1]), apply(HAL_IR_MUL, x[1], x[0]));
}

/* x + y - x is not y. */
static term sum_and_back(const term x[4])
{
    return apply(HAL_IR_SUB, apply(HAL_IR_ADD, x[0], x[3]), x[0]);
}

static term sum_of_four(const term x[4])
{
    return apply(HAL_IR_ADD, apply(HAL_IR_ADD, apply(HAL_IR_ADD, x[0], x[1]), x[2]), x[3]);
}

/* x * y * x is not y * (x * x), and x * 3 + x is not x * 4. */
static term products(const term x[4])
{
    const term squared = apply(HAL_IR_MUL, apply(HAL_IR_MUL, x[0], x[1]), x[0]);
    return apply(HAL_IR_ADD, apply(HAL_IR_MUL, squared, constant(x[0], 3.0)), squared);
}

/* Not 0 where x is infinite or NaN, nor 0 where it is -0. */
static term times_zero(const term x[4])
{
    return apply(HAL_IR_MUL, x[2], constant(x[0], 0.0));
}

static term zero_times(const term x[4])
{
    return apply(HAL_IR_MUL, constant(x[0], -0.0), x[2]);
}

static term minus_itself(const term x[4])
{
    return apply(HAL_IR_SUB, x[2], x[2]);
}

/* Of equal zeros MIN takes the negative one and MAX the positive one; NaN stays. */
static term at_least_zero(const term x[4])
{
    return apply(HAL_IR_MAX, x[2], constant(x[0], 0.0));
}

static term at_least_minus_zero(const term x[4])
{
    return apply(HAL_IR_MAX, constant(x[0], -0.0), x[2]);
}

static term at_most_zero(const term x[4])
{
    return apply(HAL_IR_MIN, constant(x[0], 0.0), x[2]);
}

static term at_most_minus_zero(const term x[4])
{
    return apply(HAL_IR_MIN, x[2], constant(x[0], -0.0));
}

static term between_numbers(const term x[4])
{
    const term low = apply(HAL_IR_MAX, constant(x[0], -1.25), x[2]);
    return apply(HAL_IR_MIN, low, constant(x[0], 1.5));
}

/* Integers of which compilers factor x out: the constants' product does not fit into 32 bits. */
static term scaled_twice_plus(const term x[4])
{
    const term once = apply(HAL_IR_MUL, x[0], constant(x[0], 65536.0));
    return apply(HAL_IR_ADD, apply(HAL_IR_MUL, once, constant(x[0], 65536.0)), x[0]);
}

static term scaled_by_odd_plus(const term x[4])
{
    const term once = apply(HAL_IR_MUL, constant(x[0], 196608.0), x[0]);
    return apply(HAL_IR_ADD, x[0], apply(HAL_IR_MUL, once, constant(x[0], 327680.0)));
}

static term shifted_and_scaled_plus(const term x[4])
{
    const term once = apply(HAL_IR_SHL, x[0], constant(x[0], 20.0));
    return apply(HAL_IR_ADD, apply(HAL_IR_MUL, once, constant(x[0], 1048576.0)), x[0]);
}

static term scaled_and_shifted_minus(const term x[4])
{
    const term once = apply(HAL_IR_MUL, x[0], constant(x[0], 1048576.0));
    return apply(HAL_IR_SUB, apply(HAL_IR_SHL, once, constant(x[0], 12.0)), x[0]);
}

/* Several results as one. */
static term joined(const term *parts, uint32_t count)
{
    term all = parts[0];
    for (uint32_t i = 1; i < count; i++) {
        all = apply(HAL_IR_XOR, apply(HAL_IR_MUL, all, constant(all, 31.0)), parts[i]);
    }
    return all;
}

static term shifted(uint32_t opcode, term x, double places)
{
    return apply(opcode, x, constant(x, places));
}

/* x << a | x >> b, which is a rotation only of some a and b, and of numbers without a sign. */
static term turned(term x, term y, double left, double right)
{
    return apply(HAL_IR_OR, shifted(HAL_IR_SHL, x, left), shifted(HAL_IR_SHR, y, right));
}

static term like_rotations(const term x[4])
{
    const term parts[] = {turned(x[0], x[0], 5, 27), turned(x[0], x[0], 5, 26),
                          turned(x[0], x[1], 5, 27), turned(x[0], x[0], 0, 0),
                          turned(x[1], x[1], 5, 59), turned(x[1], x[1], 33, 31)};
    return joined(parts, sizeof parts / sizeof *parts);
}

/* Shifts there and back, which are masks and extensions of signs only of some numbers. */
static term like_fields(const term x[4])
{
    const term parts[] = {shifted(HAL_IR_SHR, shifted(HAL_IR_SHL, x[0], 24), 24),
                          shifted(HAL_IR_SHR, shifted(HAL_IR_SHL, x[0], 20), 12),
                          shifted(HAL_IR_SHL, shifted(HAL_IR_SHR, x[1], 4), 4),
                          shifted(HAL_IR_SHL, shifted(HAL_IR_SHR, x[1], 3), 5),
                          shifted(HAL_IR_AND, shifted(HAL_IR_SHR, x[2], 28), 255),
                          shifted(HAL_IR_SHR, shifted(HAL_IR_AND, x[2], 65280), 4)};
    return joined(parts, sizeof parts / sizeof *parts);
}

static term like_remainders(const term x[4])
{
    const term part = shifted(HAL_IR_DIV, x[0], 10);
    const term parts[] = {apply(HAL_IR_SUB, x[0], shifted(HAL_IR_MUL, part, 10)),
                          shifted(HAL_IR_MUL, shifted(HAL_IR_DIV, x[0], 8), 8),
                          shifted(HAL_IR_DIV, shifted(HAL_IR_MUL, x[1], 8), 8),
                          shifted(HAL_IR_DIV, shifted(HAL_IR_DIV, x[1], 3), 5),
                          shifted(HAL_IR_REM, shifted(HAL_IR_MUL, x[2], 12), 4),
                          shifted(HAL_IR_DIV, apply(HAL_IR_ADD, x[2], x[3]), 2)};
    return joined(parts, sizeof parts / sizeof *parts);
}

static term like_differences(const term x[4])
{
    const term both = apply(HAL_IR_AND, x[0], x[1]), one = apply(HAL_IR_XOR, x[0], x[1]);
    const term sign = shifted(HAL_IR_SHR, x[2], 31);
    const term parts[] = {apply(HAL_IR_ADD, both, shifted(HAL_IR_SHR, one, 1)),
                          shifted(HAL_IR_SHR, apply(HAL_IR_ADD, x[0], x[1]), 1),
                          apply(HAL_IR_SUB, apply(HAL_IR_XOR, x[2], sign), sign),
                          apply(HAL_IR_SUB, x[0], apply(HAL_IR_SUB, x[0], x[3])),
                          apply(HAL_IR_SUB, constant(x[0], 0), apply(HAL_IR_SUB, x[1], x[3])),
                          apply(HAL_IR_ADD, apply(HAL_IR_OR, x[0], x[1]), both)};
    return joined(parts, sizeof parts / sizeof *parts);
}

typedef struct form {
    const char *name;
    term (*compute)(const term x[4]);
} form;

static const form forms[] = {
    {"product_plus", product_plus},   {"plus_product", plus_product},
    {"product_minus", product_minus}, {"minus_product", minus_product},
    {"two_products", two_products},   {"sum_and_back", sum_and_back},
    {"sum_of_four", sum_of_four},     {"products", products},
    {"times_zero", times_zero},       {"zero_times", zero_times},
    {"minus_itself", minus_itself},   {"at_least_zero", at_least_zero},
    {"at_most_zero", at_most_zero},   {"at_least_minus_zero", at_least_minus_zero},
    {"between", between_numbers},     {"at_most_minus_zero", at_most_minus_zero}};

static const form integer_forms[] = {{"scaled_twice_plus", scaled_twice_plus},
                                     {"scaled_by_odd_plus", scaled_by_odd_plus},
                                     {"shifted_and_scaled_plus", shifted_and_scaled_plus},
                                     {"scaled_and_shifted_minus", scaled_and_shifted_minus},
                                     {"like_rotations", like_rotations},
                                     {"like_fields", like_fields},
                                     {"like_remainders", like_remainders},
                                     {"like_differences", like_differences}};

typedef struct written {
    hal_type type;
    const form *form;
} written;

/* Factors of all digits; x[2] is often their rounded product, so that a product which is not
 * rounded leaves what the rounding took; sometimes infinities, NaN and -0. */
static void fill_operands(random_state *random, hal_type type, uint64_t bits[4])
{
    static const double odd[] = {1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, -0.0, 0.0};
    for (int i = 0; hal_type_is_integer(type) && i < 4; i++) {
        bits[i] = random_bits(random, type);
    }
    if (hal_type_is_integer(type)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        bits[i] = number_bits(type, random_between(random, 1.0, 2.0) *
                                        (random_below(random, 2) == 0 ? 1.0 : -1.0));
    }
    const uint64_t kind = random_below(random, 4);
    if (kind < 2) {
        const uint64_t operands[3] = {bits[0], bits[1], 0};
        bits[2] = ir_evaluate(HAL_IR_MUL, type, operands);
        bits[2] = kind == 0 ? bits[2] : number_bits(type, -number_value(type, bits[2]));
    } else if (kind == 2) {
        bits[2] = number_bits(type, odd[random_below(random, 5)]);
        bits[3] = number_bits(type, odd[random_below(random, 5)]);
    }
}

static void run_written(case_run *run, const void *parameters)
{
    const written *tested = parameters;
    const uint32_t size = hal_type_size(tested->type), group = ir_group_of(run);
    case_claim_arithmetic(run, tested->type);
    uint8_t *x = case_allocate(run, 4 * COUNT, size), *expected = case_allocate(run, COUNT, size);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t bits[4];
        term terms[4];
        fill_operands(&random, tested->type, bits);
        for (uint32_t k = 0; k < 4; k++) {
            number_store(tested->type, x, k * COUNT + i, bits[k]);
            terms[k] = (term){tested->type, NULL, bits[k]};
        }
        number_store(tested->type, expected, i, tested->form->compute(terms).value);
    }
    const red_zone zones[2] = {zone_create(run, 4ull * COUNT * size, x),
                               zone_create(run, (uint64_t)COUNT * size, NULL)};
    hal_ir_builder *b = ir_begin(run, "as_written");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", tested->type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_u32(b, COUNT));
    term terms[4];
    for (uint32_t k = 0; k < 4; k++) {
        terms[k] =
            (term){tested->type, b, hal_ir_load_wide(b, in, i, (int32_t)(k * COUNT), 1, guard)};
    }
    hal_ir_store_wide(b, out, i, 0, guard, (hal_ir_value)tested->form->compute(terms).value);
    ir_run(run, b, (COUNT + group - 1) / group, zones, 2, NULL, 0);
    ir_check(run, &zones[1], tested->type, expected, COUNT, "result");
}

/* sum = sum + x[k] * y[k] in a loop, as products of matrices have it. */
static void run_loop(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const uint32_t size = hal_type_size(type), group = ir_group_of(run);
    case_claim_arithmetic(run, type);
    uint8_t *x = case_allocate(run, group + TURNS, size),
            *expected = case_allocate(run, group, size);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < group + TURNS; i++) {
        number_store(type, x, i, number_bits(type, random_between(&random, -2.0, 2.0)));
    }
    for (uint32_t i = 0; i < group; i++) {
        uint64_t sum = number_bits(type, 0.0);
        for (uint32_t k = 0; k < TURNS; k++) {
            const uint64_t factors[3] = {number_load(type, x, i), number_load(type, x, i + k), 0};
            const uint64_t terms[3] = {sum, ir_evaluate(HAL_IR_MUL, type, factors), 0};
            sum = ir_evaluate(HAL_IR_ADD, type, terms);
        }
        number_store(type, expected, i, sum);
    }
    const red_zone zones[2] = {zone_create(run, (uint64_t)(group + TURNS) * size, x),
                               zone_create(run, (uint64_t)group * size, NULL)};
    hal_ir_builder *b = ir_begin(run, "as_written");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value sum = hal_ir_var(b, hal_ir_number(b, type, 0.0));
    const hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, TURNS), hal_ir_u32(b, 1));
    const hal_ir_value product =
        hal_ir_mul(b, hal_ir_load(b, in, i), hal_ir_load(b, in, hal_ir_add(b, i, k)));
    hal_ir_set(b, sum, hal_ir_add(b, hal_ir_get(b, sum), product));
    hal_ir_end(b);
    hal_ir_store(b, out, i, hal_ir_get(b, sum));
    ir_run(run, b, 1, zones, 2, NULL, 0);
    ir_check(run, &zones[1], type, expected, group, "sum");
}

static void add_forms(case_list *list, hal_type type, const form *added, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const written tested = {type, &added[i]};
        case_add(list, run_written, &tested, sizeof tested, "ir/as_written(type=%s,form=%s)",
                 hal_type_name(type), added[i].name);
    }
}

void cases_ir_as_written(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64},
                          integers[] = {HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I64, HAL_TYPE_U64};
    for (int i = 0; i < 2; i++) {
        add_forms(list, types[i], forms, sizeof forms / sizeof *forms);
        case_add(list, run_loop, &types[i], sizeof types[i], "ir/as_written(type=%s,form=loop)",
                 hal_type_name(types[i]));
    }
    for (int i = 0; i < 4; i++) {
        add_forms(list, integers[i], integer_forms, sizeof integer_forms / sizeof *integer_forms);
    }
}
