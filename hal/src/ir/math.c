/* Expands transcendental functions: includes hal/ir_math.h with macros that call the builder, so
 * each C variable there is an SSA value. */
#include "math.h"
#include "internal.h"

static bool is_fragment(const hal_ir_builder *builder)
{
    return (hal_ir_builder_view(builder)->flags & HAL_IR_FRAGMENT) != 0;
}

/* clang-format off */
#define MATH_CONTEXT hal_ir_builder *m
#define MATH_PASS    m
#define MATH_BOOL    hal_ir_value
#define MATH_F32     hal_ir_value
#define MATH_I32     hal_ir_value
#define MATH_U32     hal_ir_value
#define MATH_F64     hal_ir_value
#define MATH_I64     hal_ir_value
#define MATH_U64     hal_ir_value

#define MATH_CONST_F32(c) hal_ir_f32(m, c)
#define MATH_CONST_I32(c) hal_ir_i32(m, (int32_t)(c))
#define MATH_CONST_U32(c) hal_ir_u32(m, (uint32_t)(c))
#define MATH_CONST_F64(c) hal_ir_f64(m, c)
#define MATH_CONST_I64(c) hal_ir_i64(m, (int64_t)(c))
#define MATH_CONST_U64(c) hal_ir_u64(m, (uint64_t)(c))

#define MATH_ADD(a, b)        hal_ir_add(m, a, b)
#define MATH_SUB(a, b)        hal_ir_sub(m, a, b)
#define MATH_MUL(a, b)        hal_ir_mul(m, a, b)
#define MATH_DIV(a, b)        hal_ir_div(m, a, b)
#define MATH_NEG(a)           hal_ir_neg(m, a)
#define MATH_ABS_F32(a)       hal_ir_abs(m, a)
#define MATH_ABS_F64(a)       hal_ir_abs(m, a)
#define MATH_SQRT_F32(a)      hal_ir_sqrt(m, a)
#define MATH_SQRT_F64(a)      hal_ir_sqrt(m, a)
#define MATH_RINT_F32(a)      hal_ir_rint(m, a)
#define MATH_RINT_F64(a)      hal_ir_rint(m, a)
#define MATH_FMA_F32(a, b, c) hal_ir_fma(m, a, b, c)
#define MATH_FMA_F64(a, b, c) hal_ir_fma(m, a, b, c)

#define MATH_AND(a, b)        hal_ir_and(m, a, b)
#define MATH_OR(a, b)         hal_ir_or(m, a, b)
#define MATH_XOR(a, b)        hal_ir_xor(m, a, b)
#define MATH_SHL_U32(a, n)    hal_ir_shl(m, a, hal_ir_u32(m, n))
#define MATH_SHR_U32(a, n)    hal_ir_shr(m, a, hal_ir_u32(m, n))
#define MATH_SHR_I32(a, n)    hal_ir_shr(m, a, hal_ir_i32(m, n))
#define MATH_SHL_U64(a, n)    hal_ir_shl(m, a, hal_ir_u64(m, n))
#define MATH_SHR_U64(a, n)    hal_ir_shr(m, a, hal_ir_u64(m, n))
#define MATH_SHR_I64(a, n)    hal_ir_shr(m, a, hal_ir_i64(m, n))
#define MATH_SHL_BY_U32(a, n) hal_ir_shl(m, a, n)
#define MATH_SHR_BY_U32(a, n) hal_ir_shr(m, a, n)
#define MATH_SHL_BY_U64(a, n) hal_ir_shl(m, a, n)
#define MATH_SHR_BY_U64(a, n) hal_ir_shr(m, a, n)
#define MATH_MULHI_U32(a, b)  hal_ir_mulhi(m, a, b)
#define MATH_MULHI_U64(a, b)  hal_ir_mulhi(m, a, b)

