/* Division, remainder and square root, with the special cases of the IR, and the high half of
 * products. */
#include "lower/divide.h"

#include "lower/block.h"

/* Bits of a float type, of its fraction, and by which a remainder can be shifted in 64 bits. */
typedef struct float_format {
    uint32_t width, fraction, step;
} float_format;

/* The magnitude of a float: fraction * 2^exponent, with one scale for all. */
typedef struct float_parts {
    uint32_t exponent; /* u32; 1 for denormals */
    uint32_t fraction; /* u64 */
} float_parts;

static uint32_t emit_safe_quotient(lower *l, hal_type type, uint32_t a, uint32_t b,
                                   bool may_be_zero, bool may_be_minus_one)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type), width = 8 * hal_type_size(type);
    const uint32_t zero = lower_number(l, width, 0), one = lower_number(l, width, 1);
    const uint32_t is_zero = may_be_zero ? RESULT(w, SPV_OP_I_EQUAL, lower_bool(l), b, zero) : 0;
    const uint32_t is_minus_one = may_be_minus_one ? RESULT(w, SPV_OP_I_EQUAL, lower_bool(l), b,
                                                            lower_number(l, width, UINT64_MAX))
                                                   : 0;
    uint32_t divisor = may_be_zero ? lower_select(l, t, is_zero, one, b) : b;
    divisor = may_be_minus_one ? lower_select(l, t, is_minus_one, one, divisor) : divisor;
    uint32_t quotient =
        RESULT(w, hal_type_is_signed(type) ? SPV_OP_S_DIV : SPV_OP_U_DIV, t, a, divisor);
    if (may_be_minus_one) {
        quotient = lower_select(l, t, is_minus_one, RESULT(w, SPV_OP_I_SUB, t, zero, a), quotient);
    }
    return may_be_zero ? lower_select(l, t, is_zero, zero, quotient) : quotient;
}

/* True where the exponent is so far from both ends that no step of emit_divide_by_fma overflows or
 * underflows. */
static uint32_t emit_is_moderate(lower *l, uint32_t value)
{
    enum { LEAST = 65, MOST = 189 }; /* biased */
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), bits = lower_bits(l, HAL_TYPE_F32, value);
    const uint32_t size = RESULT(w, SPV_OP_BITWISE_AND, u32, bits, lower_u32(l, 0x7fffffff));
    const uint32_t above = RESULT(w, SPV_OP_I_SUB, u32, size, lower_u32(l, (uint32_t)LEAST << 23));
    return RESULT(w, SPV_OP_U_LESS_THAN, lower_bool(l), above,
                  lower_u32(l, (uint32_t)(MOST + 1 - LEAST) << 23));
}

static uint32_t f32_operation(lower *l, uint32_t opcode, uint32_t a, uint32_t b)
{
    return lower_exact(l, RESULT(&l->writer, opcode, lower_float(l, 32), a, b));
}

static uint32_t f32_fma(lower *l, uint32_t a, uint32_t b, uint32_t c)
{
    return lower_exact(l,
                       lower_glsl(l, SPV_GLSL_FMA, lower_float(l, 32), (uint32_t[]){a, b, c}, 3));
}

/* The driver's reciprocal, refined once, gives a quotient, which the remainder corrects twice; the
 * second result is correctly rounded. Holds for reciprocals with an error of at most 3 units in the
 * last place; Vulkan allows 2.5. */
static uint32_t emit_divide_by_fma(lower *l, uint32_t a, uint32_t b)
{
    const uint32_t one = lower_constant(l, HAL_TYPE_F32, 0x3f800000);
    const uint32_t sign = RESULT(&l->writer, SPV_OP_BITWISE_XOR, lower_int(l, 32),
                                 lower_bits(l, HAL_TYPE_F32, b), lower_u32(l, 0x80000000));
    const uint32_t minus_b = lower_from_bits(l, HAL_TYPE_F32, sign);
    const uint32_t rough = f32_operation(l, SPV_OP_F_DIV, one, b);
    const uint32_t inverse = f32_fma(l, f32_fma(l, minus_b, rough, one), rough, rough);
    const uint32_t first = f32_operation(l, SPV_OP_F_MUL, a, inverse);
    const uint32_t second = f32_fma(l, f32_fma(l, minus_b, first, a), inverse, first);
    return f32_fma(l, f32_fma(l, minus_b, second, a), inverse, second);
}

