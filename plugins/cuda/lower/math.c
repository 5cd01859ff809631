/* Fast transcendental functions of f32 by the special-function units, for HAL_IR_FAST, and the
 * remainder of floats. hal has expanded all other functions. */
#include "lower/math.h"

static cuda_operand emit_unary(cuda_lowering *l, const char *name, cuda_operand a)
{
    const cuda_operand made = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "$ $, $;", cuda_text(name), made, a);
    return made;
}

static cuda_operand emit_binary(cuda_lowering *l, const char *name, cuda_operand a, cuda_operand b)
{
    const cuda_operand made = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "$ $, $, $;", cuda_text(name), made, a, b);
    return made;
}

static cuda_operand f32_constant(float value)
{
    union {
        float value;
        uint32_t bits;
    } both = {.value = value};
    return (cuda_operand){CUDA_FLOAT_BITS, both.bits};
}

static cuda_operand emit_exp(cuda_lowering *l, cuda_operand x)
{
    return emit_unary(l, "ex2.approx.f32",
                      emit_binary(l, "mul.rn.f32", x, f32_constant(1.44269504f)));
}

/* Factors from the highest power to the constant. */
static cuda_operand emit_polynomial(cuda_lowering *l, cuda_operand x, const float *factors,
                                    uint32_t count)
{
    cuda_operand sum = f32_constant(factors[0]);
    for (uint32_t i = 1; i < count; i++) {
        const cuda_operand next = cuda_fresh(l, CUDA_FLOAT);
        cuda_emit(l, "fma.rn.f32 $, $, $, $;", next, sum, x, f32_constant(factors[i]));
        sum = next;
    }
    return sum;
}

static cuda_operand emit_select(cuda_lowering *l, const char *test, cuda_operand a, cuda_operand b,
                                cuda_operand yes, cuda_operand no)
{
    const cuda_operand p = cuda_fresh(l, CUDA_PREDICATE), made = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "setp.$.f32 $, $, $;", cuda_text(test), p, a, b);
    cuda_emit(l, "selp.f32 $, $, $, $;", made, yes, no, p);
    return made;
}

/* The series near 0, where exp(x) - 1 would cancel. */
static cuda_operand emit_expm1(cuda_lowering *l, cuda_operand x)
{
    static const float series[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                   1.0f / 6,    0.5f,       1.0f};
    const cuda_operand near = emit_binary(l, "mul.rn.f32", emit_polynomial(l, x, series, 7), x);
    const cuda_operand far = emit_binary(l, "add.rn.f32", emit_exp(l, x), f32_constant(-1.0f));
    return emit_select(l, "lt", emit_unary(l, "abs.f32", x), f32_constant(0.5f), near, far);
}

static cuda_operand emit_log(cuda_lowering *l, cuda_operand x)
{
    return emit_binary(l, "mul.rn.f32", emit_unary(l, "lg2.approx.f32", x),
                       f32_constant(0.693147181f));
}

/* log(u) x / (u - 1) for u = 1 + x, which corrects the rounding of u (W. Kahan). */
static cuda_operand emit_log1p(cuda_lowering *l, cuda_operand x)
{
    const cuda_operand u = emit_binary(l, "add.rn.f32", x, f32_constant(1.0f));
    const cuda_operand log = emit_log(l, u);
    const cuda_operand ratio =
        emit_binary(l, "div.approx.f32", x, emit_binary(l, "add.rn.f32", u, f32_constant(-1.0f)));
    const cuda_operand near = emit_binary(l, "mul.rn.f32", log, ratio);
    const cuda_operand small = emit_select(l, "eq", u, f32_constant(1.0f), x, near);
    return emit_select(l, "lt", emit_unary(l, "abs.f32", x), f32_constant(1.0f), small, log);
}