#define MATH_LT(a, b)        hal_ir_lt(m, a, b)
#define MATH_LE(a, b)        hal_ir_le(m, a, b)
#define MATH_GT(a, b)        hal_ir_gt(m, a, b)
#define MATH_GE(a, b)        hal_ir_ge(m, a, b)
#define MATH_EQ(a, b)        hal_ir_eq(m, a, b)
#define MATH_NE(a, b)        hal_ir_ne(m, a, b)
#define MATH_BOTH(a, b)      hal_ir_and(m, a, b)
#define MATH_EITHER(a, b)    hal_ir_or(m, a, b)
#define MATH_NOT(a)          hal_ir_not(m, a)
#define MATH_SELECT(c, a, b) hal_ir_select(m, c, a, b)

#define MATH_I32_FROM_U32(a) hal_ir_bitcast(m, HAL_TYPE_I32, a)
#define MATH_U32_FROM_I32(a) hal_ir_bitcast(m, HAL_TYPE_U32, a)
#define MATH_I64_FROM_U64(a) hal_ir_bitcast(m, HAL_TYPE_I64, a)
#define MATH_U64_FROM_I64(a) hal_ir_bitcast(m, HAL_TYPE_U64, a)
#define MATH_U32_FROM_U64(a) hal_ir_cast(m, HAL_TYPE_U32, a)
#define MATH_U64_FROM_U32(a) hal_ir_cast(m, HAL_TYPE_U64, a)
#define MATH_F32_FROM_I32(a) hal_ir_cast(m, HAL_TYPE_F32, a)
#define MATH_BITS_F32(a)     hal_ir_bitcast(m, HAL_TYPE_U32, a)
#define MATH_FLOAT_F32(a)    hal_ir_bitcast(m, HAL_TYPE_F32, a)
#define MATH_BITS_F64(a)     hal_ir_bitcast(m, HAL_TYPE_U64, a)
#define MATH_FLOAT_F64(a)    hal_ir_bitcast(m, HAL_TYPE_F64, a)

#define MATH_RARE(result, condition, expression)                                                   \
    do {                                                                                           \
        if (is_fragment(m)) {                                                                      \
            hal_ir_value other = (expression);                                                     \
            (result) = hal_ir_select(m, condition, other, result);                                 \
        } else {                                                                                   \
            hal_ir_value variable = hal_ir_var(m, result);                                         \
            hal_ir_if(m, condition);                                                               \
            hal_ir_set(m, variable, expression);                                                   \
            hal_ir_end(m);                                                                         \
            (result) = hal_ir_get(m, variable);                                                    \
        }                                                                                          \
    } while (0)
#define MATH_RARE_F32(result, condition, function, x) MATH_RARE(result, condition, function(m, x))
#define MATH_RARE_F64(result, condition, function, x) MATH_RARE(result, condition, function(m, x))
#define MATH_RARE2_F32(result, condition, function, x, y)                                          \
    MATH_RARE(result, condition, function(m, x, y))
#define MATH_RARE2_F64(result, condition, function, x, y)                                          \
    MATH_RARE(result, condition, function(m, x, y))
/* clang-format on */

#include <hal/ir_math.h>
#include <stdbool.h>

/* All but POW, which has two operands. */
static const struct {
    hal_ir_value (*f32)(hal_ir_builder *m, hal_ir_value x);
    hal_ir_value (*f64)(hal_ir_builder *m, hal_ir_value x);
} functions[HAL_IR_MATH_COUNT] = MATH_UNARY_TABLE;

hal_ir_value hal_ir_expand_math(hal_ir_builder *builder, uint32_t opcode, hal_type type,
                                hal_ir_value x, hal_ir_value y)
{
    const bool is_f64 = type == HAL_TYPE_F64;
    if (hal_ir_is_math(opcode) && (type == HAL_TYPE_F32 || is_f64)) {
        const uint32_t index = opcode - HAL_IR_MATH_FIRST;
        if (opcode == HAL_IR_POW) {
            return is_f64 ? math_pow_f64(builder, x, y) : math_pow_f32(builder, x, y);
        }
        if (functions[index].f32) {
            return is_f64 ? functions[index].f64(builder, x) : functions[index].f32(builder, x);
        }
    }
    hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR,
                        "opcode: expected a transcendental function of f32 or f64, got %u of "
                        "type %u",
                        opcode, (unsigned)type);
    return HAL_IR_NONE;
}
