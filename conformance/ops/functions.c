/* functions.c: references and bounds of the op library's functions. */
#include "ops/functions.h"

#include <math.h>

#include "case/cover.h"
#include "ir/fixture.h"
#include "math/number.h"

/* NaN if either is; the negative one of two zeros is the smaller. */
static long double extreme(long double x, long double y, bool is_minimum)
{
    if (isnan(x) || isnan(y)) {
        return (long double)NAN;
    }
    const bool x_is_less = x < y || (x == y && signbit(x) && !signbit(y));
    return is_minimum == x_is_less ? x : y;
}

static long double special_unary(ops_unary_function function, long double x)
{
    switch (function) {
    case OPS_SIGN:
        return isnan(x) ? x : x == 0.0L ? 0.0L : copysignl(1.0L, x);
    case OPS_SIGMOID:
        return 1.0L / (1.0L + expl(-x));
    case OPS_SILU:
        return x / (1.0L + expl(-x));
    case OPS_GELU:
        return 0.5L * x * erfcl(-x * 0.70710678118654752440L);
    case OPS_SOFTPLUS:
        return x > 0.0L ? x + log1pl(expl(-x)) : log1pl(expl(x));
    case OPS_IS_NAN:
        return isnan(x) ? 1.0L : 0.0L;
    case OPS_IS_INFINITE:
        return isinf(x) ? 1.0L : 0.0L;
    default:
        return isfinite(x) ? 1.0L : 0.0L;
    }
}

uint32_t function_unary_types(ops_unary_function function)
{
    switch (function) {
    case OPS_IDENTITY:
        return HAL_STORAGE_TYPES;
    case OPS_NOT:
        return HAL_STORAGE_INTEGERS | HAL_TYPES_BOOL;
    case OPS_NEG:
    case OPS_ABS:
    case OPS_SIGN:
    case OPS_SQUARE:
    case OPS_RELU:
        return HAL_STORAGE_FLOATS | HAL_STORAGE_INTEGERS;
    default:
        return HAL_STORAGE_FLOATS;
    }
}

uint32_t function_binary_types(ops_binary_function function)
{
    switch (function) {
    case OPS_POW:
    case OPS_ATAN2:
        return HAL_STORAGE_FLOATS;
    case OPS_AND:
    case OPS_OR:
    case OPS_XOR:
        return HAL_STORAGE_INTEGERS | HAL_TYPES_BOOL;
    case OPS_SHL:
    case OPS_SHR:
        return HAL_STORAGE_INTEGERS;
    case OPS_EQ:
    case OPS_NE:
        return HAL_STORAGE_TYPES;
    default:
        return HAL_STORAGE_FLOATS | HAL_STORAGE_INTEGERS;
    }
}

bool function_unary_gives_bool(ops_unary_function function)
{
    return function == OPS_IS_NAN || function == OPS_IS_INFINITE || function == OPS_IS_FINITE;
}

bool function_binary_gives_bool(ops_binary_function function)
{
    return function >= OPS_EQ && function <= OPS_GE;
}

long double function_unary(ops_unary_function function, long double x)
{
    static const uint32_t opcodes[OPS_UNARY_COUNT] = {
        [OPS_RSQRT] = HAL_IR_RSQRT, [OPS_EXP] = HAL_IR_EXP,   [OPS_EXP2] = HAL_IR_EXP2,
        [OPS_EXPM1] = HAL_IR_EXPM1, [OPS_LOG] = HAL_IR_LOG,   [OPS_LOG2] = HAL_IR_LOG2,
        [OPS_LOG1P] = HAL_IR_LOG1P, [OPS_SIN] = HAL_IR_SIN,   [OPS_COS] = HAL_IR_COS,
        [OPS_TAN] = HAL_IR_TAN,     [OPS_ATAN] = HAL_IR_ATAN, [OPS_TANH] = HAL_IR_TANH,
        [OPS_ERF] = HAL_IR_ERF};
    if (opcodes[function] != 0) {
        return ir_math_reference(opcodes[function], x, 0.0L);
    }
    switch (function) {
    case OPS_IDENTITY:
        return x;
    case OPS_NEG:
        return -x;
    case OPS_ABS:
        return fabsl(x);
    case OPS_SQUARE:
        return x * x;
    case OPS_RELU:
        return extreme(x, 0.0L, false);
    case OPS_SQRT:
        return sqrtl(x);
    case OPS_RECIPROCAL:
        return 1.0L / x;
    case OPS_LOG10:
        return log10l(x);
    case OPS_ASIN:
        return asinl(x);
    case OPS_ACOS:
        return acosl(x);
    case OPS_SINH:
        return sinhl(x);
    case OPS_COSH:
        return coshl(x);
    case OPS_FLOOR:
        return floorl(x);
    case OPS_CEIL:
        return ceill(x);
    case OPS_TRUNC:
        return truncl(x);
    case OPS_ROUND:
        return rintl(x);
    default:
        return special_unary(function, x);
    }
}