/* f64 has more than twice the bits of f32, so rounding its quotient or root twice is correct. */
static uint32_t emit_through_double(lower *l, uint32_t a, uint32_t b)
{
    spirv_writer *w = &l->writer;
    const uint32_t f64 = lower_float(l, 64);
    const uint32_t wide_a = RESULT(w, SPV_OP_F_CONVERT, f64, a);
    uint32_t wide = 0;
    if (b != 0) {
        const uint32_t wide_b = RESULT(w, SPV_OP_F_CONVERT, f64, b);
        wide = lower_exact(l, RESULT(w, SPV_OP_F_DIV, f64, wide_a, wide_b));
    } else {
        wide = lower_glsl(l, SPV_GLSL_SQRT, f64, &wide_a, 1);
    }
    return RESULT(w, SPV_OP_F_CONVERT, lower_float(l, 32), wide);
}

static uint32_t emit_widen(lower *l, uint32_t width, uint32_t value)
{
    return width == 64 ? value : RESULT(&l->writer, SPV_OP_U_CONVERT, lower_int(l, 64), value);
}

static float_parts float_unpack(lower *l, const float_format *f, uint32_t magnitude)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_int(l, f->width), u32 = lower_int(l, 32), u64 = lower_int(l, 64);
    uint32_t exponent =
        RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, t, magnitude, lower_u32(l, f->fraction));
    exponent = f->width == 64 ? RESULT(w, SPV_OP_U_CONVERT, u32, exponent) : exponent;
    const uint32_t low = RESULT(w, SPV_OP_BITWISE_AND, t, magnitude,
                                lower_number(l, f->width, (UINT64_C(1) << f->fraction) - 1));
    const uint32_t denormal = RESULT(w, SPV_OP_I_EQUAL, lower_bool(l), exponent, lower_u32(l, 0));
    const uint32_t hidden =
        lower_select(l, u64, denormal, lower_u64(l, 0), lower_u64(l, UINT64_C(1) << f->fraction));
    float_parts parts;
    parts.exponent = lower_select(l, u32, denormal, lower_u32(l, 1), exponent);
    parts.fraction = RESULT(w, SPV_OP_BITWISE_OR, u64, emit_widen(l, f->width, low), hidden);
    return parts;
}

/* fraction(a) * 2^distance mod fraction(b), exact: shifts by as many bits as 64 bits allow. */
static uint32_t fraction_modulo(lower *l, const float_format *f, const float_parts *a,
                                const float_parts *b)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), u64 = lower_int(l, 64);
    const uint32_t header = spirv_id(w), body = spirv_id(w), next = spirv_id(w);
    const uint32_t merge = spirv_id(w), later = spirv_id(w), fewer = spirv_id(w);
    const uint32_t first = RESULT(w, SPV_OP_U_MOD, u64, a->fraction, b->fraction);
    const uint32_t distance = RESULT(w, SPV_OP_I_SUB, u32, a->exponent, b->exponent);
    const uint32_t before = l->label;
    lower_branch(l, header);
    lower_label(l, header);
    const uint32_t rest = lower_phi(l, u64, first, before, later, next);
    const uint32_t left = lower_phi(l, u32, distance, before, fewer, next);
    const uint32_t more = RESULT(w, SPV_OP_I_NOT_EQUAL, lower_bool(l), left, lower_u32(l, 0));
    EMIT(w, SPIRV_BODY, SPV_OP_LOOP_MERGE, merge, next, 0);
    EMIT(w, SPIRV_BODY, SPV_OP_BRANCH_CONDITIONAL, more, body, merge);
    lower_label(l, body);
    const uint32_t step = lower_u32(l, f->step);
    const uint32_t small = RESULT(w, SPV_OP_U_LESS_THAN, lower_bool(l), left, step);
    const uint32_t by = lower_select(l, u32, small, left, step);
    const uint32_t shifted = RESULT(w, SPV_OP_SHIFT_LEFT_LOGICAL, u64, rest, by);
    EMIT(w, SPIRV_BODY, SPV_OP_U_MOD, u64, later, shifted, b->fraction);
    EMIT(w, SPIRV_BODY, SPV_OP_I_SUB, u32, fewer, left, by);
    lower_branch(l, next);
    lower_label(l, next);
    lower_branch(l, header);
    lower_label(l, merge);
    return rest;
}

