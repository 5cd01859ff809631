/* The functions of one and two values, composed of operations of the IR. Called while kernels and
 * expressions are built, by programs and by every family. */
#include "tensor/rounding.h"

#include <ops/pointwise.h>

#include <math.h>
#include <stdbool.h>

typedef hal_ir_builder *builder_ref;

/* What kind of values a function takes. */
enum { TAKES_FLOAT = 1, TAKES_INTEGER = 2, TAKES_BOOL = 4 };

typedef struct halved_exponential {
    hal_ir_value size, factor, large;
} halved_exponential;

static const struct {
    const char *name;
    uint8_t kinds;
    uint8_t opcode; /* the one operation it is, 0 for a composition */
} unary_table[OPS_UNARY_COUNT] = {
    [OPS_IDENTITY] = {"identity", TAKES_FLOAT | TAKES_INTEGER | TAKES_BOOL, 0},
    [OPS_NEG] = {"neg", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_NEG},
    [OPS_ABS] = {"abs", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_ABS},
    [OPS_SIGN] = {"sign", TAKES_FLOAT | TAKES_INTEGER, 0},
    [OPS_SQUARE] = {"square", TAKES_FLOAT | TAKES_INTEGER, 0},
    [OPS_RELU] = {"relu", TAKES_FLOAT | TAKES_INTEGER, 0},
    [OPS_NOT] = {"not", TAKES_INTEGER | TAKES_BOOL, HAL_IR_NOT},
    [OPS_SQRT] = {"sqrt", TAKES_FLOAT, HAL_IR_SQRT},
    [OPS_RSQRT] = {"rsqrt", TAKES_FLOAT, HAL_IR_RSQRT},
    [OPS_RECIPROCAL] = {"reciprocal", TAKES_FLOAT, 0},
    [OPS_EXP] = {"exp", TAKES_FLOAT, HAL_IR_EXP},
    [OPS_EXP2] = {"exp2", TAKES_FLOAT, HAL_IR_EXP2},
    [OPS_EXPM1] = {"expm1", TAKES_FLOAT, HAL_IR_EXPM1},
    [OPS_LOG] = {"log", TAKES_FLOAT, HAL_IR_LOG},
    [OPS_LOG2] = {"log2", TAKES_FLOAT, HAL_IR_LOG2},
    [OPS_LOG10] = {"log10", TAKES_FLOAT, 0},
    [OPS_LOG1P] = {"log1p", TAKES_FLOAT, HAL_IR_LOG1P},
    [OPS_SIN] = {"sin", TAKES_FLOAT, HAL_IR_SIN},
    [OPS_COS] = {"cos", TAKES_FLOAT, HAL_IR_COS},
    [OPS_TAN] = {"tan", TAKES_FLOAT, HAL_IR_TAN},
    [OPS_ASIN] = {"asin", TAKES_FLOAT, 0},
    [OPS_ACOS] = {"acos", TAKES_FLOAT, 0},
    [OPS_ATAN] = {"atan", TAKES_FLOAT, HAL_IR_ATAN},
    [OPS_SINH] = {"sinh", TAKES_FLOAT, 0},
    [OPS_COSH] = {"cosh", TAKES_FLOAT, 0},
    [OPS_TANH] = {"tanh", TAKES_FLOAT, HAL_IR_TANH},
    [OPS_ERF] = {"erf", TAKES_FLOAT, HAL_IR_ERF},
    [OPS_SIGMOID] = {"sigmoid", TAKES_FLOAT, 0},
    [OPS_SILU] = {"silu", TAKES_FLOAT, 0},
    [OPS_GELU] = {"gelu", TAKES_FLOAT, 0},
    [OPS_SOFTPLUS] = {"softplus", TAKES_FLOAT, 0},
    [OPS_FLOOR] = {"floor", TAKES_FLOAT, HAL_IR_FLOOR},
    [OPS_CEIL] = {"ceil", TAKES_FLOAT, 0},
    [OPS_TRUNC] = {"trunc", TAKES_FLOAT, HAL_IR_TRUNC},
    [OPS_ROUND] = {"round", TAKES_FLOAT, HAL_IR_RINT},
    [OPS_IS_NAN] = {"is_nan", TAKES_FLOAT, 0},
    [OPS_IS_INFINITE] = {"is_infinite", TAKES_FLOAT, 0},
    [OPS_IS_FINITE] = {"is_finite", TAKES_FLOAT, 0},
};

