/* Transcendental functions in lane programs: includes hal/ir_math.h with macros that append
 * operations. Operands for which a function has a rare path are done again by the interpreter's
 * step, all lanes of the vector at once. */
#include "jit/program/program.h"

#include <string.h>

static uint64_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static hal_type type_of(const jit_program *m, jit_value a)
{
    return m->failed ? (hal_type)HAL_TYPE_F32 : m->values[a].type;
}

static jit_value value_unary(jit_program *m, uint32_t opcode, jit_value a)
{
    return jit_operation(m, opcode, type_of(m, a), type_of(m, a), a, JIT_NONE, JIT_NONE);
}

static jit_value value_binary(jit_program *m, uint32_t opcode, jit_value a, jit_value b)
{
    return jit_operation(m, opcode, type_of(m, a), type_of(m, a), a, b, JIT_NONE);
}

static jit_value value_ternary(jit_program *m, uint32_t opcode, jit_value a, jit_value b,
                               jit_value c)
{
    return jit_operation(m, opcode, type_of(m, b), type_of(m, b), a, b, c);
}

static jit_value value_compare(jit_program *m, uint32_t opcode, jit_value a, jit_value b)
{
    return jit_operation(m, opcode, type_of(m, a), HAL_TYPE_BOOL, a, b, JIT_NONE);
}

static jit_value value_convert(jit_program *m, uint32_t opcode, hal_type type, jit_value a)
{
    return jit_operation(m, opcode, type_of(m, a), type, a, JIT_NONE, JIT_NONE);
}

static jit_value value_again(jit_program *m, jit_value result, jit_value condition)
{
    const jit_value d = jit_operation(m, JIT_AGAIN, type_of(m, result), type_of(m, result), result,
                                      condition, m->x);
    jit_last(m)->a[3] = m->y;
    jit_last(m)->aux = m->function;
    return d;
}

/* A value that is `usual` where no lane fulfils a condition, and else what choice_end is given,
 * which is computed in between. */
static jit_value choice_begin(jit_program *m, jit_value condition, jit_value usual)
{
    const hal_type type = type_of(m, usual), none = HAL_TYPE_NONE;
    const jit_value d = jit_operation(m, JIT_DECLARE, type, type, JIT_NONE, JIT_NONE, JIT_NONE);
    jit_operation(m, JIT_CHOICE, HAL_TYPE_BOOL, none, condition, JIT_NONE, JIT_NONE);
    jit_operation(m, JIT_ASSIGN, type, none, d, usual, JIT_NONE);
    jit_operation(m, JIT_OTHERWISE, type, none, JIT_NONE, JIT_NONE, JIT_NONE);
    return d;
}

static jit_value choice_end(jit_program *m, jit_value d, jit_value other)
{
    const hal_type type = type_of(m, d), none = HAL_TYPE_NONE;
    jit_operation(m, JIT_ASSIGN, type, none, d, other, JIT_NONE);
    jit_operation(m, JIT_JOIN, type, none, JIT_NONE, JIT_NONE, JIT_NONE);
    return jit_operation(m, JIT_MOVE, type, type, d, JIT_NONE, JIT_NONE);
}

#define MATH_CONTEXT jit_program *m
#define MATH_PASS m
#define MATH_BOOL jit_value
#define MATH_F32 jit_value
#define MATH_I32 jit_value
#define MATH_U32 jit_value
#define MATH_F64 jit_value
#define MATH_I64 jit_value
#define MATH_U64 jit_value

#define MATH_CONST_F32(c) jit_constant(m, HAL_TYPE_F32, f32_bits(c))
#define MATH_CONST_I32(c) jit_constant(m, HAL_TYPE_I32, (uint32_t)(int32_t)(c))
#define MATH_CONST_U32(c) jit_constant(m, HAL_TYPE_U32, (uint32_t)(c))
#define MATH_CONST_F64(c) jit_constant(m, HAL_TYPE_F64, f64_bits(c))
#define MATH_CONST_I64(c) jit_constant(m, HAL_TYPE_I64, (uint64_t)(int64_t)(c))
#define MATH_CONST_U64(c) jit_constant(m, HAL_TYPE_U64, (uint64_t)(c))