static uint32_t emit_narrow(lower *l, uint32_t width, uint32_t value)
{
    return width == 64 ? value : RESULT(&l->writer, SPV_OP_U_CONVERT, lower_int(l, width), value);
}

/* fraction * 2^exponent as bits of the type: normalises as far as the exponent allows, by powers of
 * two from the largest. */
static uint32_t float_pack(lower *l, const float_format *f, uint32_t fraction, uint32_t exponent)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), u64 = lower_int(l, 64);
    for (uint32_t by = f->width / 2; by > 0; by /= 2) {
        const uint32_t room = RESULT(w, SPV_OP_U_LESS_THAN, lower_bool(l), fraction,
                                     lower_u64(l, UINT64_C(1) << (f->fraction + 1 - by)));
        const uint32_t allowed =
            RESULT(w, SPV_OP_U_GREATER_THAN, lower_bool(l), exponent, lower_u32(l, by));
        const uint32_t both = RESULT(w, SPV_OP_LOGICAL_AND, lower_bool(l), room, allowed);
        const uint32_t amount = lower_select(l, u32, both, lower_u32(l, by), lower_u32(l, 0));
        fraction = RESULT(w, SPV_OP_SHIFT_LEFT_LOGICAL, u64, fraction, amount);
        exponent = RESULT(w, SPV_OP_I_SUB, u32, exponent, amount);
    }
    const uint32_t above = RESULT(w, SPV_OP_I_SUB, u32, exponent, lower_u32(l, 1));
    const uint32_t placed = RESULT(w, SPV_OP_SHIFT_LEFT_LOGICAL, u64, emit_widen(l, 32, above),
                                   lower_u32(l, f->fraction));
    const uint32_t sum = RESULT(w, SPV_OP_I_ADD, u64, fraction, placed);
    const uint32_t none = RESULT(w, SPV_OP_I_EQUAL, lower_bool(l), fraction, lower_u64(l, 0));
    return emit_narrow(l, f->width, lower_select(l, u64, none, lower_u64(l, 0), sum));
}

/* From products of 32-bit halves, since not every driver has products of 128 bits. */
static uint32_t emit_unsigned_high_64(lower *l, uint32_t a, uint32_t b)
{
    spirv_writer *w = &l->writer;
    const uint32_t u64 = lower_int(l, 64), mask = lower_u64(l, UINT32_MAX);
    const uint32_t by = lower_u32(l, 32);
    const uint32_t a0 = RESULT(w, SPV_OP_BITWISE_AND, u64, a, mask);
    const uint32_t b0 = RESULT(w, SPV_OP_BITWISE_AND, u64, b, mask);
    const uint32_t a1 = RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u64, a, by);
    const uint32_t b1 = RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u64, b, by);
    const uint32_t low = RESULT(w, SPV_OP_I_MUL, u64, a0, b0);
    const uint32_t cross = RESULT(w, SPV_OP_I_ADD, u64, RESULT(w, SPV_OP_I_MUL, u64, a1, b0),
                                  RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u64, low, by));
    const uint32_t cross_low = RESULT(w, SPV_OP_BITWISE_AND, u64, cross, mask);
    const uint32_t middle =
        RESULT(w, SPV_OP_I_ADD, u64, RESULT(w, SPV_OP_I_MUL, u64, a0, b1), cross_low);
    const uint32_t top = RESULT(w, SPV_OP_I_ADD, u64, RESULT(w, SPV_OP_I_MUL, u64, a1, b1),
                                RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u64, cross, by));
    return RESULT(w, SPV_OP_I_ADD, u64, top,
                  RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u64, middle, by));
}