static const struct {
    const char *name;
    uint8_t kinds;
    uint8_t opcode; /* 0 for a composition */
    uint8_t swap;   /* the operands change places */
} binary_table[OPS_BINARY_COUNT] = {
    [OPS_ADD] = {"add", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_ADD, 0},
    [OPS_SUB] = {"sub", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_SUB, 0},
    [OPS_MUL] = {"mul", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_MUL, 0},
    [OPS_DIV] = {"div", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_DIV, 0},
    [OPS_REM] = {"rem", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_REM, 0},
    [OPS_MINIMUM] = {"min", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_MIN, 0},
    [OPS_MAXIMUM] = {"max", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_MAX, 0},
    [OPS_POW] = {"pow", TAKES_FLOAT, HAL_IR_POW, 0},
    [OPS_ATAN2] = {"atan2", TAKES_FLOAT, 0, 0},
    [OPS_AND] = {"and", TAKES_INTEGER | TAKES_BOOL, HAL_IR_AND, 0},
    [OPS_OR] = {"or", TAKES_INTEGER | TAKES_BOOL, HAL_IR_OR, 0},
    [OPS_XOR] = {"xor", TAKES_INTEGER | TAKES_BOOL, HAL_IR_XOR, 0},
    [OPS_SHL] = {"shl", TAKES_INTEGER, HAL_IR_SHL, 0},
    [OPS_SHR] = {"shr", TAKES_INTEGER, HAL_IR_SHR, 0},
    [OPS_EQ] = {"eq", TAKES_FLOAT | TAKES_INTEGER | TAKES_BOOL, HAL_IR_EQ, 0},
    [OPS_NE] = {"ne", TAKES_FLOAT | TAKES_INTEGER | TAKES_BOOL, HAL_IR_NE, 0},
    [OPS_LT] = {"lt", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_LT, 0},
    [OPS_LE] = {"le", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_LE, 0},
    [OPS_GT] = {"gt", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_LT, 1},
    [OPS_GE] = {"ge", TAKES_FLOAT | TAKES_INTEGER, HAL_IR_LE, 1},
};

static bool takes(builder_ref b, hal_ir_value x, uint32_t kinds)
{
    hal_type type = hal_ir_type_of(b, x);
    return ((kinds & TAKES_FLOAT) && hal_type_is_float(type)) ||
           ((kinds & TAKES_INTEGER) && hal_type_is_integer(type)) ||
           ((kinds & TAKES_BOOL) && type == HAL_TYPE_BOOL);
}

/* Leaves INVALID_IR in the builder, as an operation on no value does. */
static hal_ir_value refuse(builder_ref b)
{
    return hal_ir_unary(b, HAL_IR_NEG, HAL_IR_NONE);
}

static hal_ir_value number(builder_ref b, hal_ir_value like, double value)
{
    return hal_ir_number(b, hal_ir_type_of(b, like), value);
}

static hal_ir_value sign(builder_ref b, hal_ir_value x)
{
    hal_ir_value zero = number(b, x, 0);
    hal_type type = hal_ir_type_of(b, x);
    hal_ir_value rest = x;
    if (hal_type_is_float(type)) { /* -0 as 0 */
        rest = hal_ir_select(b, hal_ir_eq(b, x, zero), zero, x);
    }
    if (hal_type_is_float(type) || hal_type_is_signed(type)) {
        rest = hal_ir_select(b, hal_ir_lt(b, x, zero), number(b, x, -1), rest);
    }
    return hal_ir_select(b, hal_ir_gt(b, x, zero), number(b, x, 1), rest);
}