#define MATH_ADD(a, b) value_binary(m, HAL_IR_ADD, a, b)
#define MATH_SUB(a, b) value_binary(m, HAL_IR_SUB, a, b)
#define MATH_MUL(a, b) value_binary(m, HAL_IR_MUL, a, b)
#define MATH_DIV(a, b) value_binary(m, HAL_IR_DIV, a, b)
#define MATH_NEG(a) value_unary(m, HAL_IR_NEG, a)
#define MATH_ABS_F32(a) value_unary(m, HAL_IR_ABS, a)
#define MATH_ABS_F64(a) value_unary(m, HAL_IR_ABS, a)
#define MATH_SQRT_F32(a) value_unary(m, HAL_IR_SQRT, a)
#define MATH_SQRT_F64(a) value_unary(m, HAL_IR_SQRT, a)
#define MATH_RINT_F32(a) value_unary(m, HAL_IR_RINT, a)
#define MATH_RINT_F64(a) value_unary(m, HAL_IR_RINT, a)
#define MATH_FMA_F32(a, b, c) value_ternary(m, HAL_IR_FMA, a, b, c)
#define MATH_FMA_F64(a, b, c) value_ternary(m, HAL_IR_FMA, a, b, c)

#define MATH_AND(a, b) value_binary(m, HAL_IR_AND, a, b)
#define MATH_OR(a, b) value_binary(m, HAL_IR_OR, a, b)
#define MATH_XOR(a, b) value_binary(m, HAL_IR_XOR, a, b)
#define MATH_SHL_U32(a, n) value_binary(m, HAL_IR_SHL, a, jit_constant(m, HAL_TYPE_U32, n))
#define MATH_SHR_U32(a, n) value_binary(m, HAL_IR_SHR, a, jit_constant(m, HAL_TYPE_U32, n))
#define MATH_SHR_I32(a, n) value_binary(m, HAL_IR_SHR, a, jit_constant(m, HAL_TYPE_I32, n))
#define MATH_SHL_U64(a, n) value_binary(m, HAL_IR_SHL, a, jit_constant(m, HAL_TYPE_U64, n))
#define MATH_SHR_U64(a, n) value_binary(m, HAL_IR_SHR, a, jit_constant(m, HAL_TYPE_U64, n))
#define MATH_SHR_I64(a, n) value_binary(m, HAL_IR_SHR, a, jit_constant(m, HAL_TYPE_I64, n))
#define MATH_SHL_BY_U32(a, n) value_binary(m, HAL_IR_SHL, a, n)
#define MATH_SHR_BY_U32(a, n) value_binary(m, HAL_IR_SHR, a, n)
#define MATH_SHL_BY_U64(a, n) value_binary(m, HAL_IR_SHL, a, n)
#define MATH_SHR_BY_U64(a, n) value_binary(m, HAL_IR_SHR, a, n)
#define MATH_MULHI_U32(a, b) value_binary(m, HAL_IR_MULHI, a, b)
#define MATH_MULHI_U64(a, b) value_binary(m, HAL_IR_MULHI, a, b)

#define MATH_LT(a, b) value_compare(m, HAL_IR_LT, a, b)
#define MATH_LE(a, b) value_compare(m, HAL_IR_LE, a, b)
#define MATH_GT(a, b) value_compare(m, HAL_IR_LT, b, a)
#define MATH_GE(a, b) value_compare(m, HAL_IR_LE, b, a)
#define MATH_EQ(a, b) value_compare(m, HAL_IR_EQ, a, b)
#define MATH_NE(a, b) value_compare(m, HAL_IR_NE, a, b)
#define MATH_BOTH(a, b) value_binary(m, HAL_IR_AND, a, b)
#define MATH_EITHER(a, b) value_binary(m, HAL_IR_OR, a, b)
#define MATH_NOT(a) value_unary(m, HAL_IR_NOT, a)
#define MATH_SELECT(c, a, b) value_ternary(m, HAL_IR_SELECT, c, a, b)

#define MATH_I32_FROM_U32(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_I32, a)
#define MATH_U32_FROM_I32(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_U32, a)
#define MATH_I64_FROM_U64(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_I64, a)
#define MATH_U64_FROM_I64(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_U64, a)
#define MATH_U32_FROM_U64(a) value_convert(m, HAL_IR_CAST, HAL_TYPE_U32, a)
#define MATH_U64_FROM_U32(a) value_convert(m, HAL_IR_CAST, HAL_TYPE_U64, a)
#define MATH_F32_FROM_I32(a) value_convert(m, HAL_IR_CAST, HAL_TYPE_F32, a)
#define MATH_BITS_F32(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_U32, a)
#define MATH_FLOAT_F32(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_F32, a)
#define MATH_BITS_F64(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_U64, a)
#define MATH_FLOAT_F64(a) value_convert(m, HAL_IR_BITCAST, HAL_TYPE_F64, a)