long double function_binary(ops_binary_function function, hal_type type, long double x,
                            long double y)
{
    switch (function) {
    case OPS_ADD:
        return x + y;
    case OPS_SUB:
        return x - y;
    case OPS_MUL:
        return x * y;
    case OPS_DIV:
        return x / y;
    case OPS_REM:
        return type == HAL_TYPE_F64 ? (long double)fmod((double)x, (double)y) : fmodl(x, y);
    case OPS_MINIMUM:
        return extreme(x, y, true);
    case OPS_MAXIMUM:
        return extreme(x, y, false);
    case OPS_POW:
        return ir_math_reference(HAL_IR_POW, x, y);
    case OPS_ATAN2:
        return atan2l(x, y);
    case OPS_EQ:
        return x == y;
    case OPS_NE:
        return x != y;
    case OPS_LT:
        return x < y;
    case OPS_LE:
        return x <= y;
    case OPS_GT:
        return x > y;
    default:
        return x >= y;
    }
}

/* Narrow floats compute in f32 and round once: 0.5 and the error of f32. */
double function_unary_bound(const case_run *run, ops_unary_function function, hal_type type)
{
    const bool small = hal_type_is_narrow_float(type);
    const uint32_t exactness = run->info->exactness;
    switch (function) {
    case OPS_EXP:
    case OPS_EXP2:
    case OPS_EXPM1:
    case OPS_LOG:
    case OPS_LOG2:
    case OPS_LOG10:
    case OPS_LOG1P:
        return small ? 2.0 : 3.0;
    case OPS_SIN:
    case OPS_COS:
    case OPS_ASIN:
    case OPS_ACOS:
    case OPS_SINH:
    case OPS_COSH:
    case OPS_SIGMOID:
    case OPS_SOFTPLUS:
        return small ? 2.0 : 4.0;
    case OPS_TAN:
    case OPS_ATAN:
        return small ? 2.5 : 5.0;
    case OPS_TANH:
        return small ? 2.0 : 5.0;
    case OPS_ERF:
        return small ? 4.0 : 16.0;
    case OPS_RSQRT:
        return small ? 1.0 : 2.0;
    case OPS_SQRT:
        return small ? 1.5 : (exactness & HAL_EXACT_SQRT) != 0 ? 0.5 : 3.0;
    case OPS_RECIPROCAL:
        return small ? 1.0 : (exactness & HAL_EXACT_DIVIDE) != 0 ? 0.5 : 2.5;
    default:
        return small ? 0.501 : 0.5;
    }
}

double function_binary_bound(const case_run *run, ops_binary_function function, hal_type type)
{
    const bool small = hal_type_is_narrow_float(type);
    switch (function) {
    case OPS_POW:
        return small ? 4.0 : 16.0;
    case OPS_ATAN2:
        return small ? 2.0 : 6.0;
    case OPS_DIV:
        return small ? 1.0 : (run->info->exactness & HAL_EXACT_DIVIDE) != 0 ? 0.5 : 2.5;
    default:
        return small ? 0.501 : 0.5;
    }
}

uint64_t function_unary_bits(ops_unary_function function, hal_type type, uint64_t x)
{
    const hal_type value = hal_type_of_value(type);
    const uint64_t wide = number_widen(type, x), minus_one = number_mask(value);
    uint64_t operands[3] = {wide, wide, 0};
    uint64_t result = wide;
    switch (function) {
    case OPS_NEG:
        result = ir_evaluate(HAL_IR_NEG, value, operands);
        break;
    case OPS_ABS:
        result = ir_evaluate(HAL_IR_ABS, value, operands);
        break;
    case OPS_NOT:
        result = ir_evaluate(HAL_IR_NOT, value, operands);
        break;
    case OPS_SQUARE:
        result = ir_evaluate(HAL_IR_MUL, value, operands);
        break;
    case OPS_RELU:
        operands[1] = 0;
        result = ir_evaluate(HAL_IR_MAX, value, operands);
        break;
    case OPS_SIGN:
        if (wide != 0) {
            result = hal_type_is_signed(value) && number_signed(value, wide) < 0 ? minus_one : 1;
        }
        break;
    default:
        break;
    }
    return number_narrow(type, result);
}

uint64_t function_binary_bits(ops_binary_function function, hal_type type, uint64_t x, uint64_t y)
{
    static const uint32_t opcodes[OPS_BINARY_COUNT] = {
        [OPS_ADD] = HAL_IR_ADD,     [OPS_SUB] = HAL_IR_SUB, [OPS_MUL] = HAL_IR_MUL,
        [OPS_DIV] = HAL_IR_DIV,     [OPS_REM] = HAL_IR_REM, [OPS_MINIMUM] = HAL_IR_MIN,
        [OPS_MAXIMUM] = HAL_IR_MAX, [OPS_AND] = HAL_IR_AND, [OPS_OR] = HAL_IR_OR,
        [OPS_XOR] = HAL_IR_XOR,     [OPS_SHL] = HAL_IR_SHL, [OPS_SHR] = HAL_IR_SHR,
        [OPS_EQ] = HAL_IR_EQ,       [OPS_NE] = HAL_IR_NE,   [OPS_LT] = HAL_IR_LT,
        [OPS_LE] = HAL_IR_LE,       [OPS_GT] = HAL_IR_LT,   [OPS_GE] = HAL_IR_LE};
    const bool swapped = function == OPS_GT || function == OPS_GE;
    const uint64_t a = number_widen(type, x), b = number_widen(type, y);
    const uint64_t operands[3] = {swapped ? b : a, swapped ? a : b, 0};
    const uint64_t result = ir_evaluate(opcodes[function], hal_type_of_value(type), operands);
    return function_binary_gives_bool(function) ? result : number_narrow(type, result);
}
