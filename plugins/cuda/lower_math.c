/* The device's own fast transcendental functions of f32, for HAL_IR_FAST, and the float remainder.
 * Everything else arrives expanded by hal. */
#include "lower_state.h"

static cuda_operand step(cuda_lowering *l, const char *name, cuda_operand a)
{
    const cuda_operand made = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "$ $, $;", cuda_text(name), made, a);
    return made;
}

static cuda_operand step2(cuda_lowering *l, const char *name, cuda_operand a, cuda_operand b)
{
    const cuda_operand made = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "$ $, $, $;", cuda_text(name), made, a, b);
    return made;
}

static cuda_operand number(float value)
{
    union {
        float value;
        uint32_t bits;
    } both = {.value = value};
    return (cuda_operand){CUDA_FLOAT_BITS, both.bits};
}

static cuda_operand fast_exp(cuda_lowering *l, cuda_operand x)
{
    return step(l, "ex2.approx.f32", step2(l, "mul.rn.f32", x, number(1.44269504f)));
}

/* The highest power's factor comes first. */
static cuda_operand polynomial(cuda_lowering *l, cuda_operand x, const float *factors,
                               uint32_t count)
{
    cuda_operand sum = number(factors[0]);
    for (uint32_t i = 1; i < count; i++) {
        const cuda_operand next = cuda_fresh(l, CUDA_FLOAT);
        cuda_emit(l, "fma.rn.f32 $, $, $, $;", next, sum, x, number(factors[i]));
        sum = next;
    }
    return sum;
}

static cuda_operand choose(cuda_lowering *l, const char *test, cuda_operand a, cuda_operand b,
                           cuda_operand yes, cuda_operand no)
{
    const cuda_operand p = cuda_fresh(l, CUDA_PREDICATE), made = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "setp.$.f32 $, $, $;", cuda_text(test), p, a, b);
    cuda_emit(l, "selp.f32 $, $, $, $;", made, yes, no, p);
    return made;
}

/* Near 0 the series, so that small results keep their digits. */
static cuda_operand fast_expm1(cuda_lowering *l, cuda_operand x)
{
    static const float series[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                   1.0f / 6,    0.5f,       1.0f};
    const cuda_operand near = step2(l, "mul.rn.f32", polynomial(l, x, series, 7), x);
    const cuda_operand far = step2(l, "add.rn.f32", fast_exp(l, x), number(-1.0f));
    return choose(l, "lt", step(l, "abs.f32", x), number(0.5f), near, far);
}

static cuda_operand fast_log(cuda_lowering *l, cuda_operand x)
{
    return step2(l, "mul.rn.f32", step(l, "lg2.approx.f32", x), number(0.693147181f));
}

/* log(u) x / (u - 1) for u = 1 + x makes good what rounding u lost. */
static cuda_operand fast_log1p(cuda_lowering *l, cuda_operand x)
{
    const cuda_operand u = step2(l, "add.rn.f32", x, number(1.0f));
    const cuda_operand log = fast_log(l, u);
    const cuda_operand ratio =
        step2(l, "div.approx.f32", x, step2(l, "add.rn.f32", u, number(-1.0f)));
    const cuda_operand near = step2(l, "mul.rn.f32", log, ratio);
    const cuda_operand small = choose(l, "eq", u, number(1.0f), x, near);
    return choose(l, "lt", step(l, "abs.f32", x), number(1.0f), small, log);
}

/* Abramowitz and Stegun 4.4.50 on [-1, 1], and pi/2 - atan(1/x) beyond. */
static cuda_operand fast_atan(cuda_lowering *l, cuda_operand x)
{
    static const float factors[] = {0.0028662257f,  -0.0161657367f, 0.0429096138f,
                                    -0.0752896400f, 0.1065626393f,  -0.1420889944f,
                                    0.1999355085f,  -0.3333314528f, 1.0f};
    const cuda_operand one = number(1.0f), size = step(l, "abs.f32", x);
    const cuda_operand inside = choose(l, "gt", size, one, step(l, "rcp.approx.f32", size), size);
    const cuda_operand square = step2(l, "mul.rn.f32", inside, inside);
    const cuda_operand angle = step2(l, "mul.rn.f32", polynomial(l, square, factors, 9), inside);
    const cuda_operand rest = step2(l, "sub.rn.f32", number(1.57079633f), angle);
    return step2(l, "copysign.f32", x, choose(l, "gt", size, one, rest, angle));
}

/* 1 - 2 / (exp(2 x) + 1) before 7.5. */
static cuda_operand fast_tanh(cuda_lowering *l, cuda_operand x)
{
    if (l->sm >= 75) {
        return step(l, "tanh.approx.f32", x);
    }
    const cuda_operand one = number(1.0f);
    const cuda_operand grown = fast_exp(l, step2(l, "add.rn.f32", x, x));
    const cuda_operand part = step(l, "rcp.approx.f32", step2(l, "add.rn.f32", grown, one));
    return step2(l, "sub.rn.f32", one, step2(l, "add.rn.f32", part, part));
}

