/* Functions of one and two values, comparisons, casts. */
#include "operators.h"

#include <string.h>

#define UNARY(name, FUNCTION)                               \
    static void map_##name(onnx_call *c)                    \
    {                                                       \
        c->y[0] = ops_array_unary(OPS_##FUNCTION, c->x[0]); \
    }
UNARY(abs, ABS)
UNARY(neg, NEG)
UNARY(sqrt, SQRT)
UNARY(reciprocal, RECIPROCAL)
UNARY(exp, EXP)
UNARY(log, LOG)
UNARY(sin, SIN)
UNARY(cos, COS)
UNARY(tan, TAN)
UNARY(asin, ASIN)
UNARY(acos, ACOS)
UNARY(atan, ATAN)
UNARY(sinh, SINH)
UNARY(cosh, COSH)
UNARY(tanh, TANH)
UNARY(erf, ERF)
UNARY(sigmoid, SIGMOID)
UNARY(floor, FLOOR)
UNARY(ceil, CEIL)
UNARY(round, ROUND)
UNARY(relu, RELU)
UNARY(not, NOT)
UNARY(is_nan, IS_NAN)
UNARY(sign, SIGN)
UNARY(softplus, SOFTPLUS)

/* Whether operands of one type are of integers, where an operator differs for them. */
static bool is_integer(const ops_array *x)
{
    return !hal_type_is_float(ops_array_get_type(x)) && ops_array_get_type(x) != HAL_TYPE_BOOL;
}

#define BINARY(name, FUNCTION)                                        \
    static void map_##name(onnx_call *c)                              \
    {                                                                 \
        c->y[0] = ops_array_binary(OPS_##FUNCTION, c->x[0], c->x[1]); \
    }
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(div, DIV)
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)
BINARY(equal, EQ)
BINARY(less, LT)
BINARY(less_equal, LE)
BINARY(greater, GT)
BINARY(greater_equal, GE)

static void map_asinh(onnx_call *c)
{
    ops_array *x = c->x[0];
    c->y[0] = ops_log(ops_add(x, ops_sqrt(ops_add_scalar(ops_square(x), 1))));
}

static void map_acosh(onnx_call *c)
{
    ops_array *x = c->x[0];
    c->y[0] = ops_log(ops_add(x, ops_sqrt(ops_add_scalar(ops_square(x), -1))));
}

static void map_atanh(onnx_call *c)
{
    ops_array *x = c->x[0];
    ops_array *ratio = ops_div(ops_add_scalar(x, 1), ops_array_scalar_binary(OPS_SUB, 1, x));
    c->y[0] = ops_mul_scalar(ops_log(ratio), 0.5);
}

/* Powers with an exponent of another type, and of integers, are computed in F64. */
static void map_pow(onnx_call *c)
{
    ops_array *x = c->x[0], *y = c->x[1];
    const hal_type type = ops_array_get_type(x);
    if (type == ops_array_get_type(y) && hal_type_is_float(type)) {
        c->y[0] = ops_pow(x, y);
        return;
    }
    const hal_type wide = hal_type_is_float(type) ? type : (hal_type)HAL_TYPE_F64;
    c->y[0] = ops_array_cast(type, ops_pow(ops_array_cast(wide, x), ops_array_cast(wide, y)));
}

/* The remainder has the sign of y, with fmod = 1 that of x. */
static void map_mod(onnx_call *c)
{
    ops_array *y = c->x[1], *remainder = ops_rem(c->x[0], y);
    if (onnx_integer(c, "fmod", 0)) {
        c->y[0] = remainder;
        return;
    }
    ops_array *zero = ops_array_scalar(c->context, ops_array_get_type(y), 0);
    ops_array *differs = ops_ne(ops_lt(remainder, zero), ops_lt(y, zero));
    ops_array *shifts = ops_array_binary(OPS_AND, differs, ops_ne(remainder, zero));
    c->y[0] = ops_array_where(shifts, ops_add(remainder, y), remainder);
}

/* Counts below 0 and from the width on shift everything out. */
static void map_shift(onnx_call *c)
{
    ops_array *x = c->x[0], *count = c->x[1];
    const bool left = strcmp(onnx_text(c, "direction", ""), "LEFT") == 0;
    const hal_type type = ops_array_get_type(x);
    const double width = 8.0 * hal_type_size(type);
    ops_array *zero = ops_array_scalar(c->context, type, 0);
    ops_array *shifted = ops_array_binary(left ? OPS_SHL : OPS_SHR, x, count);
    ops_array *fits = ops_lt(count, ops_array_scalar(c->context, type, width));
    ops_array *out = zero;
    if (hal_type_is_signed(type)) {
        fits = ops_array_binary(OPS_AND, fits, ops_ge(count, zero));
        ops_array *sign = ops_array_scalar(c->context, type, left ? 0 : -1);
        out = ops_array_where(ops_lt(x, zero), sign, zero);
    }
    c->y[0] = ops_array_where(fits, shifted, out);
}

/* An operator of any number of operands. */
static ops_array *fold(onnx_call *c, ops_binary_function function)
{
    ops_array *y = c->x[0];
    for (uint32_t i = 1; i < c->node->input_count; i++) {
        y = ops_array_binary(function, y, c->x[i]);
    }
    return c->node->input_count > 1 ? y : ops_array_unary(OPS_IDENTITY, y);
}

static void map_max(onnx_call *c)
{
    c->y[0] = fold(c, OPS_MAXIMUM);
}

static void map_min(onnx_call *c)
{
    c->y[0] = fold(c, OPS_MINIMUM);
}

static void map_sum(onnx_call *c)
{
    c->y[0] = fold(c, OPS_ADD);
}

static void map_mean(onnx_call *c)
{
    c->y[0] = ops_div_scalar(fold(c, OPS_ADD), c->node->input_count);
}

static void map_where(onnx_call *c)
{
    c->y[0] = ops_array_where(c->x[0], c->x[1], c->x[2]);
}

static void map_identity(onnx_call *c)
{
    c->y[0] = ops_array_unary(OPS_IDENTITY, c->x[0]);
}

static void map_is_infinite(onnx_call *c)
{
    ops_array *x = c->x[0], *y = ops_array_unary(OPS_IS_INFINITE, x);
    ops_array *zero = ops_array_scalar(c->context, ops_array_get_type(x), 0);
    if (!onnx_integer(c, "detect_negative", 1)) {
        y = ops_array_binary(OPS_AND, y, ops_gt(x, zero));
    }
    if (!onnx_integer(c, "detect_positive", 1)) {
        y = ops_array_binary(OPS_AND, y, ops_lt(x, zero));
    }
    c->y[0] = y;
}

/* The number of ONNX for a type, and back; NONE for one that hal does not have. */
static hal_type type_of_number(int64_t number)
{
    static const hal_type types[] = {
        [1] = HAL_TYPE_F32,   [2] = HAL_TYPE_U8,      [3] = HAL_TYPE_I8,   [4] = HAL_TYPE_U16,
        [5] = HAL_TYPE_I16,   [6] = HAL_TYPE_I32,     [7] = HAL_TYPE_I64,  [9] = HAL_TYPE_BOOL,
        [10] = HAL_TYPE_F16,  [11] = HAL_TYPE_F64,    [12] = HAL_TYPE_U32, [13] = HAL_TYPE_U64,
        [16] = HAL_TYPE_BF16, [17] = HAL_TYPE_F8_E4M3};
    return number >= 0 && number < 18 ? types[number] : (hal_type)HAL_TYPE_NONE;
}

/* Casts, saturating to F8 where asked. */
static ops_array *cast(onnx_call *c, hal_type type, ops_array *x)
{
    const hal_type from = ops_array_get_type(x);
    if (type == HAL_TYPE_NONE) {
        onnx_skip(c, "to a type that hal does not have");
        return NULL;
    }
    if (type == HAL_TYPE_F8_E4M3 && onnx_integer(c, "saturate", 1) && hal_type_is_float(from)) {
        x = ops_minimum_scalar(ops_maximum_scalar(x, -448), 448);
    }
    return ops_array_cast(type, x);
}

static void map_cast(onnx_call *c)
{
    c->y[0] = cast(c, type_of_number(onnx_integer(c, "to", 0)), c->x[0]);
}

static void map_cast_like(onnx_call *c)
{
    c->y[0] = cast(c, ops_array_get_type(c->x[1]), c->x[0]);
}

static void map_clip(onnx_call *c)
{
    ops_array *y = ops_array_unary(OPS_IDENTITY, c->x[0]);
    y = c->node->input_count > 1 && c->x[1] ? ops_maximum(y, c->x[1]) : y;
    c->y[0] = c->node->input_count > 2 && c->x[2] ? ops_minimum(y, c->x[2]) : y;
}

static void map_pass_with_mask(onnx_call *c)
{
    double ratio = 0.5;
    bool trains = false;
    if (c->node->input_count > 2 && c->x[2]) {
        trains = onnx_host_number(c, c->x[2], 0) != 0;
    }
    if (c->node->input_count > 1 && c->x[1]) {
        ratio = onnx_host_number(c, c->x[1], 0.5);
    }
    if (trains && ratio != 0) {
        onnx_skip(c, "random numbers of numpy");
        return;
    }
    int64_t shape[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(c->x[0], shape);
    c->y[0] = ops_array_unary(OPS_IDENTITY, c->x[0]);
    if (c->node->output_count > 1) {
        c->y[1] = ops_array_full(c->context, HAL_TYPE_BOOL, rank, shape, 1);
    }
}

static void map_binarizer(onnx_call *c)
{
    ops_array *x = c->x[0];
    const hal_type type = ops_array_get_type(x);
    ops_array *limit = ops_array_scalar(c->context, type, onnx_number(c, "threshold", 0));
    c->y[0] = ops_array_cast(type, ops_gt(x, limit));
}

static void map_not_of_integers(onnx_call *c)
{
    if (!is_integer(c->x[0])) {
        onnx_skip(c, "of no integers");
    }
    map_not(c);
}

const onnx_operator onnx_elementwise_operators[] = {
    {"Abs", map_abs},
    {"Neg", map_neg},
    {"Sqrt", map_sqrt},
    {"Reciprocal", map_reciprocal},
    {"Exp", map_exp},
    {"Log", map_log},
    {"Sin", map_sin},
    {"Cos", map_cos},
    {"Tan", map_tan},
    {"Asin", map_asin},
    {"Acos", map_acos},
    {"Atan", map_atan},
    {"Sinh", map_sinh},
    {"Cosh", map_cosh},
    {"Tanh", map_tanh},
    {"Asinh", map_asinh},
    {"Acosh", map_acosh},
    {"Atanh", map_atanh},
    {"Erf", map_erf},
    {"Sigmoid", map_sigmoid},
    {"Floor", map_floor},
    {"Ceil", map_ceil},
    {"Round", map_round},
    {"Relu", map_relu},
    {"Not", map_not},
    {"BitwiseNot", map_not_of_integers},
    {"IsNaN", map_is_nan},
    {"IsInf", map_is_infinite},
    {"Sign", map_sign},
    {"Softplus", map_softplus},
    {"Add", map_add},
    {"Sub", map_sub},
    {"Mul", map_mul},
    {"Div", map_div},
    {"Pow", map_pow},
    {"Mod", map_mod},
    {"BitShift", map_shift},
    {"BitwiseAnd", map_and},
    {"BitwiseOr", map_or},
    {"BitwiseXor", map_xor},
    {"And", map_and},
    {"Or", map_or},
    {"Xor", map_xor},
    {"Equal", map_equal},
    {"Less", map_less},
    {"LessOrEqual", map_less_equal},
    {"Greater", map_greater},
    {"GreaterOrEqual", map_greater_equal},
    {"Max", map_max},
    {"Min", map_min},
    {"Sum", map_sum},
    {"Mean", map_mean},
    {"Where", map_where},
    {"Identity", map_identity},
    {"Cast", map_cast},
    {"CastLike", map_cast_like},
    {"Clip", map_clip},
    {"Dropout", map_pass_with_mask},
    {"ai.onnx.ml.Binarizer", map_binarizer},
    {NULL, NULL},
};