static hal_ir_value classify(builder_ref b, ops_unary_function function, hal_ir_value x)
{
    if (function == OPS_IS_NAN) {
        return hal_ir_ne(b, x, x);
    }
    hal_ir_value infinity = number(b, x, (double)INFINITY);
    return function == OPS_IS_INFINITE ? hal_ir_eq(b, hal_ir_abs(b, x), infinity)
                                       : hal_ir_lt(b, hal_ir_abs(b, x), infinity);
}

/* x times a constant that is kept to more digits than its type has. */
static hal_ir_value split_constant(builder_ref b, hal_ir_value x, double factor)
{
    if (hal_ir_type_of(b, x) != HAL_TYPE_F32) {
        return hal_ir_mul(b, x, number(b, x, factor));
    }
    double high = ops_round_to(HAL_TYPE_F32, factor);
    hal_ir_value low = hal_ir_mul(b, x, number(b, x, factor - high));
    /* An infinity times the two parts would be NaN where their signs differ. */
    hal_ir_value product = hal_ir_mul(b, x, number(b, x, high));
    hal_ir_value exact = hal_ir_fma(b, x, number(b, x, high), low);
    return hal_ir_select(b, classify(b, OPS_IS_FINITE, product), exact, product);
}

/* atan(x / sqrt((1 - x) (1 + x))); beyond 1 the root of a negative number gives NaN. */
static hal_ir_value arc_sine(builder_ref b, hal_ir_value x)
{
    hal_ir_value one = number(b, x, 1);
    hal_ir_value square = hal_ir_mul(b, hal_ir_sub(b, one, x), hal_ir_add(b, one, x));
    return hal_ir_math(b, HAL_IR_ATAN, hal_ir_div(b, x, hal_ir_sqrt(b, square)), HAL_IR_NONE, 0);
}

/* 2 atan(sqrt((1 - x) / (1 + x))) */
static hal_ir_value arc_cosine(builder_ref b, hal_ir_value x)
{
    hal_ir_value one = number(b, x, 1);
    hal_ir_value square = hal_ir_div(b, hal_ir_sub(b, one, x), hal_ir_add(b, one, x));
    hal_ir_value half = hal_ir_math(b, HAL_IR_ATAN, hal_ir_sqrt(b, square), HAL_IR_NONE, 0);
    return hal_ir_add(b, half, half);
}

/* exp(|x|) / 2 = factor * exp(size): near the end of the type exp(|x|) overflows, its half does not
 * yet. So beyond 64 size is |x| - 1, exactly, and factor e / 2. */
static halved_exponential halve_exponential(builder_ref b, hal_ir_value x)
{
    halved_exponential half;
    hal_ir_value size = hal_ir_abs(b, x), zero = number(b, x, 0), one = number(b, x, 1);
    half.large = hal_ir_lt(b, number(b, x, 64), size);
    half.size = hal_ir_sub(b, size, hal_ir_select(b, half.large, one, zero));
    half.factor =
        hal_ir_select(b, half.large, number(b, x, 1.3591409142295226177), number(b, x, 0.5));
    return half;
}

/* With e = exp(|x|) - 1: (e + e / (e + 1)) / 2, with the sign of x; where e is large the quotient
 * is lost in rounding, and e might be infinite. */
static hal_ir_value hyperbolic_sine(builder_ref b, hal_ir_value x)
{
    const bool wide = hal_ir_type_of(b, x) == HAL_TYPE_F64;
    const hal_type bits = wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    halved_exponential half = halve_exponential(b, x);
    hal_ir_value e = hal_ir_math(b, HAL_IR_EXPM1, half.size, HAL_IR_NONE, 0);
    hal_ir_value top = hal_ir_select(b, half.large, number(b, x, 0), e);
    hal_ir_value quotient = hal_ir_div(b, top, hal_ir_add(b, e, number(b, x, 1)));
    hal_ir_value size = hal_ir_mul(b, half.factor, hal_ir_add(b, e, quotient));
    hal_ir_value sign = hal_ir_bitcast(b, bits, x);
    sign = hal_ir_and(b, sign, wide ? hal_ir_u64(b, UINT64_C(1) << 63) : hal_ir_u32(b, 1u << 31));
    hal_ir_value signed_bits = hal_ir_or(b, hal_ir_bitcast(b, bits, size), sign);
    return hal_ir_bitcast(b, hal_ir_type_of(b, x), signed_bits);
}