/* Abramowitz and Stegun 7.1.26. */
static cuda_operand fast_erf(cuda_lowering *l, cuda_operand x)
{
    static const float factors[] = {1.061405429f,  -1.453152027f, 1.421413741f,
                                    -0.284496736f, 0.254829592f,  0.0f};
    const cuda_operand size = step(l, "abs.f32", x), one = number(1.0f);
    const cuda_operand scaled = step2(l, "mul.rn.f32", size, number(0.3275911f));
    const cuda_operand t = step(l, "rcp.approx.f32", step2(l, "add.rn.f32", scaled, one));
    const cuda_operand square = step2(l, "mul.rn.f32", size, size);
    const cuda_operand fall = fast_exp(l, step2(l, "sub.rn.f32", number(0.0f), square));
    const cuda_operand tail = step2(l, "mul.rn.f32", polynomial(l, t, factors, 6), fall);
    return step2(l, "copysign.f32", x, step2(l, "sub.rn.f32", one, tail));
}

int cuda_lower_math(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (!hal_ir_is_math(r->opcode) || r->type != HAL_TYPE_F32 || !(r->flags & HAL_IR_FAST)) {
        return 0;
    }
    const cuda_operand x = cuda_in_register(l, r->a, 0);
    cuda_operand y = x;
    switch (r->opcode) {
    case HAL_IR_EXP:
        y = fast_exp(l, x);
        break;
    case HAL_IR_EXP2:
        y = step(l, "ex2.approx.f32", x);
        break;
    case HAL_IR_EXPM1:
        y = fast_expm1(l, x);
        break;
    case HAL_IR_LOG:
        y = fast_log(l, x);
        break;
    case HAL_IR_LOG2:
        y = step(l, "lg2.approx.f32", x);
        break;
    case HAL_IR_LOG1P:
        y = fast_log1p(l, x);
        break;
    case HAL_IR_SIN:
        y = step(l, "sin.approx.f32", x);
        break;
    case HAL_IR_COS:
        y = step(l, "cos.approx.f32", x);
        break;
    case HAL_IR_TAN:
        y = step2(l, "div.approx.f32", step(l, "sin.approx.f32", x), step(l, "cos.approx.f32", x));
        break;
    case HAL_IR_ATAN:
        y = fast_atan(l, x);
        break;
    case HAL_IR_TANH:
        y = fast_tanh(l, x);
        break;
    case HAL_IR_ERF:
        y = fast_erf(l, x);
        break;
    case HAL_IR_RSQRT:
        y = step(l, "rsqrt.approx.f32", x);
        break;
    case HAL_IR_POW:
        y = step(l, "lg2.approx.f32", x);
        y = step(l, "ex2.approx.f32", step2(l, "mul.rn.f32", y, cuda_value(l, r->b)));
        break;
    default:
        return 0;
    }
    l->numbers[index] = (uint32_t)y.bits;
    return 1;
}

/* fmod is exact: the divisor, doubled until it is as large as what is left, is taken off and halved
 * until it is itself again. */
void cuda_lower_remainder(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const int is_f32 = r->type == HAL_TYPE_F32;
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
    const cuda_operand left = cuda_fresh(l, class), by = cuda_fresh(l, class),
                       least = cuda_fresh(l, class), t = cuda_fresh(l, class),
                       p = cuda_fresh(l, CUDA_PREDICATE), result = cuda_define(l, index);
    l->labels += 3;
    cuda_emit(l, "mov$ $, $;", bits, result, nan);
    cuda_emit(l, "abs$ $, $;", type, left, a);
    cuda_emit(l, "abs$ $, $;", type, least, b);
    cuda_emit(l, "setp.lt$ $, $, $;", type, p, left, infinity);
    cuda_emit(l, "setp.gt.and$ $, $, $, $;", type, p, least, zero, p);
    cuda_emit(l, "@!$ bra L$;", p, cuda_unsigned(label + 2));
    cuda_emit(l, "mov$ $, $;", bits, by, least);
    cuda_emit(l, "L$:", cuda_unsigned(label));
    cuda_emit(l, "mul.rn$ $, $, $;", type, t, left, half);
    cuda_emit(l, "setp.le$ $, $, $;", type, p, by, t);
    cuda_emit(l, "@$ add.rn$ $, $, $;", p, type, by, by, by);
    cuda_emit(l, "@$ bra L$;", p, cuda_unsigned(label));
    cuda_emit(l, "L$:", cuda_unsigned(label + 1));
    cuda_emit(l, "setp.ge$ $, $, $;", type, p, left, by);
    cuda_emit(l, "@$ sub.rn$ $, $, $;", p, type, left, left, by);
    cuda_emit(l, "setp.gt$ $, $, $;", type, p, by, least);
    cuda_emit(l, "@$ mul.rn$ $, $, $;", p, type, by, by, half);
    cuda_emit(l, "@$ bra L$;", p, cuda_unsigned(label + 1));
    cuda_emit(l, "copysign$ $, $, $;", type, result, a, left);
    cuda_emit(l, "L$:", cuda_unsigned(label + 2));
}
