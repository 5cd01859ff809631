/* The bits of exp, log, sin and their kin are part of the plugin interface: a plugin that was built
 * long ago and claims one gives the bits of its own copy of hal/ir_math.h, so the polynomials never
 * change within a major version. Here are sums over what they gave at interface 1.0. */
#include "ir_fixture.h"
#include <kit/interpret.h>

#define SAMPLES 40000u

typedef struct frozen {
    uint32_t opcode;
    const char *name;
    uint64_t f32, f64;
} frozen;

static const frozen functions[] = {
    {HAL_IR_EXP, "exp", UINT64_C(0x22181f3548da1405), UINT64_C(0x7290025b35e32146)},
    {HAL_IR_EXP2, "exp2", UINT64_C(0x4425294977b7766d), UINT64_C(0x000ef420154488cb)},
    {HAL_IR_EXPM1, "expm1", UINT64_C(0xeaa00cfaaea41a9f), UINT64_C(0x274389e39a68db6a)},
    {HAL_IR_LOG, "log", UINT64_C(0x6209d3f0fba4dd12), UINT64_C(0xeeb66d48e3dd81c7)},
    {HAL_IR_LOG2, "log2", UINT64_C(0x1130dbea86da0b04), UINT64_C(0xd4718e30dc395d10)},
    {HAL_IR_LOG1P, "log1p", UINT64_C(0x971c938ba7774945), UINT64_C(0x37d14b6ec1a37169)},
    {HAL_IR_SIN, "sin", UINT64_C(0xabee9bb387036974), UINT64_C(0x247ec0662f539a35)},
    {HAL_IR_COS, "cos", UINT64_C(0x7c821b3ff3c1c896), UINT64_C(0x570736d5cf8e8cfa)},
    {HAL_IR_TAN, "tan", UINT64_C(0xda90714a545e8aa1), UINT64_C(0xb3984687a42d0736)},
    {HAL_IR_ATAN, "atan", UINT64_C(0x29046e199df80af8), UINT64_C(0x09c2c30d289adecc)},
    {HAL_IR_TANH, "tanh", UINT64_C(0x37e96bbda78eb771), UINT64_C(0xefdb62cc6a164896)},
    {HAL_IR_ERF, "erf", UINT64_C(0xf5b374cb5f2111de), UINT64_C(0x114d68c23a131184)},
    {HAL_IR_RSQRT, "rsqrt", UINT64_C(0xe176de761708e69e), UINT64_C(0x069277ec44a5b4ec)},
    {HAL_IR_POW, "pow", UINT64_C(0x382ae5e49ec5fd85), UINT64_C(0x1503c2db416ec2a4)},
};

static hal_ir_kernel *fragment_of(uint32_t opcode, hal_type type)
{
    hal_ir_builder *b = ir_fragment_begin();
    const hal_ir_value x = hal_ir_input(b, 0, type);
    const hal_ir_value y = opcode == HAL_IR_POW ? hal_ir_input(b, 1, type) : HAL_IR_NONE;
    hal_ir_output(b, 0, hal_ir_math(b, opcode, x, y, 0));
    return ir_finish(b);
}

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t x = *state ^ *state >> 29;
    return x * UINT64_C(0x9e3779b97f4a7c15) ^ x >> 31;
}

/* Half of the inputs are of any size and sign, half of 2^-8 to 2^8, where most is decided. */
static uint64_t sample(uint64_t *state, hal_type type, uint32_t number)
{
    const uint64_t bits = next(state);
    const uint64_t exponent = 119 + (bits >> 40) % 16;
    if (type == HAL_TYPE_F64) {
        return number % 2 ? bits : (bits & UINT64_C(0x800fffffffffffff)) | (exponent + 896) << 52;
    }
    return number % 2 ? bits & UINT32_MAX : (bits & 0x807fffff) | exponent << 23;
}

/* Which NaN an operation gives is not said. */
static uint64_t without_nan(uint64_t bits, hal_type type)
{
    const uint64_t sign = UINT64_C(1) << (type == HAL_TYPE_F64 ? 63 : 31);
    const uint64_t infinity =
        type == HAL_TYPE_F64 ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7f800000);
    return (bits & ~sign) > infinity ? UINT64_MAX : bits;
}

static uint64_t sum_of(uint32_t opcode, hal_type type)
{
    hal_ir_kernel *fragment = fragment_of(opcode, type);
    uint64_t state = opcode;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const uint64_t x = sample(&state, type, i);
        const uint64_t inputs[2] = {x, sample(&state, type, i / 2)};
        uint64_t output = 0;
        assert_ok(kit_evaluate(fragment, inputs, &output));
        sum = (sum ^ without_nan(output, type)) * UINT64_C(0x100000001b3);
        sum ^= sum >> 32;
    }
    hal_ir_kernel_destroy(fragment);
    return sum;
}

TEST(bits_are_those_of_interface_1)
{
    assert_int_equal(sizeof functions / sizeof *functions, HAL_IR_MATH_COUNT);
    uint32_t changed = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const frozen *f = &functions[i];
        const uint64_t f32 = sum_of(f->opcode, HAL_TYPE_F32);
        const uint64_t f64 = sum_of(f->opcode, HAL_TYPE_F64);
        if (f32 != f->f32 || f64 != f->f64) {
            print_error("%s: UINT64_C(0x%016llx), UINT64_C(0x%016llx)\n", f->name,
                        (unsigned long long)f32, (unsigned long long)f64);
            changed++;
        }
    }
    if (changed) {
        fail_msg("%u functions give other bits than at interface 1.0", changed);
    }
}

UNIT_MAIN(NULL, NULL)