/* Abramowitz and Stegun 4.4.50 on [-1, 1], and pi/2 - atan(1/x) beyond. */
static cuda_operand emit_atan(cuda_lowering *l, cuda_operand x)
{
    static const float factors[] = {0.0028662257f,  -0.0161657367f, 0.0429096138f,
                                    -0.0752896400f, 0.1065626393f,  -0.1420889944f,
                                    0.1999355085f,  -0.3333314528f, 1.0f};
    const cuda_operand one = f32_constant(1.0f), size = emit_unary(l, "abs.f32", x);
    const cuda_operand inside =
        emit_select(l, "gt", size, one, emit_unary(l, "rcp.approx.f32", size), size);
    const cuda_operand square = emit_binary(l, "mul.rn.f32", inside, inside);
    const cuda_operand angle =
        emit_binary(l, "mul.rn.f32", emit_polynomial(l, square, factors, 9), inside);
    const cuda_operand rest = emit_binary(l, "sub.rn.f32", f32_constant(1.57079633f), angle);
    return emit_binary(l, "copysign.f32", x, emit_select(l, "gt", size, one, rest, angle));
}

/* Without the instruction: 1 - 2 / (exp(2 x) + 1). */
static cuda_operand emit_tanh(cuda_lowering *l, cuda_operand x)
{
    if (l->features & CUDA_FEATURE_APPROXIMATE_TANH) {
        return emit_unary(l, "tanh.approx.f32", x);
    }
    const cuda_operand one = f32_constant(1.0f);
    const cuda_operand grown = emit_exp(l, emit_binary(l, "add.rn.f32", x, x));
    const cuda_operand part =
        emit_unary(l, "rcp.approx.f32", emit_binary(l, "add.rn.f32", grown, one));
    return emit_binary(l, "sub.rn.f32", one, emit_binary(l, "add.rn.f32", part, part));
}

/* Abramowitz and Stegun 7.1.26. */
static cuda_operand emit_erf(cuda_lowering *l, cuda_operand x)
{
    static const float factors[] = {1.061405429f,  -1.453152027f, 1.421413741f,
                                    -0.284496736f, 0.254829592f,  0.0f};
    const cuda_operand size = emit_unary(l, "abs.f32", x), one = f32_constant(1.0f);
    const cuda_operand scaled = emit_binary(l, "mul.rn.f32", size, f32_constant(0.3275911f));
    const cuda_operand t =
        emit_unary(l, "rcp.approx.f32", emit_binary(l, "add.rn.f32", scaled, one));
    const cuda_operand square = emit_binary(l, "mul.rn.f32", size, size);
    const cuda_operand fall = emit_exp(l, emit_binary(l, "sub.rn.f32", f32_constant(0.0f), square));
    const cuda_operand tail = emit_binary(l, "mul.rn.f32", emit_polynomial(l, t, factors, 6), fall);
    return emit_binary(l, "copysign.f32", x, emit_binary(l, "sub.rn.f32", one, tail));
}

bool cuda_lower_math(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (!hal_ir_is_math(r->opcode) || r->type != HAL_TYPE_F32 || !(r->flags & HAL_IR_FAST)) {
        return false;
    }
    const cuda_operand x = cuda_in_register(l, r->a, 0);
    cuda_operand y = x;
    switch (r->opcode) {
    case HAL_IR_EXP:
        y = emit_exp(l, x);
        break;
    case HAL_IR_EXP2:
        y = emit_unary(l, "ex2.approx.f32", x);
        break;
    case HAL_IR_EXPM1:
        y = emit_expm1(l, x);
        break;
    case HAL_IR_LOG:
        y = emit_log(l, x);
        break;
    case HAL_IR_LOG2:
        y = emit_unary(l, "lg2.approx.f32", x);
        break;
    case HAL_IR_LOG1P:
        y = emit_log1p(l, x);
        break;
    case HAL_IR_SIN:
        y = emit_unary(l, "sin.approx.f32", x);
        break;
    case HAL_IR_COS:
        y = emit_unary(l, "cos.approx.f32", x);
        break;
    case HAL_IR_TAN:
        y = emit_binary(l, "div.approx.f32", emit_unary(l, "sin.approx.f32", x),
                        emit_unary(l, "cos.approx.f32", x));
        break;
    case HAL_IR_ATAN:
        y = emit_atan(l, x);
        break;
    case HAL_IR_TANH:
        y = emit_tanh(l, x);
        break;
    case HAL_IR_ERF:
        y = emit_erf(l, x);
        break;
    case HAL_IR_RSQRT:
        y = emit_unary(l, "rsqrt.approx.f32", x);
        break;
    case HAL_IR_POW:
        y = emit_unary(l, "lg2.approx.f32", x);
        y = emit_unary(l, "ex2.approx.f32", emit_binary(l, "mul.rn.f32", y, cuda_value(l, r->b)));
        break;
    default:
        return false;
    }
    l->numbers[index] = (uint32_t)y.bits;
    return true;
}