static hal_ir_value hyperbolic_cosine(builder_ref b, hal_ir_value x)
{
    halved_exponential half = halve_exponential(b, x);
    hal_ir_value e = hal_ir_math(b, HAL_IR_EXP, half.size, HAL_IR_NONE, 0);
    return hal_ir_fma(b, half.factor, e, hal_ir_div(b, number(b, x, 0.5), e));
}

/* With t = exp(-|x|), which never overflows: 1 / (1 + t), or t / (1 + t) where x is negative. */
static hal_ir_value sigmoid(builder_ref b, hal_ir_value x)
{
    hal_ir_value one = number(b, x, 1);
    hal_ir_value size = hal_ir_neg(b, hal_ir_abs(b, x));
    hal_ir_value t = hal_ir_math(b, HAL_IR_EXP, size, HAL_IR_NONE, 0);
    hal_ir_value top = hal_ir_select(b, hal_ir_lt(b, x, number(b, x, 0)), t, one);
    return hal_ir_div(b, top, hal_ir_add(b, one, t));
}

static hal_ir_value gelu(builder_ref b, hal_ir_value x)
{
    hal_ir_value scaled = hal_ir_mul(b, x, number(b, x, 0.70710678118654752440));
    hal_ir_value e = hal_ir_math(b, HAL_IR_ERF, scaled, HAL_IR_NONE, 0);
    hal_ir_value half = hal_ir_mul(b, x, number(b, x, 0.5));
    return hal_ir_mul(b, half, hal_ir_add(b, e, number(b, x, 1)));
}

static hal_ir_value softplus(builder_ref b, hal_ir_value x)
{
    hal_ir_value size = hal_ir_neg(b, hal_ir_abs(b, x));
    hal_ir_value t = hal_ir_math(b, HAL_IR_EXP, size, HAL_IR_NONE, 0);
    hal_ir_value rest = hal_ir_math(b, HAL_IR_LOG1P, t, HAL_IR_NONE, 0);
    return hal_ir_add(b, hal_ir_max(b, x, number(b, x, 0)), rest);
}

/* The functions that are compositions. */
static hal_ir_value plain_unary(builder_ref b, ops_unary_function function, hal_ir_value x)
{
    switch (function) {
    case OPS_IDENTITY:
        return x;
    case OPS_SIGN:
        return sign(b, x);
    case OPS_SQUARE:
        return hal_ir_mul(b, x, x);
    case OPS_RELU:
        return hal_ir_max(b, x, number(b, x, 0));
    case OPS_RECIPROCAL:
        return hal_ir_div(b, number(b, x, 1), x);
    case OPS_LOG10:
        return split_constant(b, hal_ir_math(b, HAL_IR_LOG, x, HAL_IR_NONE, 0),
                              0.43429448190325182765);
    case OPS_ASIN:
        return arc_sine(b, x);
    case OPS_ACOS:
        return arc_cosine(b, x);
    case OPS_SINH:
        return hyperbolic_sine(b, x);
    case OPS_COSH:
        return hyperbolic_cosine(b, x);
    case OPS_SIGMOID:
        return sigmoid(b, x);
    case OPS_SILU:
        return hal_ir_mul(b, x, sigmoid(b, x));
    case OPS_GELU:
        return gelu(b, x);
    case OPS_SOFTPLUS:
        return softplus(b, x);
    case OPS_CEIL:
        return hal_ir_neg(b, hal_ir_floor(b, hal_ir_neg(b, x)));
    case OPS_IS_NAN:
    case OPS_IS_INFINITE:
    case OPS_IS_FINITE:
        return classify(b, function, x);
    default:
        return refuse(b);
    }
}

