/* scalar.c: what each opcode gives on one work-item, in plain C from the comments of ir.h alone;
 * the reference of the cases of the IR. */
#include <math.h>

#include "ir/fixture.h"

__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;

static bool compare(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    bool equal = a == b, less = a < b;
    if (hal_type_is_float(type)) {
        const double x = number_value(type, a), y = number_value(type, b);
        equal = x == y;
        less = x < y;
    } else if (hal_type_is_signed(type)) {
        less = number_signed(type, a) < number_signed(type, b);
    }
    switch (opcode) {
    case HAL_IR_EQ:
        return equal;
    case HAL_IR_NE:
        return !equal;
    case HAL_IR_LT:
        return less;
    default:
        return less || equal;
    }
}

/* MIN and MAX of floats. */
static double pick(uint32_t opcode, double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return (double)NAN;
    }
    const bool a_is_less = a < b || (a == b && signbit(a) && !signbit(b));
    return (opcode == HAL_IR_MIN) == a_is_less ? a : b;
}

static uint64_t evaluate_f32(uint32_t opcode, float a, float b, float c)
{
    switch (opcode) {
    case HAL_IR_ADD:
        return number_of_f32(a + b);
    case HAL_IR_SUB:
        return number_of_f32(a - b);
    case HAL_IR_MUL:
        return number_of_f32(a * b);
    case HAL_IR_DIV:
        return number_of_f32(a / b);
    case HAL_IR_REM:
        return number_of_f32(fmodf(a, b));
    case HAL_IR_FMA:
        return number_of_f32(fmaf(a, b, c));
    case HAL_IR_SQRT:
        return number_of_f32(sqrtf(a));
    case HAL_IR_FLOOR:
        return number_of_f32(floorf(a));
    case HAL_IR_TRUNC:
        return number_of_f32(truncf(a));
    case HAL_IR_RINT:
        return number_of_f32(rintf(a));
    default:
        return number_of_f32((float)pick(opcode, (double)a, (double)b));
    }
}

static uint64_t evaluate_f64(uint32_t opcode, double a, double b, double c)
{
    switch (opcode) {
    case HAL_IR_ADD:
        return number_of_f64(a + b);
    case HAL_IR_SUB:
        return number_of_f64(a - b);
    case HAL_IR_MUL:
        return number_of_f64(a * b);
    case HAL_IR_DIV:
        return number_of_f64(a / b);
    case HAL_IR_REM:
        return number_of_f64(fmod(a, b));
    case HAL_IR_FMA:
        return number_of_f64(fma(a, b, c));
    case HAL_IR_SQRT:
        return number_of_f64(sqrt(a));
    case HAL_IR_FLOOR:
        return number_of_f64(floor(a));
    case HAL_IR_TRUNC:
        return number_of_f64(trunc(a));
    case HAL_IR_RINT:
        return number_of_f64(rint(a));
    default:
        return number_of_f64(pick(opcode, a, b));
    }
}

static uint64_t shift(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    const unsigned count = (unsigned)(b % (8 * hal_type_size(type)));
    if (opcode == HAL_IR_SHL) {
        return a << count;
    }
    if (hal_type_is_signed(type) && number_signed(type, a) < 0) {
        return ~(~(uint64_t)number_signed(type, a) >> count);
    }
    return a >> count;
}

static uint64_t high_half(hal_type type, uint64_t a, uint64_t b)
{
    const unsigned width = 8 * hal_type_size(type);
    if (hal_type_is_signed(type)) {
        const wide_signed product = (wide_signed)number_signed(type, a) * number_signed(type, b);
        return (uint64_t)((wide_unsigned)product >> width);
    }
    return (uint64_t)(((wide_unsigned)a * b) >> width);
}

static uint64_t divide(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    const bool quotient = opcode == HAL_IR_DIV;
    if (b == 0) {
        return 0;
    }
    if (!hal_type_is_signed(type)) {
        return quotient ? a / b : a % b;
    }
    const wide_signed x = number_signed(type, a), y = number_signed(type, b);
    return (uint64_t)(quotient ? x / y : x % y);
}