/* fmod, exact: the divisor is doubled while it is at most half of the rest, then subtracted
 * where it fits and halved, until it is the divisor itself again. */
void cuda_lower_remainder(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const bool is_f32 = r->type == HAL_TYPE_F32;
    const uint32_t class = cuda_class(r->type), label = l->labels;
    const cuda_operand type = cuda_type(r->type), bits = cuda_bits(r->type);
    const cuda_operand infinity = is_f32 ? (cuda_operand){CUDA_FLOAT_BITS, 0x7f800000}
                                         : (cuda_operand){CUDA_DOUBLE_BITS, 0x7ff0000000000000},
                       nan = is_f32 ? (cuda_operand){CUDA_FLOAT_BITS, 0x7fffffff}
                                    : (cuda_operand){CUDA_DOUBLE_BITS, INT64_MAX},
                       zero = {is_f32 ? CUDA_FLOAT_BITS : CUDA_DOUBLE_BITS, 0},
                       half = is_f32 ? (cuda_operand){CUDA_FLOAT_BITS, 0x3f000000}
                                     : (cuda_operand){CUDA_DOUBLE_BITS, 0x3fe0000000000000};
    const cuda_operand a = cuda_in_register(l, r->a, 0), b = cuda_in_register(l, r->b, 0);
    const cuda_operand rest = cuda_fresh(l, class), multiple = cuda_fresh(l, class),
                       divisor = cuda_fresh(l, class), t = cuda_fresh(l, class),
                       p = cuda_fresh(l, CUDA_PREDICATE), result = cuda_define(l, index);
    l->labels += 3;
    cuda_emit(l, "mov$ $, $;", bits, result, nan);
    cuda_emit(l, "abs$ $, $;", type, rest, a);
    cuda_emit(l, "abs$ $, $;", type, divisor, b);
    cuda_emit(l, "setp.lt$ $, $, $;", type, p, rest, infinity);
    cuda_emit(l, "setp.gt.and$ $, $, $, $;", type, p, divisor, zero, p);
    cuda_emit(l, "@!$ bra L$;", p, cuda_unsigned(label + 2));
    cuda_emit(l, "mov$ $, $;", bits, multiple, divisor);
    cuda_emit(l, "L$:", cuda_unsigned(label));
    cuda_emit(l, "mul.rn$ $, $, $;", type, t, rest, half);
    cuda_emit(l, "setp.le$ $, $, $;", type, p, multiple, t);
    cuda_emit(l, "@$ add.rn$ $, $, $;", p, type, multiple, multiple, multiple);
    cuda_emit(l, "@$ bra L$;", p, cuda_unsigned(label));
    cuda_emit(l, "L$:", cuda_unsigned(label + 1));
    cuda_emit(l, "setp.ge$ $, $, $;", type, p, rest, multiple);
    cuda_emit(l, "@$ sub.rn$ $, $, $;", p, type, rest, rest, multiple);
    cuda_emit(l, "setp.gt$ $, $, $;", type, p, multiple, divisor);
    cuda_emit(l, "@$ mul.rn$ $, $, $;", p, type, multiple, multiple, half);
    cuda_emit(l, "@$ bra L$;", p, cuda_unsigned(label + 1));
    cuda_emit(l, "copysign$ $, $, $;", type, result, a, rest);
    cuda_emit(l, "L$:", cuda_unsigned(label + 2));
}