/* atan of the smaller by the larger side, mirrored into the octant of (x, y). */
static hal_ir_value arc_tangent2(builder_ref b, hal_ir_value y, hal_ir_value x)
{
    bool wide = hal_ir_type_of(b, x) == HAL_TYPE_F64;
    hal_type bits = wide ? HAL_TYPE_I64 : HAL_TYPE_I32;
    hal_ir_value zero = number(b, x, 0), none = hal_ir_number(b, bits, 0);
    hal_ir_value width = hal_ir_abs(b, x), height = hal_ir_abs(b, y);
    hal_ir_value small = hal_ir_min(b, width, height), large = hal_ir_max(b, width, height);
    hal_ir_value t = hal_ir_div(b, small, large);
    t = hal_ir_select(b, hal_ir_eq(b, large, zero), zero, t);
    t = hal_ir_select(b, classify(b, OPS_IS_INFINITE, small), number(b, x, 1), t);
    hal_ir_value angle = hal_ir_math(b, HAL_IR_ATAN, t, HAL_IR_NONE, 0);

    /* pi in two parts, so that the difference does not lose the digits that pi has beyond x. */
    double pi = 3.14159265358979323846;
    double high = wide ? pi : (double)(float)pi, low = wide ? 1.2246467991473532e-16 : pi - high;
    hal_ir_value steep =
        hal_ir_add(b, hal_ir_sub(b, number(b, x, high / 2), angle), number(b, x, low / 2));
    angle = hal_ir_select(b, hal_ir_gt(b, height, width), steep, angle);
    hal_ir_value obtuse =
        hal_ir_add(b, hal_ir_sub(b, number(b, x, high), angle), number(b, x, low));
    hal_ir_value x_negative = hal_ir_lt(b, hal_ir_bitcast(b, bits, x), none);
    angle = hal_ir_select(b, x_negative, obtuse, angle);
    hal_ir_value y_negative = hal_ir_lt(b, hal_ir_bitcast(b, bits, y), none);
    return hal_ir_select(b, y_negative, hal_ir_neg(b, angle), angle);
}

const char *ops_unary_name(ops_unary_function function)
{
    return (uint32_t)function < OPS_UNARY_COUNT ? unary_table[function].name : NULL;
}

const char *ops_binary_name(ops_binary_function function)
{
    return (uint32_t)function < OPS_BINARY_COUNT ? binary_table[function].name : NULL;
}

hal_ir_value ops_unary_value(hal_ir_builder *builder, ops_unary_function function, hal_ir_value x)
{
    if ((uint32_t)function >= OPS_UNARY_COUNT ||
        !takes(builder, x, unary_table[(uint32_t)function].kinds)) {
        return refuse(builder);
    }
    uint32_t opcode = unary_table[function].opcode;
    if (hal_ir_is_math(opcode)) {
        return hal_ir_math(builder, opcode, x, HAL_IR_NONE, 0);
    }
    return opcode ? hal_ir_unary(builder, opcode, x) : plain_unary(builder, function, x);
}

hal_ir_value ops_binary_value(hal_ir_builder *builder, ops_binary_function function, hal_ir_value x,
                              hal_ir_value y)
{
    if ((uint32_t)function >= OPS_BINARY_COUNT ||
        !takes(builder, x, binary_table[(uint32_t)function].kinds)) {
        return refuse(builder);
    }
    uint32_t opcode = binary_table[function].opcode;
    if (function == OPS_ATAN2) {
        return arc_tangent2(builder, x, y);
    }
    if (hal_ir_is_math(opcode)) {
        return hal_ir_math(builder, opcode, x, y, 0);
    }
    return binary_table[function].swap ? hal_ir_binary(builder, opcode, y, x)
                                       : hal_ir_binary(builder, opcode, x, y);
}