static uint64_t evaluate_integer(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    const bool is_signed = hal_type_is_signed(type);
    const int64_t x = number_signed(type, a), y = number_signed(type, b);
    const bool less = is_signed ? x < y : a < b;
    switch (opcode) {
    case HAL_IR_ADD:
        return a + b;
    case HAL_IR_SUB:
        return a - b;
    case HAL_IR_MUL:
        return a * b;
    case HAL_IR_NEG:
        return 0 - a;
    case HAL_IR_ABS:
        return is_signed && x < 0 ? 0 - a : a;
    case HAL_IR_MIN:
        return less ? a : b;
    case HAL_IR_MAX:
        return less ? b : a;
    case HAL_IR_AND:
        return a & b;
    case HAL_IR_OR:
        return a | b;
    case HAL_IR_XOR:
        return a ^ b;
    case HAL_IR_NOT:
        return ~a;
    case HAL_IR_POPCOUNT: {
        uint64_t count = 0;
        for (uint64_t left = a & number_mask(type); left != 0; left >>= 1) {
            count += left & 1;
        }
        return count;
    }
    case HAL_IR_SHL:
    case HAL_IR_SHR:
        return shift(opcode, type, a, b);
    case HAL_IR_MULHI:
        return high_half(type, a, b);
    default:
        return divide(opcode, type, a, b);
    }
}

uint64_t ir_evaluate(uint32_t opcode, hal_type type, const uint64_t operands[3])
{
    const uint64_t a = operands[0], b = operands[1], c = operands[2];
    if (opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE) {
        return compare(opcode, type, a, b);
    }
    if (opcode == HAL_IR_SELECT) {
        return a != 0 ? b : c;
    }
    if (type == HAL_TYPE_BOOL) {
        const uint64_t results[4] = {a & b, a | b, a ^ b, !a};
        return results[opcode - HAL_IR_AND];
    }
    if (type == HAL_TYPE_F32) {
        if (opcode == HAL_IR_NEG || opcode == HAL_IR_ABS) {
            const uint64_t sign = UINT64_C(1) << 31;
            return opcode == HAL_IR_NEG ? a ^ sign : a & ~sign;
        }
        return evaluate_f32(opcode, number_f32(a), number_f32(b), number_f32(c));
    }
    if (type == HAL_TYPE_F64) {
        if (opcode == HAL_IR_NEG || opcode == HAL_IR_ABS) {
            const uint64_t sign = UINT64_C(1) << 63;
            return opcode == HAL_IR_NEG ? a ^ sign : a & ~sign;
        }
        return evaluate_f64(opcode, number_f64(a), number_f64(b), number_f64(c));
    }
    return evaluate_integer(opcode, type, a, b) & number_mask(type);
}

long double ir_math_reference(uint32_t opcode, long double x, long double y)
{
    switch (opcode) {
    case HAL_IR_EXP:
        return expl(x);
    case HAL_IR_EXP2:
        return exp2l(x);
    case HAL_IR_EXPM1:
        return expm1l(x);
    case HAL_IR_LOG:
        return logl(x);
    case HAL_IR_LOG2:
        return log2l(x);
    case HAL_IR_LOG1P:
        return log1pl(x);
    case HAL_IR_SIN:
        return sinl(x);
    case HAL_IR_COS:
        return cosl(x);
    case HAL_IR_TAN:
        return tanl(x);
    case HAL_IR_ATAN:
        return atanl(x);
    case HAL_IR_TANH:
        return tanhl(x);
    case HAL_IR_ERF:
        return erfl(x);
    case HAL_IR_RSQRT:
        return 1.0L / sqrtl(x);
    default:
        /* The C library's long double form is wrong for some infinite results; double's is not. */
        if (isinf(x) || isinf(y) || x == 0.0L) {
            return (long double)pow((double)x, (double)y);
        }
        return powl(x, y);
    }
}

double ir_math_bound(uint32_t opcode)
{
    switch (opcode) {
    case HAL_IR_SIN:
    case HAL_IR_COS:
        return 4.0;
    case HAL_IR_TAN:
    case HAL_IR_ATAN:
    case HAL_IR_TANH:
        return 5.0;
    case HAL_IR_ERF:
    case HAL_IR_POW:
        return 16.0;
    case HAL_IR_RSQRT:
        return 2.0;
    default:
        return 3.0;
    }
}

uint64_t ir_convert(hal_type from, hal_type to, uint64_t bits)
{
    if (to == HAL_TYPE_BOOL) {
        return hal_type_is_float(from) ? !(number_value(from, bits) == 0.0) : bits != 0;
    }
    if (hal_type_is_float(from)) {
        return number_bits(to, number_value(from, bits));
    }
    if (!hal_type_is_float(to)) {
        return (uint64_t)number_signed(from, bits) & number_mask(to);
    }
    if (to == HAL_TYPE_F32) {
        return number_of_f32(hal_type_is_signed(from) ? (float)number_signed(from, bits)
                                                      : (float)bits);
    }
    return number_of_f64(hal_type_is_signed(from) ? (double)number_signed(from, bits)
                                                  : (double)bits);
}
