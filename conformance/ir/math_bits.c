/* math_bits.c: the transcendental functions of hal/ir_math.h in plain C: the bits that every
 * device gives which claims to be exact. */
#include "ir/fixture.h"
#include "math/scalar_reader.h"

static float evaluate_f32(uint32_t opcode, float x, float y)
{
    switch (opcode) {
    case HAL_IR_EXP:
        return math_exp_f32(0, x);
    case HAL_IR_EXP2:
        return math_exp2_f32(0, x);
    case HAL_IR_EXPM1:
        return math_expm1_f32(0, x);
    case HAL_IR_LOG:
        return math_log_f32(0, x);
    case HAL_IR_LOG2:
        return math_log2_f32(0, x);
    case HAL_IR_LOG1P:
        return math_log1p_f32(0, x);
    case HAL_IR_SIN:
        return math_sin_f32(0, x);
    case HAL_IR_COS:
        return math_cos_f32(0, x);
    case HAL_IR_TAN:
        return math_tan_f32(0, x);
    case HAL_IR_ATAN:
        return math_atan_f32(0, x);
    case HAL_IR_TANH:
        return math_tanh_f32(0, x);
    case HAL_IR_ERF:
        return math_erf_f32(0, x);
    case HAL_IR_RSQRT:
        return math_rsqrt_f32(0, x);
    default:
        return math_pow_f32(0, x, y);
    }
}

static double evaluate_f64(uint32_t opcode, double x, double y)
{
    switch (opcode) {
    case HAL_IR_EXP:
        return math_exp_f64(0, x);
    case HAL_IR_EXP2:
        return math_exp2_f64(0, x);
    case HAL_IR_EXPM1:
        return math_expm1_f64(0, x);
    case HAL_IR_LOG:
        return math_log_f64(0, x);
    case HAL_IR_LOG2:
        return math_log2_f64(0, x);
    case HAL_IR_LOG1P:
        return math_log1p_f64(0, x);
    case HAL_IR_SIN:
        return math_sin_f64(0, x);
    case HAL_IR_COS:
        return math_cos_f64(0, x);
    case HAL_IR_TAN:
        return math_tan_f64(0, x);
    case HAL_IR_ATAN:
        return math_atan_f64(0, x);
    case HAL_IR_TANH:
        return math_tanh_f64(0, x);
    case HAL_IR_ERF:
        return math_erf_f64(0, x);
    case HAL_IR_RSQRT:
        return math_rsqrt_f64(0, x);
    default:
        return math_pow_f64(0, x, y);
    }
}

uint64_t ir_math_bits(uint32_t opcode, hal_type type, uint64_t x, uint64_t y)
{
    return type == HAL_TYPE_F32 ? number_of_f32(evaluate_f32(opcode, number_f32(x), number_f32(y)))
                                : number_of_f64(evaluate_f64(opcode, number_f64(x), number_f64(y)));
}