/* x / 0 = x % 0 = 0, and the least integer by -1 wraps. A constant divisor needs no guards. */
uint32_t lower_divide_integer(lower *l, const hal_ir_record *record)
{
    spirv_writer *w = &l->writer;
    const hal_type type = record->type;
    const uint32_t t = lower_type(l, type), width = 8 * hal_type_size(type);
    const uint32_t a = l->ids[record->a], b = l->ids[record->b];
    const hal_ir_record *divisor = &l->ir->records[record->b];
    const int constant = divisor->opcode == HAL_IR_CONSTANT;
    const uint64_t value = constant ? l->ir->constants[divisor->aux] : 0;
    const uint64_t minus_one = width == 64 ? UINT64_MAX : UINT32_MAX;
    const bool may_be_zero = !constant || value == 0;
    const uint32_t quotient = emit_safe_quotient(
        l, type, a, b, may_be_zero, hal_type_is_signed(type) && (!constant || value == minus_one));
    if (record->opcode == HAL_IR_DIV) {
        return quotient;
    }
    /* The driver's remainder is undefined for negative operands. */
    const uint32_t rest = RESULT(w, SPV_OP_I_SUB, t, a, RESULT(w, SPV_OP_I_MUL, t, quotient, b));
    if (!may_be_zero) {
        return rest;
    }
    const uint32_t zero = lower_number(l, width, 0);
    return lower_select(l, t, RESULT(w, SPV_OP_I_EQUAL, lower_bool(l), b, zero), zero, rest);
}

uint32_t lower_divide_float(lower *l, hal_type type, uint32_t a, uint32_t b)
{
    spirv_writer *w = &l->writer;
    if (type != HAL_TYPE_F32 || !l->target->repairs_division) {
        return lower_exact(l, RESULT(w, SPV_OP_F_DIV, lower_type(l, type), a, b));
    }
    const uint32_t yes = spirv_id(w), no = spirv_id(w), merge = spirv_id(w);
    const uint32_t a_is = emit_is_moderate(l, a), b_is = emit_is_moderate(l, b);
    lower_branch_if(l, RESULT(w, SPV_OP_LOGICAL_AND, lower_bool(l), a_is, b_is), yes, no, merge);
    lower_label(l, yes);
    const uint32_t quotient = emit_divide_by_fma(l, a, b);
    lower_branch(l, merge);
    lower_label(l, no);
    const uint32_t rounded = emit_through_double(l, a, b);
    lower_branch(l, merge);
    lower_label(l, merge);
    return lower_phi(l, lower_float(l, 32), quotient, yes, rounded, no);
}

uint32_t lower_square_root(lower *l, hal_type type, uint32_t a)
{
    if (type == HAL_TYPE_F32 && l->target->repairs_division) {
        return emit_through_double(l, a, 0);
    }
    return lower_glsl(l, SPV_GLSL_SQRT, lower_type(l, type), &a, 1);
}

/* By integers, exact, as C fmod: NaN for an infinite or NaN dividend and for a zero or NaN divisor;
 * the dividend where it is less than the divisor. */
