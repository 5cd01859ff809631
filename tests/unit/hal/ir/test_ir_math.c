/* The transcendental functions as IR: expanded in a kernel, where rare inputs take a branch, and in
 * a fragment, where they are selected, they have the bits of the same polynomials as plain C. */
#include "ir_fixture.h"
#include <kit/interpret.h>
#include <math.h>

#include "math/scalar_reader.h"
#include "ir/math.h"

enum { GROUP = 1000, GROUPS = 4, SAMPLES = GROUP * GROUPS };

/* Functions of one operand as plain C; the other is POW. */
static const struct {
    float (*f32)(int m, float x);
    double (*f64)(int m, double x);
} functions[HAL_IR_MATH_COUNT] = MATH_UNARY_TABLE;

/* Any bit pattern, and more often a number of ordinary size. */
static uint64_t random_input(uint64_t number, hal_type type)
{
    uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    double ordinary = (double)(int64_t)z * 0x1p-63 * exp2((double)(number % 40) - 20.0);
    if (type == HAL_TYPE_F32) {
        return number % 3 == 0 ? z >> 32 : math_bits_f32((float)ordinary);
    }
    return number % 3 == 0 ? z : math_bits_f64(ordinary);
}

static uint64_t plain_result(uint32_t opcode, hal_type type, uint64_t x, uint64_t y)
{
    const uint32_t index = opcode - HAL_IR_MATH_FIRST;
    if (type == HAL_TYPE_F32) {
        const float x32 = math_float_f32((uint32_t)x), y32 = math_float_f32((uint32_t)y);
        return math_bits_f32(opcode == HAL_IR_POW ? math_pow_f32(0, x32, y32)
                                                    : functions[index].f32(0, x32));
    }
    const double x64 = math_float_f64(x), y64 = math_float_f64(y);
    return math_bits_f64(opcode == HAL_IR_POW ? math_pow_f64(0, x64, y64)
                                                : functions[index].f64(0, x64));
}

static void check_result(uint32_t opcode, hal_type type, uint64_t x, uint64_t y, uint64_t result)
{
    const uint64_t expected = plain_result(opcode, type, x, y);
    const uint64_t infinity = type == HAL_TYPE_F32 ? 0x7f800000 : UINT64_C(0x7ff0000000000000);
    const uint64_t magnitude = infinity | (infinity - 1);
    if (result != expected &&
        !((result & magnitude) > infinity && (expected & magnitude) > infinity)) {
        fail_msg("%s of %s %#llx, %#llx is %#llx, in plain C %#llx", hal_ir_opcode_name(opcode),
                 hal_type_name(type), (unsigned long long)x, (unsigned long long)y,
                 (unsigned long long)result, (unsigned long long)expected);
    }
}

static void check_in_fragment(uint32_t opcode, hal_type type)
{
    hal_ir_builder *b = ir_fragment_begin();
    const hal_ir_value x = hal_ir_input(b, 0, type), y = hal_ir_input(b, 1, type);
    hal_ir_output(b, 0, hal_ir_expand_math(b, opcode, type, x, y));
    hal_ir_kernel *fragment = ir_finish(b);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const uint64_t in[2] = {random_input(2 * i, type), random_input(2 * i + 1, type)};
        uint64_t out = 0;
        assert_ok(kit_evaluate(fragment, in, &out));
        check_result(opcode, type, in[0], in[1], out);
    }
    hal_ir_kernel_destroy(fragment);
}

static void check_in_kernel(uint32_t opcode, hal_type type)
{
    static uint64_t data[3][SAMPLES];
    const uint32_t bytes = hal_type_size(type);
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_group_size(b, GROUP, 1, 1);
    const hal_ir_memory_id in_x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id in_y = hal_ir_binding(b, "y", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value x = hal_ir_load(b, in_x, i), y = hal_ir_load(b, in_y, i);
    hal_ir_store(b, out, i, hal_ir_expand_math(b, opcode, type, x, y));
    hal_ir_kernel *kernel = ir_finish(b);
    kit_span spans[3];
    for (uint32_t k = 0; k < 3; k++) {
        spans[k] = (kit_span){data[k], (uint64_t)SAMPLES * bytes};
    }
    for (uint64_t n = 0; n < SAMPLES; n++) {
        for (uint32_t k = 0; k < 2; k++) {
            const uint64_t input = random_input(2 * n + k, type);
            memcpy((char *)data[k] + n * bytes, &input, bytes);
        }
    }
    kit_problem problem;
    const kit_dispatch dispatch = {.kernel = kernel, .grid = {GROUPS, 1, 1}, .bindings = spans};
    if (kit_interpret(&dispatch, &problem) != HAL_OK) {
        fail_msg("%s", problem.text);
    }
    for (uint64_t n = 0; n < SAMPLES; n++) {
        uint64_t result = 0;
        memcpy(&result, (char *)data[2] + n * bytes, bytes);
        check_result(opcode, type, random_input(2 * n, type), random_input(2 * n + 1, type),
                     result);
    }
    hal_ir_kernel_destroy(kernel);
}

TEST(expansions_have_the_bits_of_plain_c)
{
    for (uint32_t opcode = HAL_IR_MATH_FIRST; opcode <= HAL_IR_MATH_LAST; opcode++) {
        check_in_fragment(opcode, HAL_TYPE_F32);
        check_in_fragment(opcode, HAL_TYPE_F64);
        check_in_kernel(opcode, HAL_TYPE_F32);
        check_in_kernel(opcode, HAL_TYPE_F64);
    }
}

TEST(only_floats_are_expanded)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_value x = hal_ir_i32(b, 1);
    assert_int_equal(hal_ir_expand_math(b, HAL_IR_EXP, HAL_TYPE_I32, x, HAL_IR_NONE), HAL_IR_NONE);
    assert_int_equal(hal_ir_builder_get_status(b), HAL_ERROR_INVALID_IR);
    hal_ir_builder_destroy(b);
}

UNIT_MAIN(NULL, NULL)