/* Of f32: a branch around the path, if no lane needs it. */
#define MATH_RARE_INLINE(result, condition, other)                                          \
    do {                                                                                    \
        const jit_value usual = (result), wanted = (condition);                             \
        const jit_value d = choice_begin(m, wanted, usual);                                 \
        const jit_value again = (other);                                                    \
        (result) = choice_end(m, d, value_ternary(m, HAL_IR_SELECT, wanted, again, usual)); \
    } while (0)
#define MATH_RARE_F32(result, condition, function, x) \
    MATH_RARE_INLINE(result, condition, function(m, x))
#define MATH_RARE2_F32(result, condition, function, x, y) \
    MATH_RARE_INLINE(result, condition, function(m, x, y))
/* Of f64: the paths have operations without instructions. They are the last thing that a function
 * does, so doing all of it again has their result. */
#define MATH_RARE_F64(result, condition, function, x) (result) = value_again(m, result, condition)
#define MATH_RARE2_F64(result, condition, function, x, y) \
    (result) = value_again(m, result, condition)

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* the rare paths */
#endif
#include <hal/ir_math.h>

static const struct {
    jit_value (*f32)(jit_program *m, jit_value x);
    jit_value (*f64)(jit_program *m, jit_value x);
} functions[HAL_IR_MATH_COUNT] = MATH_UNARY_TABLE;

/* Functions that have a part for operands whose magnitudes are below a limit. */
static const struct {
    jit_value (*near)(jit_program *m, jit_value x);
    float limit;
} near_functions[HAL_IR_MATH_COUNT] = {
    [HAL_IR_SIN - HAL_IR_MATH_FIRST] = {math_sin_f32_near, MATH_NEAR_ANGLES_F32},
    [HAL_IR_COS - HAL_IR_MATH_FIRST] = {math_cos_f32_near, MATH_NEAR_ANGLES_F32},
    [HAL_IR_TAN - HAL_IR_MATH_FIRST] = {math_tan_f32_near, MATH_NEAR_ANGLES_F32},
    [HAL_IR_ATAN - HAL_IR_MATH_FIRST] = {math_atan_f32_near, 1.0f},
    [HAL_IR_TANH - HAL_IR_MATH_FIRST] = {math_tanh_f32_near, 1.0f},
    [HAL_IR_ERF - HAL_IR_MATH_FIRST] = {math_erf_f32_near, 1.0f}};

/* The short part where all lanes are near 0. */
static jit_value value_near(jit_program *m, uint32_t index, jit_value x)
{
    const hal_type f32 = HAL_TYPE_F32, none = HAL_TYPE_NONE;
    const jit_value limit = jit_constant(m, f32, f32_bits(near_functions[index].limit));
    const jit_value size = value_unary(m, HAL_IR_ABS, x);
    const jit_value far = value_unary(m, HAL_IR_NOT, value_compare(m, HAL_IR_LT, size, limit));
    const jit_value d = jit_operation(m, JIT_DECLARE, f32, f32, JIT_NONE, JIT_NONE, JIT_NONE);
    jit_operation(m, JIT_CHOICE, HAL_TYPE_BOOL, none, far, JIT_NONE, JIT_NONE);
    const jit_value near = near_functions[index].near(m, x);
    jit_operation(m, JIT_ASSIGN, f32, none, d, near, JIT_NONE);
    jit_operation(m, JIT_OTHERWISE, f32, none, JIT_NONE, JIT_NONE, JIT_NONE);
    const jit_value any = functions[index].f32(m, x);
    jit_operation(m, JIT_ASSIGN, f32, none, d, any, JIT_NONE);
    jit_operation(m, JIT_JOIN, f32, none, JIT_NONE, JIT_NONE, JIT_NONE);
    return jit_operation(m, JIT_MOVE, f32, f32, d, JIT_NONE, JIT_NONE);
}

jit_value jit_math(jit_program *program, uint32_t opcode, hal_type type, jit_value x, jit_value y,
                   uint32_t function)
{
    const bool is_f64 = type == HAL_TYPE_F64;
    program->function = function;
    program->x = x;
    program->y = y;
    if (opcode == HAL_IR_POW) {
        return is_f64 ? math_pow_f64(program, x, y) : math_pow_f32(program, x, y);
    }
    const uint32_t index = hal_ir_math_index(opcode);
    if (!is_f64 && near_functions[index].near) {
        return value_near(program, index, x);
    }
    return is_f64 ? functions[index].f64(program, x) : functions[index].f32(program, x);
}
