/* test_ir_math.c: the transcendental functions as IR. Each is expanded in a kernel, where rare
 * inputs take a branch, and in a fragment, where they are selected; a small evaluator runs the
 * records, and gives the bits that the same polynomials give as plain C. */

#include "unit.h"
#include <hal/ir_build.h>
#include <math.h>
#include <string.h>

#include "scalar_reader.h"
#include "ir/math.h"

#define MAX_RECORDS 2048

typedef struct machine {
    const hal_ir_kernel *kernel;
    uint64_t values[MAX_RECORDS]; /* a VAR's is its present value */
    uint64_t inputs[2];
    uint64_t output;
} machine;

/* Those of one operand as plain C; the other is POW. */
static const struct {
    float (*f32)(int m, float x);
    double (*f64)(int m, double x);
} functions[HAL_IR_MATH_COUNT] = MATH_UNARY_TABLE;

static hal_ir_kernel *expand(uint32_t opcode, hal_type type, int fragment)
{
    hal_ir_builder *b;
    hal_ir_kernel *kernel = NULL;
    if (fragment) {
        assert_int_equal(hal_ir_builder_create_fragment("f", &b), HAL_OK);
        hal_ir_value x = hal_ir_input(b, 0, type);
        hal_ir_value y = hal_ir_input(b, 1, type);
        hal_ir_output(b, 0, hal_ir_expand_math(b, opcode, type, x, y));
    } else {
        assert_int_equal(hal_ir_builder_create("k", &b), HAL_OK);
        hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
        hal_ir_value x = hal_ir_scalar_value(b, "x", type);
        hal_ir_value y = hal_ir_scalar_value(b, "y", type);
        hal_ir_value result = hal_ir_expand_math(b, opcode, type, x, y);
        hal_ir_store(b, out, hal_ir_u32(b, 0), result);
    }
    if (hal_ir_builder_finish(b, &kernel) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    hal_ir_builder_destroy(b);
    return kernel;
}

/* Any bit pattern, and more often a number of ordinary size. */
static uint64_t random_input(uint64_t number, hal_type type)
{
    uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    double ordinary = (double)(int64_t)z * 0x1p-63 * exp2((double)(number % 40) - 20.0);
    if (type == HAL_TYPE_F32) {
        return number % 3 == 0 ? z >> 32 : scalar_bits_f32((float)ordinary);
    }
    return number % 3 == 0 ? z : scalar_bits_f64(ordinary);
}

/* The opcodes on floats of a type. */
#define COMPUTE(TYPE, C_TYPE, SUFFIX)                                                 \
static uint64_t compute_##TYPE(const hal_ir_record *r, C_TYPE a, C_TYPE b, C_TYPE c)  \
{                                                                                     \
    switch (r->opcode) {                                                              \
    case HAL_IR_ADD:                                                                  \
        return scalar_bits_##TYPE(a + b);                                             \
    case HAL_IR_SUB:                                                                  \
        return scalar_bits_##TYPE(a - b);                                             \
    case HAL_IR_MUL:                                                                  \
        return scalar_bits_##TYPE(a * b);                                             \
    case HAL_IR_DIV:                                                                  \
        return scalar_bits_##TYPE(a / b);                                             \
    case HAL_IR_NEG:                                                                  \
        return scalar_bits_##TYPE(-a);                                                \
    case HAL_IR_ABS:                                                                  \
        return scalar_bits_##TYPE(fabs##SUFFIX(a));                                   \
    case HAL_IR_SQRT:                                                                 \
        return scalar_bits_##TYPE(sqrt##SUFFIX(a));                                   \
    case HAL_IR_RINT:                                                                 \
        return scalar_bits_##TYPE(rint##SUFFIX(a));                                   \
    case HAL_IR_FMA:                                                                  \
        return scalar_bits_##TYPE(fma##SUFFIX(a, b, c));                              \
    case HAL_IR_EQ:                                                                   \
        return a == b;                                                                \
    case HAL_IR_NE:                                                                   \
        return a != b;                                                                \
    case HAL_IR_LT:                                                                   \
        return a < b;                                                                 \
    case HAL_IR_LE:                                                                   \
        return a <= b;                                                                \
    default:                                                                          \
        fail_msg("the evaluator has no %s of " #TYPE, hal_ir_opcode_name(r->opcode)); \
        return 0;                                                                     \
    }                                                                                 \
}

COMPUTE(f32, float, f)
COMPUTE(f64, double, )

/* Integers and booleans of `bits` bits; the only arithmetic on signed ones is SHR. */
static uint64_t compute_integer(const hal_ir_record *r, hal_type type, unsigned bits, uint64_t a,
                                uint64_t b)
{
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    switch (r->opcode) {
    case HAL_IR_ADD:
        return (a + b) & mask;
    case HAL_IR_SUB:
        return (a - b) & mask;
    case HAL_IR_MUL:
        return (a * b) & mask;
    case HAL_IR_MULHI:
        return bits == 64 ? scalar_mulhi_u64(a, b) : (a * b) >> 32;
    case HAL_IR_AND:
        return a & b;
    case HAL_IR_OR:
        return a | b;
    case HAL_IR_XOR:
        return a ^ b;
    case HAL_IR_NOT:
        return ~a & mask;
    case HAL_IR_SHL:
        return (a << (b & (bits - 1))) & mask;
    case HAL_IR_SHR:
        if (type == HAL_TYPE_I32) {
            return (uint32_t)((int32_t)(uint32_t)a >> (b & 31));
        }
        return a >> (b & (bits - 1));
    case HAL_IR_EQ:
        return a == b;
    case HAL_IR_LT:
        return a < b;
    case HAL_IR_LE:
        return a <= b;
    default:
        fail_msg("the evaluator has no %s of integers", hal_ir_opcode_name(r->opcode));
        return 0;
    }
}

static uint64_t compute(const machine *m, const hal_ir_record *r)
{
    hal_type type = m->kernel->records[r->a].type;
    uint64_t a = m->values[r->a];
    uint64_t b = r->b == HAL_IR_NONE ? 0 : m->values[r->b];
    uint64_t c = r->c == HAL_IR_NONE ? 0 : m->values[r->c];
    if (r->opcode == HAL_IR_BITCAST) {
        return a;
    }
    if (r->opcode == HAL_IR_SELECT) {
        return a ? b : c;
    }
    if (r->opcode == HAL_IR_CAST) {
        assert_true(type == HAL_TYPE_I32 && r->type == HAL_TYPE_F32);
        return scalar_bits_f32((float)(int32_t)(uint32_t)a);
    }
    if (type == HAL_TYPE_F32) {
        return compute_f32(r, scalar_float_f32((uint32_t)a), scalar_float_f32((uint32_t)b),
                           scalar_float_f32((uint32_t)c));
    }
    if (type == HAL_TYPE_F64) {
        return compute_f64(r, scalar_float_f64(a), scalar_float_f64(b), scalar_float_f64(c));
    }
    unsigned bits = type == HAL_TYPE_BOOL ? 1 : 8 * hal_type_size(type);
    return compute_integer(r, type, bits, a, b);
}

/* One work-item. An IF whose condition is false is skipped to its END; there is no ELSE. */
static void run(machine *m)
{
    const hal_ir_record *records = m->kernel->records;
    for (uint32_t i = 0; i < m->kernel->record_count; i++) {
        const hal_ir_record *r = &records[i];
        switch (r->opcode) {
        case HAL_IR_CONSTANT:
            m->values[i] = m->kernel->constants[r->aux];
            break;
        case HAL_IR_SCALAR:
        case HAL_IR_INPUT:
            m->values[i] = m->inputs[r->aux];
            break;
        case HAL_IR_OUTPUT:
            m->output = m->values[r->a];
            break;
        case HAL_IR_STORE:
            m->output = m->values[r->c];
            break;
        case HAL_IR_VAR:
        case HAL_IR_GET:
            m->values[i] = m->values[r->a];
            break;
        case HAL_IR_SET:
            m->values[r->a] = m->values[r->b];
            break;
        case HAL_IR_IF:
            while (!m->values[r->a] && records[i].opcode != HAL_IR_END) {
                i++;
            }
            break;
        case HAL_IR_END:
            break;
        default:
            m->values[i] = compute(m, r);
        }
    }
}

static uint64_t plain_f32(uint32_t opcode, float x, float y)
{
    return scalar_bits_f32(opcode == HAL_IR_POW ? math_pow_f32(0, x, y)
                                                 : functions[opcode - HAL_IR_MATH_FIRST].f32(0, x));
}

static uint64_t plain_f64(uint32_t opcode, double x, double y)
{
    return scalar_bits_f64(opcode == HAL_IR_POW ? math_pow_f64(0, x, y)
                                                 : functions[opcode - HAL_IR_MATH_FIRST].f64(0, x));
}

static void check_opcode(uint32_t opcode, hal_type type, int fragment)
{
    machine m = {.kernel = expand(opcode, type, fragment)};
    assert_true(m.kernel->record_count <= MAX_RECORDS);
    for (uint64_t i = 0; i < 4000; i++) {
        m.inputs[0] = random_input(2 * i, type);
        m.inputs[1] = random_input(2 * i + 1, type);
        run(&m);
        uint64_t expected;
        if (type == HAL_TYPE_F32) {
            expected = plain_f32(opcode, scalar_float_f32((uint32_t)m.inputs[0]),
                                 scalar_float_f32((uint32_t)m.inputs[1]));
        } else {
            expected =
                plain_f64(opcode, scalar_float_f64(m.inputs[0]), scalar_float_f64(m.inputs[1]));
        }
        uint64_t infinity = type == HAL_TYPE_F32 ? 0x7f800000 : UINT64_C(0x7ff0000000000000);
        uint64_t magnitude = infinity | (infinity - 1);
        int both_nan = (m.output & magnitude) > infinity && (expected & magnitude) > infinity;
        if (m.output != expected && !both_nan) {
            fail_msg("%s of %s %#llx, %#llx in a %s is %#llx, in plain C %#llx",
                     hal_ir_opcode_name(opcode), hal_type_name(type),
                     (unsigned long long)m.inputs[0], (unsigned long long)m.inputs[1],
                     fragment ? "fragment" : "kernel", (unsigned long long)m.output,
                     (unsigned long long)expected);
        }
    }
    hal_ir_kernel_destroy((hal_ir_kernel *)m.kernel);
}

static void test_same_bits_in_kernels(void **state)
{
    for (uint32_t opcode = HAL_IR_MATH_FIRST; opcode <= HAL_IR_MATH_LAST; opcode++) {
        check_opcode(opcode, HAL_TYPE_F32, 0);
        check_opcode(opcode, HAL_TYPE_F64, 0);
    }
}

static void test_same_bits_in_fragments(void **state)
{
    for (uint32_t opcode = HAL_IR_MATH_FIRST; opcode <= HAL_IR_MATH_LAST; opcode++) {
        check_opcode(opcode, HAL_TYPE_F32, 1);
        check_opcode(opcode, HAL_TYPE_F64, 1);
    }
}

static void test_unknown_type(void **state)
{
    hal_ir_builder *b;
    assert_int_equal(hal_ir_builder_create("k", &b), HAL_OK);
    hal_ir_value x = hal_ir_i32(b, 1);
    assert_int_equal(hal_ir_expand_math(b, HAL_IR_EXP, HAL_TYPE_I32, x, HAL_IR_NONE), HAL_IR_NONE);
    assert_int_equal(hal_ir_builder_get_status(b), HAL_ERROR_INVALID_IR);
    hal_ir_builder_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_in_kernels),
        cmocka_unit_test(test_same_bits_in_fragments),
        cmocka_unit_test(test_unknown_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