uint32_t lower_remainder_float(lower *l, hal_type type, uint32_t a, uint32_t b)
{
    spirv_writer *w = &l->writer;
    const float_format f =
        type == HAL_TYPE_F32 ? (float_format){32, 23, 40} : (float_format){64, 52, 11};
    const uint32_t t = lower_int(l, f.width), boolean = lower_bool(l);
    const uint64_t sign = UINT64_C(1) << (f.width - 1);
    const uint64_t infinity = (sign - 1) >> f.fraction << f.fraction;
    const uint32_t bits_a = lower_bits(l, type, a), bits_b = lower_bits(l, type, b);
    const uint32_t low = lower_number(l, f.width, sign - 1);
    const uint32_t size_a = RESULT(w, SPV_OP_BITWISE_AND, t, bits_a, low);
    const uint32_t size_b = RESULT(w, SPV_OP_BITWISE_AND, t, bits_b, low);
    const uint32_t limit = lower_number(l, f.width, infinity);
    const uint32_t bad_a = RESULT(w, SPV_OP_U_GREATER_THAN_EQUAL, boolean, size_a, limit);
    const uint32_t zero_b = RESULT(w, SPV_OP_I_EQUAL, boolean, size_b, lower_number(l, f.width, 0));
    const uint32_t nan_b = RESULT(w, SPV_OP_U_GREATER_THAN, boolean, size_b, limit);
    const uint32_t bad = RESULT(w, SPV_OP_LOGICAL_OR, boolean, bad_a,
                                RESULT(w, SPV_OP_LOGICAL_OR, boolean, zero_b, nan_b));
    const uint32_t smaller = RESULT(w, SPV_OP_U_LESS_THAN, boolean, size_a, size_b);
    const uint32_t done = RESULT(w, SPV_OP_LOGICAL_OR, boolean, bad, smaller);
    const uint32_t quiet = lower_number(l, f.width, infinity | infinity >> 1);
    const uint32_t early = lower_select(l, t, bad, quiet, bits_a);
    const uint32_t work = spirv_id(w), merge = spirv_id(w), before = l->label;
    lower_branch_if(l, done, merge, work, merge);
    lower_label(l, work);
    const float_parts parts_a = float_unpack(l, &f, size_a), parts_b = float_unpack(l, &f, size_b);
    const uint32_t rest = fraction_modulo(l, &f, &parts_a, &parts_b);
    const uint32_t size = float_pack(l, &f, rest, parts_b.exponent);
    const uint32_t sign_a =
        RESULT(w, SPV_OP_BITWISE_AND, t, bits_a, lower_number(l, f.width, sign));
    const uint32_t signed_size = RESULT(w, SPV_OP_BITWISE_OR, t, size, sign_a);
    const uint32_t from = l->label;
    lower_branch(l, merge);
    lower_label(l, merge);
    return lower_from_bits(l, type, lower_phi(l, t, early, before, signed_size, from));
}

uint32_t lower_multiply_high(lower *l, hal_type type, uint32_t a, uint32_t b)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), u64 = lower_int(l, 64);
    if (hal_type_size(type) == 4) {
        const uint32_t widening = hal_type_is_signed(type) ? SPV_OP_S_CONVERT : SPV_OP_U_CONVERT;
        const uint32_t product =
            RESULT(w, SPV_OP_I_MUL, u64, RESULT(w, widening, u64, a), RESULT(w, widening, u64, b));
        const uint32_t high = RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u64, product, lower_u32(l, 32));
        return RESULT(w, SPV_OP_U_CONVERT, u32, high);
    }
    uint32_t high = emit_unsigned_high_64(l, a, b);
    if (hal_type_is_signed(type)) {
        const uint32_t zero = lower_u64(l, 0);
        const uint32_t operands[2] = {a, b};
        for (int i = 0; i < 2; i++) {
            const uint32_t negative =
                RESULT(w, SPV_OP_S_LESS_THAN, lower_bool(l), operands[i], zero);
            high = RESULT(w, SPV_OP_I_SUB, u64, high,
                          lower_select(l, u64, negative, operands[1 - i], zero));
        }
    }
    return high;
}
