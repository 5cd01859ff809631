/* ir_math.h: the transcendental functions of Halyard, written once for two readers.
 *
 * hal/src/ir/math.c includes this file with macros that call the IR builder: then every value is
 * an SSA id and calling a function emits its operations. A plugin that claims the opcodes, and the
 * tests, include it with plain C scalar types: then a loop over a function vectorises. Where fma is
 * fused, divide and square root are correctly rounded and denormals are kept, both give the same
 * bits, since every operation below rounds exactly as written.
 *
 * The functions are straight-line: no tables, no loops, no branches but the rare paths. Those which
 * have one come in three parts that can be called alone, so that a loop over the fast part
 * vectorises and the rare lanes are done again afterwards:
 *     math_log_f32_fast(m, x)      right wherever math_log_f32_is_rare(m, x) is false, and
 *                                  never traps elsewhere
 *     math_log_f32_is_rare(m, x)   a MATH_BOOL
 *     math_log_f32_rare(m, x)      right wherever is_rare is true
 *     math_log_f32(m, x)           all three put together with MATH_RARE_F32
 * And some have a part for small operands, the same bits for less work where a reader sees that all
 * of many operands are small:
 *     math_tanh_f32_near(m, x)     right where |x| < 1; atan and erf have it too
 *     math_sin_f32_near(m, x)      right where |x| < MATH_NEAR_ANGLES_F32; so have cos and tan
 *
 * What the includer defines, all of it before the #include:
 *
 *   MATH_CONTEXT, MATH_PASS          the declaration of each function's first parameter, and its
 *                                    name as an argument: `hal_ir_builder *m` and `m`
 *   MATH_BOOL                        a condition, the result of a comparison
 *   MATH_F32 MATH_I32 MATH_U32       value types
 *   MATH_F64 MATH_I64 MATH_U64
 *   MATH_CONST_F32(c)                constants; c is a C constant expression of that type;
 *   MATH_CONST_U32 _I32 _F64 _U64 _I64   infinities and NaN occur
 *   MATH_ADD MATH_SUB MATH_MUL(a, b) floats, rounded to nearest even, and integers, modulo 2^n;
 *                                    both operands have the same type
 *   MATH_DIV(a, b)  MATH_NEG(a)      floats; division is correctly rounded
 *   MATH_ABS_F32(a) MATH_SQRT_F32(a) MATH_RINT_F32(a) MATH_FMA_F32(a, b, c), and with _F64:
 *                                    floats; rint is to nearest even, fma is a * b + c rounded once
 *   MATH_AND MATH_OR MATH_XOR(a, b)  u32 or u64
 *   MATH_SHL_U32(a, n) MATH_SHR_U32(a, n) MATH_SHR_I32(a, n), and the same with _U64, _I64:
 *                                    n is a C constant below the width; SHR_I32 is arithmetic
 *   MATH_SHL_BY_U32(a, n) MATH_SHR_BY_U32(a, n), and the same with _U64:
 *                                    n is a value of the type of a, below the width
 *   MATH_MULHI_U32(a, b) MATH_MULHI_U64(a, b)   the upper half of the product
 *   MATH_LT MATH_LE MATH_GT MATH_GE MATH_EQ MATH_NE(a, b)   as in C: ordered, but NE is true of NaN
 *   MATH_BOTH MATH_EITHER(a, b), MATH_NOT(a)     logic on MATH_BOOL
 *   MATH_SELECT(condition, a, b)     both sides are computed
 *   MATH_I32_FROM_U32 MATH_U32_FROM_I32 MATH_I64_FROM_U64 MATH_U64_FROM_I64(a)   same bits
 *   MATH_U32_FROM_U64(a) MATH_U64_FROM_U32(a)    the lower half; zero extension
 *   MATH_F32_FROM_I32(a)             conversion to nearest
 *   MATH_BITS_F32(a) MATH_FLOAT_F32(a)           f32 to its u32 bits, and back
 *   MATH_BITS_F64(a) MATH_FLOAT_F64(a)           f64 to its u64 bits, and back
 *   MATH_RARE_F32(result, condition, function, x)        result, a variable of type MATH_F32,
 *   MATH_RARE2_F32(result, condition, function, x, y)    becomes function(MATH_PASS, x[, y]) where
 *   MATH_RARE_F64, MATH_RARE2_F64                        condition holds: a branch, or a select
 *
 * An operation has at most one operation among its arguments: C leaves the order of evaluation of
 * arguments open, and the IR must not depend on the compiler that built hal.
 *
 * Worst errors in units in the last place, f32 over all inputs (pow: 10^8 pairs), f64 over 2 * 10^7
 * samples, as hal-math-exhaustive prints them:
 *          exp  exp2 expm1 log  log2 log1p sin  cos  tan  atan tanh erf  rsqrt pow
 *     f32  0.90 0.88 1.44  0.94 1.42 1.69  1.56 1.56 3.08 1.83 0.96 1.33 1.50  2.38
 *     f64  0.89 0.80 1.82  0.84 0.99 1.56  1.52 1.49 3.06 1.84 2.57 1.41 1.50  1.09
 * Special values are those of C's Annex F; any NaN may stand for another.
 *
 * Every coefficient comes out of hal/tools/ir_math.sollya, which names the interval and the
 * error. */
#ifndef HAL_IR_MATH_H
#define HAL_IR_MATH_H

#include <math.h>
#include <stdint.h>

#include <hal/ir_math_f32.h>
#include <hal/ir_math_trig_f32.h>
#include <hal/ir_math_f64.h>
#include <hal/ir_math_pow_f64.h>
#include <hal/ir_math_trig_f64.h>

/* A table of the functions of one operand, those of f32 next to those of f64, by the opcode less
 * HAL_IR_MATH_FIRST (hal/ir.h). POW has two operands and no entry. */
#define MATH_UNARY_ENTRY(OPCODE, name)                                                             \
    [HAL_IR_##OPCODE - HAL_IR_MATH_FIRST] = {math_##name##_f32, math_##name##_f64}
#define MATH_UNARY_TABLE                                                                           \
    {                                                                                              \
        MATH_UNARY_ENTRY(EXP, exp), MATH_UNARY_ENTRY(EXP2, exp2),                                  \
            MATH_UNARY_ENTRY(EXPM1, expm1), MATH_UNARY_ENTRY(LOG, log),                            \
            MATH_UNARY_ENTRY(LOG2, log2), MATH_UNARY_ENTRY(LOG1P, log1p),                          \
            MATH_UNARY_ENTRY(SIN, sin), MATH_UNARY_ENTRY(COS, cos), MATH_UNARY_ENTRY(TAN, tan),    \
            MATH_UNARY_ENTRY(ATAN, atan), MATH_UNARY_ENTRY(TANH, tanh),                            \
            MATH_UNARY_ENTRY(ERF, erf), MATH_UNARY_ENTRY(RSQRT, rsqrt)                             \
    }

#endif
